"""Loops over all stored values of rows, dense or CSR: statistics of features, and hashes of rows.

What belongs to a feature lies together: the features of sparse rows are anywhere in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from .cache import INTERPRETED, helper, plain
from .prefetch import ask_for_feature
from .rows import row
from .types import indices, loop, numbers, real, rows_type

_floats, _whole = types.float64[:, ::1], types.uint64[:, ::1]

# What is known of a feature, in one cache line. First the smallest and the largest value, and how
# many rows store one; then where the range starts, the way through it and its other end, with sums
# over places in it; at last, as whole numbers, what hashes are made of.
LOW, HIGH, COUNT = 0, 1, 2
START, WAY, SUM, SQUARES, STORED, END = 0, 1, 2, 3, 4, 5
KEY, NUMBER, ZERO_COARSE, ZERO_FINE = 2, 3, 4, 5
FIELDS = 8
TOTAL, MOST, LARGEST, SIZES = 0, 1, 3, 4  # see `add_sizes`; COUNT is between them

COARSE = 2.0**12  # steps in which the values of a feature are told apart, but for the finest
KEYS = 2.0**10  # steps in which features are told apart; few, as one that changes changes all rows
_UPPER = 0.5 + 2.0**-20  # a range starts at the other end if the mean is beyond this

_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_NO, _ONE = np.uint64(0), np.uint64(1)
_WHOLE = 2.0**52  # added to a smaller number, it leaves no bits for a fraction
_REST, _ROUND = np.uint64(16), np.uint64(1 << 15)  # bits that rounding may change


@intrinsic
def _bits_of(typingctx, x):
    """The bits of a float64."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), codegen


def _view_bits(x: float) -> np.uint64:
    """The same without compiled code."""
    return np.float64(x).view(np.uint64)


bits_of: Any = _view_bits if INTERPRETED else _bits_of


@helper(inline="always")
def _mix(x):
    """As `_data.ordering.mix`."""
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@helper(inline="always")
def _whole_steps(x):
    """The nearest whole number; `rint` takes longer to compile."""
    return np.uint64((x + _WHOLE) - _WHOLE)


@helper(inline="always")
def _fine(u):
    """All but the last bits of a place."""
    return (bits_of(u) + _ROUND) >> _REST


@loop(lambda data: types.void(rows_type(data), numbers, _floats))
def find_extremes(X, weight, F):
    """LOW, HIGH and COUNT of every feature, over rows that have a weight."""
    for i in range(len(weight)):
        if weight[i] > 0.0:
            cols, vals = row(X, i)
            _widen(F, cols, vals)


@plain
def _widen(F, cols, vals):
    """Let the ranges of features include the values of a row."""
    for n in range(len(cols)):
        ask_for_feature(F, cols, n)
        f, x = np.uintp(cols[n]), float(vals[n])
        F[f, LOW] = x if x < F[f, LOW] else F[f, LOW]
        F[f, HIGH] = x if x > F[f, HIGH] else F[f, HIGH]
        F[f, COUNT] += 1.0


@loop(lambda data: types.void(_floats, real))
def set_ranges(F, counted):
    """START, WAY and END of every feature, given its extremes; so many rows have a weight.

    The way through the range of a constant feature is infinite.
    """
    for f in range(len(F)):
        low, high = F[f, LOW], F[f, HIGH]
        if F[f, COUNT] < counted:  # some rows have a zero that is not stored
            low, high = (low if low < 0.0 else 0.0), (high if high > 0.0 else 0.0)
        F[f, START], F[f, WAY], F[f, END] = 0.0, np.inf, 0.0
        if high > low:
            F[f, START], F[f, WAY], F[f, END] = low, high - low, high
        F[f, SUM], F[f, SQUARES], F[f, STORED] = 0.0, 0.0, 0.0


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
        _add_places(F, cols, vals, weight[i])


@plain
def _add_places(F, cols, vals, weight):
    """The share of one row in all sums."""
    for n in range(len(cols)):
        ask_for_feature(F, cols, n)
        f = np.uintp(cols[n])
        u = place(float(vals[n]), F[f, START], F[f, WAY])
        F[f, SUM] += weight * u
        F[f, SQUARES] += weight * u * u
        F[f, STORED] += weight


@loop(lambda data: types.void(_floats, _whole, indices, types.uint64, real, _whole))
def set_keys(F, bits, number, salt, all_weight, zeros):
    """KEY and NUMBER of every feature, and what zeros add to hashes; `zeros` gets the sums of these.

    A range starts at the end that is nearer to the mean. The key of a feature is the mean square of
    places then, in a few steps. A constant feature adds nothing. `bits` is the memory of F.
    """
    for f in range(len(F)):
        start, way, end = F[f, START], F[f, WAY], F[f, END]
        u, rest = place(0.0, start, way), all_weight - F[f, STORED]
        mean = (F[f, SUM] + rest * u) / all_weight
        square = (F[f, SQUARES] + rest * u * u) / all_weight
        varies = way < np.inf
        if varies and mean > _UPPER:
            start, way, square = end, -way, abs(1.0 - 2.0 * mean + square)
            u = place(0.0, start, way)
        F[f, START], F[f, WAY] = start, way
        key, own = _NO, _NO
        if varies:
            key = _mix(_whole_steps(KEYS * square) * salt + salt)
            own = _mix((np.uint64(number[f]) + _ONE) * salt)
        bits[f, KEY], bits[f, NUMBER] = key, own
        bits[f, ZERO_COARSE] = _mix(_whole_steps(COARSE * u) * _ODD + key)
        bits[f, ZERO_FINE] = _mix(_fine(u) * _ODD + own)
        zeros[0, 0] += bits[f, ZERO_COARSE]
        zeros[0, 1] += bits[f, ZERO_FINE]


@loop(lambda data: types.void(rows_type(data), _floats, _whole, _whole))
def add_hashes(X, F, bits, hashes):
    """Σ_j mix(u_j + key of feature j), in coarse steps and for all but the last bits.

    Zeros of all features are counted by the caller; a stored value takes the place of one.
    """
    for i in range(len(hashes)):
        cols, vals = row(X, i)
        _add_hash(cols, vals, F, bits, hashes[i])


@plain
def _add_hash(cols, vals, F, bits, hashes):
    """The share of one row's stored values."""
    coarse, fine = hashes[0], hashes[1]
    for n in range(len(cols)):
        ask_for_feature(F, cols, n)
        f = np.uintp(cols[n])
        u = place(float(vals[n]), F[f, START], F[f, WAY])
        coarse += _mix(_whole_steps(COARSE * u) * _ODD + bits[f, KEY]) - bits[f, ZERO_COARSE]
        fine += _mix(_fine(u) * _ODD + bits[f, NUMBER]) - bits[f, ZERO_FINE]
    hashes[0], hashes[1] = coarse, fine


@loop(lambda data: types.void(rows_type(data), numbers, _floats))
def add_sizes(X, weight, F):
    """TOTAL of |x| or MOST, whichever is less, COUNT and LARGEST of every feature's values."""
    for i in range(len(weight)):
        cols, vals = row(X, i)
        _add_row(F, cols, vals, weight[i])


@plain
def _add_row(F, cols, vals, weight):
    """The share of one row in all sums."""
    for n in range(len(cols)):
        ask_for_feature(F, cols, n)
        f, size = np.uintp(cols[n]), abs(float(vals[n]))
        if size > 0.0:
            F[f, COUNT] += weight
            F[f, TOTAL] += weight * (size if size < F[f, MOST] else F[f, MOST])
            F[f, LARGEST] = size if size > F[f, LARGEST] else F[f, LARGEST]
