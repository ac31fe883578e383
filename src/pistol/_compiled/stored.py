"""Loops over the stored values of sparse rows: magnitudes of features, and hashes of wide rows.

Features of wide rows are anywhere in memory. So little is kept of each, and two share a cache line.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from .cache import plain
from .features import COARSE, ODD, bits_of, fine, mix, more, some_of, whole_steps
from .prefetch import SOON, ask_for_columns, ask_for_next, ask_for_rest
from .rows import row
from .types import indices, loop, numbers, rows_type

_floats, _whole = types.float64[:, ::1], types.uint64[:, ::1]

# What is known of a feature, over values that are not zero: the largest magnitude, and weighted sums of
# magnitudes, of ones and of squares.
LARGEST, TOTAL, WEIGHT, SQUARES, FIELDS = 0, 1, 2, 3, 4
# What the second look needs of it, in less memory: as a whole number, its key; a bound below fences.
KEY, LOWEST, NEEDED = 0, 1, 2

FENCE = 4.0  # mean magnitudes of a feature to its fence
_MORE = 1.001  # than rounding may take from a mean square
_NO, _ONE = np.uint64(0), np.uint64(1)
_HALF, _ROUND = np.uint64(32), np.uint64(1 << 31)  # rounding may change the last bits of a sum


@loop(lambda data: types.void(rows_type(data), numbers, _floats, types.int64, types.int64))
def measure(X, weight, F, first, last):
    """Fill in what is known of features first to last, over rows that have a weight; F is zero."""
    if len(weight) > 0:
        _measure(X, weight, F, first, last)


@plain
def _measure(X, weight, F, first, last):
    """The same, if there are rows: without references to the views that are made of each."""
    cols, vals = some_of(X, 0, first, last)
    for i in range(len(weight)):
        ask_for_columns(X, i + SOON)
        later, values = some_of(X, min(i + 1, len(weight) - 1), first, last)
        if weight[i] > 0.0:
            _measure_row(F, cols, vals, later, weight[i])
        cols, vals = later, values


@plain
def _measure_row(F, cols, vals, later, weight):
    """The share of one row; features of the later one are asked for."""
    for n in range(len(cols)):
        ask_for_next(F, later, n)
        f, m = np.uintp(cols[n]), abs(float(vals[n]))
        share = weight * m
        F[f, LARGEST] = more(m, F[f, LARGEST])
        F[f, TOTAL] += share
        F[f, WEIGHT] += weight if m > 0.0 else 0.0
        F[f, SQUARES] += share * m
    ask_for_rest(F, later, len(cols))


@loop(lambda data: types.int64(_floats, _floats, _whole, types.uint64, types.int64, types.int64))
def set_bounds(F, B, bits, salt, first, last):
    """What hashes are made of and fences found with, for features first to last.

    The key is the weight of the rows that have the feature. `bits` is the memory of B. How many
    features may have values beyond their fences is returned.
    """
    found = 0
    for f in range(np.uintp(first), np.uintp(last)):
        B[f, LOWEST] = _lowest_fence(F, f)
        bits[f, KEY] = mix(((bits_of(F[f, WEIGHT]) + _ROUND) >> _HALF) * salt + salt)
        found += B[f, LOWEST] < np.inf
    return found


@plain(forceinline=True)
def _lowest_fence(F, f):
    """A bound below the fences of a feature; infinite where no value is beyond the first of them.

    Of magnitudes m, the first fence is h = FENCE · mean(m), and the next is the same for
    magnitudes moved to it. They lose at most m²/4h each, as (m - 2h)² ≥ 0. So the second is not below
    g = h - FENCE · mean(m²)/4h, and as min(m, g) ≥ (g/h) min(m, h), the third is not below g²/h.
    """
    total, weight = F[f, TOTAL], F[f, WEIGHT]
    # so for most; a division takes longer
    if total == 0.0 or not F[f, LARGEST] * weight > FENCE * total:
        return np.inf
    high = FENCE * (total / weight)
    least = high - _MORE * 0.25 * FENCE * (F[f, SQUARES] / weight) / high
    return least * (least / high) if least > 0.0 else 0.0


@loop(
    lambda data: types.int64(
        rows_type(data), _floats, _whole, types.uint64[::1], types.int64[::1],
        types.int64, types.int64,
    )
)  # fmt: skip
def sum_up(X, B, bits, hashes, at, first, last):
    """Hashes of rows first to last, and their large values.

    The hash is the sum of the keys of features whose values are not zero. To `at` go the places of
    stored values that are larger than the bound of their feature; how many there are is returned.
    """
    return _sum_up(X, B, bits, hashes, at, first, last) if first < last else 0


@plain
def _sum_up(X, B, bits, hashes, at, first, last):
    """The same, if there are rows: without references to the views that are made of each."""
    found = 0
    cols, vals = row(X, first)
    for i in range(first, last):
        later, values = row(X, min(i + 1, last - 1))
        total = _NO
        for n in range(len(cols)):
            ask_for_next(B, later, n)
            f, m = np.uintp(cols[n]), abs(float(vals[n]))
            total += bits[f, KEY] if m > 0.0 else _NO
            if m > B[f, LOWEST]:
                at[found] = X.indptr[i] + n
                found += 1
        ask_for_rest(B, later, len(cols))
        hashes[i] = total
        cols, vals = later, values
    return found


@loop(
    lambda data: types.void(
        rows_type(data), numbers, _floats, types.boolean[::1], types.float64[::1]
    )
)
def add_rest(X, weight, B, wanted, rest):
    """Weighted sums of magnitudes that are not larger than the bound, of the features wanted."""
    for i in range(len(weight)):
        if weight[i] > 0.0:
            cols, vals = row(X, i)
            _add_rest_of_row(cols, vals, weight[i], B, wanted, rest)


@plain
def _add_rest_of_row(cols, vals, weight, B, wanted, rest):
    """The share of one row."""
    for n in range(len(cols)):
        f, m = np.uintp(cols[n]), abs(float(vals[n]))
        if wanted[f] and m <= B[f, LOWEST]:
            rest[f] += weight * m


@loop(lambda data: types.void(rows_type(data), _floats, _whole, indices, types.uint64[::1]))
def add_coarse_sums(X, F, bits, some, hashes):
    """Σ_j mix(u_j + key of feature j) of some rows, for magnitudes u_j in coarse steps.

    They are in units of the largest one. Zeros do not count.
    """
    for k in range(len(some)):
        cols, vals = row(X, some[k])
        hashes[k] += _coarse_sum(cols, vals, F, bits)


@plain
def _coarse_sum(cols, vals, F, bits):
    """That of one row."""
    total = _NO
    for n in range(len(cols)):
        f, m = np.uintp(cols[n]), abs(float(vals[n]))
        if m > 0.0:
            u = whole_steps(COARSE * (m / F[f, LARGEST]))
            total += mix(u * ODD + bits[f, KEY])
    return total


@loop(
    lambda data: types.void(
        rows_type(data), _floats, indices, types.uint64, indices, types.uint64[::1]
    )
)
def add_fine_sums(X, F, number, salt, some, hashes):
    """Σ_j mix(u_j + number of feature j) of some rows, for all but the last bits of values u_j.

    They are in units of the largest magnitude. Zeros do not count.
    """
    for k in range(len(some)):
        cols, vals = row(X, some[k])
        hashes[k] += _fine_sum(cols, vals, F, number, salt)


@plain
def _fine_sum(cols, vals, F, number, salt):
    """That of one row."""
    total = _NO
    for n in range(len(cols)):
        f, x = np.uintp(cols[n]), float(vals[n])
        if x != 0.0:
            total += mix(fine(x / F[f, LARGEST]) * ODD + (np.uint64(number[f]) + _ONE) * salt)
    return total
