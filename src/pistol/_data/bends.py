"""Robust scaling: values far out neither set the scale of a feature nor count much themselves.

The scale of a feature comes from values within its *fences*. These lie twice the distance of the 5 %
and 95 % quantiles beyond them. Scaled values larger than 2 are bent towards 4, which none of them
reaches. A feature that has many values beyond its fences is replaced by its normal scores: its ranks,
spread like the values of a normal distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri

from .._compiled.types import Array
from .scaling import GRAIN, Scaler, moments_of, stays_sparse
from .targets import weighted_quantile

TAIL, FENCE = 0.05, 2.0  # the quantiles, and how far beyond them the fences are
STRAIGHT, ROOM = 2.0, 2.0  # scaled values that stay, and how much farther out others can be
OUTSIDE, TIED = 0.005, 0.3  # ranked: a larger share beyond the fences, no value with a larger share
KNOTS, FARTHEST = 128, 3.0  # of normal scores
SAMPLE = 8192  # rows whose values say where the quantiles are


@dataclass(frozen=True, eq=False)
class Bent:
    """Rows are scaled, then values far out are bent, or all values of a feature ranked."""

    scaler: Scaler
    ranked: dict[int, tuple[Array, Array]] = field(default_factory=dict)  # knots: values, scores

    @property
    def features(self) -> int:
        """Of scaled rows."""
        return self.scaler.features

    @property
    def varies(self) -> Array:
        """Which features are not dropped."""
        return self.scaler.varies

    def transform(self, X: Any) -> Any:
        """The scaled and bent rows."""
        Z = self.scaler.transform(X)
        if sp.issparse(Z):
            return sp.csr_array((in_steps(bend(Z.data)), Z.indices, Z.indptr), shape=Z.shape)
        out = bend(Z)
        for i, (values, scores) in self.ranked.items():
            out[:, i] = np.interp(Z[:, i], values, scores)
        return in_steps(out)

    def inverse_transform(self, Z: Any) -> Any:
        """Rows from scaled and bent rows; values very far out come back less exactly."""
        if sp.issparse(Z):
            straight = sp.csr_array((unbend(Z.data), Z.indices, Z.indptr), shape=Z.shape)
            return self.scaler.inverse_transform(straight)
        straight = unbend(Z)
        for i, (values, scores) in self.ranked.items():
            straight[:, i] = np.interp(Z[:, i], scores, values)
        return self.scaler.inverse_transform(straight)

    def grown(self, X: Any) -> Bent:
        """This scaler: it knows all features."""
        return self

    def near(self, other: Any) -> bool:
        """Whether scaling by the other would change next to nothing."""
        return isinstance(other, Bent) and self.scaler.near(other.scaler)


def bend(Z: Array) -> Array:
    """z up to a size of 2; beyond, 2 + u / (1 + u/2) for a size of 2 + u."""
    size = np.abs(Z)
    beyond = np.maximum(size - STRAIGHT, 0.0)
    return np.copysign(np.minimum(size, STRAIGHT) + beyond / (1.0 + beyond / ROOM), Z)


def in_steps(Z: Array) -> Array:
    """Values without what depends on rounding; faint ones, which no step would leave, stay."""
    steps = (np.rint(Z * GRAIN) / GRAIN).astype(Z.dtype, copy=False)
    return np.where(np.abs(Z) < 1.0 / GRAIN, Z, steps)


def unbend(Z: Array) -> Array:
    """z from bend(z)."""
    size = np.abs(Z)
    beyond = np.clip(size - STRAIGHT, 0.0, ROOM * (1.0 - 1e-6))
    return np.copysign(np.minimum(size, STRAIGHT) + beyond / (1.0 - beyond / ROOM), Z)


def bent_scaler(X: Any, weight: Array, hashes: Array) -> Bent:
    """The robust scaler of all rows of a data set; which rows are looked at depends on `hashes`."""
    if sp.issparse(X):
        return Bent(moments_of(X, weight).scaler(centred=not stays_sparse(X, whole=True)))
    rows = np.argsort(hashes, kind="stable")[:SAMPLE] if len(hashes) > SAMPLE else slice(None)
    sample, each = X[rows].astype(np.float64, copy=False), weight[rows]
    low, high = fences(sample, each)
    scaler = moments_of(np.clip(X, low, high), weight).scaler()
    outside = each @ ((sample < low) | (sample > high)) / each.sum()
    heavy = np.flatnonzero((outside > OUTSIDE) & scaler.varies)
    Z = replace(scaler).transform(sample) if len(heavy) else sample
    found = ((int(i), normal_scores(Z[:, i], each)) for i in heavy)
    return Bent(scaler, {i: knots for i, knots in found if knots is not None})


def fences(X: Array, weight: Array) -> tuple[Array, Array]:
    """Bounds of what is not far out, for each feature; none where most values are the same."""
    low, high = (weighted_quantile(X, weight, q) for q in (TAIL, 1.0 - TAIL))
    with np.errstate(over="ignore", invalid="ignore"):
        room = np.where(high > low, FENCE * (high - low), np.inf)
        return np.maximum(low - room, X.min(axis=0)), np.minimum(high + room, X.max(axis=0))


def normal_scores(z: Array, weight: Array) -> tuple[Array, Array] | None:
    """Some values of a feature and their normal scores; None where one value is too frequent."""
    values, place = np.unique(z, return_inverse=True)
    share = np.bincount(place, weight) / weight.sum()
    if share.max() > TIED:
        return None
    middle = np.cumsum(share) - 0.5 * share
    at = np.unique(np.searchsorted(middle, np.linspace(middle[0], middle[-1], KNOTS)))
    return values[at], np.clip(ndtri(middle[at]), -FARTHEST, FARTHEST)
