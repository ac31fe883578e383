"""exp for float64 as straight-line arithmetic, so that a loop over it becomes SIMD code.

exp(x) = 2^n e^r with n = round(x / ln 2) and |r| ≤ ln 2 / 2; e^r is its Taylor polynomial of
degree 13, whose error there is below one unit in the last place. n is read from the low bits of
x / ln 2 + 1.5 · 2^52 and written into the exponent field: two shifts of bits, no call, no branch.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_LOG2_E = 1.4426950408889634
_LN2_HI = 0.6931471803691238  # ln 2 in two parts: n · _LN2_HI is exact
_LN2_LO = 1.9082149292705877e-10
_ROUND = 6755399441055744.0  # 1.5 · 2^52
_SMALLEST = -708.0  # exp(-708) ≈ 3e-308; below it the kernel value is zero


def _cast(to: Any, ir_type: Any, dtype: Any) -> Any:
    """A compiled reinterpretation of 64 bits; with the JIT switched off, NumPy's."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return lambda x: np.asarray(x).view(dtype)[()]
    signature = to(types.float64 if to is types.int64 else types.int64)

    def codegen(context, builder, sig, args):
        return builder.bitcast(args[0], ir_type)

    return intrinsic(lambda typingctx, x: (signature, codegen))


_bits = _cast(types.int64, ir.IntType(64), np.int64)
_float = _cast(types.float64, ir.DoubleType(), np.float64)


@njit(cache=True)
def exp_negative(x):
    """exp(x) for x ≤ 0, to about one unit in the last place."""
    z = max(x, _SMALLEST)
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
    scale = _float((_bits(shifted) << 52) + (1023 << 52))
    return e * scale if x > _SMALLEST else 0.0
