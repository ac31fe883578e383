"""Kernels as matrix product plus map, so that a tile of values costs one product and one pass.

A kernel has a *base*, a matrix computed for two blocks of rows (their inner products, their L1
distances, or what the user's function returns), and a *map*, a compiled loop that turns a tile of
base values into kernel values and multiplies them with coefficients while they are in cache. Several
bandwidths can share one base. A tile has the precision of its rows, float32 or float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from ._compiled.cache import helper, plain
from ._compiled.exp import LEAST, fast_exp, fourth_power
from ._compiled.rows import Block, manhattan, products, sq_norms
from ._compiled.types import Array, loop, pick, read_only


def _tile(dtype: Any) -> Any:
    """(K, ‖s‖², ‖a‖², theta, coef, G): a tile of shape (support rows, rows) and what it needs."""
    real = from_dtype(dtype)
    numbers = types.Array(real, 1, "C", readonly=True)
    matrix = types.Array(real, 2, "C")
    return types.void(matrix, numbers, numbers, numbers, matrix, matrix)


@helper(inline="always")
def _accumulate(G, coef, k):
    """G[j, i] += coef[j] k[i] for one support row."""
    for j in range(len(coef)):
        c, g = coef[j], G[j]
        for i in range(len(k)):
            g[i] += c * k[i]


@plain(forceinline=True, fastmath={"contract"})
def gaussian_value(k, s, a, gamma, zero):
    """exp(-γ ‖s - a‖²), given ⟨s, a⟩, ‖s‖² and ‖a‖²."""
    square = s + a - (k + k)
    return fast_exp(-gamma * (zero if square < zero else square))


@loop(_tile, fastmath={"contract"})
def gaussian(K, s_sq, a_sq, theta, coef, G):
    """exp(-γ ‖s - a‖²), with ‖s - a‖² = ‖s‖² + ‖a‖² - 2⟨s, a⟩."""
    gamma, zero = theta[0], K.dtype.type(0.0)
    for n in range(len(K)):
        k, s = K[n], s_sq[n]
        for i in range(len(k)):
            k[i] = gaussian_value(k[i], s, a_sq[i], gamma, zero)
        _accumulate(G, coef[n], k)


@plain(forceinline=True, fastmath={"contract"})
def exponential_value(k, s, a, gamma, zero, least):
    """exp(-γ ‖s - a‖), given ⟨s, a⟩, ‖s‖² and ‖a‖².

    The root would enlarge rounding errors: rows as near as these are equal.
    """
    both = s + a
    square = both - (k + k)
    return fast_exp(-gamma * np.sqrt(zero if square < least * both else square))


@plain
def grain(K):
    """64 units in the last place."""
    return K.dtype.type(2.0**-17 if K.itemsize == 4 else 2.0**-46)


@loop(_tile, fastmath={"contract"})
def exponential(K, s_sq, a_sq, theta, coef, G):
    """exp(-γ ‖s - a‖), rougher than a Gaussian: it has a kink at s = a."""
    gamma, zero, least = theta[0], K.dtype.type(0.0), grain(K)
    for n in range(len(K)):
        k, s = K[n], s_sq[n]
        for i in range(len(k)):
            k[i] = exponential_value(k[i], s, a_sq[i], gamma, zero, least)
        _accumulate(G, coef[n], k)


@loop(_tile, fastmath={"contract"})
def laplacian(K, s_sq, a_sq, theta, coef, G):
    """exp(-γ ‖s - a‖₁)."""
    gamma = theta[0]
    for n in range(len(K)):
        k = K[n]
        for i in range(len(k)):
            k[i] = fast_exp(-gamma * k[i])
        _accumulate(G, coef[n], k)


@loop(_tile)
def polynomial(K, s_sq, a_sq, theta, coef, G):
    """(γ ⟨s, a⟩ + c₀)^degree."""
    gamma, degree, coef0 = theta[0], theta[1], theta[2]
    for n in range(len(K)):
        k = K[n]
        for i in range(len(k)):
            k[i] = (gamma * k[i] + coef0) ** degree
        _accumulate(G, coef[n], k)


@loop(_tile, fastmath={"contract"})
def bounded_poly(K, s_sq, a_sq, theta, coef, G):
    """(γ ⟨s', a'⟩)^degree for degrees up to 3, where rows longer than √c₀ are shortened to it."""
    gamma, degree, most = theta[0], int(theta[1]), theta[2]
    odd, twice, one = degree % 2 == 1, degree >= 2, K.dtype.type(1.0)
    shrunk = np.empty_like(a_sq)
    for i in range(len(a_sq)):
        shrunk[i] = gamma * (np.sqrt(most / a_sq[i]) if a_sq[i] > most else one)
    for n in range(len(K)):
        k, s = K[n], np.sqrt(most / s_sq[n]) if s_sq[n] > most else one
        for i in range(len(k)):
            base = k[i] * s * shrunk[i]
            k[i] = (base if odd else one) * (base * base if twice else one)
        _accumulate(G, coef[n], k)


@loop(_tile, fastmath={"contract"})
def to_the_fourth(K, s_sq, a_sq, theta, coef, G):
    """From the values of exp(-γ …) to those with four times its γ."""
    least = K.dtype.type(LEAST)
    for n in range(len(K)):
        k = K[n]
        for i in range(len(k)):
            k[i] = fourth_power(k[i], least)
        _accumulate(G, coef[n], k)


@loop(_tile)
def cosine(K, s_sq, a_sq, theta, coef, G):
    """⟨s, a⟩ / ‖s‖‖a‖; a row of zeros is orthogonal to everything."""
    for n in range(len(K)):
        k = K[n]
        for i in range(len(k)):
            scale = sqrt(s_sq[n]) * sqrt(a_sq[i])
            k[i] = k[i] / scale if scale > 0.0 else 0.0
        _accumulate(G, coef[n], k)


@loop(_tile)
def identity(K, s_sq, a_sq, theta, coef, G):
    """The base is the kernel: linear, precomputed, a user's function."""
    for n in range(len(K)):
        _accumulate(G, coef[n], K[n])


@dataclass(frozen=True, eq=False)
class Kernel:
    """k(s, a) = map(base(s, a)), with the map's parameters (γ, degree, c₀) in `theta`.

    `diagonal` gives k(x, x) without rounding, where it does not have to be read from a block's K.
    In a sum of kernels, `share` multiplies the b of this one.
    """

    source: str | Callable[[Any, Any], Any]
    base: Callable[[Any, Block, Array | None], Array]
    map: Callable[..., None]
    diagonal: Callable[[Any, Array, Array], Array]  # (K, ‖x‖², theta) -> k(x, x)
    theta: Array
    share: float = 1.0

    def __repr__(self) -> str:
        gamma, degree, coef0 = self.theta
        return f"Kernel({self.source!r}, gamma={gamma:g}, degree={degree:g}, coef0={coef0:g})"

    @property
    def name(self) -> str:
        """How it is called in `kernel_weights_`."""
        if self.map is bounded_poly:
            return ("constant", "linear", "quadratic", "cubic")[int(self.theta[1])]
        if self.radial:
            return f"{self.source}(gamma={self.theta[0]:.4g})"
        return self.source if isinstance(self.source, str) else self.source.__name__

    def __reduce__(self) -> tuple[Any, ...]:
        return get_kernel, (self.source, *self.theta.tolist(), self.share)

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What its values depend on: source, γ, degree and c₀."""
        return self.source, *self.theta.tolist()

    def follows(self, other: Kernel) -> bool:
        """Whether the values of this kernel are the fourth powers of the other's."""
        alike = self.map is other.map and self.radial
        return bool(alike and self.key[1] == 4.0 * other.key[1])

    @property
    def radial(self) -> bool:
        """Whether it is a function of the distance ‖s - a‖."""
        return self.map in (gaussian, exponential)

    @property
    def smooth(self) -> bool:
        """Whether its gradient is known."""
        return self.map in (gaussian, exponential, bounded_poly)

    def map_tile(
        self, K: Array, s_sq: Array, a_sq: Array, coef: Array, G: Array, powers: bool = False
    ) -> None:
        """Turn base values into kernel values in place, and add coef.T @ K to G.

        With `powers`, K holds the values of a kernel that this one follows.
        """
        numbers = (read_only(x.astype(K.dtype, copy=False)) for x in (s_sq, a_sq, self.theta))
        (to_the_fourth if powers else self.map)(K, *numbers, coef, G)

    def precision(self, dtype: Any, largest_sq: float) -> Any:
        """The dtype to work in: float32 only where rounding does no harm and nothing overflows.

        ‖s‖² + ‖a‖² - 2⟨s, a⟩ loses what is small beside ‖s‖²: in float32 the exponent of a Gaussian
        would be off by about γ ‖s‖² 2^-22.
        """
        gamma, degree, coef0 = self.theta
        if dtype != np.float32 or max(largest_sq, gamma, abs(coef0)) >= 1e30:
            return np.float64
        if self.map is gaussian:
            harmless = gamma * largest_sq < 2.0**10 and gamma > 1e-30
        elif self.map is exponential:
            harmless = gamma * gamma * largest_sq < 2.0**12 and 1e-15 < gamma < 1e15
        elif self.map is bounded_poly:
            harmless = degree * np.log(gamma * min(largest_sq, coef0) + 1.0) < 60.0
        elif self.map is polynomial:
            harmless = degree * np.log(gamma * largest_sq + coef0 + 1.0) < 60.0
        else:
            harmless = True
        return np.float32 if harmless else np.float64


def user_base(function: Callable[[Any, Any], Any]) -> Callable[[Any, Block, Array | None], Array]:
    """Wrap a user's k(A, S) → matrix, checking what it returns."""

    def base(S: Any, block: Block, out: Array | None = None) -> Array:
        A = block.rows
        K = np.asarray(function(A, S), np.float64)
        if K.shape != (A.shape[0], S.shape[0]) or not np.isfinite(K).all():
            raise ValueError(
                f"the kernel function was given {A.shape[0]} and {S.shape[0]} rows and must return "
                f"a finite matrix of shape {(A.shape[0], S.shape[0])}; it returned shape {K.shape}"
                + ("" if np.isfinite(K).all() else " with NaN or infinite values")
            )
        return np.ascontiguousarray(K.T)

    return base


def precomputed_base(S: Array, block: Block, out: Array | None = None) -> Array:
    """Rows of a precomputed kernel: the block holds them, S their column numbers (as one column)."""
    return np.ascontiguousarray(block.rows[:, S[:, 0].astype(np.intp)].T, np.float64)


def _one(K: Any, sq: Array, theta: Array) -> Array:
    return np.ones_like(sq)


def _stored(K: Any, sq: Array, theta: Array) -> Array:
    return K.diagonal().copy()


KERNELS: dict[str, tuple[Callable[..., Array], Callable[..., None], Callable[..., Array]]] = {
    "rbf": (products, gaussian, _one),
    "laplacian": (manhattan, laplacian, _one),
    "poly": (products, polynomial, lambda K, sq, theta: (theta[0] * sq + theta[2]) ** theta[1]),
    "linear": (products, identity, lambda K, sq, theta: sq),
    "cosine": (products, cosine, lambda K, sq, theta: (sq > 0).astype(np.float64)),
    "bounded_poly": (
        products,
        bounded_poly,
        lambda K, sq, theta: (theta[0] * np.minimum(sq, theta[2])) ** theta[1],
    ),
    "exponential": (products, exponential, _one),
    "precomputed": (precomputed_base, identity, _stored),
}
INNER = ("bounded_poly", "exponential")  # parts of sums; users have "poly" and "laplacian"
NAMED = {name: of for name, of in KERNELS.items() if name not in INNER}
NAMES = tuple(NAMED)


def get_kernel(
    kernel: str | Callable[[Any, Any], Any],
    gamma: float,
    degree: float,
    coef0: float,
    share: float = 1.0,
) -> Kernel:
    """The kernel of this name with these parameters, or a user's function of two blocks of rows."""
    if callable(kernel):
        base, kernel_map, diagonal = user_base(kernel), identity, _stored
    else:
        base, kernel_map, diagonal = pick(KERNELS if kernel in INNER else NAMED, "kernel", kernel)
        powers = kernel in ("poly", "bounded_poly")  # a negative base has no broken ones
        if powers and degree != int(degree):
            raise ValueError(f"degree must be a whole number; got {degree!r}")
        if kernel == "bounded_poly" and degree > 3:
            raise ValueError(f"a part of a sum has a degree of at most 3; got {degree!r}")
    theta = read_only(np.array([gamma, degree, coef0], float))
    return Kernel(kernel, base, kernel_map, diagonal, theta, share)


def scale_gamma(X: Any, weight: Array) -> float:
    """1 / (features × variance of all entries), each row counted by its weight; 1 if constant."""
    d = X.shape[1]
    total = weight.sum() * d
    mean = weight @ np.asarray(X.sum(axis=1, dtype=np.float64)).ravel() / total
    variance = weight @ sq_norms(X, mean) / total
    return 1.0 / (d * variance) if variance > 1e-300 else 1.0
