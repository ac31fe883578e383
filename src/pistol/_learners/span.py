"""The span of kept rows: a learner with room for no more projects what other rows teach on it.

The projection of k(x, ·) on the span of k(s, ·), s kept, is Σ d_s k(s, ·) with K d = k(S, x). With
K = L Lᵀ it is a vector z(x) = L⁻¹ k(S, x) in an orthonormal basis of the span. All rounds together are
then Algorithm 3 with the kernel ⟨z(x), z(x')⟩: for kept rows it has the values of k itself, and those
before it were projected were all kept.

Kept rows may be equal, or nearly so, and K singular. So a basis is chosen among them: the row farthest
from the span of those chosen so far, again and again, until none is farther than √TOLERANCE of the
longest k(s, ·). The factor of the basis is then safe to divide by.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular

from .._compiled.threads import Workers
from .._compiled.tiles import kernel_values
from .._compiled.types import Array
from ..kernels import Kernel

TOLERANCE = 1e-10  # of the largest k(s, s): the squared distance from the span that is neglected


class Span(NamedTuple):
    """A basis of the span of k(s, ·), for one kernel."""

    kernel: Kernel
    n: int  # kept rows
    basis: Array  # their numbers
    rows: Any
    sq: Array
    factor: Array  # L, lower triangular, with L Lᵀ = K of the basis

    def features(self, A: Any, a_sq: Array) -> Array:
        """z(x) of the rows of A, one per column."""
        (K,) = kernel_values([self.kernel], self.rows, A, self.sq, a_sq)
        if not np.isfinite(K).all():
            raise ValueError("the kernel's values are not finite")
        return self._solved(K, 0)

    def coefficients(self, z: Array) -> Array:
        """Coefficients of the kept rows for vectors of the span, one per column."""
        out = np.zeros((self.n, z.shape[1]))
        out[self.basis] = self._solved(z, 1)
        return out

    def _solved(self, z: Array, transposed: int) -> Array:
        if not len(self.basis):
            return z[:0]
        return solve_triangular(self.factor, z, transposed, lower=True, check_finite=False)


def span_of(kernel: Kernel, rows: Any, sq: Array) -> Span:
    """The span of k(s, ·) for these rows."""
    (K,) = kernel_values([kernel], rows, rows, sq, sq)
    if not np.isfinite(K).all():
        raise ValueError("the kernel's values are not finite")
    largest = float(K.diagonal().max(initial=0.0))
    if not largest > 0.0:
        return Span(kernel, len(sq), np.zeros(0, np.int64), rows[:0], sq[:0], K[:0, :0])
    K /= largest
    (pstrf,) = get_lapack_funcs(["pstrf"], [K])
    L, order, rank, _ = pstrf(K.T, tol=TOLERANCE, lower=1, overwrite_a=1)
    basis = order[:rank] - 1
    factor = np.asfortranarray(np.tril(L[:rank, :rank]))
    factor *= np.sqrt(largest)
    return Span(kernel, len(sq), basis, rows[basis], sq[basis], factor)


def spans(kernels: Sequence[Kernel], rows: Any, sq: Array, threads: Workers) -> list[Span]:
    """The spans of all kernels."""
    return threads.run([partial(span_of, kernel, rows, sq) for kernel in kernels])
