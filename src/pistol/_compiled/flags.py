"""Inner products of rows whose features mostly have one value, as flags and one-hot columns have.

With u the usual values of all features, ⟨s, a⟩ = ⟨u, a⟩ + ⟨s - u, a⟩, and most of s - u is zero,
wherever the rows are centred. So what is unusual about a row is all that has to be multiplied.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from .cache import plain
from .rows import add_four
from .types import Array, indices, loop, read_only

SHARE = 1 / 6  # of values that are unusual, at most: BLAS is better at more
FEW = 1 / 8  # the same for rows in panels, as several of them are multiplied together
LOOKED_AT = 256  # rows that tell whether a look at all of them is worth its while
NARROW = 32  # features up to which a product takes less time than what is made of it
COLUMNS = 1024  # that are multiplied together: their values stay in the cache


class Columns(NamedTuple):
    """Rows that others are multiplied with, one line per feature, and their products with u."""

    values: Array
    usual: Array


class Flags(NamedTuple):
    """Rows as the usual value of every feature, and what is unusual about each of them."""

    usual: Array
    data: Array  # values of s - u that are not zero, row after row,
    features: Array  # the features that they are of,
    starts: Array  # and where each row begins

    @classmethod
    def of(cls, S: Any) -> Flags | None:
        """Dense rows in this form, where most of their values are usual ones; None for others."""
        if not isinstance(S, np.ndarray) or S.shape[1] <= NARROW or not len(S):
            return None
        if _unusual(S, max(1, len(S) // LOOKED_AT))[1] > SHARE:
            return None
        usual, share = _unusual(S, 1)
        if share > SHARE:
            return None
        rows, features = map(np.ascontiguousarray, np.nonzero(usual != S))
        data = S[rows, features] - usual[features]
        starts = np.searchsorted(rows, np.arange(len(S) + 1))
        return cls(usual, *map(read_only, (data, features, starts)))

    def columns(self, A: Array) -> Columns:
        """Rows that these are multiplied with."""
        return Columns(read_only(np.ascontiguousarray(A.T)), read_only(A @ self.usual))

    def products(self, at: slice, columns: Columns, out: Array) -> Array:
        """Set `out` to the inner products of some of these rows with others."""
        starts = read_only(self.starts[at.start : at.stop + 1])
        add_unusual(self.data, self.features, starts, *columns, out)
        return out


def usual_values(S: Array) -> Array | None:
    """The usual value of every feature, if most values of some rows are usual ones."""
    if S.shape[1] <= NARROW or not len(S):
        return None
    usual, share = _unusual(S, max(1, len(S) // LOOKED_AT))
    return usual if share <= FEW else None


def _unusual(S: Array, step: int) -> tuple[Array, float]:
    """The more frequent of the least and the largest value of each feature; the share of others.

    One row in so many is looked at.
    """
    S = read_only(np.ascontiguousarray(S))
    (low, high), (at_low, at_high) = S[:1].repeat(2, axis=0), np.zeros((2, S.shape[1]))
    count_ends(S, step, low, high, at_low, at_high)
    usual, rows = np.where(at_low >= at_high, low, high), -(-len(S) // step)
    return usual, 1.0 - float(np.maximum(at_low, at_high).mean()) / rows


@plain
def _widen(s, low, high):
    for k in range(len(s)):
        low[k] = s[k] if s[k] < low[k] else low[k]
        high[k] = s[k] if s[k] > high[k] else high[k]


@plain
def _count(s, value, counts):
    for k in range(len(s)):
        counts[k] += 1.0 if s[k] == value[k] else 0.0


def _ends(data: Any) -> Any:
    real = from_dtype(np.dtype(data))
    line, counts = types.Array(real, 1, "C"), types.Array(types.float64, 1, "C")
    rows = types.Array(real, 2, "C", readonly=True)
    return types.void(rows, types.int64, line, line, counts, counts)


@loop(_ends)
def count_ends(S, step, low, high, at_low, at_high):
    """The least and the largest value of every feature in one row of so many; rows that have them.

    `low` and `high` come in with the first row.
    """
    for i in range(0, len(S), step):
        _widen(S[i], low, high)
    for i in range(0, len(S), step):
        _count(S[i], low, at_low)
        _count(S[i], high, at_high)


@plain
def _add_up_to_four(data, features, k, end, values, first, last, g):
    """g += Σ data[k] values[features[k]] from k on, for four values or fewer."""
    zero = g.dtype.type(0.0)
    h, m, n = min(k + 1, end - 1), min(k + 2, end - 1), min(k + 3, end - 1)
    b = data[h] if k + 1 < end else zero
    c = data[m] if k + 2 < end else zero
    d = data[n] if k + 3 < end else zero
    v, w = values[features[k], first:last], values[features[h], first:last]
    y, z = values[features[m], first:last], values[features[n], first:last]
    add_four(v, w, y, z, data[k], b, c, d, g)


def _signature(data: Any) -> Any:
    real = from_dtype(np.dtype(data))
    line = types.Array(real, 1, "C", readonly=True)
    columns = types.Array(real, 2, "C", readonly=True)
    return types.void(line, indices, indices, columns, line, types.Array(real, 2, "C"))


@loop(_signature)
def add_unusual(data, features, starts, values, usual, out):
    """out[n, i] = usual[i] + Σ_k data[k] values[features[k], i], over what is unusual about row n."""
    for first in range(0, out.shape[1], COLUMNS):
        last = min(first + COLUMNS, out.shape[1])
        for n in range(len(out)):
            g = out[n, first:last]
            for i in range(len(g)):
                g[i] = usual[first + i]
            for k in range(starts[n], starts[n + 1], 4):
                _add_up_to_four(data, features, k, starts[n + 1], values, first, last, g)
