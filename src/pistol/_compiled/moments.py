"""Statistics of features, and rows that are scaled by them.

Boyer and Moore's vote finds the value that most rows have in common in one pass: a value loses one vote
for each row that has another one, and is replaced when it has none left. A value that more than half of
the rows have is never replaced for good.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from .cache import plain
from .rows import row
from .types import indices, loop, numbers, real, rows_type, vector

GRAIN = 2.0**36  # scaled values are rounded to multiples of 1 / GRAIN


@plain(inline="always")
def _vote(usual, votes, f, x, w):
    """Count w rows whose feature f is x."""
    left = votes[f] + (w if x == usual[f] else -w)
    votes[f] = left
    if left < 0.0:
        usual[f], votes[f] = x, -left


@loop(
    lambda data: types.void(rows_type(data), numbers, real, vector, vector, vector, vector, vector)
)
def look(X, weight, total, usual, votes, mean, low, high):
    """Count dense rows: `usual` is the leading value of every feature, `votes` are its votes.

    To `mean` they add their share of the total weight; `low` and `high` are the extremes so far.
    """
    for i in range(len(weight)):
        _, vals = row(X, i)
        w, share = weight[i], weight[i] / total
        for at in range(len(vals)):  # `_vote`, as SIMD code
            x = float(vals[at])
            left = votes[at] + (w if x == usual[at] else -w)
            usual[at] = x if left < 0.0 else usual[at]
            votes[at] = abs(left)
        for at in range(len(vals)):
            x = float(vals[at])
            mean[at] += share * x
            low[at] = x if x < low[at] else low[at]
            high[at] = x if x > high[at] else high[at]


@loop(lambda data: types.void(rows_type(data), numbers, vector, vector, vector))
def add_squares(X, weight, mean, size, sums):
    """Add w ((x - mean) / size)² of every feature of dense rows."""
    for i in range(len(weight)):
        _, vals = row(X, i)
        w = weight[i]
        for at in range(len(vals)):
            gap = (float(vals[at]) - mean[at]) / size[at]
            sums[at] += w * (gap * gap)


def _gaps_type(data: Any) -> Any:
    rows = types.Array(from_dtype(np.dtype(data)), 2, "C", readonly=True)
    return types.void(rows, indices, vector, vector)


@loop(_gaps_type)
def add_gaps(Z, some, sums, squares):
    """Add x - x₀ of every feature and its square, for some rows of Z, of which x₀ is the first."""
    first = Z[some[0]]
    for k in range(1, len(some)):
        z = Z[some[k]]
        for at in range(len(sums)):
            gap = np.float64(z[at]) - np.float64(first[at])
            sums[at] += gap
            squares[at] += gap * gap


@loop(lambda data: types.void(rows_type(data), numbers, vector, vector, vector))
def vote_stored(X, weight, usual, votes, counted):
    """Count rows of which only some values are stored; `counted` comes in with zeros."""
    total = 0.0  # the zeros since an entry are counted at once
    for i in range(len(weight)):
        cols, vals = row(X, i)
        _vote_row(cols, vals, weight[i], total, usual, votes, counted)
        total += weight[i]
    for at in range(len(usual)):
        if total > counted[at]:
            _vote(usual, votes, at, 0.0, total - counted[at])


@plain
def _vote_row(cols, vals, weight, total, usual, votes, counted):
    """Count one row; rows before it have this total weight."""
    for n in range(len(cols)):
        f = np.int64(cols[n])
        if total > counted[f]:
            _vote(usual, votes, f, 0.0, total - counted[f])
        _vote(usual, votes, f, float(vals[n]), weight)
        counted[f] = total + weight


def _scale_type(data: Any) -> Any:
    out = types.Array(from_dtype(np.dtype(data)), 2, "C")
    return types.void(rows_type(data), vector, vector, vector, real, out)


@loop(_scale_type)
def scale_rows(X, center, scale, grain, far, out):
    """(x - center) · scale of dense rows, no farther out than `far`, in steps of a power of two.

    Where the step is zero, all bits are kept.
    """
    for i in range(len(out)):
        _, vals = row(X, i)
        z = out[i]
        for at in range(len(vals)):
            x = (np.float64(vals[at]) - center[at]) * scale[at]
            x = far if x > far else x
            x = -far if x < -far else x
            rounded = np.rint(x * GRAIN) * grain[at]
            z[at] = x if grain[at] == 0.0 else rounded
