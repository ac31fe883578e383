"""Rounds of the metric: a race, the gradients of what was learned, and the race again in their metric.

Features in which f is steep get a larger weight, others a smaller one. Each fold learns its metric from
the rows that it learns from, so that its held-out rows can tell whether the metric helps.

One of the candidates, the scout, looks for scalings and metrics alone. The others join it in the best
that it has found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
from .race import Contest, Folds, Racer, Run

SHORT = 8  # passes of a race while metrics are learned, and of the candidate that shows them
FOLDS = 3  # of the race on recent rows of a stream
# After so many metrics a scaling drops out if its loss is larger than the least by this share.
BEHIND = (0.5, 0.05, 0.02)
CLOSE = 0.02  # by this share losses of scalings may differ for both to be raced in
TOLERANCE = 0.05  # by so much the loss may be larger with the first metric than without
LATER_GAIN = 0.04  # a later metric has to bring this much: it weights fewer features
LEADING = 2  # candidates of one race that take part in another, of the same rows or of more
SAMPLE = 128  # rounds at which gradients are looked at


class Level(NamedTuple):
    """A race in one scaling and metric: the best candidate so far, all of them, and their rows."""

    best: Racer
    racers: list[Racer]
    scaler: Any  # of the rows, but for the metric
    data: Data
    weights: Array | None = None  # of shape (folds, features); None: all features count the same

    @classmethod
    def unlearned(cls, scaler: Any, data: Data) -> Level:
        """Before any candidate takes part."""
        return cls(Racer(-1, []), [], scaler, data)

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

    def scouts(self) -> Iterator[list[Level]]:
        """The scout alone in every scaling."""
        entries = []
        for scaler in self.scalers:
            X = onwards(self.data.X, self.scalers[0], scaler)
            entries.append(Level.unlearned(scaler, self.data._replace(X=X)))
        return self.raced([(level, [self.family.scout]) for level in entries])

    def every(self) -> Iterator[list[Level]]:
        """All candidates in the first scaling."""
        return self.raced([(Level.unlearned(self.scalers[0], self.data), self.numbers)])

    def raced(self, entries: Sequence[tuple[Level, list[int] | None]]) -> Iterator[list[Level]]:
        """Short races beside each other, of these candidates in the scaling and metric of a level."""
        racers = _racers(self, entries)
        levels = [level for level, _ in entries]
        for leaders in self.contest.races(racers, self.short):
            yield [
                level._replace(best=best, racers=racing)
                for level, best, racing in zip(levels, leaders, racers, strict=True)
            ]

    def joined(self, level: Level, numbers: Iterable[int]) -> Iterator[Level]:
        """A level with these candidates, too, and not the scout alone."""
        others = [number for number in numbers if number != self.family.scout]
        for (found,) in self.raced([(level, others)]) if others else ():
            best = min(level.best, found.best, key=lambda racer: racer.best)
            yield level._replace(best=best, racers=[*level.racers, *found.racers])

    def longer(self, levels: list[Level]) -> Iterator[list[Level]]:
        """More passes."""
        for leaders in self.contest.races([level.racers for level in levels], self.most):
            yield [level._replace(best=best) for level, best in zip(levels, leaders, strict=True)]


class Way(NamedTuple):
    """One scaling: where the scout did best so far, and the last metric that it has tried."""

    best: Level
    loss: float  # of the scout, where it did best
    scout: Racer | None  # in the last metric, as long as its kernel values are needed
    weights: Array | None = None
    promising: bool = True


def levels(ways: Ways) -> Iterator[Level]:
    """Scalings and metrics that the scout finds, and races there; yields the best so far."""
    if not ways.several:
        for (level,) in ways.every():
            yield level
        return
    for found in _scouted(ways):
        yield min((way.best for way in found), key=_loss)
    tops = sorted((found[i].best for i in _within(CLOSE, [way.loss for way in found])), key=_loss)
    del found  # the kernel values of those that drop out are not needed any more
    numbers: Iterable[int] = ways.family.numbers if ways.numbers is None else ways.numbers
    for at, alone in enumerate(tops):
        for joined in ways.joined(alone, numbers):
            tops[at] = joined
            yield min(tops, key=_loss)
        numbers = leading(tops[0].racers)
    for longer in ways.longer(tops):
        yield min(longer, key=_loss)


def _scouted(ways: Ways) -> Iterator[list[Way]]:
    """What the scout finds in each scaling, metric after metric."""
    for plain in ways.scouts():
        found = [Way(level, level.best.best, level.best) for level in plain]
        yield found
    del plain  # kernel values that are not the best any more make room for others
    for number in range(ways.metrics):
        share = BEHIND[min(number, len(BEHIND) - 1)]
        near = _within(share, [way.loss for way in found])
        going = [i for i in near if found[i].promising]
        if not going:
            return
        _try_metrics(ways, found, going, number)
        yield found


def _try_metrics(ways: Ways, found: list[Way], going: list[int], number: int) -> None:
    """Let the scout learn in the metrics that it suggests for these scalings, and note how it did.

    Its kernel values in the metrics before are given up first, unless it did best there.
    """
    for i, weights in zip(going, _suggested(ways, [found[i] for i in going]), strict=True):
        found[i] = found[i]._replace(scout=None, weights=weights)
    entries = [found[i].best._replace(weights=found[i].weights) for i in going]
    *_, tried = ways.raced([(level, [ways.family.scout]) for level in entries])
    for i, level in zip(going, tried, strict=True):
        found[i] = _tried(found[i], level, number)


def _tried(way: Way, level: Level, number: int) -> Way:
    """A scaling after the scout has learned in the metric that it had suggested.

    The first may be slightly worse than none, because the second is often better than both.
    """
    scout = level.best
    gain = (way.loss - scout.best) / (abs(way.loss) or 1.0)
    if number == 0:
        taken, promising = gain > 0.0, gain > -TOLERANCE
    else:
        taken = promising = gain > LATER_GAIN
    if taken:
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


def _racers(ways: Ways, entries: Sequence[tuple[Level, list[int] | None]]) -> list[list[Racer]]:
    """For each level these candidates, or all, on all folds; each fold in its own metric."""
    k = ways.contest.folds.k
    tasks = [
        partial(_makers, ways, level, numbers, fold)
        for level, numbers in entries
        for fold in (range(k) if level.weights is not None or k == 1 else [None])
    ]
    made = iter(ways.contest.threads.run(tasks))
    racers = []
    for level, _ in entries:
        folds = [next(made)] * k if level.weights is None else [next(made) for _ in range(k)]
        racers.append([Racer(number, [fold[number]() for fold in folds]) for number in folds[0]])
    return racers


def _makers(
    ways: Ways, level: Level, numbers: list[int] | None, fold: int | None
) -> dict[int, Callable[[], Run]]:
    """What makes runs of each candidate, by its number, for all folds or in the metric of one."""
    family, folds, data = ways.family, ways.contest.folds, level.data
    scaler = level.scaler
    if fold is not None and level.weights is not None:
        w = level.weights[fold]
        data, scaler = data._replace(X=weighted(data.X, w)), Weighted(scaler, w)
    candidates = family.candidates(data.X, data.weight, scaler, numbers)
    threads, columns = ways.contest.threads, folds.columns(fold)
    runs = family.runs(list(candidates.values()), data, ways.rule, threads, *columns)
    return dict(zip(candidates, runs, strict=True))


def _suggested(ways: Ways, several: list[Way]) -> list[Array]:
    """The metrics that the gradients of the scout suggest next, of shape (folds, features)."""
    scouts = [way.scout for way in several if way.scout is not None]
    _warm(ways.contest, scouts)
    tasks = [
        partial(_weights_of, ways, way, i, run)
        for way, scout in zip(several, scouts, strict=True)
        for i, run in enumerate(scout.runs)
    ]
    weights, k = ways.contest.threads.run(tasks), ways.contest.folds.k
    return [np.array(weights[at : at + k]) for at in range(0, len(weights), k)]


def _weights_of(ways: Ways, way: Way, fold: int, run: Any) -> Array:
    """The metric that a run of the scout suggests."""
    folds, family = ways.contest.folds, ways.family
    rounds, at = folds.rounds, folds.learned[fold]
    n = min(len(at), SAMPLE)
    at = at[np.arange(n) * len(at) // max(n, 1)]
    Z, r = run.Z[rounds.rows[at]], rounds.r[at]
    squares = family.pooled(mean_squares(run.expansion(), Z, r), Z, r, way.best.scaler)
    weight = np.ones(len(squares)) if way.weights is None else way.weights[fold]
    return metric_weights(weight, squares)


def _warm(contest: Contest, scouts: list[Racer]) -> None:
    """Let scouts learn as long as their gradients need, even if they fell behind."""
    cold = [scout for scout in scouts if scout.done < SHORT and not scout.still]
    if cold:
        contest.go_on([(scout, SHORT) for scout in cold])


def metric_of(window: Window, fitted: Any) -> Array:
    """The metric that a short race on recent rows of a stream finds."""
    scaler, task, family = fitted.scaler, fitted.task, fitted.family
    scaler = scaler.scaler if isinstance(scaler, Weighted) else scaler
    X, V = scaler.transform(window.X), fitted.targets.transform(window.Y)
    n, rule = len(window.r), fitted.learners[0].rule
    order = read_only(np.random.default_rng(0).permutation(n))
    rounds = Rounds(order, read_only(window.r[order]))
    groups = task.groups(V)[rounds.rows]
    folds = Folds.of(rounds, rounds.rows, groups, FOLDS, 1 / FOLDS, 0)
    loss = task.held_out_loss(read_only(V[rounds.rows]), folds.counted, rule)
    data = Data(X, V, window.r, np.arange(n))
    with workers(family.n_jobs) as threads, one_blas_thread():
        contest = Contest(V, folds, loss, threads)
        *_, level = levels(Ways(contest, family, data, [scaler], rule, SHORT))
    return np.ones(X.shape[1]) if level.weights is None else mean_weights(level.weights)
