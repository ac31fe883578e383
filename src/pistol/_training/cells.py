"""Many rows: a function of all space, learned from some of them, and one learner per cell beside it.

The cost of a pass grows with rows × rows of a cell. Held-out rows of a cell choose the kernels and the
number of passes for all cells, at the size at which they are used.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from .._compiled.memory import Spare, kept, trim
from .._compiled.threads import Workers, one_blas_thread, workers
from .._compiled.types import Array, read_only
from .._data.mapped import Mapped, among
from .._data.ordering import Rounds, learned_share, shuffled
from .._learners import Cells, Chunk, Dual, Gram
from .._learners.models import Expansion, mean_model
from .._learners.trees import Tree, grow_tree
from .cell_choice import Chosen, probe, race_in_cell
from .fitted import Fitted, Online, joined, learned_before
from .folds import shuffled_passes
from .forest import beside_base
from .ground import Cell, Ground, narrow, rounds_of, run_of
from .plan import Plan
from .race import learn_passes
from .turns import turns
from .watch import Watch
from .work import Work, all_passes

MANY = 2**24  # entries of scaled rows: fewer are all in memory while cells are learned
COPIED = 2**22  # entries of scaled rows up to which each cell keeps a copy of those it needs
PART = 2**16  # rows that the base is evaluated at together

Place = tuple[int, int]  # of a cell: the number of its tree, and its own


def learn_cells(work: Work, number: int, passes: int, plan: Plan, watch: Watch) -> Fitted:
    """The base, with this candidate and so many passes, and one learner for each cell of some trees."""
    seed, online, first = work.seed(), Online(), dict[int, Online]()
    n, d = work.data.X.shape
    many = n * d > MANY
    work = work if many else work.in_memory()
    with workers(work.problem.family.n_jobs) as threads, one_blas_thread():
        _make_room(threads, many)
        ground, planted = _ground(work, number, passes, plan, seed, threads)
        _make_room(threads, many)
        best = race_in_cell(ground, probe(ground, planted[0].cells), plan, seed, threads)
        _make_room(threads, many)  # the cells that follow have fewer kernels
        watch.begin(1)
        watch.begin_pass()
        learners: list[Any] = [_unlearned(ground, tree) for tree, _ in planted]
        now = partial(
            replace,
            work.blank,
            learners=learners,
            passes=best.passes,
            held_out_error=best.error,
        )
        for found in _learned(ground, [cells for _, cells in planted], best, seed, threads):
            for (tree, i), (centre, learner, sums) in found:
                learners[tree].set_cell(i, centre, learner)
                if tree == 0:
                    first[i] = sums
            online = joined([first[i] for i in sorted(first)] or [online])
            if watch.rows(online, partial(now, online=online)):
                break
        watch.end_pass(online, partial(now, online=online))
        _make_room(threads, many)
        _settle(ground, [learner for tree in learners for learner in tree.learners])
    return now(online=online, temperature=best.temperature)


def _make_room(threads: Workers, many: bool) -> None:
    """Give memory that is spare back to the system; with many rows, also what the process keeps.

    Then large arrays have memory of their own: parts of one stretch would leave gaps.
    """
    threads.spare.clear()
    if many:
        kept.clear()
        threads.spare = Spare(from_kept=False)
        trim()


class Planted(NamedTuple):
    """A partition of all rows, and the rounds of each cell."""

    tree: Tree
    cells: list[Array]


def _ground(
    work: Work, number: int, passes: int, plan: Plan, seed: int, threads: Workers
) -> tuple[Ground, list[Planted]]:
    """Learn the base from some rows, evaluate it at all, and divide these into cells.

    Only here are all scaled rows in memory, but for their ramps. Later on those of a cell are made
    when it is learned.
    """
    learn = partial(learn_base, work, number, passes, plan, seed, threads)
    known = learned_share(work.hashes, work.data.weight, *work.rows_of(plan.base))
    rows, r = shuffled(work.hashes, work.rounds, 0)
    order = Rounds(read_only(narrow(rows)), r)
    plant = partial(_planted, order, plan.cell)
    seeds, X = [seed + tree for tree in range(plan.orders or 1)], work.data.X
    if isinstance(X, Mapped):
        base = learn()
        _make_room(threads, many=True)  # all scaled rows take its place for a while
        X = work.narrow().data.X
        planted = threads.run([partial(plant, X, own) for own in seeds])
    else:  # trees do not wait for the base
        base, *planted = threads.run([learn, *(partial(plant, X, own) for own in seeds)])
    ground = Ground(work, base.model, base.decide(X, work.hashes), known, order, plan.cell)
    return _with_trees(work, ground, seed, threads), planted


def _with_trees(work: Work, ground: Ground, seed: int, threads: Workers) -> Ground:
    """What cells are learned from, with a forest beside the base where that helps."""
    start, forest = beside_base(work, ground.start, ground.known, ground.order, seed, threads)
    return ground._replace(start=start, forest=forest)


class Base(NamedTuple):
    """A function of all space, and its scores at the rows that it was learned from."""

    model: Expansion
    rows: Array  # their numbers among all rows
    scores: Array

    def decide(self, X: Any, hashes: Array) -> Array:
        """Scores of all rows; those of rows that it was learned from, and of their copies, are known.

        A polynomial is evaluated faster than that, and to the last bits.
        """
        if self.model.is_polynomial:
            return self.model.decide(X)
        learned, first = np.unique(hashes[self.rows], return_index=True)
        place = np.searchsorted(learned, hashes).clip(max=len(learned) - 1)
        known = learned[place] == hashes
        out = np.empty((X.shape[0], self.scores.shape[1]))
        out[known] = self.scores[first[place[known]]]
        for lo in range(0, len(out), PART):  # of which a copy is made
            at = lo + np.flatnonzero(~known[lo : lo + PART])
            out[at] = self.model.decide(among(X, at))
        return out


def learn_base(
    work: Work, number: int, passes: int, plan: Plan, seed: int, threads: Workers
) -> Base:
    """A function of all space, learned from some rows."""
    rows, weight = work.rows_of(plan.base)
    some, family = work.only(rows, weight), work.problem.family
    data, V = some.data, some.data.Y
    (candidate,) = family.candidates(data.X, data.weight, work.blank.scaler, [number]).values()
    rule = work.problem.rule(float(data.weight.sum()), work.size)
    rounds = shuffled(some.hashes, some.rounds, 0)
    every = np.arange(len(rounds.rows))
    (make,) = family.runs([candidate], data, rule, threads)
    run: Any = all_passes(make(), V, rounds, every, (seed, 0), range(passes))
    model: Any = mean_model([run.learner().model()])
    return Base(model, rows, run.scores(np.arange(len(rows))))


def _planted(order: Rounds, most: int, X: Any, seed: int) -> Planted:
    """A tree of all rows, and the rounds of its cells, so many of each at most."""
    tree = grow_tree(X, most, np.random.default_rng(seed), order.rows)
    return Planted(tree, rounds_of(tree, X, order, most))


def _unlearned(ground: Ground, tree: Tree) -> Cells:
    """A learner whose cells have learned nothing yet."""
    base, data, family = ground.base, ground.work.data, ground.work.problem.family
    most, outputs = cast(Any, family).max_support, data.Y.shape[1]
    learners = [Dual(ground.rule, base.kernels, outputs, 1, most) for _ in range(tree.cells)]
    centres = [np.zeros(data.X.shape[1], data.X.dtype)] * tree.cells
    return Cells(tree, centres, learners, base, ground.forest)


def _share(ground: Ground, cell: Cell, learner: Dual) -> None:
    """Keep of dense support rows nothing but their numbers; sparse ones are a copy already."""
    rows, ids = ground.work.data.X, ground.work.data.ids
    if not sp.issparse(rows):
        at = cell.rows[np.isin(cell.data.ids, learner.support.ids.values)]
        learner.support = learner.support.shared(rows, narrow(at), cell.centre, ids)


def _settle(ground: Ground, learners: list[Dual]) -> None:
    """All cells have been learned: support rows no longer depend on the user's.

    Many rows are kept once, where the cells of all trees together have more than there are, and without
    ramps if these are not in memory; otherwise each cell has a copy of its own, which is faster to
    predict with.
    """
    some, data = [one for one in learners if one.support.is_shared], ground.work.data
    n, d = data.X.shape
    once = n < sum(one.support.ids.n for one in some) and n * d > COPIED
    Z = ground.work.narrow().data.X if once else None
    for learner in some:
        support = learner.support
        at, centre = support.rows.at, support.rows.centre
        learner.support = support.grown() if Z is None else support.shared(Z, at, centre, data.ids)


class Learned(NamedTuple):
    """A cell, a learner of its rounds, and its first pass."""

    cell: Cell
    learner: Dual
    first: Chunk

    def kept(self, ground: Ground) -> Kept:
        """What is kept, in less memory."""
        _share(ground, self.cell, self.learner)
        sums = _then(Online(), ground, self.cell, self.first)
        return Kept(self.cell.centre, self.learner, sums)


class Kept(NamedTuple):
    """The mean of the rows of a cell, a learner of its rounds, and sums over its first pass."""

    centre: Array
    learner: Dual
    online: Online


def _learned(
    ground: Ground, cells: list[list[Array]], best: Chosen, seed: int, threads: Workers
) -> Iterator[list[tuple[Place, Kept]]]:
    """A few cells at a time, with their places: rows of more of them are never in memory."""
    every = [(tree, i) for tree, own in enumerate(cells) for i in range(len(own))]
    for lanes in turns([len(cells[tree][i]) for tree, i in every], threads.n):
        places = [deque(every[number] for number in lane) for lane in lanes]
        tasks = [partial(_lane, ground, cells, lane, best, seed, threads.alone) for lane in places]
        try:
            yield [one for lane in threads.run(tasks) for one in lane]
        finally:
            for lane in places:
                lane.clear()  # nothing more is begun after an error or an interrupt


def _lane(
    ground: Ground,
    cells: list[list[Array]],
    lane: deque[Place],
    best: Chosen,
    seed: int,
    thread: Workers,
) -> list[tuple[Place, Kept]]:
    """Learn some cells one after the other, all of them in the memory of the first."""
    thread.spare, found = thread.spare.another(), []
    while lane:
        tree, i = lane.popleft()
        learned = learn_cell(ground, cells[tree][i], best, (seed, tree, i), thread)
        found.append(((tree, i), learned.kept(ground)))
    return found


def learn_cell(
    ground: Ground, own: Array, best: Chosen, seed: tuple[int, ...], thread: Workers
) -> Learned:
    """Learn these rounds of a cell."""
    cell = ground.cell(own)
    (kernels,) = cell.candidates(ground.work, [best.number]).values()
    gram = Gram(cell.data.X, kernels, thread)
    run, every = run_of(ground, cell, gram, kernels), np.arange(len(cell.rounds.rows))
    first = learn_passes(run, cell.data.Y, shuffled_passes(cell.rounds, every, seed, range(1)))
    if best.passes > 1:
        later = shuffled_passes(cell.rounds, every, seed, range(1, best.passes))
        learn_passes(run, cell.data.Y, later)
    return Learned(cell, run.learner(), first)


def _then(online: Online, ground: Ground, cell: Cell, chunk: Chunk) -> Online:
    """Sums with the first pass of a cell more, but for what the base has learned from."""
    known = ground.known[cell.rows[chunk.rows]]
    task, targets, new = ground.work.problem.task, ground.work.blank.targets, known < 1.0
    some = chunk._replace(r=chunk.r * (1.0 - known))
    part = Chunk(*(read_only(np.ascontiguousarray(x[new])) for x in some))
    # with half of the rows of every cell, half of all rows are learned
    share = learned_before(chunk.r)[new] / chunk.r.sum()
    before = share * float(ground.work.data.weight.sum())
    return online.then(part, cell.data.Y, task, targets, ground.rule, before)
