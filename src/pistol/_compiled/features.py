"""Loops over all stored values of rows, dense or CSR: statistics of features, and hashes of rows.

What belongs to a feature lies together: the features of sparse rows are anywhere in memory.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from .cache import helper
from .prefetch import ask_for_feature
from .rows import row
from .types import loop, numbers, real, rows_type, table, vector

_floats, _whole, _bits = types.float64[:, ::1], types.uint64[:, ::1], types.uint64[::1]

LOW, HIGH, COUNT = 0, 1, 2  # the smallest and the largest value, and rows that store one
START, WAY, SUM, SQUARES, STORED = 0, 1, 2, 3, 4  # see `sum_places`
KEY, NUMBER, ZERO_COARSE, ZERO_FINE = 0, 1, 2, 3  # see `add_hashes`
TOTAL, MOST, LARGEST = 0, 1, 3  # see `add_sizes`; COUNT is between them

_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_WHOLE = 2.0**52  # added to a smaller number, it leaves no bits for a fraction
_REST, _ROUND = np.uint64(16), np.uint64(1 << 15)  # bits that rounding may change


@helper(inline="always")
def _mix(x):
    """As `_data.ordering.mix`."""
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@loop(lambda data: types.void(rows_type(data), numbers, _floats))
def find_extremes(X, weight, F):
    """LOW, HIGH and COUNT of every feature, over rows that have a weight."""
    for i in range(len(weight)):
        if weight[i] > 0.0:
            cols, vals = row(X, i)
            for n in range(len(cols)):
                ask_for_feature(F, cols, n)
                f, x = np.uintp(cols[n]), float(vals[n])
                F[f, LOW] = x if x < F[f, LOW] else F[f, LOW]
                F[f, HIGH] = x if x > F[f, HIGH] else F[f, HIGH]
                F[f, COUNT] += 1.0


@helper(inline="always")
def place(x, start, way):
    """Where a value is on the way from one end of its feature's range to the other, from 0 to 1."""
    u = (x - start) / way
    u = 0.0 if not u > 0.0 else u
    return u if u < 1.0 else 1.0


@loop(lambda data: types.void(rows_type(data), numbers, _floats))
def sum_places(X, weight, F):
    """Weighted sums of the places of stored values, of their squares, and of the weights."""
    for i in range(len(weight)):
        cols, vals = row(X, i)
        for n in range(len(cols)):
            ask_for_feature(F, cols, n)
            f = np.uintp(cols[n])
            u = place(float(vals[n]), F[f, START], F[f, WAY])
            F[f, SUM] += weight[i] * u
            F[f, SQUARES] += weight[i] * u * u
            F[f, STORED] += weight[i]


@loop(lambda data: types.void(rows_type(data), table, _whole, real, _whole, vector, _bits))
def add_hashes(X, places, F, steps, hashes, value, bits):
    """Σ_j mix(u_j + key of feature j), in coarse steps and for all but the last bits.

    Zeros of all features are counted by the caller; a stored value takes the place of one. `value` has
    room for a number, and `bits` are its bits.
    """
    for i in range(len(hashes)):
        cols, vals = row(X, i)
        coarse, fine = hashes[i, 0], hashes[i, 1]
        for n in range(len(cols)):
            ask_for_feature(F, cols, n)
            ask_for_feature(places, cols, n)
            f = np.uintp(cols[n])
            value[0] = place(float(vals[n]), places[f, START], places[f, WAY])
            step = np.uint64(
                (steps * value[0] + _WHOLE) - _WHOLE
            )  # as `rint`, which takes longer to compile
            coarse += _mix(step * _ODD + F[f, KEY]) - F[f, ZERO_COARSE]
            fine += _mix(((bits[0] + _ROUND) >> _REST) * _ODD + F[f, NUMBER]) - F[f, ZERO_FINE]
        hashes[i, 0], hashes[i, 1] = coarse, fine


@loop(lambda data: types.void(rows_type(data), numbers, _floats))
def add_sizes(X, weight, F):
    """TOTAL of |x| or MOST, whichever is less, COUNT and LARGEST of every feature's values."""
    for i in range(len(weight)):
        cols, vals = row(X, i)
        for n in range(len(cols)):
            ask_for_feature(F, cols, n)
            f, size = np.uintp(cols[n]), abs(float(vals[n]))
            if size > 0.0:
                F[f, COUNT] += weight[i]
                F[f, TOTAL] += weight[i] * (size if size < F[f, MOST] else F[f, MOST])
                F[f, LARGEST] = size if size > F[f, LARGEST] else F[f, LARGEST]


@loop(
    lambda data: types.void(rows_type(data), table, types.Array(from_dtype(np.dtype(data)), 1, "C"))
)
def limit_sizes(X, F, out):
    """The stored values, those larger than the MOST of their feature moved to it."""
    for n in range(len(out)):
        ask_for_feature(F, X.indices, n)
        x, most = X.data[n], F[np.uintp(X.indices[n]), MOST]
        x = x if x < most else most
        out[n] = x if x > -most else -most
