"""Candidates that race in a scaling and a metric, each fold in its own metric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._compiled.types import Array
from .._data.metric import Weighted, mean_weights, weighted
from .._data.scaling import Moments
from .._data.steps import onwards
from .._learners import Rule
from .families import Data, Family
from .race import Contest, Racer, Run

SHORT = 8  # passes of a race while metrics are learned, and of the candidate that shows them
LOOK, JOINING = 2, 2  # passes of a look at candidates, and how many of them join the scout
LEADING = 2  # candidates of one race that take part in another, of the same rows or of more

Makers = dict[int, Callable[[], Run]]  # what makes a run of each candidate, by its number


class Level(NamedTuple):
    """A race in one scaling and metric: the best candidate so far, all of them, and their rows."""

    best: Racer
    racers: list[Racer]
    scaler: Any  # of the rows, but for the metric
    data: Data
    weights: Array | None = None  # of shape (folds, features); None: all features count the same
    moments: Moments | None = None  # of the rows, where metrics are learned

    @classmethod
    def unlearned(cls, scaler: Any, data: Data) -> Level:
        """Before any candidate takes part."""
        return cls(Racer(-1, []), [], scaler, data)

    def weights_of(self, fold: int | None) -> Array | None:
        """The weights of features that a fold has; None if all count the same, or for all folds."""
        return None if fold is None or self.weights is None else self.weights[fold]

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
            level = Level.unlearned(scaler, self.data._replace(X=X))
            entries.append(level._replace(moments=Moments.of(X, self.data.weight)))
        return self.raced([(level, [self.family.scout]) for level in entries], SHORT)

    def every(self) -> Iterator[list[Level]]:
        """All candidates in the first scaling."""
        return self.raced([(Level.unlearned(self.scalers[0], self.data), self.numbers)])

    def raced(
        self,
        entries: Sequence[tuple[Level, list[int] | None]],
        least: int = 0,
        made: Sequence[Makers] | None = None,
    ) -> Iterator[list[Level]]:
        """Short races beside each other, of these candidates in the scaling and metric of a level.

        What makes their runs may be known already, for each level and fold.
        """
        racers = self.racers(entries, made)
        levels = [level for level, _ in entries]
        for leaders in self.contest.races(racers, self.short, least):
            yield [
                level._replace(best=best, racers=racing)
                for level, best, racing in zip(levels, leaders, racers, strict=True)
            ]

    def joined(self, level: Level, numbers: Iterable[int]) -> Iterator[Level]:
        """A level with these candidates, too, and not the scout alone."""
        others = [number for number in numbers if number != self.family.scout]
        racers = self._looked_at(level, others)
        for (found,) in self.contest.races([racers], self.short) if racers else ():
            best = min(level.best, found, key=lambda racer: racer.best)
            yield level._replace(best=best, racers=[*level.racers, *racers])

    def _looked_at(self, level: Level, numbers: list[int]) -> list[Racer]:
        """These candidates on all folds; of many only the best after a look on few folds."""
        few = self.contest.few
        if few is None or len(numbers) <= JOINING:
            return self.racers([(level, numbers)])[0]
        (racers,) = self._replace(contest=few).racers([(level, numbers)])
        next(few.race(racers, LOOK))
        best = sorted(racers, key=lambda racer: racer.best)[:JOINING]
        self.extend([(level, best)])
        self.contest.catch_up(best)
        return best

    def racers(
        self,
        entries: Sequence[tuple[Level, list[int] | None]],
        known: Sequence[Makers] | None = None,
    ) -> list[list[Racer]]:
        """For each level these candidates, or all, on all folds; each fold in its own metric.

        Without a metric all folds share their kernel values.
        """
        k = self.contest.folds.k
        alone = [
            range(k) if level.weights is not None or k == 1 else [None] for level, _ in entries
        ]
        made = iter(self._makers(entries, alone) if known is None else known)
        found = []
        for folds in alone:
            own = [next(made) for _ in folds]
            shared = own[0] if len(own) < k else {}
            own *= k // len(own)
            found.append(
                [
                    Racer(number, [fold[number]() for fold in own], shared.get(number))
                    for number in own[0]
                ]
            )
        return found

    def extend(
        self,
        entries: Sequence[tuple[Level, list[Racer]]],
        known: Sequence[Makers] | None = None,
    ) -> None:
        """Give candidates of a level that take part on some folds their runs on the others."""
        numbers = [(level, [racer.number for racer in racers]) for level, racers in entries]
        others = [
            range(len(racers[0].runs) if racers[0].again is None else k, k)
            for _, racers in entries
            for k in [self.contest.folds.k]
        ]
        made = iter(self._makers(numbers, others) if known is None else known)
        for (_, racers), folds in zip(entries, others, strict=True):
            own = [next(made) for _ in folds]
            for racer in racers:
                while racer.again and len(racer.runs) < self.contest.folds.k:
                    racer.runs.append(racer.again())
                racer.runs += [fold[racer.number]() for fold in own]

    def _makers(
        self, entries: Sequence[tuple[Level, list[int] | None]], folds: Sequence[Any]
    ) -> list[Makers]:
        """What makes runs of each candidate, for each level and each of the folds beside it."""
        return self.contest.threads.run(
            [
                partial(makers, self, level, numbers, fold, level.weights_of(fold))
                for (level, numbers), own in zip(entries, folds, strict=True)
                for fold in own
            ]
        )

    def longer(self, level: Level) -> Iterator[Level]:
        """More passes of the best."""
        for leader in self.contest.longer(level.racers, self.most):
            yield level._replace(best=leader)


def leading(racers: list[Racer]) -> list[int]:
    """The numbers of the best candidates."""
    best = sorted(racers, key=lambda racer: racer.best)[:LEADING]
    return sorted(racer.number for racer in best)


def makers(
    ways: Ways, level: Level, numbers: list[int] | None, fold: int | None, w: Array | None
) -> Makers:
    """What makes runs of each candidate, by its number, for one fold or all, in the metric w."""
    family, folds, data, scaler = ways.family, ways.contest.folds, level.data, level.scaler
    if w is not None:
        data, scaler = data._replace(X=weighted(data.X, w)), Weighted(scaler, w)
    weight = np.ones(1) if w is None else w
    square = None if level.moments is None else level.moments.typical_square(weight)
    candidates = family.candidates(data.X, data.weight, scaler, numbers, square)
    threads, columns = ways.contest.threads, folds.columns(fold)
    runs = family.runs(list(candidates.values()), data, ways.rule, threads, *columns)
    return dict(zip(candidates, runs, strict=True))
