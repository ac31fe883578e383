"""How much f depends on each feature: mean squares of its partial derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.exp import LEAST
from .._compiled.rows import sq_norms
from .._compiled.types import Array
from ..kernels import Kernel, bounded_poly, gaussian, shortening
from .cells import Patchwork, centred, members
from .models import Expansion

PRECISE = 256  # support rows up to which float64 costs nothing
MODERATE = 1e8  # its cube is far below the largest number of float32
FEWEST, MOST = 8, 64  # rows whose gradients are computed together,
ROOM = 80_000  # so many that these numbers stay in a core's cache


def mean_squares(model: Expansion | Patchwork, A: Any, weight: Array) -> Array:
    """The mean over the rows of A of Σ_j (∂f_j/∂x_i)², one number per feature i."""
    size, squares = relative_squares(model, A, weight)
    return size * (size * squares)


def relative_squares(model: Expansion | Patchwork, A: Any, weight: Array) -> tuple[float, Array]:
    """The size of the largest coefficient, and the mean squares divided by its square."""
    size = max(_largest(model), 1e-300)  # squares of derivatives themselves may overflow
    gradients = gradients_of(model, size)
    total, part = np.zeros(A.shape[1]), _part(model)
    for lo in range(0, A.shape[0], part):
        at = slice(lo, min(lo + part, A.shape[0]))
        total += weight[at] @ np.square(gradients(A[at]), dtype=np.float64).sum(axis=0)
    return size, total / max(weight.sum(), 1e-300)


def _part(model: Expansion | Patchwork) -> int:
    """How many rows to take at once."""
    whole = model if isinstance(model, Expansion) else model.base
    _, outputs, support = whole.coef.shape
    return int(np.clip(ROOM // (max(outputs, 4) * max(support, 1)), FEWEST, MOST))


def _largest(model: Expansion | Patchwork) -> float:
    """The size of the largest coefficient."""
    if isinstance(model, Expansion):
        return float(np.abs(model.coef).max(initial=0.0))
    cells = [_largest(one) for part in model.parts for one in part.models]
    return max(_largest(model.base), *cells)


def _moderate(model: Expansion) -> bool:
    """Whether all numbers on the way to the gradients are within what float32 can hold."""
    gammas = [kernel.theta[0] for kernel in model.kernels]
    small = min(gammas) > 1.0 / MODERATE and max(gammas) < MODERATE
    return bool(small and model.sq.max(initial=0.0) < MODERATE)


def gradients_of(
    model: Expansion | Patchwork, size: float = 1.0, exact: bool = False
) -> Callable[[Any], Array]:
    """∂f_j/∂x_i, divided by `size`, as a function of rows; of shape (outputs, rows, features).

    f_j = Σ_n Σ_q coef[q, j, n] k_q(s_n, ·), so its gradient is a sum of support rows, weighted by the
    slopes of the kernels: one matrix product. Polynomials do not grow any more at rows far out; unless
    it is to be `exact`, the gradient there is as if only their slope were smaller.
    """
    if isinstance(model, Expansion):
        dtype = np.float32 if len(model.sq) > PRECISE and _moderate(model) else np.float64
        coef = np.ascontiguousarray((model.coef / size).transpose(2, 1, 0), dtype)
        S, s_sq = model.rows.astype(dtype), model.sq.astype(dtype)
        return lambda A: _gradients(model, coef, S, s_sq, A.astype(dtype), exact)

    def gradients(A: Any) -> Array:
        G = gradients_of(model.base, size, exact)(A).astype(np.float64)
        for part in model.parts:
            for cell, at in members(part.tree, A):
                inside = centred(A[at], part.centres[cell])
                own = gradients_of(part.models[cell], size, exact)(inside)
                G[:, at] += own / len(model.parts)
        return G

    return gradients


def _gradients(model: Expansion, coef: Array, S: Any, s_sq: Array, A: Any, exact: bool) -> Array:
    """∂f_j/∂x_i at the rows of A, of shape (outputs, rows, features).

    `coef` is of shape (support rows, outputs, kernels).
    """
    inner = S @ A.T
    inner = inner.toarray() if sp.issparse(inner) else inner
    a_sq = sq_norms(A).astype(S.dtype)
    H = np.zeros((S.shape[0], coef.shape[1], A.shape[0]), S.dtype)  # what each support row counts
    own = np.zeros(H.shape[1:], S.dtype)  # and the row itself
    for radial in (True, False):
        numbers = [q for q, kernel in enumerate(model.kernels) if kernel.radial == radial]
        kernels = [model.kernels[q] for q in numbers]
        P = _slopes(kernels, inner, s_sq, a_sq)
        part = coef[:, :, numbers] @ P
        H += part
        if radial:
            own += part.sum(axis=0)
        for q, kernel in enumerate(kernels if exact else []):
            if kernel.map is bounded_poly:
                short = shortening(P[:, q], inner, a_sq, kernel.theta)
                own += coef[:, :, numbers[q]].T @ short
    flat = np.ascontiguousarray(H.transpose(1, 2, 0)).reshape(own.size, S.shape[0])
    G = np.asarray(flat @ S).reshape(*own.shape, A.shape[1])
    dense = A.toarray() if sp.issparse(A) else A
    return G - own[:, :, None] * dense


def _slopes(kernels: list[Kernel], inner: Array, s_sq: Array, a_sq: Array) -> Array:
    """The slopes of these kernels, of shape (support rows, kernels, rows)."""
    P = np.empty((len(s_sq), len(kernels), len(a_sq)), inner.dtype)
    for q, kernel in enumerate(kernels):
        if q > 0 and kernel.map is gaussian and kernel.follows(kernels[q - 1]):
            gamma = float(kernels[q - 1].theta[0])  # 2γ k is known: the next is 8γ k⁴
            k = np.maximum(P[:, q - 1] / (2.0 * gamma), LEAST)  # numbers near the smallest are slow
            np.multiply(np.square(np.square(k, out=k), out=k), 8.0 * gamma, out=P[:, q])
        else:
            P[:, q] = kernel.slope(inner, s_sq, a_sq).P
    return P
