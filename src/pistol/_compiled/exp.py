"""exp as straight-line arithmetic, so that a loop over it becomes SIMD code.

exp(x) = 2^n e^r with n = round(x / ln 2) and |r| ≤ ln 2 / 2. e^r is a polynomial: the Taylor
polynomial of degree 13 in float64, a fitted one of degree 7 in float32 (Cephes' coefficients), each
good to about one unit in the last place. n is read from the low bits of x / ln 2 + 1.5 · 2^m, where
m is the number of mantissa bits, and written into the exponent field: no call, no branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from .cache import INTERPRETED, helper


def _cast(to: Any, source: Any, ir_type: Any, dtype: Any) -> Any:
    """A compiled reinterpretation of bits; with the JIT switched off, NumPy's."""
    if INTERPRETED:
        return lambda x: np.asarray(x).view(dtype)[()]

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir_type)

    return intrinsic(lambda typingctx, x: (to(source), codegen))


_bits64 = _cast(types.int64, types.float64, ir.IntType(64), np.int64)
_float64 = _cast(types.float64, types.int64, ir.DoubleType(), np.float64)
_bits32 = _cast(types.int32, types.float32, ir.IntType(32), np.int32)
_float32 = _cast(types.float32, types.int32, ir.FloatType(), np.float32)

_LOG2_E = 1.4426950408889634
_LN2_HI = 0.6931471803691238  # ln 2 in two parts: n · _LN2_HI is exact
_LN2_LO = 1.9082149292705877e-10
_ROUND = 6755399441055744.0  # 1.5 · 2^52
_SMALLEST = -700.0  # exp(-700) ≈ 1e-304; nothing is smaller than that


@helper(inline="always")
def exp64(x):
    """exp(x) for x ≤ 700 in float64."""
    z = _SMALLEST if x < _SMALLEST else x
    shifted = z * _LOG2_E + _ROUND
    n = shifted - _ROUND
    r = (z - n * _LN2_HI) - n * _LN2_LO
    e = 1.6059043836821613e-10
    e = e * r + 2.08767569878681e-09
    e = e * r + 2.505210838544172e-08
    e = e * r + 2.755731922398589e-07
    e = e * r + 2.7557319223985893e-06
    e = e * r + 2.48015873015873e-05
    e = e * r + 0.0001984126984126984
    e = e * r + 0.001388888888888889
    e = e * r + 0.008333333333333333
    e = e * r + 0.041666666666666664
    e = e * r + 0.16666666666666666
    e = e * r + 0.5
    e = e * r + 1.0
    e = e * r + 1.0
    scale = _float64((_bits64(shifted) << 52) + (1023 << 52))
    return e * scale


_f = np.float32
_LOG2_E_32, _LN2_HI_32, _LN2_LO_32 = _f(_LOG2_E), _f(0.693359375), _f(-2.12194440e-4)
_ROUND_32, _SMALLEST_32 = _f(12582912.0), _f(-80.0)  # 1.5 · 2^23; exp(-80) ≈ 2e-35
_C7, _C6, _C5 = _f(1.9875691500e-4), _f(1.3981999507e-3), _f(8.3334519073e-3)
_C4, _C3, _C2 = _f(4.1665795894e-2), _f(1.6666665459e-1), _f(5.0000001201e-1)
_ONE = _f(1.0)
_BITS, _BIAS = np.int32(23), np.int32(127 << 23)


@helper(inline="always")
def _exp32(x):
    z = _SMALLEST_32 if x < _SMALLEST_32 else x
    shifted = z * _LOG2_E_32 + _ROUND_32
    n = shifted - _ROUND_32
    r = (z - n * _LN2_HI_32) - n * _LN2_LO_32
    e = _C7 * r + _C6
    e = e * r + _C5
    e = e * r + _C4
    e = e * r + _C3
    e = e * r + _C2
    e = (e * r) * r + r + _ONE
    scale = _float32((_bits32(shifted) << _BITS) + _BIAS)
    return e * scale


def fast_exp(x):
    """exp(x) for x ≤ 700 (80 in float32), to about one unit in the last place of its precision."""
    return _exp32(x) if isinstance(x, np.float32) else exp64(x)


@overload(fast_exp, inline="always")
def _fast_exp(x):
    if x == types.float32:
        return lambda x: _exp32(x)
    return lambda x: exp64(x)


@helper(inline="always")
def fourth_power(x, zero, least):
    """x⁴ of a value of an exponential, or zero below 1e-24: numbers near the smallest are slow."""
    square = x * x
    return zero if x < least else square * square


LEAST = 1e-6  # whose fourth power is 1e-24
