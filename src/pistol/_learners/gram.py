"""Rounds on rows whose kernel values are all in memory, so that many orders and passes share them.

Two matrices are enough for a whole sum of kernels: the bounded inner products, whose powers are the
polynomials, and the values of the widest Gaussian, whose fourth powers are those of the next. A single
kernel of any kind is the first power of a matrix of its own. g of all rows is kept up to date: a round
without a gradient then costs next to nothing, and rows that are left out are scored on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import log
from typing import Any

import numpy as np

from .._compiled.loops import expand_gram, learn_gram
from .._compiled.rows import Block, sq_norms
from .._compiled.threads import Workers
from .._compiled.tiles import BLOCK, nothing
from .._compiled.types import Array, GramValues, Rounds, Scalars, read_only
from ..kernels import (
    Kernel,
    bounded_poly,
    cosine,
    gaussian,
    get_kernel,
    laplacian,
    precomputed_base,
)
from . import Dual, Rule, diagonal

PRECISE = 256  # up to so many rows values are kept in float64: it costs nothing


class Gram:
    """Kernel values among all rows of Z, for sums of these kernels.

    The kernels are one of any kind, or polynomials and Gaussians of one anchor each.
    """

    def __init__(self, Z: Any, kernels: Sequence[Kernel], threads: Workers) -> None:
        self.single = not all(kernel.map in (bounded_poly, gaussian) for kernel in kernels)
        gaussians = [kernel for kernel in kernels if kernel.map is gaussian]
        polynomials = [kernel for kernel in kernels if kernel.map is bounded_poly]
        if self.single:
            self.L = self.E = _values(kernels[0], Z, threads)
            return
        if polynomials:
            gamma, _, most = polynomials[0].theta
            self.L = _values(get_kernel("bounded_poly", gamma, 1, most), Z, threads)
        if gaussians:
            widest = min(gaussians, key=lambda kernel: kernel.theta[0])
            self.gamma, self.E = widest.theta[0], _values(widest, Z, threads)
        self.L = self.L if polynomials else self.E
        self.E = self.E if gaussians else self.L

    def steps(self, kernels: Sequence[Kernel]) -> Array:
        """How the loops make the values of each kernel: see `members`."""
        if self.single:
            return read_only(np.ones(1, np.int64))
        steps = [
            -1 - round(log(kernel.theta[0] / self.gamma, 4))
            if kernel.map is gaussian
            else int(kernel.theta[1])
            for kernel in kernels
        ]
        return read_only(np.array(steps, np.int64))


def _values(kernel: Kernel, Z: Any, threads: Workers) -> Array:
    """All values of one kernel, in float32 where there are many of at most about one."""
    n, small = Z.shape[0], kernel.map in (gaussian, laplacian, cosine, bounded_poly)
    dtype = np.dtype(np.float32 if n > PRECISE and small else np.float64)
    if kernel.base is precomputed_base:
        return read_only(np.ascontiguousarray(Z, dtype))
    sq = sq_norms(Z)
    working = kernel.precision(dtype, sq.max(initial=0.0))
    Z = Z.astype(working, copy=False)
    out = np.empty((n, n), dtype)

    def stripe(at: slice) -> None:
        K = kernel.base(Z, Block(Z[at]), None)
        kernel.map_tile(K, sq, sq[at], *nothing(K))
        out[:, at] = K

    threads.run([partial(stripe, slice(lo, min(lo + BLOCK, n))) for lo in range(0, n, BLOCK)])
    diagonal(kernel, out, sq)  # which may refuse them
    if dtype == np.float64:  # the last bits depend on where a row stands among the others
        grid = 2.0 ** (np.frexp(np.abs(out).max(initial=0.0))[1] - 36)
        out = np.rint(out / grid) * grid
    return read_only(out)


class GramPlay:
    """A sum of kernels that plays one order of the rows of a Gram matrix, pass after pass."""

    def __init__(
        self,
        gram: Gram,
        kernels: tuple[Kernel, ...],
        rule: Rule,
        columns: int,
        Z: Any,
        n_jobs: int | None = None,
    ) -> None:
        self.gram, self.kernels, self.rule = gram, kernels, rule
        self.Z, self.n_jobs = Z, n_jobs
        self.values, n = GramValues(gram.L, gram.E, gram.steps(kernels)), len(gram.L)
        self.S = rule.scalars(len(kernels), columns)
        self.g = np.zeros((len(kernels), columns, n), gram.L.dtype)
        self.coef, self.u = np.zeros((n, columns)), np.zeros((n, len(kernels), columns))

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients."""
        return self.S.alpha

    def learn(self, Y: Array, order: Array, r: Array) -> Array:
        """Play these rounds; what was predicted in them."""
        P, rounds = np.zeros((len(order), Y.shape[1])), Rounds.of(Y, order, r)
        plugs = self.rule.plugs(Y.shape[1], self.rule.shares(self.kernels))
        learn_gram(self.values, rounds, plugs, self.S, self.g, self.coef, self.u, P)
        return P

    def model(self) -> Array:
        """Coefficients of f̄ so far, of shape (kernels, columns, rows)."""
        g = np.broadcast_to(self.coef.T, (len(self.kernels), *self.coef.T.shape))
        b = self.rule.shares(self.kernels)
        return self.rule.read_out(self.S, g, self.u.transpose(1, 2, 0), False, b)

    def scores(self, at: Array) -> Array:
        """f̄ at the rows with these numbers."""
        out = np.empty((len(at), self.coef.shape[1]))
        coef = self.model()
        size = np.abs(coef).max(initial=0.0) or 1.0  # may be larger than float32 can be
        coef = np.ascontiguousarray(coef / size, self.gram.L.dtype)
        expand_gram(self.values, coef, read_only(at), out)
        return out * size

    def snapshot(self) -> tuple[Array, Array, Scalars]:
        """What has been learned so far."""
        return self.coef.copy(), self.u.copy(), Scalars(*(x.copy() for x in self.S))

    def learner(self, kept: Any = None) -> Dual:
        """A learner that can go on with other rows, from a snapshot if one is given."""
        coef, u, S = kept or self.snapshot()
        return Dual.resume(self.rule, self.kernels, self.Z, 0, coef, u, S, self.n_jobs)
