"""exp as straight-line arithmetic, so that a loop over it becomes SIMD code.

exp(x) = 2^n e^r with n = round(x / ln 2) and |r| ≤ ln 2 / 2. e^r is a polynomial: the Taylor
polynomial of degree 13 in float64, a fitted one of degree 7 in float32 (Cephes' coefficients), each
good to about one unit in the last place. n is read from the low bits of x / ln 2 + 1.5 · 2^m, where
m is the number of mantissa bits, and written into the exponent field: no call, no branch.

The formulas are plain Python. Compiled code gets them by calling them once, with a number that writes
an instruction for each operation: numba's own inlining takes several times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import lower_builtin, type_callable

from .cache import plain

_LOG2_E = 1.4426950408889634
_LN2_HI = 0.6931471803691238  # ln 2 in two parts: n · _LN2_HI is exact
_LN2_LO = 1.9082149292705877e-10
_ROUND = 6755399441055744.0  # 1.5 · 2^52
_SMALLEST = -700.0  # exp(-700) ≈ 1e-304; nothing is smaller than that


def _exp64(x: Any, at_least: Any, power: Any, polynomial: Any = None) -> Any:
    z = at_least(x, _SMALLEST)
    shifted = z * _LOG2_E + _ROUND
    n = shifted - _ROUND
    r = (z - n * _LN2_HI) - n * _LN2_LO
    return (polynomial or _in_turn)(r) * power(shifted)


def _in_turn(r: Any) -> Any:
    """e^r with the fewest operations."""
    e = r * 1.6059043836821613e-10 + 2.08767569878681e-09
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
    return e * r + 1.0


def _side_by_side(r: Any) -> Any:
    """The same, but odd and even powers do not wait for each other."""
    q = r * r
    odd = q * 1.6059043836821613e-10 + 2.505210838544172e-08
    even = q * 2.08767569878681e-09 + 2.755731922398589e-07
    odd = odd * q + 2.7557319223985893e-06
    even = even * q + 2.48015873015873e-05
    odd = odd * q + 0.0001984126984126984
    even = even * q + 0.001388888888888889
    odd = odd * q + 0.008333333333333333
    even = even * q + 0.041666666666666664
    odd = odd * q + 0.16666666666666666
    even = even * q + 0.5
    odd = odd * q + 1.0
    even = even * q + 1.0
    return odd * r + even


def _exp32(x: Any, at_least: Any, power: Any) -> Any:
    z = at_least(x, -80.0)  # exp(-80) ≈ 2e-35
    shifted = z * _LOG2_E + 12582912.0  # 1.5 · 2^23
    n = shifted - 12582912.0
    r = (z - n * 0.693359375) - n * -2.12194440e-4
    e = r * 1.9875691500e-4 + 1.3981999507e-3
    e = e * r + 8.3334519073e-3
    e = e * r + 4.1665795894e-2
    e = e * r + 1.6666665459e-1
    e = e * r + 5.0000001201e-1
    e = (e * r) * r + r + 1.0
    return e * power(shifted)


def fast_exp(x: Any) -> Any:
    """exp(x) for x ≤ 700 (80 in float32), to about one unit in the last place of its precision."""
    return _evaluated(x, isinstance(x, np.float32))


def prompt_exp(x: Any) -> Any:
    """`fast_exp` in float64 for loops over few numbers, whose values are waited for."""
    return _evaluated(x, False, _side_by_side)


def _evaluated(x: Any, single: bool, *polynomial: Any) -> Any:
    """The formula in plain Python."""

    def at_least(x: Any, least: float) -> Any:
        return type(x)(least) if x < least else x

    def power(shifted: Any) -> Any:
        real, whole, bits, bias = _SINGLE if single else _DOUBLE
        n: Any = np.asarray(shifted, real).view(whole)
        return ((n << bits) + (bias << bits)).view(real)[()]

    formula: Any = _exp32 if single else _exp64
    return formula(x, at_least, power, *polynomial)


_DOUBLE = np.float64, np.int64, 52, 1023  # a number, its bits, those of the mantissa, and the bias
_SINGLE = np.float32, np.int32, 23, 127


class _Emitted:
    """A number in compiled code: what is done with it writes instructions."""

    def __init__(self, builder: ir.IRBuilder, value: Any) -> None:
        self.builder, self.value = builder, value

    def _with(self, write: Any, other: Any) -> _Emitted:
        known = other.value if isinstance(other, _Emitted) else self.value.type(other)
        return _Emitted(self.builder, write(self.value, known))

    def __add__(self, other: Any) -> _Emitted:
        return self._with(self.builder.fadd, other)

    def __sub__(self, other: Any) -> _Emitted:
        return self._with(self.builder.fsub, other)

    def __mul__(self, other: Any) -> _Emitted:
        return self._with(self.builder.fmul, other)

    def at_least(self, least: float) -> _Emitted:
        low = self.value.type(least)
        below = self.builder.fcmp_ordered("<", self.value, low)
        return _Emitted(self.builder, self.builder.select(below, low, self.value))

    def power(self) -> _Emitted:
        _, _, bits, bias = _SINGLE if self.value.type == ir.FloatType() else _DOUBLE
        whole = ir.IntType(32 if self.value.type == ir.FloatType() else 64)
        n = self.builder.shl(self.builder.bitcast(self.value, whole), whole(bits))
        scale = self.builder.add(n, whole(bias << bits))
        return _Emitted(self.builder, self.builder.bitcast(scale, self.value.type))


@type_callable(fast_exp)
def _type_of_exp(context: Any) -> Any:
    return lambda x: x if x in (types.float32, types.float64) else None


@lower_builtin(fast_exp, types.float32)
@lower_builtin(fast_exp, types.float64)
def _lower_exp(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    formula = _exp32 if signature.return_type == types.float32 else _exp64
    return formula(_Emitted(builder, args[0]), _Emitted.at_least, _Emitted.power).value


@type_callable(prompt_exp)
def _type_of_prompt_exp(context: Any) -> Any:
    return lambda x: x if x == types.float64 else None


@lower_builtin(prompt_exp, types.float64)
def _lower_prompt_exp(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    x = _Emitted(builder, args[0])
    return _exp64(x, _Emitted.at_least, _Emitted.power, _side_by_side).value


@plain(forceinline=True)
def fourth_power(x, least):
    """x⁴ of a value of an exponential, 1e-24 at least: numbers near the smallest are slow."""
    large = x if x > least else least
    square = large * large
    return square * square


LEAST = 1e-6  # whose fourth power is 1e-24
