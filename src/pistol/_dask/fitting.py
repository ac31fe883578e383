"""`fit` on a cluster: which tasks there are, and what the client decides between them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.base import is_classifier

from .._data.blocks import Survey
from .._data.targets import LogScaler
from .._training import spread_cells as cells
from .._training import spread_linear as linear
from .._training.fitted import Fitted
from . import steps
from .inputs import Blocks
from .running import Run


class _Block(NamedTuple):
    """A block of rows."""

    rows: Any  # a future, or a task that reads them
    first: int  # the number of its first row
    home: str | None  # the worker that has it


def fit_blocks(run: Run, estimator: Any, given: Blocks) -> Fitted:
    """Learn from all blocks."""
    homes, n = run.homes(given.rows), len(given.parts)
    read = packed(run, given, homes)
    blocks = run.start(read) if run.fits(given.bytes) else read
    counted = [
        run.task("count", i, steps.counted, block, i, n, is_classifier(estimator), home=home)
        for i, (block, home) in enumerate(zip(blocks, homes, strict=True))
    ]
    counts = run.tree("count", steps.counted_together, counted)
    sample = run.task("sample", 0, steps.sample_of, counts)
    found, sample = run.done(
        [run.task("survey", 0, steps.survey_of, counts), sample], "counting rows"
    )
    survey = _checked(run.result(found))
    user, (estimator, survey) = estimator, steps.weighted(steps.seeded(estimator), survey)
    total = steps.counts_of(survey)
    if run.fits(survey.bytes):
        blocks = run.done(read, "reading rows") if blocks is read else blocks
        homes = run.homes(blocks) if homes[0] is None else homes
    known = [_Block(*each) for each in zip(blocks, survey.starts(), homes, strict=True)]
    known = [block for block, rows in zip(known, survey.counts, strict=True) if rows]
    limits = steps.family_of(estimator).limits
    if total.rounds <= limits.few:
        every = [block.rows for block in known]
        (whole,) = run.done([run.task("fit", 0, steps.fit_whole, user, every)], "learning")
        return steps.as_plain(user, run.result(whole))
    if limits.wide < 2**62:
        start = run.task("choose", 0, steps.start_linear, estimator, survey, sample)
        keep = run.fits(2.0 * survey.bytes)
        fitted = _linear(run, start, sample, known, estimator.passes, keep)
    else:
        _check_cells(estimator, total.rounds, limits.few)
        start = run.task("scaling", 0, steps.start_cells, estimator, limits, survey, sample)
        choose = run.task("choose", 0, steps.settled, estimator, start)
        fitted = _cells(run, choose, sample, known)
    return steps.as_plain(user, fitted)


def packed(run: Run, given: Blocks, homes: list[str | None]) -> list[Any]:
    """One task for each block as given, with all columns of its rows."""
    return [
        run.task("read", i, given.read, *part, home=home)
        for i, (part, home) in enumerate(zip(given.parts, homes, strict=True))
    ]


def _checked(survey: Survey) -> Survey:
    if not survey.counted:
        raise ValueError("X has no rows whose weight is not zero")
    if survey.labels is not None and len(survey.labels) < 2:
        raise ValueError(
            f"a classifier needs at least 2 classes; got {len(survey.labels)} class(es): "
            f"{list(survey.labels)}"
        )
    return survey


def _check_cells(estimator: Any, rounds: int, few: int) -> None:
    """Many rows are learned in cells, which need kernels and passes that are ours to choose."""
    fixed = [
        f"{name}={getattr(estimator, name)!r}"
        for name, free in (("kernel", "auto"), ("passes", "auto"))
        if getattr(estimator, name) != free
    ]
    fixed += [f"orders={estimator.orders!r}"] if estimator.orders in (None, 1) else []
    if fixed:
        raise ValueError(
            f"more than {few} rows ({rounds} here) are learned in cells, with kernel='auto', "
            f"passes='auto' and orders other than 1 and None; got {', '.join(fixed)}"
        )


def _cells(run: Run, choose: Any, sample: Any, blocks: list[_Block]) -> Fitted:
    """One tree from a sample, rows to their groups, and each group learned where it is."""
    ready, *parts = run.start([choose, *_splits(run, choose, blocks)])
    (outline,) = run.done([run.task("outline", 0, steps.outline, ready)], "choosing")
    groups, probed = run.result(outline)
    rows = _picked(run, groups, run.finished(parts, "dividing rows"))
    probes = [run.task("probe", g, steps.probe, ready, g, rows[0, g]) for g in probed]
    (race,) = run.start([run.task("race", 0, steps.race, ready, probes)])
    futures = run.start(
        [
            run.task("cell", f"{t}-{g}", steps.learn_group, ready, race, t, g, own)
            for (t, g), own in rows.items()
        ]
    )
    del parts, rows, probes  # rows of groups that are learned are not needed any more
    chosen, known, *grown = run.gathered([race, ready, *futures], "learning cells")
    starts = [0, *[sum(groups[: t + 1]) for t in range(len(groups))]]
    trees = [grown[a:b] for a, b in itertools.pairwise(starts)]
    fitted = cells.assembled(known.shared, chosen, trees)
    return _adding_up(run, ready, fitted, sample)


def _splits(run: Run, ready: Any, blocks: list[_Block]) -> list[Any]:
    """The rows of each block by groups."""
    return [
        run.task("split", i, steps.split, ready, block.rows, block.first, home=block.home)
        for i, block in enumerate(blocks)
    ]


def _picked(run: Run, groups: list[int], parts: list[Any]) -> dict[tuple[int, int], list[Any]]:
    """The rows of each group of each tree: one result per worker, from all blocks that it has.

    This is submitted while nobody is busy, so nobody takes it over from who has the blocks.
    """
    places = run.places(parts)
    every = [(t, g) for t, count in enumerate(groups) for g in range(count)]
    tasks = [
        run.task(
            "pick", f"{t}-{g}-{at[0]}", steps.pick, at, [parts[i] for i in at], t, g, home=home
        )
        for t, g in every
        for home, at in places.items()
    ]
    futures, n = run.start(tasks), len(places)
    return {group: futures[n * i : n * (i + 1)] for i, group in enumerate(every)}


def _adding_up(run: Run, ready: Any, fitted: Fitted, sample: Any) -> Fitted:
    """Expected counts add up on the sample, where counts are learned."""
    if not isinstance(fitted.targets, LogScaler):
        return fitted
    (future,) = run.done([run.task("sums", 0, steps.adding_up, ready, fitted, sample)], "adding up")
    return run.result(future)


def _linear(
    run: Run, start: Any, sample: Any, blocks: list[_Block], passes: int | str, keep: bool
) -> Fitted:
    """Rounds of learners on all blocks, each from the mean of the one before."""
    (ready,) = run.start([start])  # no need to wait: the first round does
    found = [
        run.task("statistics", i, steps.features, ready, block.rows, home=block.home)
        for i, block in enumerate(blocks)
    ]
    merged = run.tree("statistics", linear.merged_features, found)
    (ready,) = run.start([run.task("scaling", 0, steps.scaled, ready, merged)])
    if not keep:  # what is submitted now would hold all blocks until they are scaled
        run.finished([ready], "scaling")
    rows = (_kept if keep else _read_again)(run, ready, blocks)
    best, turns = None, linear.MOST if passes == "auto" else int(passes)
    first, mean, homes = None, None, [block.home for block in blocks]
    for turn in range(turns):
        mean, loss = _round(run, ready, mean, turn, rows, homes)
        first = first or mean
        gain = 1.0 if best is None else 1.0 - loss / best.loss
        if best is None or gain > 0 or passes != "auto":
            best = _Best(mean, loss, turn + 1)
        if gain < linear.GAIN and passes == "auto":
            break
    assert best is not None
    known, told, last = (run.result(future) for future in (ready, first, best.mean))
    fitted = linear.finished(known.shared, told, last.weights, best.turns)
    return _adding_up(run, ready, fitted, sample)


class _Rows(NamedTuple):
    """The rows of all blocks."""

    learn: Callable[..., Any]
    learned: list[tuple[Any, ...]]  # what `learn` takes of each block
    held: list[Any]  # rows held out, of several blocks each


def _kept(run: Run, ready: Any, blocks: list[_Block]) -> _Rows:
    """Scaled rows stay where they are."""
    pairs = run.start(_each(run, "rows", steps.prepared, ready, blocks))
    held = [
        run.task("held", i, steps.held_of, pair, home=block.home)
        for i, (pair, block) in enumerate(zip(pairs, blocks, strict=True))
    ]
    return _Rows(steps.learn_block, [(pair,) for pair in pairs], _held(run, held))


def _read_again(run: Run, ready: Any, blocks: list[_Block]) -> _Rows:
    """One task scales and learns a block, so no rows wait between two tasks."""
    held = _each(run, "held", steps.held_rows, ready, blocks)
    return _Rows(steps.read_and_learn, [block[:2] for block in blocks], _held(run, held))


def _held(run: Run, each: list[Any]) -> list[Any]:
    """Held-out rows are few, so a round has fewer tasks if those of some blocks come together."""
    return run.start(run.merged("held", linear.together, each))


def _each(run: Run, name: str, work: Any, ready: Any, blocks: list[_Block]) -> list[Any]:
    return [
        run.task(name, i, work, ready, i, block.rows, block.first, home=block.home)
        for i, block in enumerate(blocks)
    ]


class _Best(NamedTuple):
    """The round of the least loss so far."""

    mean: Any
    loss: float
    turns: int


def _round(
    run: Run, ready: Any, start: Any, turn: int, rows: _Rows, homes: list[str | None]
) -> tuple[Any, float]:
    """One round: the mean of the models of all blocks, and its loss on held-out rows."""
    each = [
        run.task("block", f"{turn}-{i}", rows.learn, ready, start, i, turn, *block, home=home)
        for i, (block, home) in enumerate(zip(rows.learned, homes, strict=True))
    ]
    mean = run.tree(f"mean-{turn}", linear.merged, each)
    losses = [
        run.task("loss", f"{turn}-{i}", steps.held_out, ready, mean, held)
        for i, held in enumerate(rows.held)
    ]
    lost = run.tree(f"loss-{turn}", steps.sums, losses)
    mean, lost = run.done([mean, lost], f"round {turn + 1}")
    total, rounds = run.result(lost)
    return mean, total / max(rounds, 1e-300)
