"""Steps: ramps beside each scaled feature, for targets that change suddenly along single features.

The rows are cut into eight parts of equal size along a feature. Each part has a ramp, which rises from
0 to 1 within the part, in proportion to the ranks of the rows. A feature with up to nine values has a
ramp between any two neighbouring values. Two values far apart differ in many
ramps, two values next to each other in one. So the squared distance of two rows grows with the number
of rows between them, as it does for trees, and not with the square of their difference alone. Such
features are known as piecewise linear encoding (Y. Gorishniy and others, *On Embeddings for Numerical
Features in Tabular Deep Learning*, 2022).

A feature and its ramps vary as much together as the feature alone does: half of the variance is that of
the ramps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.ramps import extend_rows, find_knots
from .._compiled.types import Array, read_only
from .bends import Bent
from .metric import Weighted, weighted
from .scaling import Unscaled, plain

RAMPS = 8  # beside a feature, at most
HALF = 0.5  # the share of the variance of a feature that is given to its ramps
KNOTS = 64  # between which ranks are on straight lines
GRID = np.linspace(0.0, 1.0, KNOTS + 1)
MOST_KNOTS = 2 * (KNOTS + 1)  # there are: the nearest values on both sides of each
# Centres of ramps are multiples of 1 / CENTRES. Ramps are multiples of 1 / GRAIN, so their means are
# often halfway between two of these, where the order of the rows would tell which one is nearer.
CENTRES = 2.0**20
ROUNDING = 1e-9  # a quantile that is a value up to rounding is this value
PART = 2**13  # rows of which some columns are made together
LOW, HIGH = read_only(GRID - ROUNDING), read_only(GRID + ROUNDING)


@dataclass(frozen=True, eq=False)
class Stepped:
    """Rows are scaled, then (ramp - center) · size of each ramp is appended to them.

    Features that have ramps are multiplied by `keep`, others by 1.
    """

    scaler: Bent
    places: dict[int, tuple[Array, Array]]  # knots of each feature: values, and ramps up to there
    center: Array  # of each ramp
    size: Array

    @property
    def owner(self) -> Array:
        """The feature that each ramp is of."""
        ramps = [_count(places) for _, places in self.places.values()]
        return np.repeat(np.array(list(self.places), np.int64), ramps)

    @property
    def features(self) -> int:
        """Of scaled rows."""
        return self.scaler.features + len(self.center)

    @property
    def varies(self) -> Array:
        """Which features are not dropped; a ramp is a part of its feature."""
        return self.scaler.varies

    @property
    def keep(self) -> Array:
        """What the features themselves are multiplied by."""
        keep = np.ones(self.scaler.features)
        keep[list(self.places)] = np.sqrt(1.0 - HALF)
        return keep

    def transform(self, X: Any) -> Array:
        """The scaled rows with ramps."""
        return self.extended(self.scaler.transform(X))

    def extended(self, Z: Array) -> Array:
        """Rows that the inner scaler has scaled, with ramps appended."""
        out = np.empty((Z.shape[0], self.features), Z.dtype)
        values, places = zip(*self.places.values(), strict=True)
        knots, ramps = [len(own) for own in values], [_count(own) for own in places]
        extend_rows(
            read_only(np.ascontiguousarray(Z)),
            read_only(self.keep),
            read_only(np.array(list(self.places), np.int64)),
            _starts(knots),
            read_only(np.concatenate(values)),
            read_only(np.concatenate(places)),
            _starts(ramps),
            read_only(self.center),
            read_only(self.size),
            out,
        )
        return out

    def inverse_transform(self, Z: Array) -> Any:
        """Rows from scaled rows: the features are there beside their ramps."""
        own = (Z[:, : self.scaler.features] / self.keep).astype(Z.dtype, copy=False)
        return self.scaler.inverse_transform(own)

    def grown(self, X: Any) -> Stepped:
        """This scaler: it knows all features."""
        return self


def _count(places: Array) -> int:
    return round(float(places[-1]))


def _starts(counts: list[int]) -> Array:
    """Where each of some parts of these sizes begins, and where the last one ends."""
    return read_only(np.cumsum([0, *counts]))


def stepped(scaler: Any, Z: Any, weight: Array, most: int) -> Stepped | None:
    """The scaler with ramps for these scaled rows; None for sparse rows, or without any ramp.

    With ramps there are at most `most` columns.
    """
    if sp.issparse(Z) or not isinstance(scaler, Bent):
        return None
    some = np.flatnonzero(scaler.varies & _has_several(Z))
    own = Z[:, some]
    places = dict(zip(some.tolist(), _knots(own, weight), strict=True))
    counts = [_count(found) for _, found in places.values()]
    if not 0 < sum(counts) <= most - Z.shape[1]:
        return None
    bare = Stepped(scaler, places, np.zeros(sum(counts)), np.ones(sum(counts)))
    ramps = bare.extended(Z.astype(np.float64, copy=False))[:, Z.shape[1] :]
    share = weight / weight.sum()
    center = np.rint(share @ ramps * CENTRES) / CENTRES
    ramps -= center
    total = np.add.reduceat(share @ np.square(ramps, out=ramps), _starts(counts)[:-1])
    spread = share @ np.square(own - share @ own)
    size = np.repeat(plain(np.sqrt(HALF * spread / total)), counts)
    return Stepped(scaler, places, read_only(center), read_only(size))


def _has_several(Z: Array) -> Array:
    """Which features have more than two values, in float32."""
    Z = Z.astype(np.float32, copy=False)
    return ~((Z.min(axis=0) == Z) | (Z.max(axis=0) == Z)).all(axis=0)


def _knots(Z: Array, weight: Array) -> list[tuple[Array, Array]]:
    """Values of each feature, and how many ramps have risen up to there."""
    lines, beside = np.ascontiguousarray(Z.T, np.float32), weight[None]
    if (weight == weight[0]).all():
        lines = np.sort(lines, axis=1)
    else:
        rank = np.argsort(lines, axis=1, kind="stable")
        lines, beside = np.take_along_axis(lines, rank, axis=1), weight[rank]
    values, places = np.empty((2, len(lines), MOST_KNOTS))
    counts = np.empty(len(lines), np.int64)
    find_knots(
        read_only(lines),
        read_only(np.ascontiguousarray(beside)),
        float(weight.sum()),
        LOW,
        HIGH,
        float(RAMPS),
        values,
        places,
        counts,
    )
    found = zip(values, places, counts.tolist(), strict=True)
    return [(read_only(own[:n]), read_only(risen[:n])) for own, risen, n in found]


def onwards(Z: Any, start: Any, scaler: Any) -> Any:
    """Rows as `scaler` has them, from rows as `start` has them, a scaler that is part of it."""
    if scaler is start:
        return Z
    before = onwards(Z, start, scaler.scaler)
    if isinstance(scaler, Weighted):
        return weighted(before, scaler.weight)
    return scaler.extended(before)


@dataclass(frozen=True, eq=False)
class Onwards:
    """The step from rows as `start` has them to rows as `scaler` has them."""

    start: Any
    scaler: Any

    def __call__(self, Z: Any) -> Any:
        """The rows."""
        return onwards(Z, self.start, self.scaler)

    @property
    def adds_columns(self) -> bool:
        """Whether rows become longer."""
        return bool(self.scaler.features > self.start.features)

    def columns(self, Z: Array, rows: Any, columns: Array) -> Array:
        """Some columns of some rows, in ascending order, made from the features that they belong to."""
        features = np.unique(feature_of(self.scaler)[columns])
        start = Unscaled(len(features))
        scaler = _of_features(self.scaler, self.start, features, start)
        at = np.searchsorted(_columns_of(self.scaler, features), columns)
        Z, rows = (Z[rows], None) if isinstance(rows, slice) else (Z, rows)
        out = np.empty((len(Z if rows is None else rows), len(columns)), Z.dtype)
        for lo in range(0, len(out), PART):
            some = slice(lo, lo + PART)
            part = Z[some][:, features] if rows is None else Z[np.ix_(rows[some], features)]
            out[some] = onwards(part, start, scaler)[:, at]
        return out


def _columns_of(scaler: Any, features: Array) -> Array:
    """The columns of scaled rows that belong to some features."""
    return np.flatnonzero(np.isin(feature_of(scaler), features))


def _of_features(scaler: Any, start: Any, features: Array, new: Any) -> Any:
    """The scaler for rows that have these features alone; `new` takes the place of `start`."""
    if scaler is start:
        return new
    inner = _of_features(scaler.scaler, start, features, new)
    if isinstance(scaler, Weighted):
        return Weighted(inner, scaler.weight[_columns_of(scaler.scaler, features)])
    places = {i: scaler.places[f] for i, f in enumerate(features.tolist()) if f in scaler.places}
    ramps = np.isin(scaler.owner, features)
    return Stepped(inner, places, scaler.center[ramps], scaler.size[ramps]) if places else inner


def feature_of(scaler: Any) -> Array:
    """The feature that each column of scaled rows belongs to."""
    if isinstance(scaler, Weighted):
        return feature_of(scaler.scaler)
    if isinstance(scaler, Stepped):
        return np.append(np.arange(scaler.scaler.features), scaler.owner)
    return np.arange(scaler.features)


def typical(scaler: Any) -> Array:
    """The scaled row in which every feature is at its centre."""
    if isinstance(scaler, Weighted):
        return weighted(typical(scaler.scaler)[None], scaler.weight)[0]
    if isinstance(scaler, Stepped):
        return scaler.extended(np.zeros((1, scaler.scaler.features)))[0]
    return np.zeros(scaler.features)


def per_feature(parts: Array, scaler: Any) -> Array:
    """Sums over the columns of scaled rows, the last axis, that belong to a feature."""
    owner = feature_of(scaler)
    d = int(owner.max(initial=-1)) + 1
    if d == len(owner):
        return parts
    out = parts[..., :d].copy()
    np.add.at(np.moveaxis(out, -1, 0), owner[d:], np.moveaxis(parts[..., d:], -1, 0))
    return out
