"""One event at a time: linear learners at the price of a function call, and kernel learners.

Unpacking a dozen arrays takes ten times as long as a round with twenty features. So all that a round
needs lies in one vector of floats and one of integers; the compiled functions here lay views over
them and play a single round with the very loops that play whole chunks. A refused event changes
nothing and returns infinity, which no loss and no score ever is; who asked finds out why.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite
from typing import Any

import numpy as np
from numba import njit
from numba.core import types

from .._compiled import loops as _loops
from .._compiled.plugs import INTERPRETED, address, call_loss, call_potential
from .._compiled.rows import Block, manhattan, sq_norms, square
from .._compiled.tiles import nothing
from .._compiled.types import Array, Rows, Scalars, loop, numbers, read_only, real, vector
from .._data.validation import MAX_NORM_SQ, MAX_TARGET
from ..kernels import Kernel
from ..losses import Loss
from . import Coordinates, Dual, Primal, Rule, diagonal
from .storage import Store

# The head of the vector of floats: the scalars, then y, r and p of the round, then the rule's numbers.
(
    G_NORM, ALPHA, C_SUM, T, WEIGHT, TARGET, SIZE, SCORE, A, B, L, POWER, THETA, LOSS_SUM, S_SUM, HEAD,
) = range(16)  # fmt: skip
# The vector of integers: addresses of the plugs, how b_t grows, the row's number, where it begins
# and ends, and its columns.
GRAD, VALUE, POTENTIAL, GROWTH, ORDER, BEGIN, END, COLUMNS = range(8)
UNCOUPLED = 0  # an event has one column

REAL = np.dtype(np.float64)

_learn_primal = njit(_loops.learn_primal.py_func)
_learn_coordinates = njit(_loops.learn_coordinates.py_func)


@njit(inline="always")
def _cell(state, i):
    return state[i : i + 1].reshape(1, 1)


@njit(inline="always")
def _scalars(Z):
    cells = _cell(Z, G_NORM), _cell(Z, ALPHA), _cell(Z, C_SUM), _cell(Z, T), _cell(Z, WEIGHT)
    return Scalars(cells[0], cells[1], cells[2], cells[3], cells[4])


@njit(cache=True)
def _refused(x, features, y):
    """Whether anything about the event is not finite, too large, or of the wrong length."""
    return len(x) != features or not square(x) <= MAX_NORM_SQ or not abs(y) <= MAX_TARGET


@njit(inline="always")
def _suffer(Z, N, y):
    """The loss of the round just played, which is added to the sums."""
    value = call_loss(N[VALUE], y, Z[SCORE], Z[THETA])
    Z[LOSS_SUM] += value
    Z[S_SUM] += abs(call_loss(N[GRAD], y, Z[SCORE], Z[THETA]))
    return value


def _learn_type(dtype):
    return real(vector, types.int64[::1], numbers, real)


def _predict_type(dtype):
    return real(vector, types.int64[::1], numbers)


@loop(_learn_type)
def learn_primal(Z, N, x, y):
    """A round with g as a vector; returns the loss suffered, or infinity where x or y is refused."""
    d = N[END]
    if _refused(x, d, y):
        return inf
    Z[TARGET] = y
    S, X = _scalars(Z), Rows(N[BEGIN:COLUMNS], N[COLUMNS:], x, 0)
    g, u = Z[HEAD : HEAD + d + 1].reshape(1, d + 1), Z[HEAD + d + 1 :].reshape(1, d + 1)
    _learn_primal(
        X, _cell(Z, TARGET), N[ORDER:BEGIN], Z[SIZE:SCORE], N[GRAD], Z[THETA:LOSS_SUM],
        UNCOUPLED, N[POTENTIAL], Z[A], Z[B], Z[POWER], 0.0, g, u, S, _cell(Z, SCORE),
    )  # fmt: skip
    return _suffer(Z, N, y)


@loop(_predict_type)
def predict_primal(Z, N, x):
    """f_t(x) = c_t ⟨g, x⟩; infinity where x is refused."""
    if _refused(x, N[END], 0.0):
        return inf
    c = call_potential(N[POTENTIAL], Z[G_NORM], Z[ALPHA], Z[T], Z[B])
    total = 0.0
    for i in range(len(x)):
        total += Z[HEAD + i] * x[i]
    return c * total


@loop(_learn_type)
def learn_coordinates(Z, N, x, y):
    """A round with one learner a coordinate; returns as `learn_primal` does."""
    d = N[END]
    if _refused(x, d, y):
        return inf
    Z[TARGET] = y
    S, X = _scalars(Z), Rows(N[BEGIN:COLUMNS], N[COLUMNS:], x, 0)
    state = Z[HEAD:].reshape(1, d + 1, _loops.FIELDS)
    _learn_coordinates(
        X, _cell(Z, TARGET), N[ORDER:BEGIN], Z[SIZE:SCORE], N[GRAD], Z[THETA:LOSS_SUM],
        UNCOUPLED, N[GROWTH], Z[A], Z[B], Z[L], Z[POWER], 0.0, state, S, _cell(Z, SCORE),
    )  # fmt: skip
    return _suffer(Z, N, y)


@loop(_predict_type)
def predict_coordinates(Z, N, x):
    """f_t(x), with the unit of a coordinate as x would make it; infinity where x is refused."""
    d = N[END]
    if _refused(x, d, 0.0):
        return inf
    state, total = Z[HEAD:].reshape(d + 1, _loops.FIELDS), 0.0
    for f in range(d):
        if abs(x[f]) <= state[f, _loops.M]:
            total += state[f, _loops.W] * x[f]
        else:
            own = state[f : f + 1].copy()
            _loops.set_unit(own, 0, x[f], Z[WEIGHT], N[GROWTH], Z[A], Z[B], Z[L])
            total += own[0, _loops.W] * x[f]
    return total


class LinearEvents:
    """A linear learner and the vectors it lives in."""

    def __init__(self, rule: Rule, features: int, per_coordinate: bool, x_max: float) -> None:
        self._made_with, self._loss = (rule, features, per_coordinate, x_max), rule.loss
        size = (features + 1) * (_loops.FIELDS if per_coordinate else 2)
        self.features, self.floats = features, np.zeros(HEAD + size)
        self.integers = np.zeros(COLUMNS + features, object if INTERPRETED else np.int64)
        self.integers[COLUMNS:] = np.arange(features)
        learn = learn_coordinates if per_coordinate else learn_primal
        predict = predict_coordinates if per_coordinate else predict_primal
        self.learn_one, self.predict_one = learn.compiled(REAL), predict.compiled(REAL)
        self.learner = self._learner(rule, features, per_coordinate, x_max)
        self.floats[[SIZE, A, B, L, POWER]] = 1.0, rule.a, rule.b, rule.loss.L, rule.power
        self.integers[END] = features
        if per_coordinate:
            self.integers[GROWTH] = rule.growth
        else:
            self.integers[POTENTIAL] = rule.c
        self.set_loss(rule.loss)

    def _learner(
        self, rule: Rule, features: int, per_coordinate: bool, x_max: float
    ) -> Primal | Coordinates:
        """A learner whose arrays are views of the vector of floats."""
        Z, body = self.floats, self.floats[HEAD:]
        learner: Primal | Coordinates
        if per_coordinate:
            learner = Coordinates(rule, features, 1, x_max=x_max)
            body[:] = learner.state.ravel()
            learner.state = body.reshape(1, features + 1, _loops.FIELDS)
        else:
            learner = Primal(rule, features, 1)
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

    def predict(self, x: Array) -> float:
        """f_t(x), or infinity where x is refused."""
        return self.predict_one(self.floats, self.integers, x)

    def learn(self, x: Array, y: float) -> float:
        """Play a round; returns the loss suffered, or infinity where x or y is refused."""
        return self.learn_one(self.floats, self.integers, x, y)

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

    def __init__(self, rule: Rule, features: int, kernel: Kernel) -> None:
        self.learner, self.features = Dual(rule, (kernel,), 1, n_jobs=1), features
        self.learner.store = Store(np.empty((0, features)))
        self.rule, self.kernel, self.loss_sum, self.s_sum = rule, kernel, 0.0, 0.0
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

    def learn(self, x: Array, y: float) -> float:
        """Play a round; returns the loss suffered, or infinity where x or y is refused."""
        if self._refused(x, y):
            return inf
        p = self._play(x[None], y)
        loss = self.learner.rule.loss
        self.loss_sum += (value := loss.value(y, p, loss.theta))
        self.s_sum += abs(loss.grad(y, p, loss.theta))
        return value

    def decide(self, X: Array) -> Array:
        """f̄ at the rows of X."""
        return self.learner.model().decide(X)[:, 0]

    def _values(self, rows: Array, sq: Array, X: Array, x_sq: Array) -> Array:
        """k(s, x) for the rows s and the only row x of X, as a row."""
        base = _distances if self.kernel.base is manhattan else self.kernel.base
        K = base(rows, Block(X), None).reshape(1, -1)
        self.kernel.map_tile(K, x_sq, sq, *nothing(K))
        return K

    def _g(self, X: Array, x_sq: Array) -> float:
        """g(x) of the only row x of X."""
        learner = self.learner
        if not learner.ids.n:
            return 0.0
        K = self._values(learner.store.rows, learner.sq.values, X, x_sq)
        return float(K[0] @ learner.coef.values[:, 0])

    def _play(self, X: Array, y: float) -> float:
        """A round with the only row of X, as `Dual` plays it; its prediction."""
        rule, learner, x_sq = self.learner.rule, self.learner, sq_norms(X)
        g_x, K = self._g(X, x_sq), self._values(X, x_sq, X, x_sq)
        if not isfinite(g_x):
            raise ValueError(
                "the kernel's values are not finite, or so large that sums of them are not"
            )
        k_xx = diagonal(self.kernel, K, x_sq)
        coef, u, P = np.zeros((1, 1)), np.zeros((1, 1, 1)), np.zeros((1, 1))
        S = Scalars(*(scalar.copy() for scalar in learner.S))
        _loops.learn_dual(
            np.full((1, 1, 1), g_x), K[None], k_xx[None], read_only(np.array([[y]], np.float64)),
            *self._round, rule.grad, rule.theta(1), rule.coupled, rule.c, rule.a,
            rule.shares(learner.kernels), rule.power, S, P, coef, u,
        )  # fmt: skip
        self._keep(X, x_sq, coef, u, S)
        return float(P[0, 0])

    def _keep(self, X: Array, x_sq: Array, coef: Array, u: Array, S: Scalars) -> None:
        """Store the row if it was updated; an interrupt leaves all as it was."""
        learner, n = self.learner, self.learner.ids.n
        number = learner.S.t[0].astype(np.int64)
        try:
            if coef[0, 0]:
                for growing, values in (
                    (learner.store, X), (learner.sq, x_sq), (learner.ids, number),
                    (learner.coef, coef), (learner.u, u), (learner.moved, np.abs(coef)),
                ):  # fmt: skip
                    growing.append(values)
            learner.S = S
        except BaseException:
            learner._truncate(n)
            raise


def _distances(S: Array, block: Block, out: Array | None) -> Array:
    """`manhattan` for one row, without the checks that would take longer than the sums."""
    return np.abs(S - block.rows).sum(axis=1)
