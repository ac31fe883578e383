"""How much f depends on each feature: mean squares of its partial derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.rows import sq_norms
from .._compiled.slopes import add_slopes, slope_coefficients
from .._compiled.sums import groups_of
from .._compiled.types import Array, read_only
from .cells import Patchwork, centred, members
from .models import Expansion

PRECISE = 256  # support rows up to which float64 costs nothing
MODERATE = 1e8  # its cube is far below the largest number of float32
FEWEST, MOST = 8, 64  # rows whose gradients are computed together,
ROOM = 1_000_000  # so many that these numbers stay in a core's cache


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
        return _gradients(model, size, exact)

    def gradients(A: Any) -> Array:
        G = gradients_of(model.base, size, exact)(A).astype(np.float64)
        for part in model.parts:
            for cell, at in members(part.tree, A):
                inside = centred(A[at], part.centres[cell])
                own = gradients_of(part.models[cell], size, exact)(inside)
                G[:, at] += own / len(model.parts)
        return G

    return gradients


def _gradients(model: Expansion, size: float, exact: bool) -> Callable[[Any], Array]:
    """∂f_j/∂x_i as a function of rows, for kernels that are there in all space."""
    dtype = np.float32 if len(model.sq) > PRECISE and _moderate(model) else np.float64
    groups = groups_of(model.kernels)
    if groups is None:
        raise ValueError("the gradients of these kernels are not known")
    coef = slope_coefficients(model.kernels, groups, (model.coef / size).astype(dtype))
    S, s_sq = model.rows.astype(dtype), read_only(model.sq.astype(dtype))
    theta = read_only(groups.theta.astype(dtype))

    def gradients(A: Any) -> Array:
        A = A.astype(dtype)
        inner = S @ A.T
        inner = inner.toarray() if sp.issparse(inner) else inner
        a_sq = read_only(sq_norms(A).astype(dtype))
        H = np.zeros((len(s_sq), coef.shape[1], A.shape[0]), dtype)  # what each support row counts
        own = np.zeros(H.shape[1:], dtype)  # and the row itself
        add_slopes(inner, s_sq, a_sq, groups.kinds, theta, coef, exact, H, own)
        G = np.asarray(H.reshape(len(H), own.size).T @ S).reshape(*own.shape, A.shape[1])
        return G - own[:, :, None] * (A.toarray() if sp.issparse(A) else A)

    return gradients
