"""The learner with a number a support row: any kernel, or the sum of several."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._compiled import loops as _loops
from .._compiled.rows import like, sq_norms
from .._compiled.threads import Workers, one_blas_thread, workers
from .._compiled.tiles import BLOCK, kernel_values, scores
from .._compiled.types import Array, BlockValues, Rounds, Scalars
from ..kernels import Kernel, precomputed_base
from .models import Expansion
from .rule import Chunks, Rule, chunks
from .storage import Growing, Store

MAX_VALUE = 1e140  # of a kernel; more could overflow ‖g‖²


class Dual:
    """g as an expansion over support rows: any kernel, the sum of several if more than one.

    Rows are played in blocks: g of the support so far is evaluated for the whole block by matrix
    products, then the rounds follow one by one inside the block.
    """

    def __init__(
        self, rule: Rule, kernels: tuple[Kernel, ...], columns: int, n_jobs: int | None = None
    ) -> None:
        self.rule, self.kernels, self.n_jobs = rule, kernels, n_jobs
        self.columns = columns
        self.S = rule.scalars(len(kernels), columns)
        self.store = Store(np.empty((0, 0)))
        self.sq, self.ids = Growing(), Growing((), np.int64)
        self.coef, self.u = Growing((columns,)), Growing((len(kernels), columns))
        self.moved = Growing((columns,))  # Σ|s|, where coef is -Σs

    @classmethod
    def resume(
        cls,
        rule: Rule,
        kernels: tuple[Kernel, ...],
        X: Any,
        first: int,
        coef: Array,
        u: Array,
        S: Scalars,
        n_jobs: int | None,
    ) -> Dual:
        """A learner that has played rounds with rows of X, given what these left behind."""
        self = cls(rule, kernels, coef.shape[1], n_jobs)
        self._reserve(X)
        used = np.flatnonzero(coef.any(axis=1) | u.any(axis=(1, 2)))
        _, points, sq = self._points(X, used, first)
        for growing, values in (
            (self.store, points), (self.sq, sq), (self.ids, first + used),
            (self.coef, coef[used]), (self.u, u[used]), (self.moved, np.abs(coef[used])),
        ):  # fmt: skip
            growing.append(values)
        self.S = S
        return self

    def play(self, X: Any, Y: Array, order: Array, r: Array, first: int = 0) -> Chunks:
        """Learn from the rows of X in this order; the rows of X have ids first, first + 1, …

        A row that is a support row already (from an earlier pass over X) is not stored again.
        Should a kernel function fail on the way, or an interrupt come, the block under way is lost
        and no more.
        """
        place = np.full(X.shape[0], -1, np.int32 if X.shape[0] + self.ids.n < 2**31 else np.int64)
        ids = self.ids.values
        known = np.flatnonzero((ids >= first) & (ids < first + X.shape[0]))
        place[ids[known] - first] = known
        self._reserve(X)
        with workers(self.n_jobs) as threads:
            for at, P in chunks(order, self.columns, BLOCK):
                n = self.ids.n
                try:
                    with one_blas_thread():
                        self._play_block(X, Y, order[at], r[at], P, place, first, threads)
                except BaseException:
                    self._truncate(n)
                    raise
                yield at, P

    def _play_block(
        self,
        X: Any,
        Y: Array,
        order: Array,
        r: Array,
        P: Array,
        place: Array,
        first: int,
        threads: Workers,
    ) -> None:
        m, Q = len(order), len(self.kernels)
        A, points, a_sq = self._points(X, order, first)
        own = partial(kernel_values, self.kernels, points, A, a_sq, a_sq)
        G, (own_values,) = self._scores(A, a_sq, threads, [own])
        K = np.stack(own_values)
        if not np.isfinite(G).all():
            raise ValueError(
                "the kernel's values are not finite, or so large that sums of them are not"
            )
        k_xx = np.stack([diagonal(k, K_q, a_sq) for k, K_q in zip(self.kernels, K)])
        coef, u = np.zeros((m, self.columns)), np.zeros((Q, m, self.columns))
        S = Scalars(*(x.copy() for x in self.S))
        plugs = self.rule.plugs(self.columns, self.rule.shares(self.kernels))
        values, rounds = BlockValues(G, K, k_xx), Rounds.of(Y, order, r)
        _loops.learn_dual(values, rounds, plugs, S, coef, u, P)
        self._keep(points, a_sq, order, place, first, coef, u)
        self.S = S

    def _reserve(self, X: Any) -> None:
        """Room for all rows of X, so that none has to move when there are more support rows."""
        for growing in (self.sq, self.ids, self.coef, self.u, self.moved):
            growing.reserve(X.shape[0])
        if self.kernels[0].base is precomputed_base:
            X = np.empty((X.shape[0], 1))
        if not self.store.width:
            self.store = Store(X)
        self.store.reserve(X)

    def _points(self, X: Any, order: Array, first: int) -> tuple[Any, Any, Array]:
        """Rows to be scored, the same as support rows, and their squared norms."""
        A = X[order]
        if self.kernels[0].base is precomputed_base:  # a support row is the number of its column
            return A, (first + order)[:, None].astype(np.float64), np.zeros(len(order))
        A = like(self.store.rows, A)
        return A, A, sq_norms(A)

    def _keep(
        self, points: Any, sq: Array, order: Array, place: Array, first: int, coef: Array, u: Array
    ) -> None:
        """Store the rows that were updated and add to their coefficients."""
        used = np.flatnonzero(coef.any(axis=1))
        rows, at = np.unique(order[used], return_index=True)
        new = place[rows] < 0
        rows, at = rows[new], used[at[new]]
        place[rows] = self.ids.n + np.arange(len(rows))
        self.store.append(points[at])
        self.sq.append(sq[at])
        self.ids.append(first + rows)
        self.coef.append(np.zeros((len(rows), self.columns)))
        self.moved.append(np.zeros((len(rows), self.columns)))
        self.u.append(np.zeros((len(rows), len(self.kernels), self.columns)))
        np.add.at(self.coef.values, place[order[used]], coef[used])
        np.add.at(self.moved.values, place[order[used]], np.abs(coef[used]))
        np.add.at(self.u.values, place[order[used]], u[:, used].transpose(1, 0, 2))

    def mark(self) -> Any:
        """What `roll_back` needs to undo all that comes after."""
        measured = self.kernels, self.store, self.sq
        sums = [growing.values.copy() for growing in (self.coef, self.u, self.moved)]
        return self.ids.n, sums, self.S, measured

    def roll_back(self, mark: Any) -> bool:
        """Be as at the time of the mark."""
        n, sums, self.S, (self.kernels, self.store, self.sq) = mark
        self._truncate(n)
        self.coef.values[:], self.u.values[:], self.moved.values[:] = sums
        return True

    def restart(self) -> None:
        """Begin the average anew: what is predicted has another unit from now on."""
        zero = np.zeros_like(self.S.c_sum)
        self.S = self.S._replace(c_sum=zero, weight=np.zeros((1, 1)))
        self.u.values[:] = 0.0

    def remeasure(self, rows: Any, kernels: tuple[Kernel, ...]) -> None:
        """Go on with the same support rows in other units, and with kernels made for these.

        Each kernel's learner is then in the state it would be in had it been fed the same
        subgradients from the start: ‖g‖² and α are computed from the support. The average begins anew.
        """
        self.kernels = kernels
        if not self.ids.n:
            self.S = self.rule.scalars(len(kernels), self.columns)._replace(t=self.S.t.copy())
            self.u = Growing((len(kernels), self.columns))
            return
        self.store, self.sq = Store(rows), Growing()
        self.store.append(rows)
        self.sq.append(sq_norms(rows))
        coef = self.coef.values
        with workers(self.n_jobs) as threads, one_blas_thread():
            parts = [
                self._scores(rows[lo : lo + BLOCK], self.sq.values[lo : lo + BLOCK], threads, [])[0]
                for lo in range(0, self.ids.n, BLOCK)
            ]
        g = np.concatenate(parts, axis=2) if parts else np.zeros((len(kernels), self.columns, 0))
        size = np.array([np.sqrt(k.diagonal(None, self.sq.values, k.theta)) for k in kernels])
        self.S = self.rule.scalars(len(kernels), self.columns)._replace(t=self.S.t.copy())
        self.S.g_norm_sq[:] = np.maximum(np.einsum("qjn,nj->qj", g, coef), 0.0)
        self.S.alpha[:] += self.rule.a * (size @ self.moved.values)
        self.u.values[:] = 0.0

    def _truncate(self, n: int) -> None:
        """Forget all support rows but the first n."""
        for growing in (self.store, self.sq, self.ids, self.coef, self.u, self.moved):
            growing.truncate(n)

    def _scores(
        self, A: Any, a_sq: Array, threads: Workers, more: list[Any]
    ) -> tuple[Array, list[Any]]:
        """g(x) for the rows x of A, of shape (kernels, columns, rows), and what else was asked."""
        coef = np.broadcast_to(self.coef.values, (len(self.kernels), *self.coef.values.shape))
        S, s_sq = self.store.rows, self.sq.values
        return scores(self.kernels, S, s_sq, coef, A, a_sq, threads, more)

    def model(self, last: bool = False) -> Expansion:
        """f̄, or the f to come."""
        g = np.broadcast_to(self.coef.values.T, (len(self.kernels), self.columns, self.ids.n))
        b = self.rule.shares(self.kernels)
        coef = self.rule.read_out(self.S, g, self.u.values.transpose(1, 2, 0), last, b)
        rows = self.store.rows
        return Expansion(self.kernels, self.ids.values, rows, self.sq.values, coef, self.n_jobs)


def diagonal(kernel: Kernel, K: Array, sq: Array) -> Array:
    """k(x, x) of rows whose values among each other leave room for arithmetic."""
    if not float(np.abs(K).max(initial=0.0)) <= MAX_VALUE:
        raise ValueError(f"kernel values may be at most {MAX_VALUE}; got {np.abs(K).max():g}")
    k_xx = kernel.diagonal(K, sq, kernel.theta)
    if not (k_xx >= 0).all():
        raise ValueError(f"a kernel needs k(x, x) >= 0; got {k_xx.min()}")
    return k_xx
