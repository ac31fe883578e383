"""One event at a time: linear learners at the price of a function call, and kernel learners."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from .._compiled import events as _events
from .._compiled.cache import INTERPRETED
from .._compiled.events import (
    ALPHA,
    COLUMNS,
    END,
    G_NORM,
    GRAD,
    GROWTH,
    HEAD,
    LOSS_SUM,
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
from .._compiled.loops import FIELDS
from .._compiled.plugs import address
from .._compiled.types import MAX_NORM_SQ, MAX_TARGET, Array, Scalars, read_only
from ..kernels import Kernel
from ..losses import Loss
from . import Coordinates, Dual, Primal, Rule

REAL = np.dtype(np.float64)


class LinearEvents:
    """A linear learner and the vectors it lives in."""

    def __init__(self, rule: Rule, features: int, per_coordinate: bool, x_max: float) -> None:
        self._made_with, self._loss = (rule, features, per_coordinate, x_max), rule.loss
        size = (features + 1) * (FIELDS if per_coordinate else 2)
        self.features, self.floats = features, np.zeros(HEAD + size)
        self.integers = np.zeros(COLUMNS + features, object if INTERPRETED else np.int64)
        self.integers[COLUMNS:] = np.arange(features)
        learn = _events.learn_coordinates if per_coordinate else _events.learn_primal
        predict = _events.predict_coordinates if per_coordinate else _events.predict_primal
        self.learn_one, self.predict_one = learn.compiled(REAL), predict.compiled(REAL)
        self.learner = self._learner(rule, features, per_coordinate, x_max)
        self.floats[[SIZE, A, B, L, POWER]] = 1.0, rule.a, rule.b, rule.loss.L, rule.power
        self.integers[END] = features
        plugs = rule.plugs_per_coordinate(1) if per_coordinate else rule.plugs(1)
        self.integers[[POTENTIAL, GROWTH]] = plugs.potential, plugs.growth
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
            learner.state = body.reshape(1, features + 1, FIELDS)
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
    """A kernel learner with the same outside; its rounds cost a kernel value for each support row."""

    def __init__(self, rule: Rule, features: int, kernel: Kernel) -> None:
        self.learner, self.features = Dual(rule, (kernel,), 1, n_jobs=1), features
        self.rule, self.loss_sum, self.s_sum = rule, 0.0, 0.0
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
        return float(self.learner.model(last=True).decide(x[None])[0, 0])

    def learn(self, x: Array, y: float) -> float:
        """Play a round; returns the loss suffered, or infinity where x or y is refused."""
        if self._refused(x, y):
            return inf
        target = read_only(np.array([[y]]))
        ((_, P),) = self.learner.play(
            x[None], target, *self._round, first=int(self.learner.S.t[0, 0])
        )
        loss, p = self.learner.rule.loss, float(P[0, 0])
        self.loss_sum += (value := loss.value(y, p, loss.theta))
        self.s_sum += abs(loss.grad(y, p, loss.theta))
        return value
