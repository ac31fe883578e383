"""Rounds on rows whose kernel values are all in memory, so that many orders and passes share them.

Two matrices are enough for a whole sum of kernels: the bounded inner products, whose powers are the
polynomials, and the values of the widest Gaussian, whose fourth powers are those of the next. A single
kernel of any kind is the first power of a matrix of its own. g of all rows is kept up to date: a round
without a gradient then costs next to nothing, and rows that are left out are scored on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import frexp, ldexp, log
from typing import Any

import numpy as np
from numba import njit
from numba.core import types
from numba.np.numpy_support import from_dtype

from .._compiled.loops import compare, line_8, tick
from .._compiled.plugs import call_loss, call_potential
from .._compiled.rows import Block, sq_norms
from .._compiled.threads import Workers
from .._compiled.tiles import BLOCK, nothing
from .._compiled.types import (
    Array,
    Scalars,
    cube,
    indices,
    loop,
    matrix,
    numbers,
    plug,
    read_only,
    real,
    scalars,
    table,
)
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

WIDTH = 512  # rows whose values are made together
PRECISE = 256  # up to so many rows values are kept in float64: it costs nothing


@njit(cache=True)
def _plain(x):
    """x without its last bits, which depend on how rows are sorted and many passes would enlarge."""
    fraction, power = frexp(x)
    return ldexp(round(fraction * 2.0**24), power - 24)


@njit(cache=True)
def _members(steps, product, e, out):
    """Values of every member from a stretch of both matrices: out[q]."""
    done, last = 0, -1
    for q in range(len(steps)):
        v, step = out[q][: len(product)], steps[q]
        if step >= 0:  # a power of the product
            for i in range(len(v)):
                v[i] = 1.0
            for _ in range(step):
                for i in range(len(v)):
                    v[i] *= product[i]
        else:  # e to the power of 4^(-step - 1), from the member before
            source = e if last < 0 else out[last][: len(e)]
            for i in range(len(v)):
                v[i] = source[i]
            for _ in range(-step - 1 - done):
                for i in range(len(v)):
                    square = v[i] * v[i]
                    v[i] = square * square
            done, last = -step - 1, q


def _square(data: Any) -> Any:
    return types.Array(from_dtype(np.dtype(data)), 2, "C", readonly=True)


def _learn_type(data: Any) -> Any:
    state = types.Array(from_dtype(np.dtype(data)), 3, "C")
    return types.void(
        _square(data), _square(data), indices, table, indices, numbers, plug, numbers, types.int64,
        plug, real, numbers, real, scalars, state, matrix, cube, matrix,
    )  # fmt: skip


@loop(_learn_type, fastmath={"contract"})
def learn_gram(
    L, E, steps, Y, order, r, grad, theta, coupled, potential, a, b, power, S, G, coef, u, P
):
    """Play rounds. G[q, j] holds g of kernel q and column j at every row; line numbers as elsewhere."""
    n, Q, J = len(L), len(steps), Y.shape[1]
    values = np.empty((Q, WIDTH), L.dtype)
    k_xx = np.empty(Q)
    s, z = np.empty((2, J))
    for k in range(len(order)):
        i = order[k]
        t = S.t[0, 0]
        omega = tick(S, r[k], power)
        moved = False
        for q in range(Q):
            k_xx[q] = L[i, i] ** steps[q] if steps[q] >= 0 else 1.0
        for j in range(J):
            P[k, j] = 0.0
            for q in range(Q):
                c = call_potential(potential, S.g_norm_sq[q, j], S.alpha[q, j], t, b[q])
                P[k, j] += c * G[q, j, i]  # lines 4-6
                S.c_sum[q, j] += omega * c
        if coupled:
            compare(P[k], z)
        for j in range(J):
            p = z[j] if coupled else P[k, j]
            s[j] = r[k] * call_loss(grad, Y[i, j], p, theta[j])  # line 7
            if s[j] != 0.0:
                moved = True
                coef[i, j] -= s[j]
                for q in range(Q):
                    u[i, q, j] -= s[j] * S.c_sum[q, j]
                    line_8(S, q, j, s[j], float(G[q, j, i]), k_xx[q], a)
        if moved:
            for lo in range(0, n, WIDTH):  # line 8, at every row
                m = min(WIDTH, n - lo)
                _members(steps, L[i, lo : lo + m], E[i, lo : lo + m], values)
                for j in range(J):
                    if s[j] != 0.0:
                        step = L.dtype.type(-s[j])
                        for q in range(Q):
                            g, v = G[q, j, lo : lo + m], values[q, :m]
                            for x in range(len(g)):
                                g[x] += step * v[x]
    for q in range(Q):  # drift of ‖g‖² ends here: it is Σ coef g
        for j in range(J):
            total = 0.0
            for x in range(n):
                total += coef[x, j] * G[q, j, x]
            S.g_norm_sq[q, j] = _plain(max(total, 0.0))


@loop(
    lambda data: types.void(
        _square(data),
        _square(data),
        indices,
        types.Array(from_dtype(np.dtype(data)), 3, "C"),
        indices,
        matrix,
    ),
    fastmath={"contract", "reassoc"},
)
def expand_gram(L, E, steps, coef, at, out):
    """out[k, j] = Σ_q Σ_n coef[q, j, n] k_q(n, at[k])."""
    n, Q = len(L), len(steps)
    values = np.empty((Q, WIDTH), L.dtype)
    out[:] = 0.0
    for k in range(len(at)):
        for lo in range(0, n, WIDTH):
            m = min(WIDTH, n - lo)
            _members(steps, L[at[k], lo : lo + m], E[at[k], lo : lo + m], values)
            for j in range(out.shape[1]):
                for q in range(Q):
                    c, v = coef[q, j, lo : lo + m], values[q, :m]
                    total = L.dtype.type(0.0)
                    for x in range(len(c)):
                        total += c[x] * v[x]
                    out[k, j] += total


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
        """How the loops make the values of each kernel: see `_members`."""
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
        self.steps, n = gram.steps(kernels), len(gram.L)
        self.S = rule.scalars(len(kernels), columns)
        self.g = np.zeros((len(kernels), columns, n), gram.L.dtype)
        self.coef, self.u = np.zeros((n, columns)), np.zeros((n, len(kernels), columns))

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients."""
        return self.S.alpha

    def learn(self, Y: Array, order: Array, r: Array) -> Array:
        """Play these rounds; what was predicted in them."""
        rule, P = self.rule, np.empty((len(order), Y.shape[1]))
        learn_gram(
            self.gram.L, self.gram.E, self.steps, Y, order, r, rule.grad, rule.theta(Y.shape[1]),
            rule.coupled, rule.c, rule.a, rule.shares(self.kernels), rule.power,
            self.S, self.g, self.coef, self.u, P,
        )  # fmt: skip
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
        expand_gram(self.gram.L, self.gram.E, self.steps, coef, read_only(at), out)
        return out * size

    def snapshot(self) -> tuple[Array, Array, Scalars]:
        """What has been learned so far."""
        return self.coef.copy(), self.u.copy(), Scalars(*(x.copy() for x in self.S))

    def learner(self, kept: Any = None) -> Dual:
        """A learner that can go on with other rows, from a snapshot if one is given."""
        coef, u, S = kept or self.snapshot()
        return Dual.resume(self.rule, self.kernels, self.Z, 0, coef, u, S, self.n_jobs)
