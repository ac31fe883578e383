"""Kernel values that are all in memory, so that many orders and passes share them.

Few matrices are enough for a whole sum of kernels, which is made of chains: powers of bounded inner
products are the polynomials, and fourth powers of the values of a Gaussian are those of the next. A
single kernel of any kind is a chain of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.flags import usual_values
from .._compiled.lanes import whole
from .._compiled.lines import drop_last_bits, fill_lines, kinds_of
from .._compiled.panels import Panels, shape
from .._compiled.rows import Block, products, sq_norms
from .._compiled.sums import KINDS
from .._compiled.threads import Workers
from .._compiled.tiles import BLOCK, nothing
from .._compiled.types import ALONE, CONSTANT, POWERS, PRODUCTS, Array, GramValues, read_only
from ..kernels import (
    Kernel,
    bounded_poly,
    cosine,
    exponential,
    gaussian,
    laplacian,
    precomputed_base,
)
from .support import diagonal

TASKS = 8  # for threads to share, about
VALUE = 64  # features that cost as much as a value of a kernel
LITTLE = 2**26  # work that takes less time than to share it out
WIDE = 64  # features from which values take longer to compute than to copy
PRECISE = 256  # up to so many rows values are kept in float64: it costs nothing


class Gram:
    """Kernel values of the rows of Z that are learned at all rows, for sums of these kernels.

    The kernels are one of any kind; or polynomials, Gaussians and exponentials, each kind of one
    anchor. `rows` has the numbers of all rows in the order of the columns; the first `m` of them are
    learned. `place` tells which column a row has.
    """

    def __init__(
        self,
        Z: Any,
        kernels: Sequence[Kernel],
        threads: Workers,
        rows: Array | None = None,
        m: int | None = None,
    ) -> None:
        order = np.arange(Z.shape[0]) if rows is None else rows
        self.learned, self.place = order[:m], np.empty_like(order)
        self.place[order] = np.arange(len(order))
        if rows is not None and kernels[0].base is precomputed_base:
            Z = Z[np.ix_(rows[:m], rows)]
        self._compute(Z, kernels, threads, order)

    def _compute(self, Z: Any, kernels: Sequence[Kernel], threads: Workers, order: Array) -> None:
        """Set the matrices from which all values are made."""
        whole = {chain.start.key for chain in _chains(kernels, set(), len(kernels))}
        starts = {
            chain.start.key: chain.start
            for chain in _chains(kernels, whole)
            if chain.kind != CONSTANT
        }
        self.numbers = {key: number for number, key in enumerate(starts)}
        new = partial(threads.spare.array, owner=self)
        self.matrices = _values(list(starts.values()), Z, len(self.learned), threads, new, order)

    def values(self, kernels: Sequence[Kernel]) -> GramValues:
        """What the loops make the values of these kernels from, and how."""
        chains = [
            (chain.first, chain.length, self.numbers.get(chain.start.key, 0), chain.kind)
            for chain in _chains(kernels, self.numbers)
        ]
        return GramValues(self.matrices, read_only(np.array(chains, np.int64)))


class Chain(NamedTuple):
    """Kernels of a sum whose values are made from those of `start`."""

    first: int  # number of its first kernel
    length: int
    start: Kernel
    kind: int


LONGEST = {CONSTANT: 1, ALONE: 1, PRODUCTS: 3, POWERS: 4}


def _chains(
    kernels: Sequence[Kernel], starts: Container[Any], most: int | None = None
) -> list[Chain]:
    """The kernels as chains, each as long as the loops can take it, or up to `most` kernels.

    A new one begins at each of the `starts`, so that sums share their matrices.
    """
    chains: list[Chain] = []
    for number, kernel in enumerate(kernels):
        kind = _kind(kernel)
        last = chains[-1] if chains else Chain(0, 0, kernel, kind)
        room = 0 < last.length < (most or LONGEST[kind]) and kernel.key not in starts
        if room and _goes_on(last.start, kernels[number - 1], kernel):
            chains[-1] = Chain(last.first, last.length + 1, last.start, kind)
        else:
            chains.append(Chain(number, 1, kernel, kind if kind == CONSTANT else ALONE))
    return chains


def _kind(kernel: Kernel) -> int:
    """Of a chain of several kernels like this one."""
    if kernel.map is bounded_poly:
        return PRODUCTS if kernel.key[2] else CONSTANT
    return POWERS if kernel.radial else ALONE


def _goes_on(start: Kernel, last: Kernel, kernel: Kernel) -> bool:
    """Whether a chain from the one kernel to the other can have this one, too."""
    if kernel.map is not bounded_poly:
        return kernel.follows(last)
    (_, *near), (_, *own), degree = last.key, kernel.key, start.key[2]
    alike = last.map is bounded_poly and near[::2] == own[::2]
    return bool(alike and degree == 1 and near[1] == own[1] - 1)


def _values(
    kernels: Sequence[Kernel],
    Z: Any,
    m: int,
    threads: Workers,
    new: Callable[..., Array],
    order: Array,
) -> Array:
    """Values of each kernel at the first m rows and all, from one base; of shape (kernels, m, n).

    They are kept in float32 where many are about one at most, in lines that zeros fill up. `new` makes
    an array. `order` has the numbers of the rows of Z as they come; precomputed values have that order
    already.
    """
    n, bounded = len(order), (gaussian, exponential, laplacian, cosine, bounded_poly)
    small = all(kernel.map in bounded for kernel in kernels)
    dtype = np.dtype(np.float32 if n > PRECISE and small else np.float64)
    out = new((len(kernels), m, whole(n, dtype)), dtype)
    out[:, :, n:] = 0.0
    if kernels[0].base is precomputed_base:
        out[0, :, :n] = Z
        return read_only(out)
    in_panels = kernels[0].base is products and not sp.issparse(Z)
    (_fill_from_panels if in_panels else _fill_from_base)(kernels, Z, order, threads, out)
    if dtype == np.float64:  # the last bits depend on where a row stands among the others
        drop_last_bits(out)
    return read_only(out)


def _fill_from_panels(
    kernels: Sequence[Kernel], Z: Array, order: Array, threads: Workers, out: Array
) -> None:
    """Set the values of kernels that are made of inner products."""
    usual = usual_values(Z)
    rows, sq, shift = _in_panels(Z, usual, order, out.dtype)
    dtype = _precision(kernels, out.dtype, sq)
    if dtype != out.dtype:
        rows, sq, shift = _in_panels(Z, usual, order, dtype)
    made = out if dtype == out.dtype else np.zeros(out.shape, dtype)
    half, count = Z.shape[1] > WIDE, -(-out.shape[1] // rows.shape[2])
    alone = threads.n == 1 or out.size * (Z.shape[1] + VALUE) < LITTLE
    parts = pieces(count, count if alone else max(2, count // TASKS))
    numbers = *(read_only(x.astype(dtype)) for x in (sq, shift)), *kinds_of(kernels, dtype)
    together = rows.shape[2] if usual is None else shape().lines
    threads.run(
        [partial(fill_lines, rows, *numbers, together, p.start, p.stop, half, made) for p in parts]
    )
    for kernel, values in zip(kernels, made, strict=True):
        if kernel.map not in KINDS:
            tile = np.ascontiguousarray(values[:, : len(sq)])
            kernel.map_tile(tile, sq[: len(tile)], sq, *nothing(tile))
            diagonal(kernel, tile, sq[: len(tile)])  # which may refuse them
            values[:, : len(sq)] = tile
    if made is not out:
        out[:] = made


def _in_panels(
    Z: Array, usual: Array | None, order: Array, dtype: Any
) -> tuple[Array, Array, Array]:
    """Rows in panels, their squared norms, and what is added to the products of rows in panels.

    Where most values are usual ones, as in one-hot columns, the panels have z - u for each row z. There
    ⟨z, a⟩ = ⟨z - u, a - u⟩ + (⟨u, z⟩ - ½ ⟨u, u⟩) + (⟨u, a⟩ - ½ ⟨u, u⟩).
    """
    if usual is None or not usual.any():
        return *Panels.of(Z, order, dtype), np.empty(0)
    rows, rest = Panels.of(Z - usual, order, dtype)
    usual = usual.astype(np.float64)
    shift = (Z @ usual)[order] - 0.5 * (usual @ usual)
    return rows, np.maximum(rest + 2.0 * shift, 0.0), shift


def _fill_from_base(
    kernels: Sequence[Kernel], Z: Any, order: Array, threads: Workers, out: Array
) -> None:
    """Set the values of any kernels, in blocks of rows."""
    Z = Z[order]
    sq = sq_norms(Z)
    Z = Z.astype(_precision(kernels, out.dtype, sq), copy=False)

    def part(at: slice) -> None:
        base = kernels[0].base(Z[: out.shape[1]], Block(Z[at]), None)
        for kernel, values in zip(kernels, out, strict=True):
            tile = base.copy()
            kernel.map_tile(tile, sq[: out.shape[1]], sq[at], *nothing(tile))
            values[:, at] = tile

    threads.run([partial(part, at) for at in pieces(len(sq), BLOCK)])
    for kernel, values in zip(kernels, out, strict=True):
        k_xx = diagonal(kernel, values, sq[: out.shape[1]])
        if kernel.radial:
            np.fill_diagonal(values, k_xx)


def _precision(kernels: Sequence[Kernel], dtype: Any, sq: Array) -> Any:
    """The dtype to work in."""
    largest = sq.max(initial=0.0)
    return np.result_type(*(kernel.precision(dtype, largest) for kernel in kernels))


def pieces(n: int, size: int) -> list[slice]:
    """So many rows, a few at a time."""
    return [slice(lo, min(lo + size, n)) for lo in range(0, n, max(size, 1))]
