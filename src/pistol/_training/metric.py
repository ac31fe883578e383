"""Rounds of the metric: a race, the gradients of what was learned, and the race again in their metric.

Features in which f is steep get a larger weight, others a smaller one. Each fold learns its metric from
the rows that it learns from, so that its held-out rows can tell whether the metric helps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._compiled.threads import one_blas_thread, workers
from .._compiled.types import Array, read_only
from .._data.metric import Weighted, mean_weights, metric_weights, weighted
from .._data.ordering import Rounds
from .._data.steps import onwards
from .._learners import Rule
from .._learners.gradients import mean_squares
from .families import Data, Family
from .fitted import Window
from .race import GAIN, Contest, Folds, Racer, Run, assign_folds

SHORT = 8  # passes of a race while metrics are learned, and of the candidate that shows them
FOLDS = 3  # of the race on recent rows of a stream
BEHIND = 0.5  # a scaling whose loss is larger by this share than the least finds no metric
CLOSE = 0.1  # … and one whose loss is larger by this share takes no further passes
TOLERANCE = 0.05  # by so much the loss may be larger with the first metric than without
LEADING = 2  # candidates of a race that take part in the next, beside the one that shows the metric
SAMPLE = 256  # rounds at which gradients are looked at


class Level(NamedTuple):
    """A race in one scaling and metric: the best candidate so far, all of them, and their rows."""

    best: Racer
    racers: list[Racer]
    scaler: Any  # of the rows, but for the metric
    data: Data
    weights: Array | None = None  # of shape (folds, features); None: all features count the same

    def metric(self, fold: int | None = None) -> Any:
        """The scaler with the metric of one fold, or with the mean over the folds."""
        if self.weights is None:
            return self.scaler
        weight = mean_weights(self.weights) if fold is None else self.weights[fold]
        return Weighted(self.scaler, weight)


class Ways(NamedTuple):
    """Races in some scalings, in three phases each. What one scaling finds depends on no other."""

    contest: Contest
    family: Family
    data: Data  # scaled by the first scaler; the others go on from there
    scalers: Sequence[Any]
    rule: Rule
    most: int
    numbers: list[int] | None = None  # of the candidates that take part; None: all

    @property
    def metrics(self) -> int:
        """How many metrics there may be."""
        return self.family.metrics(self.data.X)

    @property
    def short(self) -> int:
        """Passes of all races but the last."""
        several = len(self.scalers) > 1 or self.metrics
        return min(self.most, SHORT) if several else self.most

    def first(self, number: int) -> Iterator[Level]:
        """A race in one scaling."""
        scaler = self.scalers[number]
        scaled = self.data._replace(X=onwards(self.data.X, self.scalers[0], scaler))
        racers = _racers(self.contest, self.family, scaled, scaler, self.rule, numbers=self.numbers)
        for leader in self.contest.race(racers, self.short):
            yield Level(leader, racers, scaler, scaled)

    def weighted(self, level: Level) -> Iterator[Level]:
        """Races in the metrics that a race has found."""
        return _metrics(self.contest, self.family, level, self.rule, self.short, self.metrics)

    def longer(self, level: Level) -> Iterator[Level]:
        """More passes."""
        for leader in self.contest.race(level.racers, self.most):
            yield level._replace(best=leader)

    def alone(self, number: int) -> Iterator[Level]:
        """The best of one scaling after each phase, whatever others come to."""
        *_, level = self.first(number)
        yield level
        for phase in (self.weighted, self.longer):
            *_, level = level, *phase(level)
            yield level


def levels(ways: Ways) -> Iterator[Level]:
    """Races in each scaling, and in the metrics that they find; yields the best so far.

    The rows are scaled by the first scaler, and the others go on from there. A scaling that is far
    behind after its first race finds no metric; one that is behind then takes no further passes.
    """
    tops: list[Level] = []
    for number in range(len(ways.scalers)):
        for level in ways.first(number):
            yield min([*tops, level], key=_loss)
        tops.append(level)
    del level  # the kernel values of those that drop out are not needed any more
    for phase, share in ((ways.weighted, BEHIND), (ways.longer, CLOSE)):
        tops = [tops[i] for i in _within(share, list(map(_loss, tops)))]
        for number, top in enumerate(tops):
            for found in phase(top):
                tops[number] = found
                yield min(tops, key=_loss)


def best_way(losses: Sequence[Sequence[float]]) -> int:
    """The scaling that `levels` ends with, given the losses of each one alone after every phase."""
    left = list(range(len(losses)))
    for phase, share in enumerate((BEHIND, CLOSE)):
        left = [left[i] for i in _within(share, [losses[i][phase] for i in left])]
    return min(left, key=lambda i: losses[i][-1])


def _within(share: float, losses: list[float]) -> list[int]:
    """Which losses are larger than the least by this share at most."""
    least = min(losses)
    return [i for i, loss in enumerate(losses) if loss <= least + share * abs(least)]


def _loss(level: Level) -> float:
    return level.best.best


def _metrics(
    contest: Contest, family: Family, level: Level, rule: Rule, most: int, rounds: int
) -> Iterator[Level]:
    """Race after race, each in the metric that the one before has found; yields the best so far."""
    best, racers, weights = level, level.racers, level.weights
    for number in range(rounds):
        scout = next(racer for racer in racers if racer.number == family.scout)
        weights = _learn_weights(contest, family, scout, weights, level.scaler)
        numbers = sorted({scout.number, *leading(racers)})
        racers = _racers(contest, family, level.data, level.scaler, rule, weights, numbers)
        before = _loss(best)
        for leader in contest.race(racers, most):
            found = level._replace(best=leader, racers=racers, weights=weights)
            yield _better(found, best)
        best = _better(found, best)
        if not _promising(number, leader.best, before):
            break


def leading(racers: list[Racer]) -> list[int]:
    """The numbers of the best candidates."""
    best = sorted(racers, key=lambda racer: racer.best)[:LEADING]
    return sorted(racer.number for racer in best)


def _promising(number: int, loss: float, least: float) -> bool:
    """Whether another metric is worth a try after this one, given its loss and the least before.

    The first may be slightly worse than none, because the second is often better than both.
    """
    return loss < least + (TOLERANCE if number == 0 else -GAIN) * abs(least)


def _better(level: Level, other: Level) -> Level:
    """The level with the smaller loss; the one named first if they are equal."""
    return level if _loss(level) <= _loss(other) else other


def _racers(
    contest: Contest,
    family: Family,
    data: Data,
    scaler: Any,
    rule: Rule,
    weights: Array | None = None,
    numbers: list[int] | None = None,
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


def _learn_weights(
    contest: Contest, family: Family, scout: Racer, before: Array | None, scaler: Any
) -> Array:
    """The metric that the gradients of a candidate suggest, for each fold."""
    if scout.done < SHORT and not scout.still:
        contest.go_on([scout], SHORT)
    rounds = contest.folds.rounds

    def suggested(i: int, run: Any) -> Array:
        at = contest.folds.learned(i)
        n = min(len(at), SAMPLE)
        at = at[np.arange(n) * len(at) // max(n, 1)]
        Z, r = run.Z[rounds.rows[at]], rounds.r[at]
        squares = family.pooled(mean_squares(run.expansion(), Z, r), Z, r, scaler)
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
        *_, level = levels(Ways(contest, family, data, [scaler], rule, SHORT))
    return np.ones(X.shape[1]) if level.weights is None else mean_weights(level.weights)
