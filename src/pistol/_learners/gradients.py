"""How much f depends on each feature: mean squares of its partial derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.panels import Panels, aligned, shape, width
from .._compiled.rows import sq_norms
from .._compiled.slopes import (
    add_gradient_squares,
    add_slope_squares,
    add_slopes,
    gradient,
    inner_products,
    slope_coefficients,
)
from .._compiled.sums import groups_of
from .._compiled.threads import Workers
from .._compiled.types import Array, read_only
from .cells import Patchwork, centred, members
from .models import Expansion
from .rule import chunks

PRECISE = 256  # support rows up to which float64 costs nothing, unless they are wide
MODERATE = 1e8  # its cube is far below the largest number of float32
MOST, PART = 128, 64  # rows whose gradients are computed together, and by one thread
FEWEST, COPIED = 48, 2**16  # rows that are copied at once, or more up to so many values
LITTLE = 2**24  # products from which threads share them out
ROOM = 4_000_000  # slopes that are kept, at most, with more than the fewest rows


def mean_squares(
    model: Expansion | Patchwork, A: Any, weight: Array, threads: Workers | None = None
) -> Array:
    """The mean over the rows of A of Σ_j (∂f_j/∂x_i)², one number per feature i."""
    size, squares = relative_squares(model, A, weight, threads)
    return size * (size * squares)


def relative_squares(
    model: Expansion | Patchwork, A: Any, weight: Array, threads: Workers | None = None
) -> tuple[float, Array]:
    """The size of the largest coefficient, and the mean squares divided by its square.

    Threads share out parts of the work, which are the same for any number of threads.
    """
    size = max(_largest(model), 1e-300)  # squares of derivatives themselves may overflow
    total, weight = np.zeros(A.shape[1]), np.ascontiguousarray(weight, np.float64)
    squares: Callable[..., Iterable[Array]]
    if isinstance(model, Expansion):
        slopes = _Slopes.of(model, size, _dtype(model, _many_products(model)))
        squares, most = partial(slopes.squares, threads), slopes.most
    else:
        squares, most = partial(_squares, gradients_of(model, size)), FEWEST
    for at in chunks(weight, most):
        for part in squares(A[at], weight[at]):
            total += part
    return size, total / max(weight.sum(), 1e-300)


def _squares(gradients: Callable[[Any], Array], A: Any, weight: Array) -> Iterator[Array]:
    """Σ_j (∂f_j/∂x_i)², added up over weighted rows."""
    total = np.zeros(A.shape[1])
    for G in gradients(A):
        add_slope_squares(G, weight, total)
    yield total


def _largest(model: Expansion | Patchwork) -> float:
    """The size of the largest coefficient."""
    if isinstance(model, Expansion):
        return float(np.abs(model.coef).max(initial=0.0))
    cells = [_largest(one) for part in model.parts for one in part.models]
    return max(_largest(model.base), *cells)


def _many_products(model: Expansion) -> bool:
    """Whether mean squares take long enough for float32 to be worth its while."""
    products = MOST * np.count_nonzero((model.coef != 0.0).any(axis=0)) * model.rows.shape[1]
    return len(model.sq) > PRECISE or products > LITTLE


def _dtype(model: Expansion, single: bool) -> Any:
    """float32 if asked for, unless numbers might be too large or too small for it."""
    return np.float32 if single and _moderate(model) else np.float64


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
        slopes = _Slopes.of(model, size, _dtype(model, len(model.sq) > PRECISE))
        return partial(slopes.gradients, exact=exact)

    def gradients(A: Any) -> Array:
        G = gradients_of(model.base, size, exact)(A)
        for part in model.parts:
            for cell, at in members(part.tree, A):
                inside = centred(A[at], part.centres[cell])
                own = gradients_of(part.models[cell], size, exact)(inside)
                G[:, at] += own / len(model.parts)
        return G

    return gradients


class _Slopes(NamedTuple):
    """An expansion as the loops take it: rows with a coefficient, and what slopes are made of."""

    rows: _Dense | _Sparse
    sq: Array
    kinds: Array
    theta: Array
    coef: Array
    order: Array  # numbers of the rows that have a coefficient of an output, output after output
    starts: Array  # where those of each output begin, and the end

    @classmethod
    def of(cls, model: Expansion, size: float, dtype: Any) -> _Slopes:
        """Slopes divided by `size`, of kernels that are there in all space."""
        groups = groups_of(model.kernels)
        if groups is None:
            raise ValueError("the gradients of these kernels are not known")
        learned = (model.coef != 0.0).any(axis=0)
        used = np.flatnonzero(learned.any(axis=0))
        coef = (model.coef[:, :, used] / size).astype(dtype)
        s_sq, theta = (read_only(x.astype(dtype)) for x in (model.sq[used], groups.theta))
        rows = (_Sparse if sp.issparse(model.rows) else _Dense)(model.rows, used, dtype)
        output, order = np.nonzero(learned[:, used])
        starts = np.searchsorted(output, np.arange(len(learned) + 1))
        return cls(
            rows,
            s_sq,
            groups.kinds,
            theta,
            slope_coefficients(model.kernels, groups, coef),
            read_only(np.ascontiguousarray(order)),
            read_only(starts),
        )

    @property
    def most(self) -> int:
        """How many rows to take at once."""
        return MOST if MOST * len(self.order) <= ROOM else FEWEST

    def factors(self, A: Any, exact: bool = False) -> tuple[Array, Array]:
        """What support rows, and the rows of A themselves, are multiplied by in their gradients."""
        found, a_sq = self.rows.products(A)
        H = aligned((len(self.order), len(a_sq)), found.dtype)
        own = np.zeros((len(self.starts) - 1, len(a_sq)), found.dtype)
        kernels = self.kinds, self.theta, self.coef
        add_slopes(found, self.sq, a_sq, *kernels, exact, self.order, self.starts, H, own)
        return H, own

    def gradients(self, A: Any, exact: bool = False) -> Array:
        """∂f_j/∂x_i, of shape (outputs, rows, features)."""
        H, own = self.factors(A, exact)
        out = np.empty((len(own), *A.shape))
        for j, to in enumerate(out):
            at = slice(self.starts[j], self.starts[j + 1])
            to[:] = self.rows.gradient(A, H[at], self.order[at], read_only(own[j]))
        return out

    def squares(self, threads: Workers | None, A: Any, weight: Array) -> list[Array]:
        """Σ_j (∂f_j/∂x_i)², added up over the weighted rows of each part."""
        H, own = self.factors(A)
        much = len(weight) * len(self.order) * A.shape[1] > LITTLE
        tasks = [
            partial(self.rows.squares, A, H, own, self.order, self.starts, at, weight[at])
            for at in chunks(weight, PART if much else MOST)
        ]
        return [task() for task in tasks] if threads is None else threads.run(tasks)


class _Dense:
    """Support rows as compiled products take them: with whole panels of rows and features."""

    def __init__(self, rows: Any, used: Array, dtype: Any) -> None:
        (n, d), self.width = (len(used), rows.shape[1]), width(dtype)
        self.rows = aligned((_whole(n, self.width), _whole(d, self.width)), dtype)
        few = max(FEWEST, COPIED // max(d, 1))
        for lo in range(0, n, few):
            hi = min(lo + few, n)
            self.rows[lo:hi, :d] = rows[used[lo:hi]]
        self.rows[n:], self.rows[:, d:] = 0.0, 0.0

    def products(self, A: Array) -> tuple[Array, Array]:
        """Inner products with these rows, and squared norms, of as many rows as fill whole tiles."""
        dtype = self.rows.dtype
        panels, sq = Panels.of(A, np.arange(len(A)), dtype)
        inner = np.empty((len(self.rows), len(panels) * self.width), dtype)
        inner_products(self.rows, panels, inner)
        norms = np.ones(_whole(len(A), shape().lines), dtype)
        norms[: len(A)] = sq
        return inner, read_only(norms)

    def _room(self, A: Array, n: int) -> tuple[Array, Array, Array]:
        """The rows, a tile, and room for the gradients of one output at so many of them."""
        dtype, n = self.rows.dtype, _whole(n, shape().lines)
        tile = np.empty((self.width, self.width), dtype)
        return A.astype(dtype, order="C"), tile, np.empty((n, self.rows.shape[1]), dtype)

    def gradient(self, A: Array, H: Array, order: Array, own: Array) -> Array:
        """Sums of the support rows, without what the rows count themselves."""
        A, tile, out = self._room(A, len(A))
        gradient(self.rows, H, A, tile, order, own, out)
        return out[: A.shape[0], : A.shape[1]]

    def squares(
        self, A: Array, H: Array, own: Array, order: Array, starts: Array, at: slice, weight: Array
    ) -> Array:
        """Squares of these sums, added up over outputs and some weighted rows."""
        total, (A, tile, out) = np.zeros(A.shape[1]), self._room(A, len(weight))
        rows = self.rows, H, A, tile, order, starts, own
        add_gradient_squares(*rows, at.start, out, weight, total)
        return total


class _Sparse:
    """Sparse support rows."""

    def __init__(self, rows: Any, used: Array, dtype: Any) -> None:
        self.rows = rows[used].astype(dtype)

    def products(self, A: Any) -> tuple[Array, Array]:
        """Inner products with these rows, and their squared norms."""
        inner = self.rows @ A.T.astype(self.rows.dtype)
        inner = inner.toarray() if sp.issparse(inner) else inner
        return np.ascontiguousarray(inner), read_only(sq_norms(A).astype(self.rows.dtype))

    def gradient(self, A: Any, H: Array, order: Array, own: Array) -> Array:
        """Sums of the support rows, without what the rows count themselves."""
        dense = (A.toarray() if sp.issparse(A) else A).astype(self.rows.dtype, copy=False)
        sums = (self.rows[order].T @ H).T
        return np.ascontiguousarray(sums - own[:, None] * dense)

    def squares(
        self, A: Any, H: Array, own: Array, order: Array, starts: Array, at: slice, weight: Array
    ) -> Array:
        """Squares of these sums, added up over outputs and some weighted rows."""
        total = np.zeros(A.shape[1])
        for j, c in enumerate(own):
            own_order = slice(starts[j], starts[j + 1])
            G = self.gradient(A[at], H[own_order, at], order[own_order], c[at])
            add_slope_squares(G, weight, total)
        return total


def _whole(n: int, size: int) -> int:
    """The least multiple of the size that is not less."""
    return -(-n // size) * size
