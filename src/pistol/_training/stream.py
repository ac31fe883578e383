"""`partial_fit`: the rows as they come, their scaling looked at again from time to time."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.rows import between
from .._compiled.types import Array, read_only
from .._data.intake import Columns
from .._data.ordering import Rounds
from .._data.scaling import ENTRIES
from .._data.targets import Recent, unscaled
from .._learners import Cells, Chunk, Coordinates, Dual, Learner, Primal
from .drift import FIRST, STEP, Challengers, steps
from .families import Data, Known
from .fitted import Counts, Fitted, Online, Stream, Window, challenging, learned_before
from .metric import metric_of
from .tasks import summed_loss
from .watch import Watch

METRIC_AT = {512 * 4**k for k in range(20)}  # rounds after which the metric is learned again


def begin_stream(
    data: Data, problem: Any, T: float | None, size: float, columns: Columns, settings: Any
) -> Fitted:
    """A stream before its first row; T rounds will come, where this is known."""
    family, outputs = problem.family, data.Y.shape[1]
    scaler, moments = family.stream_scaler(data.X)
    candidate = family.usual(data.X, data.weight, scaler)
    learner = family.learner(candidate, scaler.features, outputs, problem.rule(T, size))
    recent = Recent.none(outputs) if problem.task.scaled else None
    window = Window(data.X[:0], data.Y[:0], np.zeros(0)) if family.metrics(data.X) else None
    return Fitted(
        problem.task, family, columns, scaler, unscaled(outputs), [learner], 1, Online(),
        Counts(0, 0, size), stream=Stream(moments, 0.0, recent, None, window), settings=settings,
    )  # fmt: skip


def learn_stream(
    fitted: Fitted, data: Data, rounds: Rounds, problem: Any, passes: int, n_rows: int, watch: Watch
) -> Fitted:
    """Learn the rounds in the order given, `passes` times; `n_rows` rows were given in all.

    The learners are changed in place; everything else is a new value.
    """
    # rounds of which a scaled copy is made at a time; sparse rows that stay so need none
    sparse = sp.issparse(fitted.scaler.transform(data.X[:1]))
    most = len(rounds.rows) if sparse else max(1, ENTRIES // fitted.scaler.features)
    for number in range(passes):
        watch.begin_pass()
        for piece in _pieces(fitted, len(rounds.rows), problem.drift, most, sparse):
            part = Rounds(rounds.rows[piece], rounds.r[piece])
            fitted, stopped = _learn_piece(fitted, data, part, problem.drift, number == 0, watch)
            if stopped:
                break
        if watch.end_pass(fitted.online, partial(_itself, fitted)):
            break
    counts = fitted.counts._replace(rows=fitted.counts.rows + n_rows)
    # what held-out rows have said was said of another model
    passes = number + 1
    return replace(fitted, counts=counts, passes=passes, held_out_error=None, remembered=None)


def widened(fitted: Fitted, X: Any) -> Fitted:
    """With room for the features of these rows."""
    scaler = fitted.scaler.grown(X)
    if scaler is fitted.scaler:
        return fitted
    with fitted.writing:
        for learner in everyone(fitted):
            assert not isinstance(learner, Dual)
            learner.widen(scaler.features)
    return replace(fitted, scaler=scaler)


def _itself(fitted: Fitted) -> Fitted:
    return fitted


def _learn_piece(
    fitted: Fitted, data: Data, rounds: Rounds, drift: bool, first: bool, watch: Watch
) -> tuple[Fitted, bool]:
    """Learn rounds between two looks at the scaling; whether a callback asks to stop the pass."""
    lo, hi = int(rounds.rows[0]), int(rounds.rows[-1]) + 1
    whole = lo == 0 and hi == data.X.shape[0]
    rows = data if whole else Data(between(data.X, lo, hi), *(part[lo:hi] for part in data[1:]))
    order, r = read_only(rounds.rows - lo), read_only(np.ascontiguousarray(rounds.r))
    fitted = _update_scaling(fitted, rows, np.bincount(order, r))
    Z, V = fitted.scaler.transform(rows.X), fitted.targets.transform(rows.Y)
    before = fitted.online
    fitted, played, stopped = _learn_rounds(fitted, Z, V, order, r, rows.ids, first, watch)
    seen = fitted.counts.rounds + sum(len(chunk.rows) for chunk in played)
    fitted = replace(fitted, counts=fitted.counts._replace(rounds=seen))
    fitted = _remember(fitted, rows, played)
    if drift and first and not stopped:
        lost = (fitted.online.loss - before.loss) / len(fitted.learners)
        fitted = _run_challengers(fitted, Z, V, Rounds(order, r), rows.ids, lost)
    return fitted, stopped


def _learn_rounds(
    fitted: Fitted, Z: Any, V: Array, order: Array, r: Array, ids: Array, first: bool, watch: Watch
) -> tuple[Fitted, list[Chunk], bool]:
    """Let all learners learn these rounds; the chunks of the first one, and whether to stop."""
    played = []
    for number, learner in enumerate(fitted.learners):
        seen = fitted.counts.rounds * fitted.counts.size
        for chunk in learner.play(Z, V, order, r, ids):
            if number == 0:
                played.append(chunk)
            if first:
                before = learned_before(chunk.r, seen)
                online = fitted.online.then(
                    chunk, V, fitted.task, fitted.targets, learner.rule, before
                )
                fitted = replace(fitted, online=online)
                seen += float(chunk.r.sum())
            if watch.rows(fitted.online, partial(_itself, fitted)):
                return fitted, played, True
    return fitted, played, False


def _update_scaling(fitted: Fitted, rows: Data, weight: Array) -> Fitted:
    """Update the statistics with the rows to come; rescale if it is time to."""
    seen, stream = fitted.counts.rounds, fitted.stream
    if seen & (seen - 1) == 0:  # each time the number of rounds has doubled
        fitted = _rescale_rows(_rescale_targets(fitted, rows.Y), rows.X)
        stream = fitted.stream
    if stream.moments is None:
        return fitted
    moments = copy.copy(stream.moments)
    moments.add(rows.X, weight)
    return replace(fitted, stream=stream._replace(moments=moments))


def _rescale_rows(fitted: Fitted, X: Any) -> Fitted:
    """Another scaler for the rows, if the statistics so far call for one."""
    stream = fitted.stream
    if stream.moments is None:
        return fitted
    known = Known(stream.moments, stream.typical_sq, X[:1])
    if stream.window is not None and fitted.counts.rounds in METRIC_AT:
        known = known._replace(metric=metric_of(stream.window, fitted))
    revision = fitted.family.revise(known, fitted.scaler)
    if revision is None:
        return fitted
    for learner in everyone(fitted):
        revision.carry(learner)
        if known.metric is not None and stream.window is not None:
            _fit_length(learner, stream.window, revision.scaler, fitted.targets)
    return replace(
        fitted, scaler=revision.scaler, stream=stream._replace(typical_sq=revision.typical_sq)
    )


def _fit_length(learner: Any, window: Window, scaler: Any, targets: Any) -> None:
    """In another metric, let what was learned be as large as suits recent targets."""
    V, rows = targets.transform(window.Y), np.arange(len(window.r))
    learner.shorten(
        scaler.transform(window.X),
        lambda P: summed_loss(learner.rule, Chunk(rows, window.r, P), V),
    )


def _rescale_targets(fitted: Fitted, Y: Array) -> Fitted:
    """Another scaler for the targets, if recent ones call for one.

    What was learned is carried over as a function of the user's targets, so predictions do not jump.
    Where the new centre alone predicts most of the newest targets better, it is dropped.
    """
    recent, old, task = fitted.stream.recent, fitted.targets, fitted.task
    if recent is None:
        return fitted
    if not len(recent.r):
        return _bounded(replace(fitted, targets=task.scaler(Y[:1], np.ones(1))))
    new = recent.scaler(task.loss.targets, task.centred)
    changed = old.differs(new)
    if changed.any():
        P = old.inverse_transform(np.concatenate(list(fitted.scores(recent.X))))
        level = new.inverse_transform(np.zeros((1, len(changed))))
        keep = ~recent.better_without(P, level)
        factor, offset = (np.where(keep, x, 0.0) for x in old.onto(new))
        for learner in everyone(fitted):
            learner.restart(factor, offset, changed)
    elif not task.loss.ranged:
        return fitted
    return _bounded(replace(fitted, targets=old.replaced(new, changed)))


def _bounded(fitted: Fitted) -> Fitted:
    """With learners whose loss is bounded by the range of the targets so far, if it has to be."""
    loss = fitted.targets.bounded(fitted.task.loss)
    if fitted.task.loss.ranged:
        for learner in everyone(fitted):
            rule = learner.rule.turned(loss, fitted.counts.size)
            more = rule.alpha_0 - learner.rule.alpha_0
            learner.rule = rule
            learner.S = learner.S._replace(alpha=learner.S.alpha + max(more, 0.0))
    return fitted


def _remember(fitted: Fitted, rows: Data, chunks: list[Chunk]) -> Fitted:
    """With these rounds among the recent ones."""
    recent, window = fitted.stream.recent, fitted.stream.window
    if recent is None and window is None:
        return fitted
    for chunk in chunks:
        new = rows.X[chunk.rows], rows.Y[chunk.rows], chunk.r
        recent = None if recent is None else recent.then(*new)
        window = None if window is None else window.then(*new)
    return replace(fitted, stream=fitted.stream._replace(recent=recent, window=window))


def _run_challengers(
    fitted: Fitted, Z: Any, V: Array, rounds: Rounds, ids: Array, lost: float
) -> Fitted:
    """Let younger learners learn the same rounds; one that does better takes over."""
    seen, stream = fitted.counts.rounds, fitted.stream
    challengers = stream.challengers or Challengers()
    duels = []
    for duel in challengers.duels:
        chunks = duel.learner.play(Z, V, *rounds, ids)
        own = sum(summed_loss(duel.learner.rule, chunk, V) for chunk in chunks)
        duels.append(duel.then(lost - own, seen % STEP == 0))
    challengers = replace(challengers, duels=tuple(duels))
    if seen % STEP == 0:
        winner = challengers.winner()
        if winner is not None:
            challengers = challengers.after(winner)
            fitted = replace(fitted, learners=[winner.learner], temperature=None)
        if seen % FIRST == 0:
            for learner in [*fitted.learners, *(duel.learner for duel in challengers.duels)]:
                learner.forget_average()
        challengers = challengers.renewed(seen, partial(_another, fitted))
    return replace(fitted, stream=fitted.stream._replace(challengers=challengers))


def _another(fitted: Fitted) -> Learner:
    """A learner like the one that predicts, that has learned nothing yet."""
    return fitted.learners[0].fresh()


def everyone(fitted: Fitted) -> list[Primal | Coordinates | Dual]:
    """The learners that predict, and their challengers; those of cells one by one."""
    top = [*fitted.learners, *challenging(fitted.stream)]
    return [own for one in top for own in (one.learners if isinstance(one, Cells) else [one])]


def _pieces(fitted: Fitted, n: int, drift: bool, most: int, sparse: bool) -> Iterator[slice]:
    """n more rounds, cut where the scaling or a challenger is looked at.

    Sparse rows whose scaling stays are not cut: to start to learn wide rows takes a while.
    """
    first, stream = fitted.counts.rounds, fitted.stream
    stays = sparse and stream.moments is None and stream.recent is None
    pieces = iter([slice(0, n)] if n else []) if stays else doublings(first, n)
    for piece in steps(first, pieces) if drift else pieces:
        for lo in range(piece.start, piece.stop, most):
            yield slice(lo, min(lo + most, piece.stop))


def doublings(first: int, n: int) -> Iterator[slice]:
    """n rounds that follow `first` others, cut where the number of all rounds has doubled."""
    lo, end = first, first + n
    while lo < end:
        hi = min(1 << max(lo, 0).bit_length(), end)
        yield slice(lo - first, hi - first)
        lo = hi
