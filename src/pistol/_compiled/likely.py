"""The log-loss of scores, for which logarithms are straight-line arithmetic, too.

log(x) = k ln 2 + log(m) with m between √½ and √2, and log(m) = 2 artanh(s) with s = (m - 1) / (m + 1)
is a series of odd powers of s, of which seven are enough (fdlibm's coefficients).
"""

from __future__ import annotations

import numpy as np

from .cache import plain
from .exp import fast_exp
from .types import loop, numbers, real, table

_LEAST = 0x3FE6A09E667F3BCD  # the bits of √½
_MANTISSA = 52  # bits of it
_LN2_HI, _LN2_LO = 0.6931471803691238, 1.9082149292705877e-10  # n · _LN2_HI is exact


@plain(fastmath={"contract"})
def _series(z):
    """Σ c_k z^k for k from 1 to 7."""
    rest = z * 0.1479819860511658591 + 0.1531383769920937332
    rest = rest * z + 0.1818357216161805012
    rest = rest * z + 0.2222219843214978396
    rest = rest * z + 0.2857142874366239149
    rest = rest * z + 0.3999999999940941908
    return (rest * z + 0.6666666666666735130) * z


@plain(fastmath={"contract"})
def _set_logarithms(x, bits, power):
    """log(x) in place of positive numbers that are neither tiny nor infinite; `bits` are theirs."""
    for i in range(len(x)):
        power[i] = (bits[i] - _LEAST) >> _MANTISSA
        bits[i] -= power[i] << _MANTISSA
    for i in range(len(x)):
        f, k = x[i] - 1.0, np.float64(power[i])
        s, half = f / (2.0 + f), 0.5 * f * f
        x[i] = k * _LN2_HI - ((half - (s * (half + _series(s * s)) + k * _LN2_LO)) - f)


@plain(fastmath={"contract"})
def _add_exponentials(T, x, sums):
    for i in range(len(sums)):
        sums[i] += fast_exp(T * x[i])


@plain
def _loss(logits, share, sure, first, T, sums, bits, power):
    """`loss_at`; the other arrays are room."""
    for i in range(len(sums)):
        sums[i] = first
    for j in range(len(logits)):
        _add_exponentials(T, logits[j], sums)
    whole, total = 0.0, 0.0
    for i in range(len(sums)):
        whole += sums[i]
    _set_logarithms(sums, bits, power)
    for i in range(len(sums)):
        total += share[i] * sums[i]
    return T * sure + total + 0.0 * whole  # NaN if a score is NaN, whose bits would make a number


@loop(lambda data: real(table, numbers, real, real, real))
def loss_at(logits, share, sure, first, T):
    """T · sure + Σ share log(first + Σ_j exp(T logits[j])), for logits of at most zero."""
    sums, power = np.empty(logits.shape[1]), np.empty(logits.shape[1], np.int64)
    return _loss(logits, share, sure, first, T, sums, sums.view(np.int64), power)


@loop(lambda data: real(table, numbers, real, real, numbers))
def least_loss(logits, share, sure, first, points):
    """The least of `loss_at` at twelve ascending points, from its values at five: it is convex.

    Of two points inside an interval, the smaller value tells in which part the least one is; the
    lengths are Fibonacci's numbers, so that the next interval has one of the two points inside.
    """
    sums, power = np.empty(logits.shape[1]), np.empty(logits.shape[1], np.int64)
    given, room = (logits, share, sure, first), (sums, sums.view(np.int64), power)
    low, long, short = -1, 8, 5
    one, two = (
        _loss(*given, points[low + short], *room),
        _loss(*given, points[low + long], *room),
    )
    while short > 1:
        long, short, step = short, long - short, short
        if one <= two:
            one, two = _loss(*given, points[low + short], *room), one
        else:
            low += step
            one, two = two, _loss(*given, points[low + long], *room)
    return one if one < two else two
