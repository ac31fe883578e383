"""Steps: ramps beside each scaled feature, for targets that change suddenly along single features.

A ramp is 0 up to one quantile of its feature and 1 from the next one on. Two values far apart differ in
many ramps, two values next to each other in one, so the squared distance of two rows grows with the
number of rows between them in each feature, as it does for trees, and not with the square of their
difference alone. Such features are known as piecewise linear encoding (Y. Gorishniy and others, *On
Embeddings for Numerical Features in Tabular Deep Learning*, 2022).

A feature and its ramps count as much together as the feature alone: half of its variance is that of the
ramps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array, read_only
from .bends import Bent
from .metric import Weighted, weighted
from .scaling import GRAIN, plain

RAMPS = 8  # beside a feature, at most
HALF = 0.5  # the share of the variance of a feature that is given to its ramps
PART = 2**18  # entries that are computed together
ROUNDING = 1e-9  # a quantile that is a value up to rounding is this value


@dataclass(frozen=True, eq=False)
class Stepped:
    """Rows are scaled, then (ramp - center) · size of each ramp is appended to them.

    Features that have ramps are multiplied by `keep`, others by 1.
    """

    scaler: Bent
    owner: Array  # the feature that each ramp is of
    low: Array  # scaled values where each ramp begins …
    high: Array  # … and ends
    center: Array
    size: Array

    @property
    def features(self) -> int:
        """Of scaled rows."""
        return self.scaler.features + len(self.owner)

    @property
    def varies(self) -> Array:
        """Which features are not dropped. A ramp is a part of its feature and does not count."""
        return np.append(self.scaler.varies, np.zeros(len(self.owner), bool))

    @property
    def feature_of(self) -> Array:
        """The feature that each column of scaled rows belongs to."""
        return np.append(np.arange(self.scaler.features), self.owner)

    @property
    def keep(self) -> Array:
        """What the features themselves are multiplied by."""
        ramps = np.bincount(self.owner, minlength=self.scaler.features)
        return np.where(ramps > 0, np.sqrt(1.0 - HALF), 1.0)

    def transform(self, X: Any) -> Array:
        """The scaled rows with ramps."""
        return self.extended(self.scaler.transform(X))

    def extended(self, Z: Array) -> Array:
        """Scaled rows with ramps."""
        d = self.scaler.features
        out = np.empty((Z.shape[0], self.features), Z.dtype)
        np.multiply(Z, self.keep, out=out[:, :d], casting="same_kind")
        rows, slope = max(1, PART // self.features), 1.0 / (self.high - self.low)
        for lo in range(0, Z.shape[0], rows):
            ramp = Z[lo : lo + rows][:, self.owner].astype(np.float64, copy=False)
            ramp = np.clip((ramp - self.low) * slope, 0.0, 1.0)
            out[lo : lo + rows, d:] = (ramp - self.center) * self.size
        return out

    def inverse_transform(self, Z: Array) -> Any:
        """Rows from scaled rows: the features are there beside their ramps."""
        own = (Z[:, : self.scaler.features] / self.keep).astype(Z.dtype, copy=False)
        return self.scaler.inverse_transform(own)

    def grown(self, X: Any) -> Stepped:
        """This scaler: it knows all features."""
        return self

    def near(self, other: Any) -> bool:
        """Whether scaling by the other would change next to nothing."""
        return isinstance(other, Stepped) and self.scaler.near(other.scaler)


def stepped(scaler: Any, Z: Any, weight: Array, most: int) -> Stepped | None:
    """The scaler with ramps at quantiles of scaled rows; None for sparse rows, or without any ramp.

    With ramps there are at most `most` columns.
    """
    if sp.issparse(Z) or not isinstance(scaler, Bent):
        return None
    found = [(i, _edges(Z[:, i], weight)) for i in np.flatnonzero(scaler.varies)]
    found = [(i, edges) for i, edges in found if len(edges) > 2]
    count = sum(len(edges) - 1 for _, edges in found)
    if not 0 < count <= most - Z.shape[1]:
        return None
    owner = np.repeat([i for i, _ in found], [len(edges) - 1 for _, edges in found])
    low = np.concatenate([edges[:-1] for _, edges in found])
    high = np.concatenate([edges[1:] for _, edges in found])
    share = weight / weight.sum()
    center, square, spread = np.empty(count), np.empty(count), np.zeros(Z.shape[1])
    for k, i in enumerate(owner):
        ramp = np.clip((Z[:, i] - low[k]) / (high[k] - low[k]), 0.0, 1.0)
        center[k] = np.rint(share @ ramp * GRAIN) / GRAIN
        square[k] = share @ np.square(ramp - center[k])
    for i, _ in found:
        spread[i] = share @ np.square(Z[:, i] - share @ Z[:, i])
    total = np.bincount(owner, square, Z.shape[1])[owner]
    size = plain(np.sqrt(HALF * spread[owner] / np.maximum(total, 1e-300)))
    return Stepped(scaler, *map(read_only, (owner, low, high, center, size)))


def _edges(z: Array, weight: Array) -> Array:
    """Values of a feature between which its ramps rise: quantiles, or all values if they are few."""
    values, place = np.unique(z, return_inverse=True)
    values = values.astype(np.float64, copy=False)
    if len(values) <= RAMPS + 1:
        return values
    share = np.bincount(place, weight) / weight.sum()
    middle = np.cumsum(share) - 0.5 * share
    wanted = np.linspace(middle[0], middle[-1], RAMPS + 1)[1:-1]
    at = np.searchsorted(middle, wanted - ROUNDING)
    return values[np.unique(np.concatenate([[0], at, [len(values) - 1]]))]


def onwards(Z: Any, start: Any, scaler: Any) -> Any:
    """Rows as this scaler has them, from rows as another one has them that it goes on from."""
    if scaler is start:
        return Z
    before = onwards(Z, start, scaler.scaler)
    if isinstance(scaler, Weighted):
        return weighted(before, scaler.weight)
    return scaler.extended(before)


def feature_of(scaler: Any) -> Array:
    """The feature that each column of scaled rows belongs to."""
    if isinstance(scaler, Weighted):
        return feature_of(scaler.scaler)
    return scaler.feature_of if isinstance(scaler, Stepped) else np.arange(scaler.features)


def per_feature(parts: Array, scaler: Any) -> Array:
    """Sums over the columns of scaled rows, the last axis, that belong to a feature."""
    owner = feature_of(scaler)
    d = int(owner.max(initial=-1)) + 1
    if d == len(owner):
        return parts
    out = parts[..., :d].copy()
    np.add.at(np.moveaxis(out, -1, 0), owner[d:], np.moveaxis(parts[..., d:], -1, 0))
    return out
