"""Rounds on rows whose kernel values are all in memory, so that many orders and passes share them.

Few matrices are enough for a whole sum of kernels, which is made of chains: powers of bounded inner
products are the polynomials, and fourth powers of the values of a Gaussian are those of the next. A
single kernel of any kind is a chain of its own. g of all rows is kept up to date: a round without a
gradient then costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.flags import usual_values
from .._compiled.gram import Workspace, expand_gram, learn_gram
from .._compiled.lanes import whole
from .._compiled.lines import drop_last_bits, fill_lines, kinds_of
from .._compiled.panels import Panels, shape
from .._compiled.rows import Block, products, sq_norms
from .._compiled.sums import KINDS
from .._compiled.threads import Workers
from .._compiled.tiles import BLOCK, nothing
from .._compiled.types import (
    ALONE,
    CONSTANT,
    POWERS,
    PRODUCTS,
    Array,
    GramValues,
    Rounds,
    Scalars,
    read_only,
)
from ..kernels import (
    Kernel,
    bounded_poly,
    cosine,
    exponential,
    gaussian,
    laplacian,
    precomputed_base,
)
from .dual import Dual
from .models import Expansion
from .rule import Rule, step_by_step
from .storage import Picked
from .support import diagonal

TASKS = 8  # for threads to share, about
VALUE = 64  # features that cost as much as a value of a kernel
COPIED = 2**16  # values that are copied at once, or more with few rows
LITTLE = 2**26  # work that takes less time than to share it out
WIDE = 64  # features from which values take longer to compute than to copy
NO_MARKS = read_only(np.empty(0, np.int64))
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
    parts = _pieces(count, count if alone else max(2, count // TASKS))
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

    threads.run([partial(part, at) for at in _pieces(len(sq), BLOCK)])
    for kernel, values in zip(kernels, out, strict=True):
        k_xx = diagonal(kernel, values, sq[: out.shape[1]])
        if kernel.radial:
            np.fill_diagonal(values, k_xx)


def _precision(kernels: Sequence[Kernel], dtype: Any, sq: Array) -> Any:
    """The dtype to work in."""
    largest = sq.max(initial=0.0)
    return np.result_type(*(kernel.precision(dtype, largest) for kernel in kernels))


def _pieces(n: int, size: int) -> list[slice]:
    """So many rows, a few at a time."""
    return [slice(lo, min(lo + size, n)) for lo in range(0, n, max(size, 1))]


class GramRun:
    """A sum of kernels that learns one order of the rows of a Gram matrix, pass after pass.

    Z and ids are the rows that the matrix was given, and their numbers. `start` has values of a
    function of the rows that is added to f and stays as it is.
    """

    def __init__(
        self,
        gram: Gram,
        kernels: tuple[Kernel, ...],
        rule: Rule,
        outputs: int,
        Z: Any,
        ids: Array,
        n_jobs: int | None = None,
        start: Array | None = None,
        max_support: int | None = None,
    ) -> None:
        self.max_support = max_support
        self.gram, self.kernels, self.rule = gram, kernels, rule
        self.Z, self.ids, self.n_jobs, self.start = Z, ids, n_jobs, start
        self.values, n = gram.values(kernels), len(gram.learned)
        self.S = rule.scalars(len(kernels), outputs)
        self.plugs = rule.plugs_of_sum(outputs, rule.shares(kernels))
        dtype = gram.matrices.dtype
        # of rows that are learned
        self.g = np.zeros((len(kernels), outputs, whole(n, dtype)), dtype)
        self.space = Workspace.of(self.g, self.plugs.b)
        self.coef = np.zeros((n, outputs))
        self.u = np.zeros((n, outputs, whole(len(kernels), np.float64)))

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients."""
        return self.S.alpha

    def learn(self, V: Array, order: Array, r: Array, ends: Array | None = None) -> Array:
        """Learn these rounds; what was predicted in them. Several passes end at `ends`."""
        ends = np.array([len(order)]) if ends is None else ends
        return self._play(V, order, r, ends, NO_MARKS, 0, self._out(0, 0))[0]

    def learn_and_score(
        self, V: Array, order: Array, r: Array, ends: Array, marks: Array, at: Array
    ) -> tuple[Array, Array]:
        """The same; and f̄ at the rows with numbers `at`, after as many passes as each of `marks`."""
        if self.rule.average is None:
            return step_by_step(self, V, order, r, ends, marks, at)
        first, places = self._columns(at)
        out = self._out(len(marks), int(places.max(initial=-1)) + 1)
        P, sizes = self._play(V, order, r, ends, marks, first, out)
        scores = out.take(places, axis=2).transpose(0, 2, 1)
        return P, self._started(at) + scores * sizes[:, None, None]

    def _play(
        self, V: Array, order: Array, r: Array, ends: Array, marks: Array, first: int, out: Array
    ) -> tuple[Array, Array]:
        """Predictions of these rounds, and what the scores in `out` have to be multiplied by."""
        rounds = Rounds.of(V[self.gram.learned], self.gram.place[order], r)
        P, sizes = self._started(order), np.empty(len(marks))
        state = self.plugs, self.S, self.g, self.coef, self.u, P, self.space
        learn_gram(
            self.values, rounds, read_only(ends), *state, read_only(marks), first, out, sizes
        )
        return P, sizes

    def _started(self, rows: Array) -> Array:
        """Values of the start at some rows; zeros without one."""
        shape = len(rows), self.coef.shape[1]
        return np.zeros(shape) if self.start is None else self.start[rows]

    def _out(self, marks: int, columns: int) -> Array:
        """Room for scores."""
        dtype = self.gram.matrices.dtype
        return np.zeros((marks, self.coef.shape[1], whole(columns, dtype)), dtype)

    def _columns(self, at: Array) -> tuple[int, Array]:
        """The columns of some rows, counted from the beginning of a cache line, and this."""
        places = self.gram.place[at]
        least = int(places.min(initial=len(self.gram.place)))
        first = least - least % whole(1, self.gram.matrices.dtype)
        return first, places - first

    def model(self) -> Array:
        """Coefficients of f̄ so far, of shape (kernels, outputs, rows)."""
        u, b = self._u().transpose(1, 2, 0), self.rule.shares(self.kernels)
        return self.rule.read_out(self.S, self.coef.T[None], u, False, b, np.zeros(1))

    def scores(self, at: Array) -> Array:
        """f̄ at the rows with these numbers, the start included."""
        first, places = self._columns(at)
        (out,) = self._out(1, int(places.max(initial=-1)) + 1)
        c, total = self.rule.multipliers(self.S, self.rule.shares(self.kernels))
        size = expand_gram(self.values, c, total, self.coef, self.u, first, self.space.room, out)
        return self._started(at) + out.T[places] * size

    def expansion(self) -> Expansion:
        """f̄ so far as a function of scaled rows, for gradients, which copy few rows at a time."""
        at, d = self.gram.learned, self.Z.shape[1]
        sparse = sp.issparse(self.Z)
        rows = self.Z[at] if sparse else Picked(self.Z, at, np.zeros(d, self.Z.dtype))
        few = max(PRECISE, COPIED // max(d, 1))
        sq = np.concatenate([sq_norms(rows[part]) for part in _pieces(len(at), few)])
        return Expansion(self.kernels, self.ids[at], rows, sq, self.model(), self.n_jobs)

    def _learned(self) -> tuple[Any, Array]:
        """The rows that are learned, and their numbers."""
        return self.Z[self.gram.learned], self.ids[self.gram.learned]

    def _u(self) -> Array:
        """u of shape (rows, kernels, outputs)."""
        return self.u[:, :, : len(self.kernels)].swapaxes(1, 2)

    def snapshot(self) -> tuple[Array, Array, Scalars]:
        """What has been learned so far."""
        return self.coef.copy(), self._u().copy(), Scalars(*(x.copy() for x in self.S))

    def learner(self, kept: Any = None) -> Dual:
        """A learner that can go on with other rows, from a snapshot if one is given."""
        coef, u, S = kept or self.snapshot()
        Z, ids = self._learned()
        return Dual.resume(
            self.rule, self.kernels, Z, ids, coef, u, S, self.n_jobs, self.max_support
        )
