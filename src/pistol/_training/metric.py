"""Rounds of the metric: a race, the gradients of what was learned, and the race again in their metric.

Features in which f is steep get a larger weight, others a smaller one. Each fold learns its metric from
the rows that it learns from, so that its held-out rows can tell whether the metric helps.

One of the candidates, the scout, looks for scalings and metrics alone. The others join it in the best
that it has found.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._compiled.threads import one_blas_thread, workers
from .._compiled.types import Array, read_only
from .._data.metric import Weighted, mean_weights, metric_weights
from .._data.ordering import Rounds
from .._learners.gradients import mean_squares
from .families import Data
from .fitted import Window
from .folds import Folds
from .race import Contest, Racer, within
from .ways import SHORT, Level, Makers, Ways, makers

FOLDS = 3  # of the race on recent rows of a stream
# After so many metrics a scaling drops out if its loss is larger than the least by this share.
BEHIND = (0.5, 0.05, 0.02)
TOLERANCE = 0.05  # by so much the loss may be larger with the first metric than without
LATER_GAIN = 0.04  # a later metric has to bring this much: it weights fewer features
LOOK_GAIN = 0.02  # and at least this much on few folds, for the others to look at it, too
SAMPLE = 128  # rounds at which gradients are looked at


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
        level = min((way.best for way in found), key=_loss)
        yield level
    del found  # the kernel values of those that drop out are not needed any more
    joined = ways.joined(level, ways.family.numbers if ways.numbers is None else ways.numbers)
    for level in joined:
        yield level
    yield from ways.longer(level)


def _scouted(ways: Ways) -> Iterator[list[Way]]:
    """What the scout finds in each scaling, metric after metric."""
    first = 0
    if ways.contest.few is not None and len(ways.scalers) > 1 and ways.metrics > 0:
        found, first = _looked_at(ways, ways._replace(contest=ways.contest.few)), 1
        yield found
    else:
        for plain in ways.scouts():
            found = [_way(level) for level in plain]
            yield found
        del plain  # kernel values that are not the best any more make room for others
    for number in range(first, ways.metrics):
        share = BEHIND[min(number, len(BEHIND) - 1)]
        near = within(share, [way.loss for way in found])
        going = [i for i in near if found[i].promising]
        if not going:
            return
        _try_metrics(ways, found, going, number)
        yield found


def _looked_at(ways: Ways, few: Ways) -> list[Way]:
    """The scalings in which the scout is good with a metric or without, on few folds; on all folds."""
    *_, plain = few.scouts()
    found = [_way(level) for level in plain]
    going = within(BEHIND[0], [way.loss for way in found])
    tried = dict(zip(going, _in_new_metrics(few, [found[i] for i in going]), strict=True))
    for i, level in tried.items():
        found[i] = _tried(found[i], level, 0)
    near = [i for i in within(BEHIND[1], [way.loss for way in found]) if i in tried]
    plain, last = [plain[i] for i in near], [tried[i] for i in near]
    del found, tried  # kernel values of those that drop out are not needed any more
    ways.extend([(level, level.racers) for level in plain])
    ways.contest.catch_up([level.best for level in plain])
    found = [_way(level) for level in plain]
    last = _on_all_folds(ways, found, last)
    return [_tried(way, level, 0) for way, level in zip(found, last, strict=True)]


def _way(level: Level) -> Way:
    """A scaling before any metric."""
    return Way(level, level.best.best, level.best)


def _try_metrics(ways: Ways, found: list[Way], going: list[int], number: int) -> None:
    """Let the scout learn in the metrics that it suggests for these scalings, and note how it did.

    A later metric seldom brings enough, so a few folds have a look at it first.
    """
    several, few = [found[i] for i in going], ways.contest.few
    if few is None or number == 0:
        for (
            i
        ) in going:  # kernel values in the metrics before are given up, unless they are the best
            found[i] = found[i]._replace(scout=None)
        tried = _in_new_metrics(ways, several)
    else:
        tried = _in_new_metrics(ways._replace(contest=few), several)
        before = [few.least(found[i].best.best) for i in going]
        good = [
            at
            for at, (level, loss) in enumerate(zip(tried, before, strict=True))
            if loss - level.best.best > LOOK_GAIN * abs(loss)
        ]
        for i in set(going) - {going[at] for at in good}:
            found[i] = found[i]._replace(scout=None, promising=False)
        going = [going[at] for at in good]
        tried = _on_all_folds(ways, [found[i] for i in going], [tried[at] for at in good])
    for i, level in zip(going, tried, strict=True):
        found[i] = _tried(found[i], level, number)


def _in_new_metrics(ways: Ways, several: list[Way]) -> list[Level]:
    """The scout in the metrics that it suggests for these scalings."""
    metrics, made = _suggested(ways, several, range(ways.contest.folds.k))
    entries = [
        (way.best._replace(weights=weights), [ways.family.scout])
        for way, weights in zip(several, metrics, strict=True)
    ]
    *_, tried = ways.raced(entries, SHORT, made)
    return tried


def _on_all_folds(ways: Ways, several: list[Way], tried: list[Level]) -> list[Level]:
    """Levels in which the scout has learned on few folds, after the others have learned as much."""
    if not tried:
        return []
    done = len(tried[0].best.runs)
    more, made = _suggested(ways, several, range(done, ways.contest.folds.k))
    levels = [
        level._replace(weights=np.vstack([np.asarray(level.weights), weights]))
        for level, weights in zip(tried, more, strict=True)
    ]
    ways.extend([(level, level.racers) for level in levels], made)
    ways.contest.catch_up([level.best for level in levels])
    return levels


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
        return Way(level, scout.best, scout, level.weights, promising)
    return way._replace(scout=scout, weights=level.weights, promising=promising)


def _loss(level: Level) -> float:
    return level.best.best


def _suggested(ways: Ways, several: list[Way], folds: range) -> tuple[list[Array], list[Makers]]:
    """The metrics that gradients of the scout suggest next for these folds, with a line per fold.

    What makes runs of the scout in these metrics comes with them.
    """
    tasks = [
        partial(_in_metric_of, ways, way, i, way.scout.runs[i])
        for way in several
        if way.scout is not None
        for i in folds
    ]
    found, k = ways.contest.threads.run(tasks), len(folds)
    weights, made = [one for one, _ in found], [own for _, own in found]
    return [np.array(weights[at : at + k]) for at in range(0, len(weights), k)], made


def _in_metric_of(ways: Ways, way: Way, fold: int, run: Any) -> tuple[Array, Makers]:
    """The metric that a run of the scout suggests, and what makes runs of the scout in it."""
    weights = _weights_of(ways, way, fold, run)
    return weights, makers(ways, way.best, [ways.family.scout], fold, weights)


def _weights_of(ways: Ways, way: Way, fold: int, run: Any) -> Array:
    """The metric that a run of the scout suggests."""
    folds, family = ways.contest.folds, ways.family
    rounds, at = folds.rounds, folds.learned[fold]
    n = min(len(at), SAMPLE)
    at = at[np.arange(n) * len(at) // max(n, 1)]
    Z, r = run.Z[rounds.rows[at]], rounds.r[at]
    squares = mean_squares(run.expansion(), Z, r, ways.contest.threads)
    squares = family.pooled(squares, Z, r, way.best.scaler)
    weight = np.ones(len(squares)) if way.weights is None else way.weights[fold]
    return metric_weights(weight, squares)


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
