"""How much f depends on each feature: mean squares of its partial derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.panels import Panels, aligned, width
from .._compiled.rows import sq_norms
from .._compiled.slopes import (
    add_slope_squares,
    add_slopes,
    gradient,
    inner_products,
    slope_coefficients,
)
from .._compiled.sums import groups_of
from .._compiled.types import Array, read_only
from .cells import Patchwork, centred, members
from .models import Expansion

PRECISE = 256  # support rows up to which float64 costs nothing
MODERATE = 1e8  # its cube is far below the largest number of float32
FEWEST, MOST = 48, 144  # rows whose gradients are computed together
ROOM = 4_000_000  # numbers that are kept for that, at most, with more than the fewest


def mean_squares(model: Expansion | Patchwork, A: Any, weight: Array) -> Array:
    """The mean over the rows of A of Σ_j (∂f_j/∂x_i)², one number per feature i."""
    size, squares = relative_squares(model, A, weight)
    return size * (size * squares)


def relative_squares(model: Expansion | Patchwork, A: Any, weight: Array) -> tuple[float, Array]:
    """The size of the largest coefficient, and the mean squares divided by its square."""
    size = max(_largest(model), 1e-300)  # squares of derivatives themselves may overflow
    gradients: Callable[[Any], Iterable[Array]] = (
        _by_output(model, size) if isinstance(model, Expansion) else gradients_of(model, size)
    )
    total, part = np.zeros(A.shape[1]), _part(model)
    weight = np.ascontiguousarray(weight, np.float64)
    for lo in range(0, A.shape[0], part):
        at = slice(lo, min(lo + part, A.shape[0]))
        for G in gradients(A[at]):
            add_slope_squares(G, weight[at], total)
    return size, total / max(weight.sum(), 1e-300)


def _part(model: Expansion | Patchwork) -> int:
    """How many rows to take at once."""
    whole = model if isinstance(model, Expansion) else model.base
    _, outputs, support = whole.coef.shape
    return FEWEST if MOST * outputs * support > ROOM else MOST


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
        return _together(_by_output(model, size, exact), model.coef.shape[1])

    def gradients(A: Any) -> Array:
        G = gradients_of(model.base, size, exact)(A)
        for part in model.parts:
            for cell, at in members(part.tree, A):
                inside = centred(A[at], part.centres[cell])
                own = gradients_of(part.models[cell], size, exact)(inside)
                G[:, at] += own / len(model.parts)
        return G

    return gradients


def _together(by_output: Callable[[Any], Iterator[Array]], outputs: int) -> Callable[[Any], Array]:
    """Gradients of all outputs as one array."""

    def gradients(A: Any) -> Array:
        out = np.empty((outputs, *A.shape))
        for to, G in zip(out, by_output(A), strict=True):
            to[:] = G[: A.shape[0], : A.shape[1]]
        return out

    return gradients


def _by_output(
    model: Expansion, size: float, exact: bool = False
) -> Callable[[Any], Iterator[Array]]:
    """∂f_j/∂x_i as a function of rows, for kernels that are there in all space, output by output.

    The arrays may have more rows and columns than there are rows and features, and the next may take
    the place of the one before.
    """
    dtype = np.float32 if len(model.sq) > PRECISE and _moderate(model) else np.float64
    groups = groups_of(model.kernels)
    if groups is None:
        raise ValueError("the gradients of these kernels are not known")
    used = np.flatnonzero(model.coef.any(axis=(0, 1)))
    coef = slope_coefficients(model.kernels, groups, (model.coef[:, :, used] / size).astype(dtype))
    s_sq, theta = (read_only(x.astype(dtype)) for x in (model.sq[used], groups.theta))
    rows = (_Sparse if sp.issparse(model.rows) else _Dense)(model.rows, used, dtype)

    def gradients(A: Any) -> Iterator[Array]:
        inner, a_sq = rows.products(A)
        outputs, m = coef.shape[1], len(a_sq)
        H = aligned((outputs, len(used), m), dtype)  # what each support row counts, if it does,
        order, counts = np.empty(H.shape[:2], np.int64), np.zeros(outputs, np.int64)
        own = np.zeros((outputs, m), dtype)  # and the row itself
        state = H, order, counts, own
        add_slopes(inner, s_sq, read_only(a_sq), groups.kinds, theta, coef, exact, *state)
        counted = (read_only(n[:count]) for n, count in zip(order, counts, strict=True))
        return rows.gradients(A, zip(H, counted, own, strict=True))

    return gradients


class _Dense:
    """Support rows as compiled products take them: with whole panels of rows and features."""

    def __init__(self, rows: Array, used: Array, dtype: Any) -> None:
        (n, d), self.width = (len(used), rows.shape[1]), width(dtype)
        self.rows = aligned((_whole(n, self.width), _whole(d, self.width)), dtype)
        for lo in range(0, n, FEWEST):
            hi = min(lo + FEWEST, n)
            self.rows[lo:hi, :d] = rows[used[lo:hi]]
        self.rows[n:], self.rows[:, d:] = 0.0, 0.0

    def products(self, A: Array) -> tuple[Array, Array]:
        """Inner products with these rows, and their squared norms; some more fill a panel up."""
        dtype = self.rows.dtype
        panels, sq = Panels.of(A, np.arange(len(A)), dtype)
        inner = np.empty((len(self.rows), len(panels) * self.width), dtype)
        inner_products(self.rows, panels, inner)
        norms = np.ones(inner.shape[1], dtype)
        norms[: len(A)] = sq
        return inner, norms

    def gradients(self, A: Array, outputs: Iterable[Any]) -> Iterator[Array]:
        """Sums of the support rows, without what the rows count themselves."""
        A = A.astype(self.rows.dtype, order="C")
        tile = np.empty((self.width, self.width), A.dtype)
        out = np.empty((_whole(len(A), self.width), self.rows.shape[1]), A.dtype)
        for H, order, own in outputs:
            gradient(self.rows, H, A, tile, order, read_only(own), out)
            yield out


class _Sparse:
    """Sparse support rows."""

    def __init__(self, rows: Any, used: Array, dtype: Any) -> None:
        self.rows = rows[used].astype(dtype)

    def products(self, A: Any) -> tuple[Array, Array]:
        """Inner products with these rows, and their squared norms."""
        inner = self.rows @ A.T.astype(self.rows.dtype)
        inner = inner.toarray() if sp.issparse(inner) else inner
        return np.ascontiguousarray(inner), sq_norms(A).astype(self.rows.dtype)

    def gradients(self, A: Any, outputs: Iterable[Any]) -> Iterator[Array]:
        """Sums of the support rows, without what the rows count themselves."""
        dense = (A.toarray() if sp.issparse(A) else A).astype(self.rows.dtype, copy=False)
        for H, order, own in outputs:
            sums = (self.rows[order].T @ H[: len(order)]).T
            yield np.ascontiguousarray(sums - own[:, None] * dense)


def _whole(n: int, size: int) -> int:
    """The least multiple of the size that is not less."""
    return -(-n // size) * size
