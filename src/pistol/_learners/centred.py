"""Linear learners of single events that are centred on the way, with a constant feature beside them.

Learning one feature at a time cannot make up for features far from zero: all their weights would
have to move together. So each event is taken relative to the mean of all events so far, itself
included, and the learner's own constant stands for what the mean takes away.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numba.core import types

from .._compiled.rows import square
from .._compiled.types import Array, loop, numbers, vector
from .._data.validation import MAX_NORM_SQ
from ..losses import Loss
from .events import LinearEvents
from .rule import Rule

WEIGHT, MEAN = 0, 1  # the weight of the next event in the mean, and where the mean begins

MOST = MAX_NORM_SQ / 4  # of an event and of the mean: their difference is not refused then
REAL = np.dtype(np.float64)


@loop(lambda dtype: types.boolean(vector, numbers, vector))
def _shift(M, x, z):
    """What x is relative to a mean that counts it; False if x is too large, or not of its length."""
    if len(x) != len(M) - MEAN or not square(x) <= MOST:
        return False
    for i in range(len(x)):
        z[i] = (1.0 - M[WEIGHT]) * (x[i] - M[MEAN + i])
    return True


@loop(lambda dtype: types.void(vector, numbers))
def _count(M, x):
    """Count x in the mean, with weights 1, 1/2, 1/3, …; a weight of zero stays zero."""
    for i in range(len(x)):
        M[MEAN + i] += M[WEIGHT] * (x[i] - M[MEAN + i])
    M[WEIGHT] /= 1.0 + M[WEIGHT]


class CentredEvents:
    """A linear learner of events as they come; see `LinearEvents` for its outside."""

    def __init__(
        self,
        rule: Rule,
        features: int,
        per_coordinate: bool,
        x_max: float,
        center: bool,
        constant: bool,
    ) -> None:
        self.features = features
        self.events = LinearEvents(rule, features + constant, per_coordinate, x_max)
        self.state = np.zeros(MEAN + features)
        self.state[WEIGHT] = 1.0 if center else 0.0
        self.constants = np.ones(features + constant)  # of which the features are overwritten
        self._compile()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("shift", "count")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._compile()

    def _compile(self) -> None:
        self.shift, self.count = _shift.compiled(REAL), _count.compiled(REAL)

    @property
    def learner(self) -> Any:
        """The learner of the centred events."""
        return self.events.learner

    @property
    def loss_sum(self) -> float:
        """Σ ℓ_t(f_t(x_t))."""
        return self.events.loss_sum

    @property
    def s_sum(self) -> float:
        """Σ |s_t|."""
        return self.events.s_sum

    def set_loss(self, loss: Loss) -> None:
        """Suffer this loss from now on."""
        self.events.set_loss(loss)

    def predict(self, x: Array) -> float:
        """f_t(x), or infinity where x is refused."""
        z = self.constants.copy()  # several threads may ask at once
        return self.events.predict(z) if self.shift(self.state, x, z) else inf

    def learn(self, x: Array, y: float) -> float:
        """Play a round; returns the loss suffered, or infinity where x or y is refused."""
        z = self.constants.copy()
        suffered = self.events.learn(z, y) if self.shift(self.state, x, z) else inf
        if suffered != inf:
            self.count(self.state, x)
        return suffered

    def decide(self, X: Array) -> Array:
        """f̄ at the rows of X, relative to the mean of all events."""
        constant = np.ones((len(X), len(self.constants) - self.features))
        rows = np.hstack([X - self.state[MEAN:], constant])
        return self.learner.model().decide(rows)[:, 0]
