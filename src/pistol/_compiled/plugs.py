"""Losses and potentials as plugs of the compiled loops: addresses of C functions.

A loop that takes an address is compiled once for all plugs, a user's own too, and is found in the
disk cache by every new process. (numba's own function arguments cost 30 µs each to unpack.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import carray
from numba.core import types
from numba.extending import intrinsic

from .cache import INTERPRETED, c_function

_compiled: dict[Any, Any] = {}  # by function, or by function and form


def address(function: Callable[..., float], arity: int) -> Any:
    """What a loop takes for a function of `arity` floats; the function itself if not compiled."""
    if INTERPRETED:
        return function
    if function not in _compiled:
        _compiled[function] = c_function(function, types.float64(*[types.float64] * arity))
    return _compiled[function].address


def comparison(function: Callable[..., None]) -> Any:
    """What a loop takes for a function of two vectors of the same length."""
    if INTERPRETED:
        return function
    if function not in _compiled:
        numbers = types.CPointer(types.float64)

        def at(p, z, n):
            function(carray(p, n), carray(z, n))

        at.__module__ = function.__module__
        _compiled[function] = c_function(at, types.void(numbers, numbers, types.int64))
    return _compiled[function].address


def potentials(function: Callable[..., float]) -> Any:
    """What a loop takes for a potential of several learners at once, which becomes SIMD code."""
    if INTERPRETED:
        return function
    if (function, "vectors") not in _compiled:
        vector = types.CPointer(types.float64)

        def at(g_norm_sq, alpha, t, b, c, n):
            g_norm_sq, alpha, b, c = (
                carray(g_norm_sq, n),
                carray(alpha, n),
                carray(b, n),
                carray(c, n),
            )
            for q in range(n):
                c[q] = function(g_norm_sq[q], alpha[q], t, b[q])

        at.__module__, at.__qualname__ = function.__module__, f"{function.__name__}.of_vectors"
        signature = types.void(vector, vector, types.float64, vector, vector, types.int64)
        _compiled[function, "vectors"] = c_function(at, signature)
    return _compiled[function, "vectors"].address


def _codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    double = ir.DoubleType()
    function = ir.FunctionType(double, [double] * (len(args) - 1))
    return builder.call(builder.inttoptr(args[0], function.as_pointer()), args[1:])


@intrinsic
def _call3(typingctx, pointer, x, y, z):
    return types.float64(types.intp, *[types.float64] * 3), _codegen


@intrinsic
def _call4(typingctx, pointer, w, x, y, z):
    return types.float64(types.intp, *[types.float64] * 4), _codegen


@intrinsic
def _call_vectors(typingctx, pointer, x, y):
    def codegen(context, builder, signature, args):
        x, y = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[1:], args[1:], strict=True)
        )
        double, size = ir.DoubleType().as_pointer(), ir.IntType(64)
        function = ir.FunctionType(ir.VoidType(), [double, double, size])
        pointer = builder.inttoptr(args[0], function.as_pointer())
        builder.call(pointer, [x.data, y.data, x.nitems])
        return context.get_dummy_value()

    return types.none(types.intp, x, y), codegen


@intrinsic
def _call_potentials(typingctx, pointer, g_norm_sq, alpha, t, b, c):
    def codegen(context, builder, signature, args):
        arrays = {
            i: context.make_array(signature.args[i])(context, builder, args[i])
            for i in (1, 2, 4, 5)
        }
        double, size = ir.DoubleType(), ir.IntType(64)
        kinds = [double.as_pointer()] * 2 + [double] + [double.as_pointer()] * 2 + [size]
        function = ir.FunctionType(ir.VoidType(), kinds)
        values = [args[3] if i == 3 else arrays[i].data for i in range(1, 6)]
        pointer = builder.inttoptr(args[0], function.as_pointer())
        builder.call(pointer, [*values, arrays[5].nitems])
        return context.get_dummy_value()

    return types.none(types.intp, g_norm_sq, alpha, types.float64, b, c), codegen


def _call(function: Callable[..., float], *args: Any) -> float:
    return function(*args)


def _call_each(
    function: Callable[..., float], g_norm_sq: Any, alpha: Any, t: float, b: Any, c: Any
) -> None:
    for q in range(len(c)):
        c[q] = function(g_norm_sq[q], alpha[q], t, b[q])


call_loss: Any = _call if INTERPRETED else _call3  # (address, y, p, theta)
call_comparison: Any = _call if INTERPRETED else _call_vectors  # (address, p, z)
call_potential: Any = _call if INTERPRETED else _call4  # (address, ‖g‖², α, t, b)
# (address, ‖g‖², α, t, b, c), with vectors but for t; sets c
call_potentials: Any = _call_each if INTERPRETED else _call_potentials
