"""What is kept of support rows, and k(x, x) of the rows that may become some."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._compiled.types import Array
from ..kernels import Kernel, bounded_poly, exponential, gaussian
from .storage import Growing, Store

MAX_VALUE = 1e140  # of a kernel; more could overflow ‖g‖²


class Support(NamedTuple):
    """What is kept of every support row, in arrays that grow together."""

    rows: Store
    sq: Growing  # ‖x‖²
    ids: Growing  # numbers of the rows
    coef: Growing  # -Σ s, per output: coefficients of g
    moved: Growing  # Σ |s|, per output
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
