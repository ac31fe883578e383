"""Learners with a number a feature: the linear kernel, as a whole or a coordinate at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compiled import loops as _loops
from .._compiled.rows import as_rows
from .._compiled.types import Array, Rounds
from .models import Linear
from .rule import Chunks, Rule, chunks

CHUNK = 8192  # rounds between two yields


class Vectors:
    """What learners with a number a feature have in common: their loops cannot fail half-way."""

    def mark(self) -> Any:
        """Nothing: the state is large and `roll_back` is needed for a failing callback only."""

    def roll_back(self, mark: Any) -> bool:
        """False: the rounds played stay played."""
        return False


class Primal(Vectors):
    """g as a vector a column: the linear kernel, dense or sparse rows, any number of features."""

    def __init__(self, rule: Rule, features: int, columns: int, bias: float = 0.0) -> None:
        self.rule, self.bias = rule, bias
        self.S = rule.scalars(1, columns)
        self.g, self.u = np.zeros((2, columns, features + 1))

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients, which grow as long as anything is learned."""
        return self.S.alpha

    def play(self, X: Any, Y: Array, order: Array, r: Array, first: int = 0) -> Chunks:
        """Learn from the rows of X in this order, each round of size r."""
        rows, plugs = as_rows(X), self.rule.plugs(len(self.g))
        for at, P in chunks(order, len(self.g), CHUNK):
            rounds = Rounds.of(Y, order[at], r[at])
            _loops.learn_primal(rows, rounds, plugs, self.S, self.g, self.u, self.bias, P)
            yield at, P

    def model(self, last: bool = False) -> Linear:
        """f̄, or the f to come."""
        b = np.array([self.rule.b])
        weights = self.rule.read_out(self.S, self.g[None], self.u[None], last, b)[0]
        weights[:, -1] *= self.bias
        return Linear(weights)

    def restart(self) -> None:
        """Begin the average anew: what is predicted has another unit from now on."""
        self.u[:], self.S.c_sum[:], self.S.weight[:] = 0.0, 0.0, 0.0


class Coordinates(Vectors):
    """One scalar learner a coordinate (Appendix A), each in the unit of its own feature.

    `x_max` is a bound on all |x_i| known beforehand, the appendix's 1; with 0 every coordinate is
    measured by its largest magnitude so far, and the predictions do not depend on units.
    """

    def __init__(
        self, rule: Rule, features: int, columns: int, bias: float = 0.0, x_max: float = 0.0
    ) -> None:
        self.rule, self.bias = rule, bias
        self.S = rule.scalars(1, columns)
        self.state = np.zeros((columns, features + 1, _loops.FIELDS))
        if x_max:
            self.state[:, :, _loops.M], self.state[:, :, _loops.INVERSE_M] = x_max, 1.0 / x_max

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients, which grow as long as anything is learned."""
        return self.state[:, :, _loops.G_SUM]

    def play(self, X: Any, Y: Array, order: Array, r: Array, first: int = 0) -> Chunks:
        """Learn from the rows of X in this order, each round of size r."""
        rows, plugs = as_rows(X), self.rule.plugs_per_coordinate(len(self.state))
        for at, P in chunks(order, len(self.state), CHUNK):
            rounds = Rounds.of(Y, order[at], r[at])
            _loops.learn_coordinates(rows, rounds, plugs, self.S, self.state, self.bias, P)
            yield at, P

    def model(self, last: bool = False) -> Linear:
        """f̄, or the f to come."""
        weights, total = self.state[:, :, _loops.W].copy(), self.S.weight[0, 0]
        if not last and self.rule.average is not None:
            seen, shares = self.state[:, :, _loops.SEEN], self.state[:, :, _loops.W_SUM]
            weights = (shares + weights * (total - seen)) / max(total, 1e-300)
        weights[:, -1] *= self.bias
        return Linear(weights)

    def restart(self) -> None:
        """Begin the average anew: what is predicted has another unit from now on."""
        self.state[:, :, [_loops.W_SUM, _loops.SEEN]], self.S.weight[:] = 0.0, 0.0
