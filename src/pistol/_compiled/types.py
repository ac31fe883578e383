"""What the compiled loops exchange: tuples, numba signatures, and compilation on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.core import types
from numba.np.numpy_support import from_dtype

Array = np.ndarray[Any, np.dtype[Any]]


class Rows(NamedTuple):
    """Dense or CSR rows in one layout. `step` is 1 for CSR; 0 where all rows share `indices`."""

    indptr: Array
    indices: Array
    data: Array
    step: int


class Scalars(NamedTuple):
    """What is known of g and of time; arrays of shape (kernels, columns) unless noted."""

    g_norm_sq: Array  # ‖g‖²
    alpha: Array  # a (L + Σ |s_t| ‖k(x_t, ·)‖)
    c_sum: Array  # Σ ω_t c_t
    t: Array  # rounds played, shape (1, 1)
    weight: Array  # Σ ω_t, shape (1, 1)


real = types.float64
vector = types.Array(real, 1, "C")
matrix = types.Array(real, 2, "C")
cube = types.Array(real, 3, "C")
indices = types.Array(types.int64, 1, "C", readonly=True)
numbers = types.Array(real, 1, "C", readonly=True)
table = types.Array(real, 2, "C", readonly=True)
scalars = types.NamedUniTuple(matrix, len(Scalars._fields), Scalars)

plug = types.intp  # the address of a loss or a potential


def rows_type(data: Any) -> types.NamedTuple:
    """The numba type of `Rows` whose data have this dtype."""
    return types.NamedTuple(
        (
            indices,
            types.Array(types.int32, 1, "C", readonly=True),
            types.Array(from_dtype(np.dtype(data)), 1, "C", readonly=True),
            types.int64,
        ),
        Rows,
    )


class Loop:
    """A compiled loop: machine code is made (or read from disk) on the first call, not on import.

    One compilation a dtype of the first argument; the disk cache is hit in each new process.
    """

    def __init__(
        self, py_func: Callable[..., Any], signature: Callable[[Any], Any], fastmath: Any
    ) -> None:
        self.py_func, self.signature, self.fastmath = py_func, signature, fastmath
        self.__doc__ = py_func.__doc__
        self._compiled: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        dtype = args[0].data.dtype if isinstance(args[0], Rows) else args[0].dtype
        return self.compiled(dtype)(*args)

    def compiled(self, dtype: Any) -> Callable[..., Any]:
        """The machine code for this dtype of the first argument."""
        if dtype not in self._compiled:
            self._compiled[dtype] = njit(
                self.signature(dtype),
                cache=True,
                nogil=True,
                error_model="numpy",
                fastmath=self.fastmath,
            )(self.py_func)
        return self._compiled[dtype]


def loop(
    signature: Callable[[Any], Any], fastmath: Any = False
) -> Callable[[Callable[..., Any]], Loop]:
    """Decorate a function as a `Loop`; `signature` is a function of the first argument's dtype."""
    return lambda py_func: Loop(py_func, signature, fastmath)


def read_only(x: Array) -> Array:
    """A read-only view: loops cannot touch a user's data, and one signature takes every array."""
    view = x.view()
    view.flags.writeable = False
    return view


def pick(registry: dict[str, Any], kind: str, name: Any) -> Any:
    """Look a plug up by name; the error lists the choices."""
    if not isinstance(name, str) or name not in registry:
        raise ValueError(f"unknown {kind} {name!r}; choose one of {', '.join(sorted(registry))}")
    return registry[name]
