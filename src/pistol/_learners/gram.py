"""Rounds on rows whose kernel values are all in memory, so that many orders and passes share them.

Two matrices are enough for a whole sum of kernels: the bounded inner products, whose powers are the
polynomials, and the values of the widest Gaussian, whose fourth powers are those of the next. A single
kernel of any kind is the first power of a matrix of its own. g of all rows is kept up to date: a round
without a gradient then costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import log
from typing import Any

import numpy as np

from .._compiled.gram import Workspace, expand_gram, learn_gram
from .._compiled.rows import Block, sq_norms
from .._compiled.threads import Workers
from .._compiled.tiles import BLOCK, nothing
from .._compiled.types import Array, GramValues, Rounds, Scalars, read_only
from ..kernels import (
    Kernel,
    bounded_poly,
    cosine,
    exponential,
    gaussian,
    get_kernel,
    laplacian,
    precomputed_base,
)
from .dual import Dual
from .models import Expansion
from .rule import Rule
from .support import diagonal

RADIAL = (gaussian, exponential)
PRECISE = 256  # up to so many rows values are kept in float64: it costs nothing


class Gram:
    """Kernel values of all rows of Z at the rows that are learned, for sums of these kernels.

    The kernels are one of any kind; or polynomials, Gaussians and exponentials, each kind of one
    anchor. All rows are learned unless some are named. In the matrices those that are learned come
    first; `place` tells where each row of Z is.
    """

    def __init__(
        self, Z: Any, kernels: Sequence[Kernel], threads: Workers, learned: Array | None = None
    ) -> None:
        n = Z.shape[0]
        self.learned = np.arange(n) if learned is None else learned
        if learned is None:
            self.place = self.learned
        else:
            rows = np.concatenate([learned, np.setdiff1d(np.arange(n), learned)])
            self.place = np.argsort(rows)
            Z = Z[rows]
        self._compute(Z, kernels, threads)

    def _compute(self, Z: Any, kernels: Sequence[Kernel], threads: Workers) -> None:
        """Set the matrices from which all values are made."""
        m = len(self.learned)
        self.single = not all(kernel.map in (bounded_poly, *RADIAL) for kernel in kernels)
        self.widest: dict[Any, tuple[float, Array]] = {}
        if self.single:
            (self.inner,) = _values(kernels[:1], Z, m, threads)
            return
        firsts = [
            k for k in map(partial(_first, kernels), (bounded_poly, *RADIAL)) if k is not None
        ]
        matrices = _values(firsts, Z, m, threads)
        self.inner = matrices[0]
        for kernel, values in zip(firsts, matrices, strict=True):
            if kernel.radial:
                self.widest[kernel.map] = float(kernel.theta[0]), values

    def values(self, kernels: Sequence[Kernel]) -> GramValues:
        """What the loops make the values of these kernels from, and how."""
        radial = next((kernel.map for kernel in kernels if kernel.map in self.widest), None)
        gamma, values = self.widest[radial] if radial is not None else (1.0, self.inner)
        steps = [
            1
            if self.single
            else -1 - round(log(kernel.theta[0] / gamma, 4))
            if kernel.map is radial
            else int(kernel.theta[1])
            for kernel in kernels
        ]
        return GramValues(self.inner, values, read_only(np.array(steps, np.int64)))


def _first(kernels: Sequence[Kernel], kind: Any) -> Kernel | None:
    """The kernel whose values are those of the others of its kind, or their roots; None without any."""
    alike = [kernel for kernel in kernels if kernel.map is kind]
    if not alike:
        return None
    widest = min(alike, key=lambda kernel: kernel.theta[0])
    return (
        widest if widest.radial else get_kernel("bounded_poly", widest.theta[0], 1, widest.theta[2])
    )


def _values(kernels: Sequence[Kernel], Z: Any, m: int, threads: Workers) -> list[Array]:
    """Values of each kernel at all rows and the first m, from one base.

    They are kept in float32 where many are about one at most.
    """
    n, known = Z.shape[0], (*RADIAL, laplacian, cosine, bounded_poly)
    small = all(kernel.map in known for kernel in kernels)
    dtype = np.dtype(np.float32 if n > PRECISE and small else np.float64)
    if kernels[0].base is precomputed_base:
        return [read_only(np.ascontiguousarray(Z, dtype))]
    sq = sq_norms(Z)
    largest = sq.max(initial=0.0)
    Z = Z.astype(np.result_type(*(k.precision(dtype, largest) for k in kernels)), copy=False)
    out = [np.empty((n, m), dtype) for _ in kernels]

    def stripe(at: slice) -> None:
        base = kernels[0].base(Z, Block(Z[at]), None)
        for kernel, values in zip(kernels, out, strict=True):
            K = base if values is out[-1] else base.copy()
            kernel.map_tile(K, sq, sq[at], *nothing(K))
            values[:, at] = K

    threads.run([partial(stripe, slice(lo, min(lo + BLOCK, m))) for lo in range(0, m, BLOCK)])
    return [_tidy(kernel, values, sq[:m]) for kernel, values in zip(kernels, out, strict=True)]


def _tidy(kernel: Kernel, values: Array, sq: Array) -> Array:
    """The values without what rounding has done to them."""
    k_xx = diagonal(kernel, values, sq)  # which may refuse them
    if kernel.radial:
        np.fill_diagonal(values, k_xx)
    if values.dtype == np.float64:  # the last bits depend on where a row stands among the others
        grid = 2.0 ** (np.frexp(np.abs(values).max(initial=0.0))[1] - 36)
        values = np.rint(values / grid) * grid
    return read_only(values)


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
        self.plugs = rule.plugs(outputs, rule.shares(kernels))
        self.g = np.zeros((len(kernels), outputs, n), gram.inner.dtype)
        self.space = Workspace.of(self.g)
        self.coef, self.u = np.zeros((n, outputs)), np.zeros((n, len(kernels), outputs))

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients."""
        return self.S.alpha

    def learn(self, V: Array, order: Array, r: Array) -> Array:
        """Learn these rounds; what was predicted in them."""
        P, place = self.start[order], read_only(self.gram.place[order])
        rounds = Rounds.of(read_only(V[self.gram.learned]), place, r)
        learn_gram(
            self.values, rounds, self.plugs, self.S, self.g, self.coef, self.u, P, self.space
        )
        return P

    def model(self) -> Array:
        """Coefficients of f̄ so far, of shape (kernels, outputs, rows)."""
        g = np.broadcast_to(self.coef.T, (len(self.kernels), *self.coef.T.shape))
        b = self.rule.shares(self.kernels)
        return self.rule.read_out(self.S, g, self.u.transpose(1, 2, 0), False, b, np.zeros(1))

    def scores(self, at: Array) -> Array:
        """f̄ at the rows with these numbers, the start included."""
        out = np.zeros((self.coef.shape[1], len(at)))
        coef = self.model()
        size = np.abs(coef).max(initial=0.0) or 1.0  # may be larger than float32 can be
        coef = np.ascontiguousarray(coef / size, self.gram.inner.dtype)
        place, space = read_only(self.gram.place[at]), self.space
        expand_gram(self.values, coef, place, out, space.room, space.flat)
        return self.start[at] + out.T * size

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
