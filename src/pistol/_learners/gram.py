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

from .._compiled.flags import Flags
from .._compiled.gram import Workspace, expand_gram, learn_gram
from .._compiled.rows import Block, products, sq_norms
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
from .rule import Rule
from .support import diagonal

LINES = 128  # whose values are computed together
WIDE = 64  # features from which inner products take longer than to copy them
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
        self.learned, self.place = order[:m], np.argsort(order)
        if rows is not None:
            given = kernels[0].base is precomputed_base
            Z = Z[np.ix_(rows[:m], rows)] if given else Z[rows]
        self._compute(Z, kernels, threads)

    def _compute(self, Z: Any, kernels: Sequence[Kernel], threads: Workers) -> None:
        """Set the matrices from which all values are made."""
        whole = {_key(chain.start) for chain in _chains(kernels, set(), len(kernels))}
        starts = {
            _key(chain.start): chain.start
            for chain in _chains(kernels, whole)
            if chain.kind != CONSTANT
        }
        self.numbers = {key: number for number, key in enumerate(starts)}
        new = partial(threads.spare.array, owner=self)
        self.matrices = _values(list(starts.values()), Z, len(self.learned), threads, new)

    def values(self, kernels: Sequence[Kernel]) -> GramValues:
        """What the loops make the values of these kernels from, and how."""
        chains = [
            (chain.first, chain.length, self.numbers.get(_key(chain.start), 0), chain.kind)
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
        room = 0 < last.length < (most or LONGEST[kind]) and _key(kernel) not in starts
        if room and _goes_on(last.start, kernels[number - 1], kernel):
            chains[-1] = last._replace(length=last.length + 1, kind=kind)
        else:
            chains.append(Chain(number, 1, kernel, kind if kind == CONSTANT else ALONE))
    return chains


def _kind(kernel: Kernel) -> int:
    """Of a chain of several kernels like this one."""
    if kernel.map is bounded_poly:
        return PRODUCTS if kernel.theta[1] else CONSTANT
    return POWERS if kernel.radial else ALONE


def _goes_on(start: Kernel, last: Kernel, kernel: Kernel) -> bool:
    """Whether a chain from the one kernel to the other can have this one, too."""
    if kernel.map is not bounded_poly:
        return kernel.follows(last)
    alike = last.map is bounded_poly and (last.theta[::2] == kernel.theta[::2]).all()
    return bool(alike and start.theta[1] == 1 and last.theta[1] == kernel.theta[1] - 1)


def _key(kernel: Kernel) -> Any:
    """What the values of a kernel depend on."""
    return kernel.source, *kernel.theta.tolist()


def _values(
    kernels: Sequence[Kernel], Z: Any, m: int, threads: Workers, new: Callable[..., Array]
) -> Array:
    """Values of each kernel at the first m rows and all, from one base; of shape (kernels, m, n).

    They are kept in float32 where many are about one at most. `new` makes an array.
    """
    n, bounded = Z.shape[0], (gaussian, exponential, laplacian, cosine, bounded_poly)
    small = all(kernel.map in bounded for kernel in kernels)
    dtype = np.dtype(np.float32 if n > PRECISE and small else np.float64)
    if kernels[0].base is precomputed_base:
        return read_only(np.ascontiguousarray(Z, dtype)[None])
    sq = sq_norms(Z)
    largest = sq.max(initial=0.0)
    Z = Z.astype(np.result_type(*(k.precision(dtype, largest) for k in kernels)), copy=False)
    out = new((len(kernels), m, n), dtype)
    sparse, in_place = sp.issparse(Z), not sp.issparse(Z) and Z.dtype == dtype
    # sparse rows are laid out for few columns at a time
    lines, columns = _pieces(m, m if sparse else LINES), _pieces(n, BLOCK if sparse else n)
    known = in_place and kernels[0].base is products and Z.shape[1] > WIDE
    if known:
        _inner_products(Z, out[-1], threads)

    def part(at: slice, own: slice) -> None:
        K = list(out[:, at, own])
        base = K[-1]
        if not known:
            base = kernels[0].base(Z[at], Block(Z[own]), base if in_place else None)
        for kernel, values in zip(kernels, K, strict=True):
            tile = values if in_place else np.empty_like(base)
            if tile is not base:
                tile[:] = base
            kernel.map_tile(tile, sq[at], sq[own], *nothing(tile))
            if tile is not values:
                values[:] = tile

    threads.run([partial(part, at, own) for at in lines for own in columns])
    for kernel, values in zip(kernels, out, strict=True):
        _tidy(kernel, values, sq[:m])
    return read_only(out)


def _inner_products(Z: Array, out: Array, threads: Workers) -> None:
    """Inner products of the first rows with all; half of those among them are copied."""
    lines, flags = _pieces(len(out), LINES), Flags.of(Z[: len(out)])
    if flags is not None:
        columns = flags.columns(Z)
        threads.run([partial(flags.products, at, columns, out[at]) for at in lines])
        return

    def above(at: slice) -> None:
        np.matmul(Z[at], Z[at.start :].T, out=out[at, at.start :])

    def below(at: slice) -> None:
        for other in _pieces(at.start, LINES):
            out[at, other] = out[other, at].T

    threads.run([partial(above, at) for at in lines])
    threads.run([partial(below, at) for at in lines])


def _pieces(n: int, size: int) -> list[slice]:
    """So many rows, a few at a time."""
    return [slice(lo, min(lo + size, n)) for lo in range(0, n, max(size, 1))]


def _tidy(kernel: Kernel, values: Array, sq: Array) -> None:
    """Remove what rounding has done to the values."""
    k_xx = diagonal(kernel, values, sq)  # which may refuse them
    if kernel.radial:
        np.fill_diagonal(values, k_xx)
    if values.dtype == np.float64:  # the last bits depend on where a row stands among the others
        grid = 2.0 ** (np.frexp(np.abs(values).max(initial=0.0))[1] - 36)
        np.multiply(np.rint(values / grid), grid, out=values)


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
        self.start = np.zeros((Z.shape[0], outputs)) if start is None else start
        self.Z, self.ids, self.n_jobs = Z, ids, n_jobs
        self.values, n = gram.values(kernels), len(gram.learned)
        self.S = rule.scalars(len(kernels), outputs)
        self.plugs = rule.plugs_of_sum(outputs, rule.shares(kernels))
        self.g = np.zeros((len(kernels), outputs, n), gram.matrices.dtype)
        self.space = Workspace.of(self.g)
        self.coef, self.u = np.zeros((n, outputs)), np.zeros((n, len(kernels), outputs))

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients."""
        return self.S.alpha

    def learn(self, V: Array, order: Array, r: Array, ends: Array | None = None) -> Array:
        """Learn these rounds; what was predicted in them. Several passes end at `ends`."""
        P, place = self.start[order], read_only(self.gram.place[order])
        rounds = Rounds.of(read_only(V[self.gram.learned]), place, r)
        ends = read_only(np.array([len(order)]) if ends is None else ends)
        state = self.plugs, self.S, self.g, self.coef, self.u, P, self.space
        learn_gram(self.values, rounds, ends, *state)
        return P

    def model(self) -> Array:
        """Coefficients of f̄ so far, of shape (kernels, outputs, rows)."""
        u, b = self.u.transpose(1, 2, 0), self.rule.shares(self.kernels)
        return self.rule.read_out(self.S, self.coef.T[None], u, False, b, np.zeros(1))

    def scores(self, at: Array) -> Array:
        """f̄ at the rows with these numbers, the start included."""
        places = self.gram.place[at]
        first, last = (int(places.min()), int(places.max()) + 1) if len(at) else (0, 0)
        coef = self.model()
        size = np.abs(coef).max(initial=0.0) or 1.0  # may be larger than float32 can be
        dtype = self.gram.matrices.dtype
        out = np.zeros((coef.shape[1], last - first), dtype)
        expand_gram(self.values, np.ascontiguousarray(coef / size, dtype), first, out)
        return self.start[at] + out.T[places - first] * size

    def expansion(self) -> Expansion:
        """f̄ so far as a function of scaled rows."""
        Z, ids = self._learned()
        return Expansion(self.kernels, ids, Z, sq_norms(Z), self.model(), self.n_jobs)

    def _learned(self) -> tuple[Any, Array]:
        """The rows that are learned, and their numbers."""
        return self.Z[self.gram.learned], self.ids[self.gram.learned]

    def snapshot(self) -> tuple[Array, Array, Scalars]:
        """What has been learned so far."""
        return self.coef.copy(), self.u.copy(), Scalars(*(x.copy() for x in self.S))

    def learner(self, kept: Any = None) -> Dual:
        """A learner that can go on with other rows, from a snapshot if one is given."""
        coef, u, S = kept or self.snapshot()
        Z, ids = self._learned()
        return Dual.resume(
            self.rule, self.kernels, Z, ids, coef, u, S, self.n_jobs, self.max_support
        )
