"""Scaling of features, so that the user's units do not matter.

A feature is centred at its mean and divided by its standard deviation. A feature with two values is
divided by half their distance instead, so that a rare flag counts as much as a balanced one. A feature
that nearly always has the same value, such as zero, is centred at that value and divided by half the
largest distance from it. A constant feature is dropped. The statistics can be collected chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.moments import GRAIN, add_squares, look, scale_rows, vote_stored
from .._compiled.rows import as_rows
from .._compiled.types import Array, read_only

RARE = 0.1  # a feature nearly always has its usual value if a smaller share of rows has another one
DENSE = 4096  # sparse rows of at most so many features are made dense and centred
ENTRIES = 2**25  # … unless the dense rows of a whole data set would have more entries than this
CHUNK = 4096
LEAST, MOST = 1e-300, 1e308  # what is smaller has no inverse, what is larger is no number
BITS = 34  # of a scale: its last bits depend on how the rows are sorted
FAINT = 2.0**-300  # the scale of a feature that may vary later: negligible, but not lost
LARGE = 1e150  # of a weight, so that sums of products with rows are numbers
FAR = {"f": 1e15, "d": 1e60}  # rows are no farther out than this, so that norms are numbers


class Moments:
    """Weight, mean, deviation, extremes and usual value of every feature, so far.

    The deviation is the root of the sum of squares, which neither overflows nor vanishes. The usual
    value is the one that more than half of the rows have, if there is one. Its votes are the rows that
    have it less those that do not; before `recount` they may be more, if the others differ.
    """

    def __init__(self, features: int) -> None:
        self.weight = 0.0
        self.mean, self.deviation, self.usual, self.votes = np.zeros((4, features))
        self.low, self.high = np.full(features, np.inf), np.full(features, -np.inf)

    @classmethod
    def of(cls, X: Any, weight: Array) -> Moments:
        """Those of these rows; their votes are not counted exactly."""
        moments = cls(X.shape[1])
        moments.add(X, weight)
        return moments

    def add(self, X: Any, weight: Array) -> None:
        """Take in more rows; rows of weight zero are ignored."""
        self.usual, self.votes = self.usual.copy(), self.votes.copy()
        if sp.issparse(X):
            keep = np.flatnonzero(weight > 0)
            self._merge(*self._sparse(X[keep], weight[keep]))
            return
        for lo in range(0, X.shape[0], CHUNK):
            rows, w = X[lo : lo + CHUNK], weight[lo : lo + CHUNK]
            if not (w > 0).all():
                rows, w = rows[w > 0], w[w > 0]
            if len(w):
                self._merge(*self._dense(rows, w))

    def recount(self, X: Any, weight: Array) -> None:
        """Count the votes exactly; X are all rows, so that their order does not matter."""
        total = float(weight.sum())
        count: Array = np.zeros_like(self.usual)
        if sp.issparse(X):
            each, d = np.repeat(weight, np.diff(X.indptr)), X.shape[1]
            zeros = np.maximum(total - np.bincount(X.indices, each, d), 0.0)
            count += np.bincount(X.indices, each * (X.data == self.usual[X.indices]), d)
            count += np.where(self.usual == 0, zeros, 0.0)
        else:
            room = np.empty((min(CHUNK, X.shape[0]), X.shape[1]))
            for lo in range(0, X.shape[0], CHUNK):
                rows = X[lo : lo + CHUNK]
                same = np.equal(rows, self.usual, out=room[: len(rows)])
                count += weight[lo : lo + CHUNK] @ same
        self.votes = 2.0 * count - total

    def _dense(self, X: Array, weight: Array) -> tuple[float, Array, Array, Array, Array]:
        """Count votes; weight, mean, deviation and extremes of these rows."""
        total, d = float(weight.sum()), X.shape[1]
        rows, w = as_rows(np.ascontiguousarray(X)), read_only(np.ascontiguousarray(weight))
        mean, squares = np.zeros((2, d))
        low, high = np.full(d, np.inf), np.full(d, -np.inf)
        look(rows, w, total, self.usual, self.votes, mean, low, high)
        mean = np.clip(mean, low, high)  # rounding must not make a constant feature vary
        size = np.maximum(high - mean, mean - low)  # squares are of numbers of at most 1
        size = np.where(size > 0, size, 1.0)
        add_squares(rows, w, mean, size, squares)
        return total, mean, size * np.sqrt(squares), low, high

    def _sparse(self, X: Any, weight: Array) -> tuple[float, Array, Array, Array, Array]:
        """The same of rows of which only some values are stored."""
        w = read_only(np.ascontiguousarray(weight))
        vote_stored(as_rows(X), w, self.usual, self.votes, np.zeros(X.shape[1]))
        return _sparse(X, weight)

    def _merge(self, w: float, mean: Array, deviation: Array, low: Array, high: Array) -> None:
        if w == 0:
            return
        total = self.weight + w
        gap = mean - self.mean
        apart = gap * np.sqrt(self.weight / total * w)
        self.deviation = _root_of_squares(np.stack([self.deviation, deviation, apart]), np.ones(3))
        self.mean = self.mean + gap * (w / total)
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)
        self.weight = total

    @classmethod
    def merged(cls, parts: Sequence[Moments]) -> Moments:
        """The statistics of several blocks, whose votes were counted for the same usual values."""
        moments = cls(len(parts[0].mean))
        for part in parts:
            moments._merge(part.weight, part.mean, part.deviation, part.low, part.high)
        moments.usual, moments.votes = (
            parts[0].usual,
            np.sum([part.votes for part in parts], axis=0),
        )
        return moments

    def scaler(self, centred: bool = True) -> Scaler:
        """The scaler that these statistics suggest."""
        if self.weight == 0:
            return Scaler(np.zeros_like(self.mean), np.zeros_like(self.mean), centred)
        deviation, spread = self.deviation / np.sqrt(self.weight), self.high - self.low
        largest = np.maximum(np.abs(self.low), np.abs(self.high))
        # for a given range, variance is largest for two-valued features
        whole = np.where(spread > 0, spread, 1.0)
        above, below = (self.high - self.mean) / whole, (self.mean - self.low) / whole
        flag = (deviation / whole) ** 2 >= (1 - 1e-6) * above * below
        rare = (self.votes > (1.0 - 2.0 * RARE) * self.weight) & (centred | (self.usual == 0))
        unit = np.where(flag, 0.5 * spread, deviation)
        unit = np.where(rare, 0.5 * np.maximum(self.high - self.usual, self.usual - self.low), unit)
        varies = (spread > 1e-12 * largest) & (unit > LEAST)
        unit = np.where(varies, unit, 1.0)
        center = np.where(rare & varies, self.usual, self.mean)
        scale = np.where(varies, 1.0 / unit, 0.0)
        return Scaler(center if centred else np.zeros_like(center), scale, centred)

    def typical_square(self, scale: Array | float) -> float:
        """The mean squared distance of two rows, scaled like this; 1 where they do not differ."""
        total = 2.0 * float(np.sum((self.deviation * scale) ** 2)) / max(self.weight, LEAST)
        return float(plain(total)) if total > 1e-150 else 1.0


def plain(x: Any) -> Any:
    """x without its last bits."""
    fraction, power = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(fraction, BITS)), power - BITS)


def _root_of_squares(X: Array, w: Array) -> Array:
    """√Σ w x² of every feature; X is lost."""
    size = np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0))
    size = np.where(size > 0, size, 1.0)
    X /= size
    return size * np.sqrt(w @ np.square(X, out=X))


def _sparse(X: Any, w: Array) -> tuple[float, Array, Array, Array, Array]:
    total, d = w.sum(), X.shape[1]
    if total == 0:
        return (0.0, *np.zeros((4, d)))
    each, values = np.repeat(w, np.diff(X.indptr)), X.data.astype(np.float64)
    mean = np.bincount(X.indices, each / total * values, d)
    stored = np.bincount(X.indices, each, d)
    everywhere = np.bincount(X.indices, minlength=d) == X.shape[0]
    low, high = (np.where(everywhere, -sign * np.inf, 0.0) for sign in (-1, 1))
    np.minimum.at(low, X.indices, values)
    np.maximum.at(high, X.indices, values)
    mean = np.clip(mean, low, high)
    size = np.maximum(high - mean, mean - low)  # squares are of numbers of at most 1
    size = np.where(size > 0, size, 1.0)
    gaps, zeros = (values - mean[X.indices]) / size[X.indices], np.maximum(total - stored, 0.0)
    squares = np.bincount(X.indices, each * gaps * gaps, d) + zeros * np.square(mean / size)
    return total, mean, size * np.sqrt(squares), low, high


@dataclass(frozen=True, eq=False)
class Scaler:
    """Rows become (x - center) · scale; a scale of zero drops a feature.

    Rows that are `centred` become dense. Other rows keep their layout, and `center` is zero.
    """

    center: Array
    scale: Array
    centred: bool = True

    @property
    def features(self) -> int:
        """Of scaled rows."""
        return len(self.center)

    @property
    def varies(self) -> Array:
        """Which features are not dropped."""
        return self.scale > FAINT

    @property
    def unit(self) -> Array:
        """1 / scale; zero where a feature is dropped."""
        return np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0)

    def faintly(self) -> Scaler:
        """The same scaler, but what it drops can be recovered."""
        return replace(self, scale=np.where(self.scale > 0, self.scale, FAINT))

    def transform(self, X: Any) -> Any:
        """The scaled rows."""
        if sp.issparse(X) and not self.centred:
            data = within(X.data, 0.0, self.scale[X.indices])
            return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
        if (self.scale == FAINT).any():
            X = X.astype(np.float64, copy=False)  # float32 has no numbers that are faint
        if sp.issparse(X):
            return self._dense(X)
        out, far = np.empty(X.shape, X.dtype), FAR[X.dtype.char]
        grain = np.where(self.scale == FAINT, 0.0, 1.0 / GRAIN)
        rows = as_rows(np.ascontiguousarray(X))
        with np.errstate(over="ignore"):
            scale_rows(rows, self.center, self.scale, grain, far, out)
        return out

    def _dense(self, X: Any) -> Array:
        """Sparse rows as dense ones: the scaled zero everywhere but at stored values."""
        zero = within(np.zeros((1, X.shape[1]), X.dtype), self.center, self.scale)
        out = np.repeat(zero, X.shape[0], axis=0)
        at = X.indices
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        out[row, at] = within(X.data, self.center[at], self.scale[at])
        return out

    def inverse_transform(self, Z: Any) -> Any:
        """Rows from scaled rows; a dropped feature gets its center."""
        if sp.issparse(Z):
            data = (Z.data * self.unit[Z.indices]).astype(Z.dtype)
            return sp.csr_array((data, Z.indices, Z.indptr), shape=Z.shape)
        return (Z * self.unit + self.center).astype(Z.dtype)

    def grown(self, X: Any) -> Scaler:
        """This scaler: it knows all features."""
        return self

    def to_raw(self, weights: Array) -> Array:
        """Weights of unscaled rows from those of scaled rows; the last column is the intercept."""
        raw = bounded(weights, np.append(self.scale, 1.0), MOST)
        raw[:, -1] -= raw[:, :-1] @ self.center
        return raw

    def from_raw(self, raw: Array) -> Array:
        """Weights of scaled rows from those of unscaled rows."""
        weights = bounded(raw, np.append(self.unit, 1.0), LARGE)
        weights[:, -1] += bounded(raw[:, :-1], self.center, LARGE).sum(axis=1)
        return weights

    def per_feature(self) -> Array:
        """What each feature is multiplied by."""
        return self.scale

    def near(self, other: Any) -> bool:
        """Whether scaling by the other would change next to nothing."""
        if not isinstance(other, Scaler):
            return False
        kept = self.varies
        if (kept != other.varies).any():
            return False
        with np.errstate(over="ignore"):
            ratio = other.scale[kept] / self.scale[kept]
            shift = np.abs(self.center[kept] - other.center[kept]) * self.scale[kept]
        return bool((ratio < 1.25).all() and (ratio > 0.8).all() and (shift < 0.25).all())


@dataclass(frozen=True, eq=False)
class Unscaled:
    """Rows stay as they are: the scaler that does nothing."""

    features: int

    def transform(self, X: Any) -> Any:
        """The rows themselves."""
        return X

    def inverse_transform(self, Z: Any) -> Any:
        """The rows themselves."""
        return Z

    def grown(self, X: Any) -> Unscaled:
        """This scaler: it knows all features."""
        return self

    def near(self, other: Any) -> bool:
        """Whether the other does nothing, too."""
        return isinstance(other, Unscaled)

    def to_raw(self, weights: Array) -> Array:
        """The weights themselves."""
        return weights

    @property
    def varies(self) -> Array:
        """Every feature."""
        return np.ones(self.features, bool)


def within(X: Array, center: Any, scale: Array, far: float | None = None) -> Array:
    """(x - center) · scale, clipped, in steps that the rounding of a scale does not change."""
    far = FAR[X.dtype.char] if far is None else far
    with np.errstate(over="ignore"):
        Z = np.subtract(X, center, dtype=np.float64)
        Z *= scale
    return in_steps(np.clip(Z, -far, far, out=Z), scale).astype(X.dtype, copy=False)


def in_steps(Z: Array, scale: Array) -> Array:
    """Scaled values without what depends on rounding, in place; faint features keep all their bits."""
    faint = scale == FAINT
    kept = Z[..., faint] if faint.any() else None
    Z *= GRAIN
    np.rint(Z, out=Z)
    Z /= GRAIN
    if kept is not None:
        Z[..., faint] = kept
    return Z


def bounded(x: Array, factor: Array, most: float) -> Array:
    """x · factor, within ±most."""
    with np.errstate(over="ignore"):
        return np.clip(x * factor, -most, most)


def moments_of(X: Any, weight: Array) -> Moments:
    """The statistics of all rows."""
    moments = Moments(X.shape[1])
    moments.add(X, weight)
    moments.recount(X, weight)
    return moments


def stays_sparse(X: Any, whole: bool) -> bool:
    """Whether sparse rows are too wide, or all of them together too large, to be made dense."""
    entries = X.shape[0] * X.shape[1] if whole else 0
    return sp.issparse(X) and (X.shape[1] > DENSE or entries > ENTRIES)


def scaler_of(X: Any, weight: Array) -> Scaler:
    """The scaler of all rows of a data set."""
    return moments_of(X, weight).scaler(centred=not stays_sparse(X, whole=True))


def near(a: float, b: float) -> bool:
    """Whether two squared lengths are as good as the same beside steps of four."""
    return a < 1.5 * b and b < 1.5 * a


def typical_square(Z: Any, weight: Array) -> float:
    """The mean squared distance of two rows, in one pass: twice the sum of the variances."""
    return Moments.of(Z, weight).typical_square(1.0)
