"""In what a column is measured, so that a user's units do not matter.

A column is measured by its standard deviation around its mean; one of two values by half their
distance, so that a rare flag is no louder than a balanced one; one that is nearly always zero by half
its largest magnitude, around zero; and a constant one not at all. The statistics can be collected
chunk by chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array

RARE = 0.1  # a column with fewer entries other than zero than this share is nearly always zero
DENSE = 4096  # rows of no more features are made dense: centred, none of their zeros stays one
CHUNK = 4096
GRAIN = 2.0**36  # steps that a measure is rounded to, in a unit
LEAST, MOST = 1e-300, 1e308  # what is smaller has no inverse, what is larger is no number
BITS = 34  # of a unit: what is known to the last bit depends on how the rows are sorted
FAINT = 2.0**-300  # the scale of a column that may vary later: nothing beside others, but not lost
FAR = {"f": 1e15, "d": 1e60}  # rows are no farther out than this, so that norms are numbers


class Moments:
    """Weight, mean, deviation, extremes and share of zeros of every column, so far.

    The deviation is the root of the sum of squares, which neither overflows nor vanishes.
    """

    def __init__(self, columns: int) -> None:
        self.weight = 0.0
        self.mean, self.deviation, self.nonzero = np.zeros((3, columns))
        self.low, self.high = np.full(columns, np.inf), np.full(columns, -np.inf)

    def add(self, X: Any, weight: Array) -> None:
        """Take in more rows; those of weight zero have no say."""
        if sp.issparse(X):
            keep = np.flatnonzero(weight > 0)
            self._merge(*_sparse(X[keep], weight[keep]))
            return
        for lo in range(0, X.shape[0], CHUNK):
            keep = lo + np.flatnonzero(weight[lo : lo + CHUNK] > 0)
            self._merge(*_dense(X[keep].astype(np.float64, copy=False), weight[keep]))

    def _merge(
        self, w: float, mean: Array, deviation: Array, nonzero: Array, low: Array, high: Array
    ) -> None:
        if w == 0:
            return
        total = self.weight + w
        gap = mean - self.mean
        apart = gap * np.sqrt(self.weight / total * w)
        self.deviation = _root_of_squares(np.stack([self.deviation, deviation, apart]), np.ones(3))
        self.mean = self.mean + gap * (w / total)
        self.nonzero = self.nonzero + nonzero
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)
        self.weight = total

    def units(self) -> Units:
        """In what each column is measured by what is known so far."""
        if self.weight == 0:
            return Units(np.zeros_like(self.mean), np.zeros_like(self.mean))
        deviation, spread = self.deviation / np.sqrt(self.weight), self.high - self.low
        largest = np.maximum(np.abs(self.low), np.abs(self.high))
        # of all that lies between two values, what takes only these two varies most
        whole = np.where(spread > 0, spread, 1.0)
        above, below = (self.high - self.mean) / whole, (self.mean - self.low) / whole
        flag = (deviation / whole) ** 2 >= (1 - 1e-6) * above * below
        rare = self.nonzero < RARE * self.weight
        unit = np.where(flag, 0.5 * spread, deviation)
        unit = np.where(rare, 0.5 * largest, unit)
        varies = (spread > 1e-12 * largest) & (unit > LEAST)
        unit = np.where(varies, unit, 1.0)
        center = np.where(rare & varies, 0.0, self.mean)
        return Units(center, np.where(varies, 1.0 / unit, 0.0))

    def typical_square(self, units: Units) -> float:
        """The mean squared distance of two rows in these units; 1 where they do not differ."""
        total = 2.0 * float(np.sum((self.deviation * units.scale) ** 2)) / max(self.weight, LEAST)
        return float(_plain(total)) if total > 1e-150 else 1.0

    def spread(self, centred: bool = True) -> Units:
        """Units of targets: around the mean, half the mean deviation (0.8 σ, as of a Gaussian)."""
        deviation = self.deviation / np.sqrt(max(self.weight, LEAST))
        if not centred:
            both = np.stack([deviation, self.mean])
            return _halves(np.zeros_like(self.mean), 0.8 * _root_of_squares(both, np.ones(2)))
        center = np.where(deviation > LEAST, _on_grid(self.mean, deviation), self.mean)
        return _halves(center, np.where(deviation > LEAST, 0.8 * deviation, np.abs(center)))


def typical(Y: Array, weight: Array, centred: bool = True) -> Units:
    """Units of targets that are all known: around the median, half the mean deviation."""
    center = np.zeros(Y.shape[1])
    if centred:
        rank = np.argsort(Y, axis=0, kind="stable")
        share = np.cumsum(weight[rank], axis=0)
        middle = (share >= 0.5 * share[-1]).argmax(axis=0)
        center = np.take_along_axis(Y, rank, axis=0)[middle, np.arange(Y.shape[1])]
    deviation = weight / max(weight.sum(), LEAST) @ np.abs(Y - center)
    return _halves(center, np.where(deviation > LEAST, deviation, np.abs(center)))


def _halves(center: Array, deviation: Array) -> Units:
    known = deviation > LEAST
    deviation = np.where(known, deviation, 1.0)
    return Units(center, np.where(known, 2.0 / _plain(deviation), 1.0))


def _plain(x: Any) -> Any:
    """x without its last bits."""
    fraction, power = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(fraction, BITS)), power - BITS)


def _on_grid(x: Array, unit: Array) -> Array:
    """x to about as many bits of its unit."""
    step = np.ldexp(1.0, np.frexp(unit)[1] - BITS)
    with np.errstate(over="ignore"):
        steps = x / step
    return np.where(np.abs(steps) < 2.0**52, np.rint(steps) * step, x)


def _root_of_squares(X: Array, w: Array) -> Array:
    """√Σ w x² of every column."""
    size = np.abs(X).max(axis=0, initial=0.0)
    size = np.where(size > 0, size, 1.0)
    return size * np.sqrt(w @ np.square(X / size))


def _dense(X: Array, w: Array) -> tuple[float, Array, Array, Array, Array, Array]:
    total = w.sum()
    if total == 0:
        return (0.0, *np.zeros((5, X.shape[1])))
    low, high = X.min(axis=0), X.max(axis=0)
    mean = np.clip((w / total) @ X, low, high)  # rounding must not make a constant column vary
    return total, mean, _root_of_squares(X - mean, w), w @ (X != 0), low, high


def _sparse(X: Any, w: Array) -> tuple[float, Array, Array, Array, Array, Array]:
    total, d = w.sum(), X.shape[1]
    if total == 0:
        return (0.0, *np.zeros((5, d)))
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
    nonzero = np.bincount(X.indices, each * (values != 0), d)
    return total, mean, size * np.sqrt(squares), nonzero, low, high


@dataclass(frozen=True, eq=False)
class Units:
    """Rows are measured as (x - center) · scale; a scale of zero drops a column."""

    center: Array
    scale: Array

    @property
    def varies(self) -> Array:
        """Which columns have a unit."""
        return self.scale > FAINT

    def faintly(self) -> Units:
        """The same units, but what they drop can be recovered."""
        return Units(self.center, np.where(self.scale > 0, self.scale, FAINT))

    @property
    def unit(self) -> Array:
        """1 / scale; zero where a column is dropped."""
        return np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0)

    def measured(self) -> tuple[Array, Array]:
        """What is subtracted from rows and what they are then multiplied by."""
        wide = len(self.center) > DENSE
        return (np.zeros_like(self.center) if wide else self.center), self.scale

    def measure(self, X: Any) -> Any:
        """The rows in these units; sparse ones of many features stay sparse and uncentred."""
        wide = X.shape[1] > DENSE
        dtype = X.dtype
        if sp.issparse(X):
            if wide:
                data = _within(X.data, 0.0, self.scale[X.indices])
                return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
            X = X.toarray()
        out = np.empty(X.shape, dtype)
        center, _ = self.measured()
        for lo in range(0, X.shape[0], CHUNK):
            out[lo : lo + CHUNK] = _within(X[lo : lo + CHUNK], center, self.scale)
        return out

    def recover(self, Z: Any) -> Any:
        """Rows from their measures; what was dropped is as it was in all rows."""
        if sp.issparse(Z):
            data = (Z.data * self.unit[Z.indices]).astype(Z.dtype)
            return sp.csr_array((data, Z.indices, Z.indptr), shape=Z.shape)
        return (Z * self.unit + self.measured()[0]).astype(Z.dtype)

    def near(self, other: Units) -> bool:
        """Whether measuring by the other would change nothing that matters."""
        kept = self.varies
        if (kept != other.varies).any():
            return False
        with np.errstate(over="ignore"):
            ratio = other.scale[kept] / self.scale[kept]
            shift = np.abs(self.center[kept] - other.center[kept]) * self.scale[kept]
        return bool((ratio < 1.25).all() and (ratio > 0.8).all() and (shift < 0.25).all())


def _within(X: Array, center: Any, scale: Array) -> Array:
    """(x - center) · scale, not too far out, in steps that the rounding of a unit does not change."""
    far = FAR[X.dtype.char]
    with np.errstate(over="ignore"):
        Z = (X.astype(np.float64, copy=False) - center) * scale
    Z = np.clip(Z, -far, far, out=Z)
    steps = np.rint(Z * GRAIN) / GRAIN
    Z = np.where(scale == FAINT, Z, steps) if (scale == FAINT).any() else steps
    return Z.astype(X.dtype, copy=False)


def measure(X: Any, weight: Array) -> Units:
    """The units of all columns of X."""
    moments = Moments(X.shape[1])
    moments.add(X, weight)
    return moments.units()


def as_it_is(columns: int) -> Units:
    """Units that change nothing."""
    return Units(np.zeros(columns), np.ones(columns))


def near(a: float, b: float) -> bool:
    """Whether two squared lengths are as good as the same beside steps of four."""
    return a < 1.5 * b and b < 1.5 * a


def typical_square(Z: Any, weight: Array) -> float:
    """The mean squared distance of two rows, from one pass: twice the variance of all columns."""
    moments = Moments(Z.shape[1])
    moments.add(Z, weight)
    return moments.typical_square(as_it_is(Z.shape[1]))
