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
from .prefetch import ask_for_next, ask_for_rest
from .rows import row
from .types import indices, loop, numbers, real, rows_type

_floats, _whole = types.float64[:, ::1], types.uint64[:, ::1]

# What is known of a feature, in one cache line. First the smallest and the largest value, and that of
# the first row; then, over values that are not zero, weighted sums of distances from it and of their
# squares, how many there are, and their weights. Later, where the range starts and one over the way
# through it; as whole numbers, the key and what a zero adds to hashes.
LOW, HIGH, BASE, SUM, SQUARES, COUNT, WEIGHT = 0, 1, 2, 3, 4, 5, 6
START, PER_WAY, KEY, ZERO = 0, 1, 2, 3
FIELDS = 8

COARSE = 2.0**12  # steps in which the values of a feature are told apart, but for the finest
KEYS = 2.0**10  # steps in which features are told apart; few, as one that changes changes all rows
_BESIDE = 2.0**-20  # steps of means begin beside the simple fractions, which rounding would part
_UPPER = 0.5 + _BESIDE  # a range starts at the other end if the mean is beyond this

ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_NO, _ONE = np.uint64(0), np.uint64(1)
_WHOLE = 2.0**52  # added to a smaller number, it leaves no bits for a fraction
_WHOLE_BITS = np.float64(_WHOLE).view(np.uint64)
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


def _either(order: str) -> Any:
    """Of two numbers the one that is less or more, without a jump: no processor could guess it."""

    def _one(typingctx, x, y):
        def codegen(context, builder, signature, args):
            return builder.select(builder.fcmp_ordered(order, *args), *args)

        return types.float64(types.float64, types.float64), codegen

    return intrinsic(_one)


bits_of: Any = _view_bits if INTERPRETED else _bits_of
less: Any = (lambda x, y: x if x < y else y) if INTERPRETED else _either("<")
more: Any = (lambda x, y: x if x > y else y) if INTERPRETED else _either(">")


@helper(inline="always")
def mix(x):
    """As `_data.ordering.mix`."""
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@helper(inline="always")
def whole_steps(x):
    """The nearest whole number; `rint` takes longer to compile, and a conversion longer to run."""
    return bits_of(x + _WHOLE) - _WHOLE_BITS


@helper(inline="always")
def fine(u):
    """All but the last bits of a place."""
    return (bits_of(u) + _ROUND) >> _REST


@plain
def first_from(cols, feature):
    """The first entry of a row from this feature on, by bisection; all of them are in order.

    Rows in no order may be asked for a bound that all of their features keep to.
    """
    lo, hi = 0, len(cols)
    if hi == 0 or cols[0] >= feature:
        return 0
    if cols[hi - 1] < feature:
        return hi
    while lo < hi:
        middle = (lo + hi) // 2
        if cols[middle] < feature:
            lo = middle + 1
        else:
            hi = middle
    return lo


@helper(inline="always")
def some_of(X, i, first, last):
    """The entries of row i that are of features first to last: columns and values."""
    cols, vals = row(X, i)
    lo, hi = first_from(cols, first), first_from(cols, last)
    return cols[lo:hi], vals[lo:hi]


@loop(lambda data: types.void(rows_type(data), numbers, _floats, types.int64, types.int64))
def describe(X, weight, F, first, last):
    """Fill in what is known of features first to last, over rows that have a weight; F is zero."""
    if len(weight) > 0:
        _describe(X, weight, F, first, last)


@plain
def _describe(X, weight, F, first, last):
    """The same, if there are rows: without references to the views that are made of each."""
    counted = 0
    cols, vals = some_of(X, 0, first, last)
    for i in range(len(weight)):
        later, values = some_of(X, min(i + 1, len(weight) - 1), first, last)
        if weight[i] > 0.0:
            if counted == 0:
                _begin(F, cols, vals)
            counted += 1
            _describe_row(F, cols, vals, later, weight[i])
        cols, vals = later, values


@plain
def _begin(F, cols, vals):
    """Begin with the values of one row. Where it has none, zero is one of the feature's values."""
    for n in range(len(cols)):
        f, x = np.uintp(cols[n]), float(vals[n])
        F[f, LOW], F[f, HIGH], F[f, BASE] = x, x, x


@plain
def _describe_row(F, cols, vals, later, weight):
    """The share of one row; features of the later one are asked for."""
    for n in range(len(cols)):
        ask_for_next(F, later, n)
        f, x = np.uintp(cols[n]), float(vals[n])
        if x != 0.0:
            gap = x - F[f, BASE]
            share = weight * gap
            F[f, LOW], F[f, HIGH] = less(x, F[f, LOW]), more(x, F[f, HIGH])
            F[f, SUM] += share
            F[f, SQUARES] += share * gap
            F[f, COUNT] += 1.0
            F[f, WEIGHT] += weight
    ask_for_rest(F, later, len(cols))


@helper(inline="always")
def place(x, start, per_way):
    """Where a value is on the way from one end of its feature's range to the other, from 0 to 1."""
    return less(more((x - start) * per_way, 0.0), 1.0)


@loop(
    lambda data: types.uint64(_floats, _whole, types.uint64, real, real, types.int64, types.int64)
)
def set_keys(F, bits, salt, counted, all_weight, first, last):
    """What hashes are made of, for features first to last.

    `counted` rows have a weight. A range starts at the end that is nearer to the mean. The key of a
    feature is the mean square of places then, in a few steps. A constant feature adds nothing. `bits`
    is the memory of F. The sum of what zeros add to hashes is returned.
    """
    zeros, share = _NO, 1.0 / all_weight
    for f in range(np.uintp(first), np.uintp(last)):
        start, per_way, key = 0.0, 0.0, _NO
        low, high, base = F[f, LOW], F[f, HIGH], F[f, BASE]
        if F[f, COUNT] < counted:  # some rows have a zero
            low, high = less(low, 0.0), more(high, 0.0)
        if high > low:
            start, per_way, rest = low, 1.0 / (high - low), all_weight - F[f, WEIGHT]
            at = (base - low) * per_way
            gap = (F[f, SUM] - rest * base) * share * per_way
            gap_sq = (F[f, SQUARES] + rest * base * base) * share * per_way * per_way
            mean, square = at + gap, abs(at * at + 2.0 * at * gap + gap_sq)
            if mean > _UPPER:
                start, per_way, square = high, -per_way, abs(1.0 - 2.0 * mean + square)
            key = mix(whole_steps(KEYS * square + _BESIDE) * salt + salt)
        zero = _coarse(0.0, start, per_way, key)
        zeros += zero
        F[f, START], F[f, PER_WAY] = start, per_way
        bits[f, KEY], bits[f, ZERO] = key, zero
    return zeros


@helper(inline="always")
def _coarse(x, start, per_way, key):
    """What a value adds to a hash in coarse steps."""
    return mix(whole_steps(COARSE * place(x, start, per_way)) * ODD + key)


@loop(
    lambda data: types.void(
        rows_type(data), _floats, _whole, types.uint64[::1], types.int64, types.int64
    )
)
def look_again(X, F, bits, hashes, first, last):
    """Add Σ_j mix(u_j + key of feature j) to the hashes of rows first to last, for places u_j in steps.

    Zeros of all features are counted by the caller; a stored value takes the place of one.
    """
    if first < last:
        _look_again(X, F, bits, hashes, first, last)


@plain
def _look_again(X, F, bits, hashes, first, last):
    """The same, if there are rows: without references to the views that are made of each."""
    cols, vals = row(X, first)
    for i in range(first, last):
        later, values = row(X, min(i + 1, last - 1))
        total = _NO
        for n in range(len(cols)):
            ask_for_next(F, later, n)
            f, x = np.uintp(cols[n]), float(vals[n])
            total += _coarse(x, F[f, START], F[f, PER_WAY], bits[f, KEY]) - bits[f, ZERO]
        ask_for_rest(F, later, len(cols))
        hashes[i] += total
        cols, vals = later, values


@loop(
    lambda data: types.void(
        rows_type(data), _floats, indices, types.uint64, indices, types.uint64[::1]
    )
)
def add_fine_hashes(X, F, number, salt, some, hashes):
    """Σ_j mix(u_j + number of feature j) of some rows, for all but the last bits of places u_j.

    Zeros of all features are counted by the caller; a stored value takes the place of one.
    """
    for k in range(len(some)):
        cols, vals = row(X, some[k])
        hashes[k] += _fine_row_hash(cols, vals, F, number, salt)


@loop(lambda data: types.uint64(_floats, indices, types.uint64, types.int64, types.int64))
def fine_zeros(F, number, salt, first, last):
    """What zeros of some features add to fine hashes, apart from what values at the start would."""
    total = _NO
    for f in range(np.uintp(first), np.uintp(last)):  # numbers that might be negative take longer
        zero = fine(place(0.0, F[f, START], F[f, PER_WAY]))
        if zero != _NO:  # for few features of sparse rows
            own = mix((np.uint64(number[f]) + _ONE) * salt)
            total += mix(zero * ODD + own) - mix(own)
    return total


@plain
def _fine_row_hash(cols, vals, F, number, salt):
    """The share of one row's stored values."""
    total = _NO
    for n in range(len(cols)):
        f = np.uintp(cols[n])
        own = mix((np.uint64(number[f]) + _ONE) * salt)
        zero = place(0.0, F[f, START], F[f, PER_WAY])
        u = place(float(vals[n]), F[f, START], F[f, PER_WAY])
        total += mix(fine(u) * ODD + own) - mix(fine(zero) * ODD + own)
    return total


@loop(lambda data: types.void(rows_type(data), indices, types.uint64[::1]))
def add_row_keys(X, some, keys):
    """Σ_j mix(mix(bits of x_j) + mix(j + 1)) of some rows; zeros do not count."""
    for k in range(len(some)):
        keys[k] += _row_key(X, some[k])


@plain
def _row_key(X, i):
    """That of one row."""
    cols, vals = row(X, i)
    total = _NO
    for n in range(len(cols)):
        x = float(vals[n])
        if x != 0.0:
            total += mix(mix(bits_of(x)) + mix(np.uint64(cols[n]) + _ONE))
    return total
