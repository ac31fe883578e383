"""Many rows: a function of all space, learned from some of them, and one learner per cell beside it.

The cost of a pass grows with rows × rows of a cell. Held-out rows of a cell choose the kernels and the
number of passes for all cells, at the size at which they are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from .._compiled.threads import Workers, one_blas_thread, workers
from .._compiled.types import Array, read_only
from .._data.ordering import Rounds, shuffled
from .._learners import Cells, Chunk, Dual, Gram, GramRun, Rule
from .._learners.cells import centred
from .._learners.models import Expansion, mean_model
from .._learners.trees import Tree, grow_tree
from .families import Candidate, Data
from .fitted import Fitted, Online, learned_before
from .plan import Plan
from .race import EARLY, Contest, Folds, Racer, learn_passes, shuffled_passes
from .tasks import mean_error
from .watch import Watch
from .work import Work, all_passes

FULL = 2  # shuffled orders of the base
TIE = 0.01  # a loss that is larger by this share is as good
TURN = 4  # cells per thread between two looks at callbacks


class Cell(NamedTuple):
    """Rows of a cell, relative to their mean, with values of the base; and its rounds."""

    data: Data
    centre: Array
    start: Array
    rounds: Rounds
    rows: Array  # their numbers among all rows

    def candidates(self, work: Work, numbers: list[int] | None = None) -> dict[int, Candidate]:
        """Sums of kernels for the scale of these rows, all or some, by number."""
        data, family = self.data, work.problem.family
        return family.candidates(data.X, data.weight, work.blank.scaler, numbers)


class Ground(NamedTuple):
    """All rows, with what is known of them when cells are learned."""

    work: Work
    base: Expansion
    start: Array  # the base at all rows
    known: Array  # which rows the base was learned from
    order: Rounds  # all rounds, in an order of content
    most: int  # rounds of a cell

    @property
    def rule(self) -> Rule:
        """What all cells follow."""
        return self.work.problem.rule(float(self.work.data.weight.sum()), self.work.size)

    def tree(self, seed: int) -> Tree:
        """A partition of all rows."""
        Z = self.work.data.X[self.order.rows]
        return grow_tree(Z, self.most, np.random.default_rng(seed))

    def cells(self, tree: Tree) -> list[Array]:
        """The rounds of each cell. Of rows too many and too alike to be split, some are enough."""
        of_round = tree.cell_of(self.work.data.X)[self.order.rows]
        by_cell = np.argsort(of_round, kind="stable")
        ends = np.searchsorted(of_round[by_cell], np.arange(1, tree.cells))
        return [own[: self.most] for own in np.split(by_cell, ends)]

    def cell(self, own: Array) -> Cell:
        """The cell with these rounds."""
        rows, at = _in_order(self.order.rows[own])
        r, data = self.order.r[own], self.work.data
        Z = data.X[rows]
        centre = _centre(Z)
        weight = np.bincount(at, r, len(rows))
        inside = Data(centred(Z, centre), read_only(data.Y[rows]), weight, data.ids[rows])
        return Cell(inside, centre, self.start[rows], Rounds(read_only(at), r), rows)


def _in_order(rows: Array) -> tuple[Array, Array]:
    """These rows, each once, by their first round, and which of them each round is.

    An order of content: the last bits of what is learned do not depend on how rows are given.
    """
    sorted_rows, first, at = np.unique(rows, return_index=True, return_inverse=True)
    by_round = np.argsort(first)
    return sorted_rows[by_round], np.argsort(by_round)[at]


def _centre(Z: Any) -> Array:
    """The mean of dense rows; zero for sparse rows, which are not shifted."""
    if sp.issparse(Z):
        return np.zeros(Z.shape[1], Z.dtype)
    return Z.mean(axis=0, dtype=np.float64).astype(Z.dtype)


class Chosen(NamedTuple):
    """What rows of a cell have chosen for all cells."""

    number: int
    passes: int
    temperature: float | None
    error: float | None  # on held-out rows


def learn_cells(work: Work, number: int, passes: int, plan: Plan, watch: Watch) -> Fitted:
    """The base, with this candidate and so many passes, and one learner for each cell of some trees."""
    seed, trees, online = work.seed(), plan.orders or 1, Online()
    with workers(work.problem.family.n_jobs) as threads, one_blas_thread():
        ground = _ground(work, number, passes, plan, seed, threads)
        planted = [ground.tree(seed + tree) for tree in range(trees)]
        cells = ground.cells(planted[0])
        best = race_in_cell(ground, probe(ground, cells), plan, seed, threads)
        threads.spare.clear()  # the cells that follow have fewer kernels
        watch.begin(trees)
        learners: list[Any] = []
        now = partial(
            replace,
            work.blank,
            learners=learners,
            passes=best.passes,
            held_out_error=best.error,
        )
        for tree, planned in enumerate(planted):
            watch.begin_pass()
            cells = ground.cells(planned) if tree else cells
            learners.append(_unlearned(ground, planned))
            for found in _learned(ground, cells, best, (seed, tree), threads):
                for i, (cell, learner, chunk) in found:
                    learners[-1].set_cell(i, cell.centre, learner)
                    online = _then(online, ground, cell, chunk) if tree == 0 else online
                if watch.rows(online, partial(now, online=online)):
                    break
            if watch.end_pass(online, partial(now, online=online)):
                break
    return now(online=online, temperature=best.temperature)


def _ground(
    work: Work, number: int, passes: int, plan: Plan, seed: int, threads: Workers
) -> Ground:
    """Learn the base from some rows, and evaluate it at all."""
    base, known = learn_base(work, number, passes, plan, seed, threads)
    order = shuffled(work.hashes, work.rounds, 0)
    return Ground(work, base, base.decide(work.data.X), known, order, plan.cell)


def learn_base(
    work: Work, number: int, passes: int, plan: Plan, seed: int, threads: Workers
) -> tuple[Expansion, Array]:
    """A function of all space, learned from some rows, and which rows these are."""
    rows, _ = work.rows_of(plan.base)
    some, family = work.sample(plan.base), work.problem.family
    data, V = some.data, some.data.Y
    (candidate,) = family.candidates(data.X, data.weight, work.blank.scaler, [number]).values()
    rule = work.problem.rule(float(data.weight.sum()), work.size)
    rounds = shuffled(some.hashes, some.rounds, 0)
    every = np.arange(len(rounds.rows))
    (make,) = family.runs([candidate], data, rule, threads)
    tasks = [partial(all_passes, make(), V, rounds, every, (seed, i), passes) for i in range(FULL)]
    runs: list[Any] = threads.run(tasks)
    base: Any = mean_model([run.learner().model() for run in runs])
    return base, np.isin(work.hashes, work.hashes[rows])  # equal rows too


def _unlearned(ground: Ground, tree: Tree) -> Cells:
    """A learner whose cells have learned nothing yet."""
    base, data, family = ground.base, ground.work.data, ground.work.problem.family
    most, outputs = cast(Any, family).max_support, data.Y.shape[1]
    learners = [Dual(ground.rule, base.kernels, outputs, 1, most) for _ in range(tree.cells)]
    centres = [np.zeros(data.X.shape[1], data.X.dtype)] * tree.cells
    return Cells(tree, centres, learners, base)


class Learned(NamedTuple):
    """A cell, a learner of its rounds, and its first pass."""

    cell: Cell
    learner: Dual
    first: Chunk


def _learned(
    ground: Ground, cells: list[Array], best: Chosen, seed: tuple[int, ...], threads: Workers
) -> Iterator[list[tuple[int, Learned]]]:
    """A few cells at a time, with their numbers: rows of more of them are never in memory."""
    step = TURN * threads.n
    for lo in range(0, len(cells), step):
        some = range(lo, min(lo + step, len(cells)))
        tasks = [
            partial(learn_cell, ground, cells[i], best, (*seed, i), threads.alone) for i in some
        ]
        yield list(zip(some, threads.run(tasks), strict=True))


def learn_cell(
    ground: Ground, own: Array, best: Chosen, seed: tuple[int, ...], thread: Workers
) -> Learned:
    """Learn these rounds of a cell."""
    cell = ground.cell(own)
    (kernels,) = cell.candidates(ground.work, [best.number]).values()
    gram = Gram(cell.data.X, kernels, thread)
    run, every = _run(ground, cell, gram, kernels), np.arange(len(cell.rounds.rows))
    first = learn_passes(run, cell.data.Y, shuffled_passes(cell.rounds, every, seed, range(1)))
    if best.passes > 1:
        later = shuffled_passes(cell.rounds, every, seed, range(1, best.passes))
        learn_passes(run, cell.data.Y, later)
    return Learned(cell, run.learner(), first)


def _run(ground: Ground, cell: Cell, gram: Gram, kernels: Candidate) -> GramRun:
    data, outputs = cell.data, cell.data.Y.shape[1]
    family: Any = ground.work.problem.family
    return GramRun(
        gram, kernels, ground.rule, outputs, data.X, data.ids, 1, cell.start, family.max_support
    )


def _then(online: Online, ground: Ground, cell: Cell, chunk: Chunk) -> Online:
    """Sums with the first pass of a cell more, but for rows that the base has learned from."""
    new = ~ground.known[cell.rows[chunk.rows]]
    task, targets = ground.work.problem.task, ground.work.blank.targets
    part = Chunk(*(read_only(np.ascontiguousarray(x[new])) for x in chunk))
    # with half of the rows of every cell, half of all rows are learned
    share = learned_before(chunk.r)[new] / chunk.r.sum()
    before = share * float(ground.work.data.weight.sum())
    return online.then(part, cell.data.Y, task, targets, ground.rule, before)


# The choice of kernels and passes


def probe(ground: Ground, cells: list[Array]) -> Cell:
    """The cell with the most rounds that the base has not learned; the largest where it knows all."""
    unknown = [int((~ground.known[ground.order.rows[own]]).sum()) for own in cells]
    largest = max(range(len(cells)), key=lambda i: (unknown[i], len(cells[i])))
    return ground.cell(cells[largest])


def race_in_cell(ground: Ground, cell: Cell, plan: Plan, seed: int, threads: Workers) -> Chosen:
    """The candidate and the number of passes with the least loss on held-out rows of a cell."""
    task, rule, Y = ground.work.problem.task, ground.rule, cell.data.Y
    mixed = np.random.default_rng(seed).permutation(len(cell.rounds.rows))
    rounds = Rounds(read_only(cell.rounds.rows[mixed]), read_only(cell.rounds.r[mixed]))
    V = read_only(Y[rounds.rows])
    folds = Folds.of(rounds, task.groups(V), 1, seed)  # a cell has thousands of rounds
    # a row that the base has learned says nothing about rows to come
    known, counted = ground.known[cell.rows][rounds.rows], folds.counted
    counted = counted if known[folds.held_out[0]].all() else np.where(known, 0.0, counted)
    loss = task.held_out_loss(V, counted, rule)
    contest = Contest(Y, folds, loss, threads)
    candidates = cell.candidates(ground.work)
    racers = _racers(ground, cell, candidates, np.unique(rounds.rows[folds.learned[0]]), threads)
    for _ in contest.race(racers, plan.passes, EARLY):
        pass
    best = _simplest(racers, candidates)
    T = task.temperature(best.held_out, V, counted)
    error = mean_error(task, best.held_out, V, counted, ground.work.blank.targets)
    return Chosen(best.number, best.passes, T, error)


def _simplest(racers: list[Racer], candidates: dict[int, Candidate]) -> Racer:
    """The sum with the fewest kernels of those with about the least loss.

    Memory and the time of predictions grow with the number of kernels.
    """
    least = min(racer.best for racer in racers)
    near = [racer for racer in racers if racer.best <= least + TIE * abs(least)]
    return min(near, key=lambda racer: (len(candidates[racer.number]), racer.best))


def _racers(
    ground: Ground, cell: Cell, candidates: dict[int, Candidate], learned: Array, threads: Workers
) -> list[Racer]:
    """All candidates, for these rows to learn; kernel values are computed once for all of them."""
    kernels = [kernel for candidate in candidates.values() for kernel in candidate]
    gram = Gram(cell.data.X, kernels, threads, learned)
    return [
        Racer(number, [_run(ground, cell, gram, kernels)]) for number, kernels in candidates.items()
    ]
