"""The learner with coefficients of support rows: any kernel, or the sum of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .._compiled.loops import Desk, block_of, learn_dual
from .._compiled.rows import like, sq_norms
from .._compiled.threads import Workers, one_blas_thread, workers
from .._compiled.tiles import BLOCK, kernel_values, scores
from .._compiled.types import Array, Rounds, Scalars
from ..kernels import Kernel, precomputed_base
from .models import Expansion
from .rule import Chunk, Rule
from .span import Span, spans
from .storage import Growing, Store
from .support import Start, Support, diagonal

SETTLED = 16  # rounds after which f is worth keeping when its kernels change
LENGTHS = np.linspace(0.0, 1.0, 65)  # of g, after its kernels have changed


class Dual:
    """g as an expansion over support rows: any kernel, the sum of several if more than one.

    Rows are learned in blocks: g of the support so far is evaluated for the whole block by matrix
    products, then the rounds follow one by one inside the block.

    Once there are `max_support` support rows no more are added: what is learned from other rows is
    projected on the span of those (`span.py`).
    """

    def __init__(
        self,
        rule: Rule,
        kernels: tuple[Kernel, ...],
        outputs: int,
        n_jobs: int | None = None,
        max_support: int | None = None,
    ) -> None:
        self.rule, self.kernels, self.outputs, self.n_jobs = rule, kernels, outputs, n_jobs
        self.max_support = max_support
        self.S = rule.scalars(len(kernels), outputs)
        self.support = Support.none(len(kernels), outputs)
        self.f_0: Start | None = None
        self.since = np.zeros(outputs)  # Σ ω_t when the average of each output began
        self.projected: Array | None = None  # coefficients of g, per kernel, of projected rounds
        self._spans: list[Span] | None = None  # made when needed

    @classmethod
    def resume(
        cls,
        rule: Rule,
        kernels: tuple[Kernel, ...],
        X: Any,
        ids: Array,
        coef: Array,
        u: Array,
        S: Scalars,
        n_jobs: int | None,
        max_support: int | None = None,
    ) -> Dual:
        """A learner that has learned rounds with rows of X, given what these left behind."""
        self = cls(rule, kernels, coef.shape[1], n_jobs, max_support)
        used = np.flatnonzero(coef.any(axis=1) | u.any(axis=(1, 2)))
        X, ids, coef, u = X[used], ids[used], coef[used], u[used]
        self._reserve(X)
        _, points, sq = self._points(X, np.arange(len(used)), ids)
        self.support.append(points, sq, ids, coef, np.abs(coef), u)
        self.S = S
        return self

    @property
    def t(self) -> float:
        """Rounds so far."""
        return float(self.S.t[0, 0])

    def fresh(self) -> Dual:
        """A learner of the same kind that has learned nothing yet."""
        return Dual(self.rule, self.kernels, self.outputs, self.n_jobs, self.max_support)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_spans": None}  # what can be made again

    @property
    def full(self) -> bool:
        """Whether no more support rows are added."""
        return self.max_support is not None and self.support.ids.n >= self.max_support

    @property
    def g(self) -> Array:
        """Coefficients of g, of shape (kernels, support rows, outputs)."""
        coef = self.support.coef.values
        if self.projected is None:
            return np.broadcast_to(coef, (len(self.kernels), *coef.shape))
        return coef + self.projected

    def play(
        self,
        X: Any,
        Y: Array,
        order: Array,
        r: Array,
        ids: Array | None = None,
        start: Array | None = None,
    ) -> Iterator[Chunk]:
        """Learn from the rows of X in this order; `ids` are their numbers, in ascending order.

        `start` has values of a function of the rows that is added to f and stays as it is.

        A row that is a support row already (from an earlier pass over X) is not stored again. Should
        a kernel function fail on the way, or an interrupt come, the block under way is lost and no
        more.
        """
        ids = np.arange(X.shape[0]) if ids is None else ids
        place = self._places(ids)
        self._reserve(X)
        lo, hi = 0, BLOCK
        with workers(self.n_jobs) as threads:
            while lo < len(order):
                at = slice(lo, min(hi, len(order)))
                n, P = self.support.ids.n, np.zeros((at.stop - at.start, self.outputs))
                if start is not None:
                    P += start[order[at]]
                rounds = Rounds.of(Y, order[at], r[at])
                try:
                    with one_blas_thread():
                        played = self._play_block(X, ids, rounds, place, threads, P)
                except BaseException:
                    self._truncate(n)
                    raise
                if played < len(P):  # there is no room for the rows of all of them
                    hi = lo + played
                    continue
                yield Chunk(order[at], r[at], P)
                lo, hi = at.stop, at.stop + BLOCK

    def _places(self, ids: Array) -> Array:
        """Where each row is among the support rows; -1 where it is not."""
        known = self.support.ids.values
        place = np.full(len(ids), -1, np.int32 if len(ids) + len(known) < 2**31 else np.int64)
        at = np.searchsorted(ids, known).clip(max=len(ids) - 1)
        here = np.flatnonzero(ids[at] == known)
        place[at[here]] = here
        return place

    def _play_block(
        self, X: Any, ids: Array, rounds: Rounds, place: Array, threads: Workers, P: Array
    ) -> int:
        """Learn these rounds; if there is no room for their rows, only how many rounds fit."""
        m, Q, full = len(rounds.order), len(self.kernels), self.full
        A, points, a_sq = self._points(X, rounds.order, ids)
        own: list[Any] = [partial(kernel_values, self.kernels, points, A, a_sq, a_sq)]
        if full:
            own = [partial(span.features, A, a_sq) for span in self.basis(threads)]
        G, found = self._scores(A, a_sq, threads, own)
        K = np.stack([z.T @ z for z in found] if full else found[0])
        if not (np.isfinite(G).all() and np.isfinite(K).all()):
            raise ValueError(
                "the kernel's values are not finite, or so large that sums of them are not"
            )
        k_xx = np.stack([diagonal(k, K_q, a_sq, full) for k, K_q in zip(self.kernels, K)])
        if self.f_0 is not None:
            P += self.f_0.offset + G[:, self.outputs :].sum(axis=0).T
            G = np.ascontiguousarray(G[:, : self.outputs])
        S = Scalars(*(x.copy() for x in self.S))
        plugs = self.rule.plugs_of_sum(self.outputs, self.rule.shares(self.kernels))
        values, work = block_of(G, K, k_xx), Desk.of(plugs.b, self.outputs, m)
        coef, share = np.zeros((m, self.outputs)), np.zeros((m, self.outputs, len(work.b)))
        learn_dual(values, rounds, plugs, S, coef, share, P, work)
        u = share[:, :, :Q].transpose(2, 0, 1)
        if full:
            self.project(found, coef, u)
        elif (fits := self._room(rounds.order, place, coef)) < m:
            return fits
        else:
            self._keep(points, a_sq, ids, rounds.order, place, coef, u)
        self.S = S
        return m

    def _room(self, order: Array, place: Array, coef: Array) -> int:
        """How many of these rounds can be learned before there is no room for a row."""
        if self.max_support is None:
            return len(order)
        used = np.flatnonzero(coef.any(axis=1))
        rows, first = np.unique(order[used], return_index=True)
        new = np.sort(used[first[place[rows] < 0]])
        room = self.max_support - self.support.ids.n
        return len(order) if len(new) <= room else int(new[room])

    def basis(self, threads: Workers) -> list[Span]:
        """The spans of the support rows; there will be no others until kernels change."""
        if self._spans is None:
            support = self.support
            self._spans = spans(self.kernels, support.rows.rows, support.sq.values, threads)
        return self._spans

    def forget_spans(self) -> None:
        """The support rows have changed."""
        self._spans = None

    def project(self, features: list[Array], coef: Array, u: Array) -> None:
        """Add rounds with these features, coefficients -s and shares of u, all of them projected."""
        if self._spans is None or not coef.any():
            return
        support, size = self.support, np.abs(coef).sum(axis=0)
        parts = [
            span.coefficients(z @ np.hstack([coef, u_q]))
            for span, z, u_q in zip(self._spans, features, u, strict=True)
        ]
        both = np.stack(parts)  # of shape (kernels, support rows, 2 × outputs)
        more, before = both[:, :, : self.outputs], 0.0 if self.projected is None else self.projected
        moved, u = (
            support.moved.values,
            support.u.values + both[:, :, self.outputs :].swapaxes(0, 1),
        )
        share = (moved + 1e-300) / (moved + 1e-300).sum(axis=0)  # no row of its own is added
        support = support._replace(moved=support.moved.filled(moved + size * share))
        self.support, self.projected = support._replace(u=support.u.filled(u)), before + more

    def _reserve(self, X: Any) -> None:
        """Room for all rows of X, so that none has to move when there are more support rows."""
        self.support, more = self.support.grown(), X.shape[0]
        if self.max_support is not None:
            more = min(more, max(self.max_support - self.support.ids.n, 0))
        for growing in self.support[1:]:
            growing.reserve(more)
        if self.kernels[0].base is precomputed_base:
            X = np.empty((X.shape[0], 1))
        if not self.support.rows.width:
            self.support = self.support._replace(rows=Store(X))
        self.support.rows.reserve(X[:more])

    def _points(self, X: Any, order: Array, ids: Array) -> tuple[Any, Any, Array]:
        """Rows to be scored, the same as support rows, and their squared norms."""
        A = X[order]
        if self.kernels[0].base is precomputed_base:  # a support row is the number of its column
            return A, ids[order][:, None].astype(np.float64), np.zeros(len(order))
        A = like(self.support.rows.rows, A)
        return A, A, sq_norms(A)

    def _keep(
        self, points: Any, sq: Array, ids: Array, order: Array, place: Array, coef: Array, u: Array
    ) -> None:
        """Store the rows that were updated and add to their coefficients."""
        support, used = self.support, np.flatnonzero(coef.any(axis=1))
        rows, at = np.unique(order[used], return_index=True)
        new = place[rows] < 0
        rows, at = rows[new], used[at[new]]
        place[rows] = support.ids.n + np.arange(len(rows))
        zero, zeros = np.zeros((len(rows), self.outputs)), np.zeros((len(rows), *u.shape[::2]))
        support.append(points[at], sq[at], ids[rows], zero, zero, zeros)
        if self.f_0 is not None:
            self.f_0.coef.append(zeros)
        to = place[order[used]]
        np.add.at(support.coef.values, to, coef[used])
        np.add.at(support.moved.values, to, np.abs(coef[used]))
        np.add.at(support.u.values, to, u[:, used].transpose(1, 0, 2))

    def mark(self, features: Any) -> Any:
        """What `roll_back` needs to undo what is learned from rows that were not learned before."""
        f_0 = None if self.f_0 is None else self.f_0.coef.mark()
        state = (
            self.support,
            self.f_0,
            self.S,
            self.kernels,
            self.since,
            self.projected,
            self._spans,
        )
        return state, self.support.mark(), f_0

    def roll_back(self, mark: Any) -> None:
        """Be as at the time of the mark."""
        state, support, f_0 = mark
        self.support, self.f_0, self.S, self.kernels, self.since, self.projected, self._spans = (
            state
        )
        self.support.restore(support)
        if self.f_0 is not None:
            self.f_0.coef.restore(f_0)

    def _truncate(self, n: int) -> None:
        """Forget all support rows but the first n."""
        self.support.truncate(n)
        if self.f_0 is not None:
            self.f_0.coef.truncate(n)

    def forget_average(self, outputs: Array | slice = slice(None)) -> None:
        """Begin the average of these outputs anew."""
        u, since, c_sum = self.support.u.values.copy(), self.since.copy(), self.S.c_sum.copy()
        u[:, :, outputs], c_sum[:, outputs] = 0.0, 0.0
        since[outputs] = self.S.weight[0, 0]
        self.support = self.support._replace(u=self.support.u.filled(u))
        self.S, self.since = self.S._replace(c_sum=c_sum), since

    def restart(self, factor: Array, offset: Array, outputs: Array) -> None:
        """Go on from f_0 = factor · f̄ + offset, one of each per output, for some outputs."""
        model, support = self.model(), self.support
        before = self.f_0 or Start(support.u.cleared(), np.zeros(self.outputs))
        f_0, start = before.coef.values.copy(), before.offset.copy()
        with np.errstate(over="ignore"):
            new = np.clip(model.coef * factor[:, None], -1e150, 1e150).transpose(2, 0, 1)
        f_0[:, :, outputs] = new[:, :, outputs]
        start[outputs] = (factor * before.offset + offset)[outputs]
        self.f_0 = Start(support.u.filled(f_0), start)
        coef, g_norm_sq = support.coef.values.copy(), self.S.g_norm_sq.copy()
        coef[:, outputs], g_norm_sq[:, outputs] = 0.0, 0.0
        self.support = support._replace(coef=support.coef.filled(coef))
        if self.projected is not None:
            self.projected = self.projected.copy()
            self.projected[:, :, outputs] = 0.0
        self.S = self.S._replace(g_norm_sq=g_norm_sq)
        self.forget_average(outputs)

    def rescale(self, change: Callable[[Any], Any], kernels: tuple[Kernel, ...]) -> None:
        """Go on with the same support rows in another scale, and with kernels made for it.

        Each kernel's learner is then in the state it would be in had it been fed the same
        subgradients from the start: ‖g‖² and α are computed from the support. g is then shortened so
        that f is no larger at the support rows than it was: it does not jump. The average begins anew.
        f_0 keeps its coefficients, times what makes it nearest to what it was at the support rows.
        """
        self.support = self.support.grown()
        before = self._now_at_support() if self.support.ids.n and self.t >= SETTLED else None
        blank = self.rule.scalars(len(kernels), self.outputs)
        self.S = blank._replace(t=self.S.t.copy(), weight=self.S.weight.copy())
        self.since = np.full(self.outputs, self.S.weight[0, 0])
        if not self.support.ids.n:
            self.kernels, self.support = kernels, Support.none(len(kernels), self.outputs)
            return
        start = None if self.f_0 is None else self._start_at_support()
        self.kernels, self._spans = kernels, None
        rows, sq = change(self.support.rows.rows), Growing()
        store = Store(rows)
        store.append(rows)
        sq.append(sq_norms(rows))
        self.support = self.support._replace(rows=store, sq=sq, u=self.support.u.cleared())
        if start is not None:
            self._resize_start(start)
        g = self._at_support()[:, : self.outputs]
        size = np.array([np.sqrt(k.diagonal(None, sq.values, k.theta)) for k in kernels])
        self.S.g_norm_sq[:] = np.maximum(np.einsum("qjn,qnj->qj", g, self.g), 0.0)
        self.S.alpha[:] += self.rule.a * (size @ self.support.moved.values)
        if before is not None:
            self._shorten(g, before)

    def _now_at_support(self) -> Array:
        """c g, without f_0, at the support rows, of shape (outputs, support rows)."""
        c = self.rule.next_c(self.S, self.rule.shares(self.kernels))
        return np.einsum("qj,qjn->jn", c, self._at_support()[:, : self.outputs])

    def _shorten(self, g: Array, before: Array) -> None:
        """Multiply g of each output by at most 1, so that c g is about as large as these values."""
        weight = self.support.moved.values.T
        size, least, factor = (
            _size(before, weight),
            np.full(self.outputs, np.inf),
            np.ones(self.outputs),
        )
        for length in LENGTHS:
            with np.errstate(over="ignore", invalid="ignore"):
                gap = np.abs(_size(self._at_length(length, g), weight) - size)
            closer = gap < least  # False where it is not finite
            least, factor = np.where(closer, gap, least), np.where(closer, length, factor)
        self._multiply(factor)

    def shorten(self, Z: Any, loss: Callable[[Array], float]) -> None:
        """Multiply g by at most 1, so that f has the least loss at these rows."""
        self.support = self.support.grown()
        if not self.support.ids.n:
            return
        with workers(self.n_jobs) as threads, one_blas_thread():
            parts = [
                self._scores(A, sq_norms(A), threads, [])[0]
                for A in (like(self.support.rows.rows, Z[lo : lo + BLOCK]) for lo in _starts(Z))
            ]
        both = np.concatenate(parts, axis=2)
        g, start = both[:, : self.outputs], both[:, self.outputs :].sum(axis=0)
        if self.f_0 is not None:
            start = start + self.f_0.offset[:, None]
        fs = [self._at_length(length, g) for length in LENGTHS]
        fs = [f + start if self.f_0 is not None else f for f in fs]
        losses = [loss(np.ascontiguousarray(np.clip(f, -1e150, 1e150).T)) for f in fs]
        self._multiply(np.full(self.outputs, LENGTHS[int(np.argmin(losses))]))

    def _at_length(self, length: float, g: Array) -> Array:
        """c g of every output, were g so long."""
        S = self.S._replace(g_norm_sq=length**2 * self.S.g_norm_sq)
        c = self.rule.next_c(S, self.rule.shares(self.kernels))
        with np.errstate(over="ignore", invalid="ignore"):
            return length * np.einsum("qj,qjn->jn", c, g)

    def _multiply(self, factor: Array) -> None:
        """Multiply g of each output."""
        self.S = self.S._replace(g_norm_sq=self.S.g_norm_sq * factor**2)
        coef = self.support.coef.filled(self.support.coef.values * factor)
        self.support = self.support._replace(coef=coef)
        self.projected = None if self.projected is None else self.projected * factor

    def _start_at_support(self) -> Array:
        """f_0 without its offset at the support rows, of shape (outputs, support rows)."""
        return self._at_support()[:, self.outputs :].sum(axis=0)

    def _resize_start(self, before: Array) -> None:
        """Multiply f_0 so that it comes nearest to these values at the support rows."""
        assert self.f_0 is not None
        now = self._start_at_support()
        size = np.maximum(np.abs(now).max(axis=1, keepdims=True), 1e-300)
        unit = now / size  # squares of f_0 itself may overflow
        weight = self.support.moved.values.T  # so that a row counts like its copies
        square = np.maximum((weight * np.square(unit)).sum(axis=1), 1e-300)
        factor = (weight * (before / size) * unit).sum(axis=1) / square
        coef = self.f_0.coef.values * np.clip(factor, 0.0, 1e3)
        self.f_0 = self.f_0._replace(coef=self.f_0.coef.filled(coef))

    def _at_support(self) -> Array:
        """g, and f_0 after it if there is one, at the support rows."""
        rows, sq = self.support.rows.rows, self.support.sq.values
        with workers(self.n_jobs) as threads, one_blas_thread():
            parts = [
                self._scores(rows[lo : lo + BLOCK], sq[lo : lo + BLOCK], threads, [])[0]
                for lo in range(0, len(sq), BLOCK)
            ]
        return np.concatenate(parts, axis=2)

    def _scores(
        self, A: Any, a_sq: Array, threads: Workers, more: list[Any]
    ) -> tuple[Array, list[Any]]:
        """g(x), and f_0(x) after it if there is one, for the rows of A, and the results of `more`."""
        support, coef = self.support, self.g
        if self.f_0 is not None:
            both = [coef, self.f_0.coef.values.transpose(1, 0, 2)]
            coef = np.ascontiguousarray(np.concatenate(both, axis=2))
        S, s_sq = support.rows.rows, support.sq.values
        return scores(self.kernels, S, s_sq, coef, A, a_sq, threads, more)

    def model(self, last: bool = False) -> Expansion:
        """f̄, or the f to come."""
        support, kernels = self.support, self.kernels
        g = self.g.transpose(0, 2, 1)
        b, u = self.rule.shares(kernels), support.u.values.transpose(1, 2, 0)
        coef = self.rule.read_out(self.S, g, u, last, b, self.since)
        if self.f_0 is not None:
            coef = coef + self.f_0.coef.values.transpose(1, 2, 0)
        offset = None if self.f_0 is None else self.f_0.offset
        rows, sq, ids = support.rows.rows, support.sq.values, support.ids.values
        return Expansion(kernels, ids, rows, sq, coef, self.n_jobs, offset)


def _starts(Z: Any) -> range:
    """Where blocks of rows begin."""
    return range(0, Z.shape[0], BLOCK)


def _size(f: Array, weight: Array) -> Array:
    """The root mean square of every output's values."""
    return np.sqrt((weight * np.square(f)).sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-300))
