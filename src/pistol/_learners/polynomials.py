"""Polynomials of rows: what a sum of constant, linear and quadratic kernels comes to.

Σ_n c_n γ⟨s_n, x⟩ = γ⟨w, x⟩ with w = Σ c_n s_n, and Σ_n c_n (γ⟨s_n, x⟩)² = γ²⟨x, M x⟩ with
M = Σ c_n s_n s_nᵀ. So a prediction need not look at the support rows: d² operations in place of n d.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.rows import like, sq_norms
from .._compiled.threads import one_blas_thread
from .._compiled.types import Array
from ..kernels import Kernel, bounded_poly

FEWER = 4  # times as many operations are worth another form of f
LARGE = 1e100  # coefficients beyond this may overflow in sums of products
BLOCK = 4096  # rows that are evaluated together


class Polynomial(NamedTuple):
    """f_j(x) = c_j + γ⟨w_j, x'⟩ + γ²⟨x', M_j x'⟩, where x' is x, shortened to length √most."""

    gamma: float
    most: float
    c: Array  # (outputs,)
    w: Array  # (outputs, features)
    M: Array  # (outputs, features, features)
    rows: Any  # a few support rows, for the layout of rows to come

    def decide(self, X: Any) -> Array:
        """Scores of shape (rows, outputs)."""
        blocks = [self._part(X[lo : lo + BLOCK]) for lo in range(0, X.shape[0], BLOCK)]
        return np.concatenate([np.empty((0, len(self.c))), *blocks])

    def _part(self, X: Any) -> Array:
        A = like(self.rows, X)
        Z = self.gamma * _shortened(A, sq_norms(A), self.most)
        with one_blas_thread():
            out = self.c + Z @ self.w.T
            for j, M in enumerate(self.M):
                out[:, j] += np.einsum("ij,ij->i", Z @ M, Z)
        return out


def polynomial_of(
    kernels: Sequence[Kernel], rows: Any, sq: Array, coef: Array
) -> Polynomial | None:
    """The polynomial of an expansion, if it is one and if it is evaluated faster than by its rows."""
    _, outputs, n = coef.shape
    theta = np.array([kernel.theta for kernel in kernels])
    if not all(kernel.map is bounded_poly for kernel in kernels) or theta[:, 1].max() > 2:
        return None
    if sp.issparse(rows) or FEWER * outputs * rows.shape[1] > n or np.abs(coef).max() > LARGE:
        return None
    gamma, most = theta[0, ::2]
    if (theta[:, ::2] != theta[0, ::2]).any():
        return None
    S = _shortened(rows[:], sq, most)
    by_degree = np.zeros((3, outputs, n))
    for kernel, values in zip(kernels, coef, strict=True):
        by_degree[int(kernel.theta[1])] += values
    with one_blas_thread():
        c, w = by_degree[0].sum(axis=1), by_degree[1] @ S
        M = np.array([S.T @ (values[:, None] * S) for values in by_degree[2]])
    return Polynomial(float(gamma), float(most), c, w, M, rows[:1])


def _shortened(A: Any, sq: Array, most: float) -> Array:
    """Rows in float64, those longer than √most shortened to it."""
    return A * np.sqrt(most / np.maximum(sq, most))[:, None]
