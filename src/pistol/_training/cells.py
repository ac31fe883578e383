"""Many rows: a function of all space, learned from some of them, and one learner per cell beside it.

The cost of a pass grows with rows × rows of a cell. Held-out rows of a cell choose the kernels and the
number of passes for all cells, at the size at which they are used.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from .._compiled.threads import Spare, Workers, one_blas_thread, workers
from .._compiled.types import Array, read_only
from .._data.ordering import Rounds, copies, learned_share, shuffled
from .._learners import Cells, Chunk, Dual, Gram, GramRun, Rule
from .._learners.cells import centred
from .._learners.models import Expansion, mean_model
from .._learners.trees import Tree, grow_tree
from .families import Candidate, Data
from .fitted import Fitted, Online, joined, learned_before
from .plan import ALONE, Plan
from .race import EARLY, Contest, Folds, Racer, learn_passes, shuffled_passes
from .tasks import mean_error
from .turns import turns
from .watch import Watch
from .work import Work, all_passes

FULL = 2  # shuffled orders of the base
MANY = 2**24  # entries of scaled rows that are kept once, though cells of several trees have them
TIE = 0.01  # a loss that is larger by this share is as good


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

    def only(self, some: Array) -> Cell:
        """The same with some of its rows and without rounds."""
        data = Data(*(part[some] for part in self.data))
        return Cell(
            data, self.centre, self.start[some], Rounds(some[:0], some[:0]), self.rows[some]
        )


class Ground(NamedTuple):
    """All rows, with what is known of them when cells are learned."""

    work: Work
    base: Expansion
    start: Array  # the base at all rows
    known: Array  # the share of each row, copies included, that the base was learned from
    order: Rounds  # all rounds, in an order of content
    most: int  # rounds of a cell

    @property
    def rule(self) -> Rule:
        """What all cells follow."""
        return self.work.problem.rule(float(self.work.data.weight.sum()), self.work.size)

    def tree(self, seed: int) -> Tree:
        """A partition of all rows."""
        random = np.random.default_rng(seed)
        return grow_tree(self.work.data.X, self.most, random, self.order.rows)

    def cells(self, tree: Tree) -> list[Array]:
        """The rounds of each cell. Of rows too many and too alike to be split, some are enough."""
        of_round = tree.cell_of(self.work.data.X)[self.order.rows]
        by_cell = np.argsort(of_round, kind="stable")
        ends = np.searchsorted(of_round[by_cell], np.arange(1, tree.cells))
        return [own[: self.most] for own in np.split(_narrow(by_cell), ends)]

    def in_memory(self) -> Ground:
        """The same with all scaled rows in memory."""
        return self._replace(work=self.work.in_memory())

    def cell(self, own: Array) -> Cell:
        """The cell with these rounds."""
        rows, at = _in_order(self.order.rows[own])
        r, data = self.order.r[own], self.work.data
        Z = data.X[rows]
        centre = _centre(Z)
        weight = np.bincount(at, r, len(rows))
        inside = Data(centred(Z, centre), read_only(data.Y[rows]), weight, data.ids[rows])
        return Cell(inside, centre, self.start[rows], Rounds(read_only(at), r), rows)


def _narrow(numbers: Array) -> Array:
    """Numbers of rows or rounds in half the memory, where they are not too large."""
    small = numbers.max(initial=0) <= np.iinfo(np.int32).max
    return numbers.astype(np.int32 if small else np.int64)


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
    seed, online, first = work.seed(), Online(), dict[int, Online]()
    with workers(work.problem.family.n_jobs) as threads, one_blas_thread():
        ground, planted = _ground(work, number, passes, plan, seed, threads)
        best = race_in_cell(ground, probe(ground, planted[0].cells), plan, seed, threads)
        threads.spare.clear()  # the cells that follow have fewer kernels
        watch.begin(len(planted))
        learners: list[Any] = []
        now = partial(
            replace,
            work.blank,
            learners=learners,
            passes=best.passes,
            held_out_error=best.error,
        )
        for tree, (planned, cells) in enumerate(planted):
            watch.begin_pass()
            learners.append(_unlearned(ground, planned))
            for found in _learned(ground, cells, best, (seed, tree), threads):
                for i, (centre, learner, sums) in found:
                    learners[-1].set_cell(i, centre, learner)
                    if tree == 0:
                        first[i] = sums
                online = joined([first[i] for i in sorted(first)])
                if watch.rows(online, partial(now, online=online)):
                    break
            if watch.end_pass(online, partial(now, online=online)):
                break
        threads.spare.clear()
        _settle(ground, [learner for tree in learners for learner in tree.learners])
    return now(online=online, temperature=best.temperature)


class Planted(NamedTuple):
    """A partition of all rows, and the rounds of each cell."""

    tree: Tree
    cells: list[Array]


def _ground(
    work: Work, number: int, passes: int, plan: Plan, seed: int, threads: Workers
) -> tuple[Ground, list[Planted]]:
    """Learn the base from some rows, evaluate it at all, and divide these into cells.

    Only here are all scaled rows in memory. Later on those of a cell are made when it is learned.
    """
    base = learn_base(work, number, passes, plan, seed, threads)
    known = learned_share(work.hashes, work.data.weight, *work.rows_of(plan.base))
    rows, r = shuffled(work.hashes, work.rounds, 0)
    order = Rounds(read_only(_narrow(rows)), r)
    ground = Ground(work, base, np.empty((0, 0)), known, order, plan.cell)
    whole = ground.in_memory()
    trees = (whole.tree(seed + tree) for tree in range(plan.orders or 1))
    planted = [Planted(tree, whole.cells(tree)) for tree in trees]
    return ground._replace(start=base.decide(whole.work.data.X)), planted


def learn_base(
    work: Work, number: int, passes: int, plan: Plan, seed: int, threads: Workers
) -> Expansion:
    """A function of all space, learned from some rows."""
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
    return base


def _unlearned(ground: Ground, tree: Tree) -> Cells:
    """A learner whose cells have learned nothing yet."""
    base, data, family = ground.base, ground.work.data, ground.work.problem.family
    most, outputs = cast(Any, family).max_support, data.Y.shape[1]
    learners = [Dual(ground.rule, base.kernels, outputs, 1, most) for _ in range(tree.cells)]
    centres = [np.zeros(data.X.shape[1], data.X.dtype)] * tree.cells
    return Cells(tree, centres, learners, base)


def _share(ground: Ground, cell: Cell, learner: Dual) -> None:
    """Keep of dense support rows nothing but their numbers; sparse ones are a copy already."""
    rows, ids = ground.work.data.X, ground.work.data.ids
    if not sp.issparse(rows):
        at = cell.rows[np.isin(cell.data.ids, learner.support.ids.values)]
        learner.support = learner.support.shared(rows, _narrow(at), cell.centre, ids)


def _settle(ground: Ground, learners: list[Dual]) -> None:
    """All cells have been learned: support rows no longer depend on the user's.

    Many rows are kept once, where the cells of all trees together have more than there are; otherwise
    each cell has a copy of its own, which is faster to predict with.
    """
    some, data = [one for one in learners if one.support.is_shared], ground.work.data
    n, d = data.X.shape
    once = n < sum(one.support.ids.n for one in some) and n * d > MANY
    Z = ground.in_memory().work.data.X if once else None
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
    ground: Ground, cells: list[Array], best: Chosen, seed: tuple[int, ...], threads: Workers
) -> Iterator[list[tuple[int, Kept]]]:
    """A few cells at a time, with their numbers: rows of more of them are never in memory."""
    for lanes in turns([len(own) for own in cells], threads.n):
        tasks = [partial(_lane, ground, cells, lane, best, seed, threads.alone) for lane in lanes]
        try:
            yield [one for lane in threads.run(tasks) for one in lane]
        finally:
            for lane in lanes:
                lane.clear()  # nothing more is begun after an error or an interrupt


def _lane(
    ground: Ground,
    cells: list[Array],
    lane: deque[int],
    best: Chosen,
    seed: tuple[int, ...],
    thread: Workers,
) -> list[tuple[int, Kept]]:
    """Learn some cells one after the other, all of them in the memory of the first."""
    thread.spare, found = Spare(), []
    while lane:
        i = lane.popleft()
        learned = learn_cell(ground, cells[i], best, (*seed, i), thread)
        found.append((i, learned.kept(ground)))
    return found


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
    """Sums with the first pass of a cell more, but for what the base has learned from."""
    known = ground.known[cell.rows[chunk.rows]]
    task, targets, new = ground.work.problem.task, ground.work.blank.targets, known < 1.0
    some = chunk._replace(r=chunk.r * (1.0 - known))
    part = Chunk(*(read_only(np.ascontiguousarray(x[new])) for x in some))
    # with half of the rows of every cell, half of all rows are learned
    share = learned_before(chunk.r)[new] / chunk.r.sum()
    before = share * float(ground.work.data.weight.sum())
    return online.then(part, cell.data.Y, task, targets, ground.rule, before)


# The choice of kernels and passes


def probe(ground: Ground, cells: list[Array]) -> Cell:
    """The cell with the most rounds that the base has not learned; the largest where it knows all."""
    unknown = [len(own) - float(ground.known[ground.order.rows[own]].sum()) for own in cells]
    largest = max(range(len(cells)), key=lambda i: (unknown[i], len(cells[i])))
    return ground.cell(cells[largest])


def race_in_cell(ground: Ground, cell: Cell, plan: Plan, seed: int, threads: Workers) -> Chosen:
    """The candidate and the number of passes with the least loss on held-out rows of a cell."""
    task, rule, Y = ground.work.problem.task, ground.rule, cell.data.Y
    mixed = np.random.default_rng(seed).permutation(len(cell.rounds.rows))
    rounds = Rounds(read_only(cell.rounds.rows[mixed]), read_only(cell.rounds.r[mixed]))
    V = read_only(Y[rounds.rows])
    copy_of = copies(rounds, ground.work.hashes[cell.rows], cell.data.X, Y)
    folds = Folds.of(rounds, copy_of, task.groups(V), 1, ALONE, seed)  # it has thousands of rounds
    counted = _new(folds.counted, ground.known[cell.rows][rounds.rows], copy_of)
    loss = task.held_out_loss(V, counted, rule)
    contest = Contest(Y, folds, loss, threads)
    candidates = cell.candidates(ground.work)
    learned, held_out = (
        np.unique(rounds.rows[part]) for part in (folds.learned[0], folds.held_out[0])
    )
    racers = _racers(ground, cell, candidates, learned, held_out, threads)
    for _ in contest.race(racers, plan.passes, EARLY):
        pass
    best = _simplest(racers, candidates)
    T = task.temperature(best.held_out, V, counted)
    error = mean_error(task, best.held_out, V, counted, ground.work.blank.targets)
    return Chosen(best.number, best.passes, T, error)


def _new(counted: Array, known: Array, copy_of: Array) -> Array:
    """How much each round counts but for what the base has learned, which says nothing about others.

    A row that occurs with several targets was observed several times, and the base has learned some
    of these rounds. To leave out all that are equal would leave out the most frequent targets. Other
    copies are one observation, so that the base knows all of them or none.
    """
    _, number, times = np.unique(copy_of, return_inverse=True, return_counts=True)
    new = counted * (1.0 - np.where(times[number] > 1, known > 0.0, known))
    return read_only(new) if new.any() else counted


def _simplest(racers: list[Racer], candidates: dict[int, Candidate]) -> Racer:
    """The sum with the fewest kernels of those with about the least loss.

    Memory and the time of predictions grow with the number of kernels.
    """
    least = min(racer.best for racer in racers)
    near = [racer for racer in racers if racer.best <= least + TIE * abs(least)]
    return min(near, key=lambda racer: (len(candidates[racer.number]), racer.best))


def _racers(
    ground: Ground,
    cell: Cell,
    candidates: dict[int, Candidate],
    learned: Array,
    held_out: Array,
    threads: Workers,
) -> list[Racer]:
    """All candidates, for these rows to learn, whose kernel values are computed once for all."""
    kernels = [kernel for candidate in candidates.values() for kernel in candidate]
    some = cell.only(learned)
    gram = Gram(some.data.X, kernels, threads)
    X = cell.data.X
    inner = None if sp.issparse(X) else some.data.X @ X[held_out].T
    return [
        Racer(number, [Apart(_run(ground, some, gram, kernels), cell, learned, held_out, inner)])
        for number, kernels in candidates.items()
    ]


@dataclass(frozen=True)
class Apart:
    """A run on some rows of a cell; at held-out rows f̄ is computed from inner products.

    Their values for each kernel need not be in memory then: they are used once in a while.
    """

    run: GramRun
    cell: Cell
    learned: Array  # numbers of the rows that may be learned, ascending
    held_out: Array  # and of those that are held out; a row may have rounds of both kinds
    inner: Array | None  # of shape (learned, held out); None for sparse rows

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients."""
        return self.run.alpha

    def learn(self, V: Array, order: Array, r: Array, ends: Array | None = None) -> Array:
        """Learn these rounds; what was predicted in them. Several passes end at `ends`."""
        return self.run.learn(V[self.learned], np.searchsorted(self.learned, order), r, ends)

    def scores(self, at: Array) -> Array:
        """f̄ at the rows with these numbers, the start included."""
        X, order = self.cell.data.X[self.held_out], np.searchsorted(self.held_out, at)
        return self.cell.start[at] + self.run.expansion().decide(X, self.inner)[order]

    def expansion(self) -> Expansion:
        """f̄ so far, without the start."""
        return self.run.expansion()

    def snapshot(self) -> Any:
        """What has been learned so far."""
        return self.run.snapshot()

    def learner(self, kept: Any = None) -> Dual:
        """A learner that can go on with other rows, from a snapshot if one is given."""
        return self.run.learner(kept)
