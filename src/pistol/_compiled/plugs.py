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

_compiled: dict[Callable[..., Any], Any] = {}


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


def _call(function: Callable[..., float], *args: Any) -> float:
    return function(*args)


call_loss: Any = _call if INTERPRETED else _call3  # (address, y, p, theta)
call_comparison: Any = _call if INTERPRETED else _call_vectors  # (address, p, z)
call_potential: Any = _call if INTERPRETED else _call4  # (address, ‖g‖², α, t, b)
