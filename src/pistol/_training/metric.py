"""Rounds of the metric: a race, the gradients of what was learned, and the race again in their metric.

Features in which f is steep get a larger weight, others a smaller one. Each fold learns its metric from
the rows that it learns from, so that its held-out rows can tell whether the metric helps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._compiled.threads import one_blas_thread, workers
from .._compiled.types import Array, read_only
from .._data.metric import Weighted, mean_weights, metric_weights, weighted
from .._data.ordering import Rounds
from .._learners import Rule
from .._learners.gradients import mean_squares
from .families import Data, Family
from .fitted import Window
from .race import GAIN, Contest, Folds, Racer, Run, assign_folds

SHORT = 8  # passes of a race while metrics are learned, and of the candidate that shows them
FOLDS = 3  # of the race on recent rows of a stream
TOLERANCE = 0.05  # by so much the loss may be larger with the first metric than without
LEADING = 2  # candidates of a race that take part in the next, beside the one that shows the metric
SAMPLE = 256  # rounds at which gradients are looked at


class Level(NamedTuple):
    """A race in one metric: the best candidate so far, all of them, and the weights of each fold."""

    best: Racer
    racers: list[Racer]
    weights: Array | None  # of shape (folds, features); None: all features count the same

    def scaler(self, scaler: Any, fold: int | None = None) -> Any:
        """The scaler of one fold, or of the mean over the folds."""
        if self.weights is None:
            return scaler
        weight = mean_weights(self.weights) if fold is None else self.weights[fold]
        return Weighted(scaler, weight)


def levels(
    contest: Contest, family: Family, data: Data, scaler: Any, rule: Rule, most: int
) -> Iterator[Level]:
    """Race after race, each in the metric that the one before has found; yields the best so far."""
    rounds, weights, best, numbers = family.metrics(data.X), None, None, None
    for number in range(rounds + 1):
        racers = _racers(contest, family, data, scaler, rule, weights, numbers)
        for leader in contest.race(racers, min(most, SHORT) if rounds else most):
            level = _better(Level(leader, racers, weights), best)
            yield level
        promising = _promising(number, leader.best, np.inf if best is None else best.best.best)
        best = level
        if number == rounds or not promising:
            break
        scout = next(racer for racer in racers if racer.number == family.scout)
        weights = _learn_weights(contest, family, scout, weights)
        leading = sorted(racers, key=lambda racer: racer.best)[:LEADING]
        numbers = sorted({scout.number, *(racer.number for racer in leading)})
    assert best is not None
    for leader in contest.race(best.racers, most):
        yield best._replace(best=leader)


def _promising(number: int, loss: float, least: float) -> bool:
    """Whether another metric is worth a try after so many, given this loss and the least before.

    The first may be slightly worse than none, because the second is often better than both.
    """
    return loss < (1.0 + TOLERANCE if number < 2 else 1.0 - GAIN) * least


def _better(level: Level, other: Level | None) -> Level:
    """The level with the smaller loss; the later one if they are equal."""
    return level if other is None or level.best.best <= other.best.best else other


def _racers(
    contest: Contest,
    family: Family,
    data: Data,
    scaler: Any,
    rule: Rule,
    weights: Array | None,
    numbers: list[int] | None,
) -> list[Racer]:
    """The candidates with these numbers, or all, on all folds; each fold in its own metric."""
    k = contest.folds.k
    if weights is None:
        makers = [_makers(family, data, scaler, rule, contest, numbers)] * k
    else:
        makers = [
            _makers(
                family,
                data._replace(X=weighted(data.X, w)),
                Weighted(scaler, w),
                rule,
                contest,
                numbers,
                np.unique(contest.folds.rounds.rows[contest.folds.learned(i)]),
            )
            for i, w in enumerate(weights)
        ]
    return [Racer(c, [fold[c]() for fold in makers]) for c in makers[0]]


def _makers(
    family: Family,
    data: Data,
    scaler: Any,
    rule: Rule,
    contest: Contest,
    numbers: list[int] | None,
    learned: Array | None = None,
) -> dict[int, Callable[[], Run]]:
    """What makes runs of each candidate on these rows, by its number."""
    candidates = family.candidates(data.X, data.weight, scaler)
    numbers = list(range(len(candidates))) if numbers is None else numbers
    some = [candidates[number] for number in numbers]
    return dict(zip(numbers, family.runs(some, data, rule, contest.threads, learned), strict=True))


def _learn_weights(contest: Contest, family: Family, scout: Racer, before: Array | None) -> Array:
    """The metric that the gradients of a candidate suggest, for each fold."""
    if scout.done < SHORT and not scout.still:
        contest.go_on([scout], SHORT)
    rounds = contest.folds.rounds

    def suggested(i: int, run: Any) -> Array:
        at = contest.folds.learned(i)
        at = at[:: max(1, len(at) // SAMPLE)]
        model = run.expansion()
        squares = mean_squares(model, run.Z[rounds.rows[at]], rounds.r[at])
        squares = family.pooled(squares, model.rows)
        weight = np.ones(len(squares)) if before is None else before[i]
        return metric_weights(weight, squares)

    tasks = [partial(suggested, i, run) for i, run in enumerate(scout.runs)]
    return np.array(contest.threads.run(tasks))


def metric_of(window: Window, fitted: Any) -> Array:
    """The metric that a short race on recent rows of a stream finds."""
    scaler, task, family = fitted.scaler, fitted.task, fitted.family
    scaler = scaler.scaler if isinstance(scaler, Weighted) else scaler
    X, V = scaler.transform(window.X), fitted.targets.transform(window.Y)
    n, rule = len(window.r), fitted.learners[0].rule
    order = read_only(np.random.default_rng(0).permutation(n))
    rounds = Rounds(order, read_only(window.r[order]))
    groups = task.groups(V)[rounds.rows]
    folds = Folds(rounds, assign_folds(groups, rounds.r, FOLDS), FOLDS, 0)
    loss = task.held_out_loss(read_only(V[rounds.rows]), rounds.r, rule)
    data = Data(X, V, window.r, np.arange(n))
    with workers(family.n_jobs) as threads, one_blas_thread():
        contest = Contest(V, folds, loss, threads)
        *_, level = levels(contest, family, data, scaler, rule, SHORT)
    return np.ones(X.shape[1]) if level.weights is None else mean_weights(level.weights)
