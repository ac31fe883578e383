"""Rounds of the metric: a race, the gradients of what was learned, and the race again in their metric.

Features in which f is steep get a larger weight, others a smaller one. Each fold learns its metric from
the rows that it learns from, so that its held-out rows can tell whether the metric helps.

All candidates race once, in the first scaling. One of them, the scout, then looks for scalings and
metrics alone, and those that lead the race join it where it has found the best.
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
from .race import GAIN, Contest, Folds, Racer, Run

SHORT = 8  # passes of a race while metrics are learned, and of the candidate that shows them
FOLDS = 3  # of the race on recent rows of a stream
# After so many metrics a scaling drops out if its loss is larger than the least by this share.
BEHIND = (0.5, 0.05, 0.02)
CLOSE = 0.05  # by this share losses may be larger for more candidates, and for more passes
TOLERANCE = 0.05  # by so much the loss may be larger with the first metric than without
LEADING = 2  # candidates of the first race that join the scout
SAMPLE = 128  # rounds at which gradients are looked at


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
    """What there is to choose from: candidates, scalings, and one metric after the other."""

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
    def several(self) -> bool:
        """Whether there is a scaling or a metric to choose."""
        return len(self.scalers) > 1 or self.metrics > 0

    @property
    def short(self) -> int:
        """Passes of all races but the last."""
        return min(self.most, SHORT) if self.several else self.most

    def first(self) -> Iterator[Level]:
        """A race of all candidates in the first scaling."""
        scaler = self.scalers[0]
        racers = self.racers(scaler, self.data, None, self.numbers)
        for leader in self.contest.race(racers, self.short):
            yield Level(leader, racers, scaler, self.data)

    def scouting(self, scaler: Any) -> Level:
        """The scout alone in one scaling."""
        data = self.data._replace(X=onwards(self.data.X, self.scalers[0], scaler))
        return self.raced(scaler, data, None, [self.family.scout])

    def joined(self, level: Level, numbers: Sequence[int]) -> Level:
        """The level with these candidates, too."""
        new = [number for number in numbers if number not in {one.number for one in level.racers}]
        if not new:
            return level
        more = self.raced(level.scaler, level.data, level.weights, new)
        best = min(level.best, more.best, key=lambda racer: racer.best)
        return level._replace(best=best, racers=[*level.racers, *more.racers])

    def raced(
        self, scaler: Any, data: Data, weights: Array | None, numbers: list[int] | None
    ) -> Level:
        """A short race of these candidates in one scaling and metric."""
        racers = self.racers(scaler, data, weights, numbers)
        *_, best = self.contest.race(racers, self.short)
        return Level(best, racers, scaler, data, weights)

    def racers(
        self, scaler: Any, data: Data, weights: Array | None, numbers: list[int] | None
    ) -> list[Racer]:
        """The candidates with these numbers, or all, on all folds; each fold in its own metric."""
        return _racers(self.contest, self.family, data, scaler, self.rule, weights, numbers)

    def longer(self, level: Level) -> Iterator[Level]:
        """More passes."""
        for leader in self.contest.race(level.racers, self.most):
            yield level._replace(best=leader)


class Way(NamedTuple):
    """One scaling: where the scout did best so far, and the last metric that it has tried."""

    best: Level
    loss: float  # of the scout, where it did best
    scout: Racer | None  # in the last metric, as long as its kernel values are needed
    weights: Array | None = None
    promising: bool = True


def levels(ways: Ways) -> Iterator[Level]:
    """A race, scalings and metrics that the scout finds, and longer races; yields the best so far."""
    for plain in ways.first():
        yield plain
    tops = [plain]
    if ways.several:
        for found in _scouted(ways, plain):
            yield min([plain, *(way.best for way in found)], key=_loss)
        near = [found[i].best for i in _within(CLOSE, [way.loss for way in found])]
        tops += [level for level in near if level is not plain]
        del found, near  # the kernel values of those that drop out are not needed any more
        for number, top in enumerate(tops):
            tops[number] = ways.joined(top, leading(plain.racers))
            yield min(tops, key=_loss)
    tops = sorted([tops[i] for i in _within(CLOSE, list(map(_loss, tops)))], key=_loss)[:2]
    for number, top in enumerate(tops):
        for longer in ways.longer(top):
            tops[number] = longer
            yield min(tops, key=_loss)


def _scouted(ways: Ways, plain: Level) -> Iterator[list[Way]]:
    """What the scout finds in each scaling, metric after metric."""
    scout = next(racer for racer in plain.racers if racer.number == ways.family.scout)
    _warm(ways.contest, scout)
    found = [Way(plain, scout.best, scout)]
    for scaler in ways.scalers[1:]:
        level = ways.scouting(scaler)
        found.append(Way(level, level.best.best, level.best))
        yield found
    for number in range(ways.metrics):
        share = BEHIND[min(number, len(BEHIND) - 1)]
        for i in _within(share, [way.loss for way in found]):
            if found[i].promising:
                found[i] = _suggested(ways, found[i])
                found[i] = _tried(ways, found[i], number)
                yield found


def _suggested(ways: Ways, way: Way) -> Way:
    """The metric that the scout suggests next; unless it did best, its kernel values are given up."""
    assert way.scout is not None
    scaler, before = way.best.scaler, way.weights
    weights = _learn_weights(ways.contest, ways.family, way.scout, before, scaler)
    return way._replace(scout=None, weights=weights)


def _tried(ways: Ways, way: Way, number: int) -> Way:
    """The scout in the metric that it has suggested."""
    level = ways.raced(way.best.scaler, way.best.data, way.weights, [ways.family.scout])
    scout, promising = level.best, _promising(number, level.best.best, way.loss)
    if scout.best < way.loss:
        return Way(level, scout.best, scout, way.weights, promising)
    return way._replace(scout=scout, promising=promising)


def _within(share: float, losses: list[float]) -> list[int]:
    """Which losses are larger than the least by this share at most."""
    least = min(losses)
    return [i for i, loss in enumerate(losses) if loss <= least + share * abs(least)]


def _loss(level: Level) -> float:
    return level.best.best


def leading(racers: list[Racer]) -> list[int]:
    """The numbers of the best candidates."""
    best = sorted(racers, key=lambda racer: racer.best)[:LEADING]
    return sorted(racer.number for racer in best)


def _promising(number: int, loss: float, least: float) -> bool:
    """Whether another metric is worth a try after this one, given its loss and the least before.

    The first may be slightly worse than none, because the second is often better than both.
    """
    return loss < least + (TOLERANCE if number == 0 else -GAIN) * abs(least)


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
                np.unique(contest.folds.rounds.rows[contest.folds.learned[i]]),
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
    candidates = family.candidates(data.X, data.weight, scaler, numbers)
    runs = family.runs(list(candidates.values()), data, rule, contest.threads, learned)
    return dict(zip(candidates, runs, strict=True))


def _learn_weights(
    contest: Contest, family: Family, scout: Racer, before: Array | None, scaler: Any
) -> Array:
    """The metric that the gradients of a candidate suggest, for each fold."""
    _warm(contest, scout)
    rounds = contest.folds.rounds

    def suggested(i: int, run: Any) -> Array:
        at = contest.folds.learned[i]
        n = min(len(at), SAMPLE)
        at = at[np.arange(n) * len(at) // max(n, 1)]
        Z, r = run.Z[rounds.rows[at]], rounds.r[at]
        squares = family.pooled(mean_squares(run.expansion(), Z, r), Z, r, scaler)
        weight = np.ones(len(squares)) if before is None else before[i]
        return metric_weights(weight, squares)

    tasks = [partial(suggested, i, run) for i, run in enumerate(scout.runs)]
    return np.array(contest.threads.run(tasks))


def _warm(contest: Contest, scout: Racer) -> None:
    """Let the scout learn as long as its gradients need, even if it fell behind."""
    if scout.done < SHORT and not scout.still:
        contest.go_on([scout], SHORT)


def metric_of(window: Window, fitted: Any) -> Array:
    """The metric that a short race on recent rows of a stream finds."""
    scaler, task, family = fitted.scaler, fitted.task, fitted.family
    scaler = scaler.scaler if isinstance(scaler, Weighted) else scaler
    X, V = scaler.transform(window.X), fitted.targets.transform(window.Y)
    n, rule = len(window.r), fitted.learners[0].rule
    order = read_only(np.random.default_rng(0).permutation(n))
    rounds = Rounds(order, read_only(window.r[order]))
    groups = task.groups(V)[rounds.rows]
    folds = Folds.of(rounds, rounds.rows, groups, FOLDS, 0)
    loss = task.held_out_loss(read_only(V[rounds.rows]), folds.counted, rule)
    data = Data(X, V, window.r, np.arange(n))
    with workers(family.n_jobs) as threads, one_blas_thread():
        contest = Contest(V, folds, loss, threads)
        *_, level = levels(Ways(contest, family, data, [scaler], rule, SHORT))
    return np.ones(X.shape[1]) if level.weights is None else mean_weights(level.weights)
