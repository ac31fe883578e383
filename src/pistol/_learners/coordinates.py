"""The linear kernel with one scalar learner per coordinate (Appendix A)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from .._compiled.coordinates import (
    FIELDS,
    G_SUM,
    INVERSE_M,
    SEEN,
    THETA,
    W_SUM,
    M,
    W,
    learn_coordinates,
)
from .._compiled.rows import as_rows
from .._compiled.threads import workers
from .._compiled.types import Array, Rounds, Rows, Scalars, aligned_zeros
from .models import Linear
from .primal import CHUNK, affine, predictions, start, widened, with_intercept
from .rule import Chunk, Rule, chunks
from .sharing import Shared, border_of


class Coordinates:
    """One scalar learner per coordinate (Appendix A), each in the scale of its own feature.

    `x_max` is a bound on all |x_i| known beforehand, the appendix's 1; with 0 every coordinate is
    scaled by its largest magnitude so far, and the scale of a feature changes no prediction.
    """

    def __init__(
        self,
        rule: Rule,
        features: int,
        outputs: int,
        bias: float = 0.0,
        x_max: float = 0.0,
        n_jobs: int | None = None,
    ) -> None:
        self.rule, self.bias, self.x_max, self.n_jobs = rule, bias, x_max, n_jobs
        self.S = rule.scalars(1, outputs)
        self.state = aligned_zeros((outputs, features + 1, FIELDS))
        self.f_0: Array | None = None  # weights, the intercept last
        self.since = np.zeros(outputs)  # Σ ω_t when the average of each output began
        if x_max:
            self.state[:, :, M], self.state[:, :, INVERSE_M] = x_max, 1.0 / x_max

    @property
    def t(self) -> float:
        """Rounds so far."""
        return float(self.S.t[0, 0])

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients, which grow as long as anything is learned."""
        return self.state[:, :, G_SUM]

    def fresh(self) -> Coordinates:
        """A learner of the same kind that has learned nothing yet."""
        outputs, features, _ = self.state.shape
        return Coordinates(self.rule, features - 1, outputs, self.bias, self.x_max, self.n_jobs)

    def play(
        self, X: Any, Y: Array, order: Array, r: Array, ids: Array | None = None
    ) -> Iterator[Chunk]:
        """Learn from the rows of X in this order, each round of size r."""
        outputs, border = len(self.state), border_of(X)
        rows, plugs = as_rows(X), self.rule.plugs_per_coordinate(outputs)
        with workers(self.n_jobs) as threads:
            learn: Any = partial(learn_coordinates, rows)
            if border is not None:
                learn = Shared(rows, border, outputs, threads).learn
            for at in chunks(order, CHUNK):
                P = predictions(self.f_0, X, order[at], outputs)
                rounds = Rounds.of(Y, order[at], r[at])
                learn(rounds, plugs, self.S, self.state, self.bias, P)
                yield Chunk(order[at], r[at], P)

    def learn(self, rows: Rows, rounds: Rounds, P: Array) -> None:
        """Learn rounds of these rows, in one thread; what is predicted is added to P."""
        plugs = self.rule.plugs_per_coordinate(len(self.state))
        learn_coordinates(rows, rounds, plugs, self.S, self.state, self.bias, P)

    def model(self, last: bool = False) -> Linear:
        """f̄, or the f to come."""
        weights, total = self.state[:, :, W].copy(), self.S.weight[0, 0]
        if not last and self.rule.average is not None:
            seen, shares = self.state[:, :, SEEN], self.state[:, :, W_SUM]
            so_far = (total - self.since)[:, None]  # an empty average is the f to come
            mean = (shares + weights * (total - seen)) / np.maximum(so_far, 1e-300)
            weights = np.where(so_far > 0, mean, weights)
        weights[:, -1] *= self.bias
        return Linear(weights if self.f_0 is None else weights + self.f_0)

    def forget_average(self, outputs: Array | slice = slice(None)) -> None:
        """Begin the average of these outputs anew."""
        self.state, self.since = self.state.copy(), self.since.copy()
        self.state[outputs, :, W_SUM] = 0.0
        self.state[outputs, :, SEEN] = self.since[outputs] = self.S.weight[0, 0]

    def restart(self, factor: Array, offset: Array, outputs: Array) -> None:
        """Go on from f_0 = factor · f̄ + offset, one of each per output, for some outputs."""
        weights = affine(self.model().weights, factor, offset)
        self.start_from(weights, np.ones(self.state.shape[1] - 1), outputs)

    def start_from(
        self, weights: Array, ratio: Array, outputs: Array | slice = slice(None)
    ) -> None:
        """Go on from f_0 with these weights, with rows whose features were multiplied by ratio."""
        self.f_0 = start(self.f_0, weights, outputs)
        self.forget_average(outputs)
        self.state[outputs, :, THETA] = self.state[outputs, :, W] = 0.0
        self.state[:, :-1, [M, G_SUM]] *= ratio[:, None]
        self.state[:, :-1, INVERSE_M] /= ratio

    def widen(self, features: int) -> None:
        """Make room for so many features."""
        self.state = widened(self.state, features)
        self.f_0 = None if self.f_0 is None else widened(self.f_0, features)

    def mark(self, features: Any) -> Any:
        """What `roll_back` needs to undo what is learned from rows with these features."""
        at = with_intercept(features, self.state.shape[1])
        S = Scalars(*(x.copy() for x in self.S))
        return at, self.state, self.state[:, at].copy(), S, self.f_0, self.since

    def roll_back(self, mark: Any) -> None:
        """Be as at the time of the mark."""
        at, self.state, values, self.S, self.f_0, self.since = mark
        self.state[:, at] = values
