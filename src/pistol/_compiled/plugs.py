"""Losses and potentials as plugs of the compiled loops: addresses of C functions.

A loop that takes an address is compiled once for all plugs, a user's own too, and is found in the
disk cache by every new process. (numba's own function arguments cost 30 µs each to unpack.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from .cache import INTERPRETED, c_function

_compiled: dict[Callable[..., float], Any] = {}


def address(function: Callable[..., float], arity: int) -> Any:
    """What a loop takes for a function of `arity` floats; the function itself if not compiled."""
    if INTERPRETED:
        return function
    if function not in _compiled:
        _compiled[function] = c_function(function, arity)
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


def _call(function: Callable[..., float], *args: float) -> float:
    return function(*args)


call_loss: Any = _call if INTERPRETED else _call3  # (address, y, p, theta)
call_potential: Any = _call if INTERPRETED else _call4  # (address, ‖g‖², α, t, b)
