"""The linear kernel with g as a vector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._compiled.loops import learn_primal
from .._compiled.rows import as_rows, between
from .._compiled.types import Array, Rounds, Scalars, aligned_zeros
from .finished import Finished
from .models import Linear
from .rule import Chunk, Rule, chunks, step_by_step

CHUNK = 8192  # rounds between two yields


class Primal:
    """g as one vector per output: the linear kernel, dense or sparse rows, any number of features."""

    def __init__(self, rule: Rule, features: int, outputs: int, bias: float = 0.0) -> None:
        self.rule, self.bias = rule, bias
        self.S = rule.scalars(1, outputs)
        self.g, self.u = np.zeros((2, outputs, features + 1))
        self.f_0: Array | None = None  # weights, the intercept last
        self.since = np.zeros(outputs)  # Σ ω_t when the average of each output began

    @property
    def t(self) -> float:
        """Rounds so far."""
        return float(self.S.t[0, 0])

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients, which grow as long as anything is learned."""
        return self.S.alpha

    def fresh(self) -> Primal:
        """A learner of the same kind that has learned nothing yet."""
        return Primal(self.rule, self.g.shape[1] - 1, len(self.g), self.bias)

    def play(
        self, X: Any, Y: Array, order: Array, r: Array, ids: Array | None = None
    ) -> Iterator[Chunk]:
        """Learn from the rows of X in this order, each round of size r."""
        rows, plugs = as_rows(X), self.rule.plugs(len(self.g))
        for at in chunks(order, CHUNK):
            P = predictions(self.f_0, X, order[at], len(self.g))
            rounds = Rounds.of(Y, order[at], r[at])
            learn_primal(rows, rounds, plugs, self.S, self.g, self.u, self.bias, P)
            yield Chunk(order[at], r[at], P)

    def model(self, last: bool = False) -> Linear:
        """f̄, or the f to come."""
        b = np.array([self.rule.b])
        weights = self.rule.read_out(self.S, self.g[None], self.u[None], last, b, self.since)[0]
        weights[:, -1] *= self.bias
        return Linear(weights if self.f_0 is None else weights + self.f_0)

    def forget_average(self, outputs: Array | slice = slice(None)) -> None:
        """Begin the average of these outputs anew."""
        self.u, self.since, c_sum = self.u.copy(), self.since.copy(), self.S.c_sum.copy()
        self.u[outputs], c_sum[:, outputs] = 0.0, 0.0
        self.since[outputs] = self.S.weight[0, 0]
        self.S = self.S._replace(c_sum=c_sum)

    def restart(self, factor: Array, offset: Array, outputs: Array) -> None:
        """Go on from f_0 = factor · f̄ + offset, one of each per output, for some outputs."""
        weights = affine(self.model().weights, factor, offset)
        self.start_from(weights, np.ones(self.g.shape[1] - 1), outputs)

    def start_from(
        self, weights: Array, ratio: Array, outputs: Array | slice = slice(None)
    ) -> None:
        """Go on from f_0 with these weights, with rows whose features were multiplied by ratio."""
        self.f_0 = start(self.f_0, weights, outputs)
        self.g, g_norm_sq = self.g.copy(), self.S.g_norm_sq.copy()
        self.g[outputs], g_norm_sq[:, outputs] = 0.0, 0.0
        self.S = self.S._replace(g_norm_sq=g_norm_sq)
        self.forget_average(outputs)

    def widen(self, features: int) -> None:
        """Make room for so many features."""
        self.g, self.u = (widened(x, features) for x in (self.g, self.u))
        self.f_0 = None if self.f_0 is None else widened(self.f_0, features)

    def mark(self, features: Any) -> Any:
        """What `roll_back` needs to undo what is learned from rows with these features."""
        at = with_intercept(features, self.g.shape[1])
        arrays = [(x, x[:, at].copy()) for x in (self.g, self.u)]
        return at, arrays, Scalars(*(x.copy() for x in self.S)), self.f_0, self.since

    def roll_back(self, mark: Any) -> None:
        """Be as at the time of the mark."""
        at, ((self.g, g), (self.u, u)), self.S, self.f_0, self.since = mark
        self.g[:, at], self.u[:, at] = g, u


def predictions(f_0: Array | None, X: Any, rows: Array, outputs: int) -> Array:
    """f_0 at these rows, to which the loops add."""
    if f_0 is None:
        return np.zeros((len(rows), outputs))
    return Linear(f_0).decide(taken(X, rows))


def taken(X: Any, rows: Array) -> Any:
    """These rows of X; where they follow each other, nothing is copied."""
    lo, hi = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
    one_by_one = hi - lo == len(rows) and bool((np.diff(rows) == 1).all())
    return between(X, lo, hi) if one_by_one else X[rows]


def affine(weights: Array, factor: Array, offset: Array) -> Array:
    """Weights of factor · f + offset, one of each per output."""
    with np.errstate(over="ignore"):
        out = np.clip(weights * factor[:, None], -1e150, 1e150)
    out[:, -1] += offset
    return out


def start(f_0: Array | None, weights: Array, outputs: Array | slice) -> Array:
    """f_0 with other weights for some outputs."""
    f_0 = np.zeros_like(weights) if f_0 is None else f_0.copy()
    f_0[outputs] = weights[outputs]
    return f_0


def with_intercept(features: Any, n: int) -> Any:
    """The numbers of these features' weights, and of the intercept, which is the last of n."""
    return features if isinstance(features, slice) else np.append(features, n - 1)


def widened(x: Array, features: int) -> Array:
    """An array with room for so many features along its second axis; the intercept stays last."""
    known = x.shape[1] - 1
    if features <= known:
        return x
    wider = aligned_zeros((x.shape[0], max(features, 2 * known) + 1, *x.shape[2:]))
    wider[:, :known], wider[:, -1] = x[:, :-1], x[:, -1]
    return wider


class RowsRun:
    """A learner that goes over the rows of X again and again."""

    def __init__(self, learner: Any, X: Any) -> None:
        self.running, self.X = learner, X

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients."""
        return self.running.alpha

    def learn(self, V: Array, order: Array, r: Array, ends: Array | None = None) -> Array:
        """Learn these rounds; what was predicted in them. Where passes end does not matter."""
        parts = [chunk.P for chunk in self.running.play(self.X, V, order, r)]
        return np.concatenate(parts) if parts else np.empty((0, V.shape[1]))

    def learn_and_score(
        self, V: Array, order: Array, r: Array, ends: Array, marks: Array, at: Array
    ) -> tuple[Array, Array]:
        """The same; and f̄ at the rows with numbers `at`, after as many passes as each of `marks`."""
        return step_by_step(self, V, order, r, ends, marks, at)

    def scores(self, at: Array) -> Array:
        """f̄ at the rows with these numbers."""
        return self.running.model().decide(self.X[at])

    def expansion(self) -> Any:
        """f̄ as a function of scaled rows."""
        return self.running.model()

    def snapshot(self) -> Any:
        """The model so far: a copy of the learner would be many times as large."""
        return Finished(self.running.model(), self.running.t)

    def learner(self, kept: Any = None) -> Any:
        """The learner, or its model at a snapshot if one is given."""
        return kept or self.running
