"""One event at a time: linear learners at the price of a function call, and kernel learners."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf, isfinite
from typing import Any

import numpy as np

from .._compiled import events as _events
from .._compiled.cache import INTERPRETED
from .._compiled.coordinates import FIELDS
from .._compiled.events import (
    ALPHA,
    BIAS,
    COLUMNS,
    END,
    G_NORM,
    GRAD,
    GROWTH,
    HEAD,
    LOSS,
    LOSS_SUM,
    NEWEST,
    POTENTIAL,
    POWER,
    S_SUM,
    SIZE,
    TARGET,
    THETA,
    VALUE,
    A,
    B,
    L,
)
from .._compiled.loops import Desk, block_of, learn_dual
from .._compiled.plugs import address
from .._compiled.rows import Block, manhattan, sq_norms
from .._compiled.threads import one_blas_thread, workers
from .._compiled.tiles import nothing
from .._compiled.types import (
    MAX_NORM_SQ,
    MAX_TARGET,
    Array,
    Rounds,
    Scalars,
    read_only,
)
from ..kernels import Kernel
from ..losses import Loss
from .coordinates import Coordinates
from .dual import Dual
from .primal import Primal
from .rule import Rule
from .storage import Store
from .support import diagonal

REAL = np.dtype(np.float64)


class LinearEvents:
    """A linear learner and the vectors it lives in.

    With `center` events are taken relative to their mean so far; `bias` is a constant beside them.
    """

    def __init__(
        self,
        rule: Rule,
        features: int,
        per_coordinate: bool,
        x_max: float,
        center: bool = False,
        bias: float = 0.0,
    ) -> None:
        self._made_with = rule, features, per_coordinate, x_max, center, bias
        self._loss = rule.loss
        size = (features + 1) * (FIELDS if per_coordinate else 2)
        self.features, self.floats = features, np.zeros(HEAD + size + 2 * features)
        self.integers = np.zeros(COLUMNS + features, object if INTERPRETED else np.int64)
        self.integers[COLUMNS:] = np.arange(features)
        learn = _events.learn_coordinates if per_coordinate else _events.learn_primal
        predict = _events.predict_coordinates if per_coordinate else _events.predict_primal
        # f_t(x), or infinity where the event is refused; `step` learns it, too
        self.step = partial(learn.compiled(REAL), self.floats, self.integers)
        self.predict = partial(predict.compiled(REAL), self.floats, self.integers)
        self._per_coordinate = per_coordinate
        self.learner = self._learner(rule, features, per_coordinate, x_max, bias)
        self.floats[[BIAS, NEWEST]] = bias, 1.0 if center else 0.0
        self.floats[[SIZE, A, B, L, POWER]] = 1.0, rule.a, rule.b, rule.loss.L, rule.power
        self.integers[END] = features
        plugs = rule.plugs_per_coordinate(1) if per_coordinate else rule.plugs(1)
        self.integers[[POTENTIAL, GROWTH]] = plugs.potential, plugs.growth
        self.set_loss(rule.loss)

    def _learner(
        self, rule: Rule, features: int, per_coordinate: bool, x_max: float, bias: float
    ) -> Primal | Coordinates:
        """A learner whose arrays are views of the vector of floats."""
        Z, body = self.floats, self.floats[HEAD : len(self.floats) - 2 * features]
        learner: Primal | Coordinates
        if per_coordinate:
            learner = Coordinates(rule, features, 1, bias, x_max)
            body[:] = learner.state.ravel()
            learner.state = body.reshape(1, features + 1, FIELDS)
        else:
            learner = Primal(rule, features, 1, bias)
            learner.g, learner.u = body.reshape(2, 1, features + 1)
        Z[ALPHA] = learner.S.alpha[0, 0]
        learner.S = Scalars(*(Z[i : i + 1].reshape(1, 1) for i in range(G_NORM, TARGET)))
        return learner

    def __reduce__(self) -> Any:
        return _restore, (self._made_with, self._loss, self.floats)

    def set_loss(self, loss: Loss) -> None:
        """Suffer this loss from now on."""
        self.integers[GRAD], self.integers[VALUE] = address(loss.grad, 3), address(loss.value, 3)
        self.floats[THETA], self._loss = loss.theta, loss

    def learn_many(self, X: Array, y: Array) -> Array:
        """Learn rounds one after the other; what was predicted in each, before it was learned."""
        P = np.empty(len(y))
        many = _events.learn_coordinates_many if self._per_coordinate else _events.learn_primal_many
        many.compiled(REAL)(self.floats, self.integers, read_only(X), read_only(y), P)
        return P

    @property
    def suffered(self) -> float:
        """The loss of the last round."""
        return self.floats.item(LOSS)

    def decide(self, X: Array) -> Array:
        """f̄ at the rows of X, relative to the mean of all events."""
        d = self.features
        mean = self.floats[len(self.floats) - 2 * d : len(self.floats) - d]
        return self.learner.model().decide(X - mean)[:, 0]

    @property
    def loss_sum(self) -> float:
        """Σ ℓ_t(f_t(x_t))."""
        return float(self.floats[LOSS_SUM])

    @property
    def s_sum(self) -> float:
        """Σ |s_t|."""
        return float(self.floats[S_SUM])


def _restore(made_with: tuple[Any, ...], loss: Loss, floats: Array) -> LinearEvents:
    """Addresses and views do not travel; they are made anew."""
    events = LinearEvents(*made_with)
    events.floats[:] = floats
    events.set_loss(loss)
    return events


class KernelEvents:
    """A kernel learner with the same outside; its rounds cost a kernel value for each support row.

    One row needs no tiles and no threads: its kernel values are one product and one map.
    """

    def __init__(
        self, rule: Rule, features: int, kernel: Kernel, max_support: int | None = None
    ) -> None:
        self.learner, self.features = Dual(rule, (kernel,), 1, 1, max_support), features
        rows = Store(np.empty((0, features)))
        self.learner.support = self.learner.support._replace(rows=rows)
        self.rule, self.kernel, self.loss_sum, self.s_sum = rule, kernel, 0.0, 0.0
        self.suffered = 0.0
        self._round = read_only(np.zeros(1, np.int64)), read_only(np.ones(1))

    def _refused(self, x: Array, y: float) -> bool:
        if not isinstance(x, np.ndarray) or x.dtype != REAL or x.ndim != 1:
            raise TypeError("not a vector of float64")
        return len(x) != self.features or not x @ x <= MAX_NORM_SQ or not abs(y) <= MAX_TARGET

    def set_loss(self, loss: Loss) -> None:
        """Suffer this loss from now on."""
        self.learner.rule = replace(self.rule, loss=replace(loss, L=self.rule.loss.L))

    def predict(self, x: Array) -> float:
        """f_t(x), or infinity where x is refused."""
        if self._refused(x, 0.0):
            return inf
        rule, learner = self.learner.rule, self.learner
        c = rule.next_c(learner.S, rule.shares(learner.kernels))
        return float(c[0, 0] * self._g(x[None], sq_norms(x[None])))

    def step(self, x: Array, y: float) -> float:
        """Learn one round; returns f_t(x), or infinity where x or y is refused."""
        if self._refused(x, y):
            return inf
        p = self._play(x[None], y)
        loss = self.learner.rule.loss
        self.suffered = loss.value(y, p, loss.theta)
        self.loss_sum += self.suffered
        self.s_sum += abs(loss.grad(y, p, loss.theta))
        return p

    def decide(self, X: Array) -> Array:
        """f̄ at the rows of X."""
        return self.learner.model().decide(X)[:, 0]

    def learn_many(self, X: Array, y: Array) -> Array:
        """Learn rounds one after the other; what was predicted in each, before it was learned."""
        return np.array([self.step(*event) for event in zip(X, y.tolist(), strict=True)])

    def _values(self, rows: Array, sq: Array, X: Array, x_sq: Array) -> Array:
        """k(s, x) for the rows s and the only row x of X, as a row."""
        base = _distances if self.kernel.base is manhattan else self.kernel.base
        K = base(rows, Block(X), None).reshape(1, -1)
        self.kernel.map_tile(K, x_sq, sq, *nothing(K))
        return K

    def _g(self, X: Array, x_sq: Array) -> float:
        """g(x) of the only row x of X."""
        learner = self.learner
        support = learner.support
        if not support.ids.n:
            return 0.0
        K = self._values(support.rows.rows, support.sq.values, X, x_sq)
        return float(K[0] @ learner.g[0, :, 0])

    def _play(self, X: Array, y: float) -> float:
        """A round with the only row of X, as `Dual` learns it; its prediction."""
        rule, learner, x_sq = self.learner.rule, self.learner, sq_norms(X)
        full = learner.full
        if full:
            with workers(1) as threads, one_blas_thread():
                features = [span.features(X, x_sq) for span in learner.basis(threads)]
        g_x = self._g(X, x_sq)
        K = features[0].T @ features[0] if full else self._values(X, x_sq, X, x_sq)
        if not isfinite(g_x):
            raise ValueError(
                "the kernel's values are not finite, or so large that sums of them are not"
            )
        k_xx = diagonal(self.kernel, K, x_sq, full)
        S = Scalars(*(scalar.copy() for scalar in learner.S))
        rounds = Rounds.of(np.array([[y]], np.float64), *self._round)
        plugs = rule.plugs_of_sum(1, rule.shares(learner.kernels))
        values, work = (
            block_of(np.full((1, 1, 1), g_x), K[None], k_xx[None]),
            Desk.of(plugs.b, 1, 1),
        )
        coef, share, P = np.zeros((1, 1)), np.zeros((1, 1, len(work.b))), np.zeros((1, 1))
        learn_dual(values, rounds, plugs, S, coef, share, P, work)
        u = share[:, :, :1]
        self._keep(X, x_sq, coef, u, S, features if full else None)
        return float(P[0, 0])

    def _keep(
        self, X: Array, x_sq: Array, coef: Array, u: Array, S: Scalars, features: Any
    ) -> None:
        """Store the row if it was updated, or its projection; an interrupt leaves all as it was."""
        learner, mark = self.learner, self.learner.mark(slice(None))
        number = learner.S.t[0].astype(np.int64)
        try:
            if coef[0, 0] and features is not None:
                learner.project(features, coef, u)
            elif coef[0, 0]:
                learner.support.append(X, x_sq, number, coef, np.abs(coef), u)
            learner.S = S
        except BaseException:
            learner.roll_back(mark)
            raise


def _distances(S: Array, block: Block, out: Array | None) -> Array:
    """`manhattan` for one row, without the checks that would take longer than the sums."""
    return np.abs(S - block.rows).sum(axis=1)
