"""Kernels as matrix product plus map, so that a tile of values costs one product and one pass.

A kernel has a *base*, a matrix computed for two blocks of rows (their inner products, their L1
distances, or what the user's function returns), and a *map*, a compiled function that turns one
row of base values into kernel values in place. Several bandwidths can share one base.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numba import njit
from numba.core import types

from ._exp import exp_negative
from ._types import Array, loop, map_type, matrix, numbers, pick, read_only
from .rows import manhattan, products, sq_norms


@njit(cache=True)
def gaussian(K, s_sq, a_sq, theta):
    """exp(-γ ‖s - a‖²), with ‖s - a‖² = ‖s‖² + ‖a‖² - 2⟨s, a⟩."""
    for i in range(len(K)):
        K[i] = exp_negative(-theta[0] * max(s_sq + a_sq[i] - 2.0 * K[i], 0.0))


@njit(cache=True)
def laplacian(K, s_sq, a_sq, theta):
    """exp(-γ ‖s - a‖₁)."""
    for i in range(len(K)):
        K[i] = exp_negative(-theta[0] * K[i])


@njit(cache=True)
def polynomial(K, s_sq, a_sq, theta):
    """(γ ⟨s, a⟩ + c₀)^degree."""
    for i in range(len(K)):
        K[i] = (theta[0] * K[i] + theta[2]) ** theta[1]


@njit(cache=True)
def cosine(K, s_sq, a_sq, theta):
    """⟨s, a⟩ / ‖s‖‖a‖; a row of zeros is orthogonal to everything."""
    for i in range(len(K)):
        scale = sqrt(s_sq) * sqrt(a_sq[i])
        K[i] = K[i] / scale if scale > 0.0 else 0.0


@njit(cache=True)
def identity(K, s_sq, a_sq, theta):
    """The base is the kernel: linear, precomputed, a user's function."""


@loop(lambda dtype: types.void(matrix, numbers, numbers, map_type, numbers))
def apply_map(K, s_sq, a_sq, kernel_map, theta):
    """Turn a tile of base values into kernel values, row by row, in place."""
    for n in range(len(K)):
        kernel_map(K[n], s_sq[n], a_sq, theta)


@dataclass(frozen=True, eq=False)
class Kernel:
    """k(s, a) = map(base(s, a)), with the map's parameters (γ, degree, c₀) in `theta`."""

    source: str | Callable[[Any, Any], Any]
    base: Callable[[Any, Any], Array]
    map: Callable[..., None]
    theta: Array

    def __reduce__(self) -> tuple[Any, ...]:
        return get_kernel, (self.source, *self.theta.tolist())

    def map_tile(self, K: Array, s_sq: Array, a_sq: Array) -> None:
        """Turn base values of shape (S, A) into kernel values, in place."""
        if self.map is not identity:
            apply_map(K, read_only(s_sq), read_only(a_sq), self.map, self.theta)

    def diagonal(self, K: Array, sq: Array) -> Array:
        """k(x, x) for the rows of a block whose own kernel values are K.

        Exact where the base of a row with itself is known: a distance of zero, a squared norm.
        """
        if self.base is products:
            base = sq.copy()
        elif self.base is manhattan:
            base = np.zeros_like(sq)
        else:
            return K.diagonal().copy()
        for i in range(len(base)):
            self.map(base[i : i + 1], sq[i], sq[i : i + 1], self.theta)
        return base


def user_base(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Array]:
    """Wrap a user's k(A, S) → matrix, checking what it returns."""

    def base(S: Any, A: Any) -> Array:
        K = np.asarray(function(A, S), np.float64)
        if K.shape != (A.shape[0], S.shape[0]) or not np.isfinite(K).all():
            raise ValueError(
                f"the kernel function was given {A.shape[0]} and {S.shape[0]} rows and must return "
                f"a finite matrix of shape {(A.shape[0], S.shape[0])}; it returned shape {K.shape}"
                + ("" if np.isfinite(K).all() else " with NaN or infinite values")
            )
        return np.ascontiguousarray(K.T)

    return base


def precomputed_base(S: Array, A: Array) -> Array:
    """Rows of a precomputed kernel: A holds them, S their column numbers (as one column)."""
    return np.ascontiguousarray(A[:, S[:, 0].astype(np.intp)].T, np.float64)


KERNELS: dict[str, tuple[Callable[[Any, Any], Array], Callable[..., None]]] = {
    "rbf": (products, gaussian),
    "laplacian": (manhattan, laplacian),
    "poly": (products, polynomial),
    "linear": (products, identity),
    "cosine": (products, cosine),
    "precomputed": (precomputed_base, identity),
}


def get_kernel(
    kernel: str | Callable[[Any, Any], Any], gamma: float, degree: float, coef0: float
) -> Kernel:
    """The kernel of this name with these parameters, or a user's function of two blocks of rows."""
    if callable(kernel):
        base, kernel_map = user_base(kernel), identity
    else:
        base, kernel_map = pick(KERNELS, "kernel", kernel)
    return Kernel(kernel, base, kernel_map, read_only(np.array([gamma, degree, coef0], float)))


def scale_gamma(X: Any, weight: Array) -> float:
    """1 / (features × variance of all entries), each row counted by its weight; 1 if constant."""
    d = X.shape[1]
    total = weight.sum() * d
    rows_sum = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    variance = weight @ sq_norms(X) / total - (weight @ rows_sum / total) ** 2
    return 1.0 / (d * variance) if variance > 1e-300 else 1.0
