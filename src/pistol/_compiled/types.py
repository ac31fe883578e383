"""What the compiled loops exchange: tuples, numba signatures, and compilation on first use."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from .cache import INTERPRETED, jit, uncollected

Array = np.ndarray[Any, np.dtype[Any]]

MAX_NORM_SQ = 1e140  # of a row; beyond it products of scores, sums and multipliers could overflow
MAX_TARGET = 1e300


class Rows(NamedTuple):
    """Dense or CSR rows in one layout. `step` is 1 for CSR; 0 where all rows share `indices`."""

    indptr: Array
    indices: Array
    data: Array
    step: int

    @property
    def dtype(self) -> Any:
        """Of the values."""
        return self.data.dtype


class Rounds(NamedTuple):
    """What is played: in round k row order[k] with its targets, as a round of size r[k]."""

    Y: Array
    order: Array
    r: Array

    @classmethod
    def of(cls, Y: Array, order: Array, r: Array) -> Rounds:
        """Read-only and contiguous, as the loops take them: numba converts no part of a tuple."""
        return cls(*(read_only(np.ascontiguousarray(x)) for x in (Y, order, r)))


class Plugs(NamedTuple):
    """A rule as the loops take it: the addresses of its functions, and its numbers."""

    grad: int  # address of the loss's subgradient
    theta: Array  # the loss's own parameter, per output
    coupled: int  # address of what compares the outputs with each other; 0 if nothing does
    potential: int  # address of the potential, which gives c; 0 where `growth` is all it takes
    growth: int  # how b_t of a coordinate grows
    a: float
    b: Array  # per kernel
    L: float
    power: float  # f_t weighs r t^power in the average


class GramValues(NamedTuple):
    """The values that those of a sum of kernels are made of, and how: chains of kernels."""

    matrices: Array  # values of the first kernels of chains, of shape (chains, rows, rows)
    chains: (
        Array  # one line per chain: its first kernel, how many there are, its matrix, and its kind
    )

    @property
    def dtype(self) -> Any:
        """Of the values."""
        return self.matrices.dtype


# Kinds of chains: values are one; those of one kernel; each the product of the one before and the
# first (three at most); each the fourth power of the one before (four at most).
CONSTANT, ALONE, PRODUCTS, POWERS = 0, 1, 2, 3


class BlockValues(NamedTuple):
    """g(x) of the support so far for the rows of a block, their own kernel values, and √k(x, x).

    The last dimension is filled up to whole cache lines, and kernels of g to as many as those of
    `size`; what is filled up is zero.
    """

    g: Array  # (kernels, outputs, rows)
    K: Array  # (kernels, rows, rows)
    size: Array  # (rows, kernels)

    @property
    def dtype(self) -> Any:
        """Of the values."""
        return self.g.dtype


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
rounds = types.NamedTuple((table, indices, numbers), Rounds)
plugs = types.NamedTuple(
    (plug, numbers, types.int64, plug, types.int64, real, numbers, real, real), Plugs
)
block_values = types.NamedTuple((cube, cube, matrix), BlockValues)


def gram_type(data: Any) -> types.NamedTuple:
    """The numba type of `GramValues` of this dtype."""
    values = types.Array(from_dtype(np.dtype(data)), 3, "C", readonly=True)
    chains = types.Array(types.int64, 2, "C", readonly=True)
    return types.NamedTuple((values, chains), GramValues)


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


LOOPS: list[Loop] = []  # all of them
_lock = Lock()


class Loop:
    """A compiled loop: machine code is made (or read from disk) on the first call, not on import.

    One compilation per dtype of the first argument; each new process finds it on disk.
    """

    def __init__(
        self, py_func: Callable[..., Any], signature: Callable[[Any], Any], fastmath: Any
    ) -> None:
        self.py_func, self.signature, self.fastmath = py_func, signature, fastmath
        self.__doc__ = py_func.__doc__
        self._compiled: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        return self.compiled(args[0].dtype)(*args)

    def compiled(self, dtype: Any) -> Callable[..., Any]:
        """The machine code for this dtype of the first argument."""
        if INTERPRETED:
            return self.py_func
        if dtype not in self._compiled:
            with _lock:  # threads that come at once wait for one compilation
                if dtype not in self._compiled:
                    dispatcher = jit(self.py_func, nogil=True, fastmath=self.fastmath)
                    with uncollected():
                        dispatcher.compile(self.signature(dtype))
                    dispatcher.disable_compile()
                    self._compiled[dtype] = dispatcher
        return self._compiled[dtype]


def loop(
    signature: Callable[[Any], Any], fastmath: Any = False
) -> Callable[[Callable[..., Any]], Loop]:
    """Decorate a function as a `Loop`; `signature` is a function of the first argument's dtype."""

    def decorate(py_func: Callable[..., Any]) -> Loop:
        LOOPS.append(Loop(py_func, signature, fastmath))
        return LOOPS[-1]

    return decorate


def read_only(x: Array) -> Array:
    """A read-only view: loops cannot touch a user's data, and one signature takes every array."""
    view = x.view()
    view.setflags(write=False)
    return view


LINE = 8  # numbers in a cache line


def aligned_zeros(shape: tuple[int, ...]) -> Array:
    """Zeros that begin where a cache line does; what is never touched takes no memory."""
    size = int(np.prod(shape))
    room = np.zeros(size + LINE)
    first = -(room.ctypes.data // room.itemsize) % LINE
    return room[first : first + size].reshape(shape)


def pick(registry: dict[str, Any], kind: str, name: Any) -> Any:
    """Look a plug up by name; the error lists the choices."""
    if not isinstance(name, str) or name not in registry:
        raise ValueError(f"unknown {kind} {name!r}; choose one of {', '.join(sorted(registry))}")
    return registry[name]
