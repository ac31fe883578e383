"""What is kept of support rows, and k(x, x) of the rows that may become some."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._compiled.rows import sq_norms
from .._compiled.types import Array
from ..kernels import Kernel, bounded_poly, exponential, gaussian
from .storage import Growing, Later, Picked, Store

MAX_VALUE = 1e140  # of a kernel; more could overflow ‖g‖²


class Support(NamedTuple):
    """What is kept of every support row, in arrays that grow together."""

    rows: Any  # `Store`, or `Picked` before it grows
    sq: Any  # ‖x‖²: `Growing`, or `Later` before it grows
    ids: Any  # numbers of the rows; likewise
    coef: Growing  # -Σ s, per output: coefficients of g
    moved: Any  # Σ |s|, per output; likewise
    u: Growing  # see `_compiled.loops`, per kernel and output

    @classmethod
    def none(cls, kernels: int, outputs: int) -> Support:
        """No support rows yet; how their features are stored shows with the first rows."""
        each = Growing((outputs,)), Growing((outputs,)), Growing((kernels, outputs))
        return cls(Store(np.empty((0, 0))), Growing(), Growing((), np.int64), *each)

    def append(self, *values: Any) -> None:
        """Add support rows, given what is kept of them."""
        growing: Any
        for growing, x in zip(self, values, strict=True):
            growing.append(x)

    def shared(self, matrix: Any, at: Array, centre: Array, ids: Array) -> Support:
        """The same support rows, which are rows `at` of a matrix relative to a point; of these `ids`.

        It is for learners of one cell among many: what can be made again is not kept. `moved` must be
        the size of `coef`, as it is after `Dual.resume`.
        """
        n, rows = len(at), Picked(matrix, at, centre)
        return self._replace(
            rows=rows,
            sq=Later(n, partial(_squares, rows)),
            ids=Later(n, partial(np.take, ids, at)),
            moved=Later(n, partial(_sizes, self.coef)),
        )

    @property
    def is_shared(self) -> bool:
        """Whether its rows are those of a matrix that others read, too."""
        return isinstance(self.rows, Picked)

    def grown(self) -> Support:
        """The same with arrays of its own, which can grow."""
        return Support(*(part.grown() for part in self))

    def mark(self) -> Any:
        """What `restore` needs, as long as rows are only added."""
        return [growing.mark() for growing in self]

    def restore(self, mark: Any) -> None:
        """Be as at the time of the mark."""
        growing: Any
        for growing, was in zip(self, mark, strict=True):
            growing.restore(was)

    def truncate(self, n: int) -> None:
        """Forget all support rows but the first n."""
        for growing in self:
            growing.truncate(n)


def _squares(rows: Picked) -> Array:
    return sq_norms(rows[:])


def _sizes(coef: Growing) -> Array:
    return np.abs(coef.values)


class Start(NamedTuple):
    """f_0 as an expansion over the support rows, and a constant per output."""

    coef: Growing  # per kernel and output
    offset: Array


def diagonal(kernel: Kernel, K: Array, sq: Array, projected: bool = False) -> Array:
    """k(x, x) of rows whose values among each other leave room for arithmetic."""
    bounded = kernel.map in (gaussian, exponential, bounded_poly)
    if not bounded and not float(np.abs(K).max(initial=0.0)) <= MAX_VALUE:
        raise ValueError(f"kernel values may be at most {MAX_VALUE}; got {np.abs(K).max():g}")
    k_xx = K.diagonal().copy() if projected else kernel.diagonal(K, sq, kernel.theta)
    if not (k_xx >= 0).all():
        raise ValueError(f"a kernel needs k(x, x) >= 0; got {k_xx.min()}")
    return k_xx
