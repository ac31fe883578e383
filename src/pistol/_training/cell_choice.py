"""The choice of kernels and passes for all cells, by held-out rows of one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.threads import Workers
from .._compiled.types import Array, read_only
from .._data.ordering import Rounds, copies
from .._learners import Dual, Gram, GramRun, step_by_step
from .._learners.models import Expansion
from .families import Candidate
from .ground import Cell, Ground, run_of
from .plan import ALONE, Plan
from .race import EARLY, Contest, Folds, Racer
from .tasks import mean_error

TIE = 0.01  # a loss that is larger by this share is as good


class Chosen(NamedTuple):
    """What rows of a cell have chosen for all cells."""

    number: int
    passes: int
    temperature: float | None
    error: float | None  # on held-out rows


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
        Racer(number, [Apart(run_of(ground, some, gram, kernels), cell, learned, held_out, inner)])
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

    def learn_and_score(
        self, V: Array, order: Array, r: Array, ends: Array, marks: Array, at: Array
    ) -> tuple[Array, Array]:
        """The same; and f̄ at the rows with numbers `at`, after as many passes as each of `marks`."""
        return step_by_step(self, V, order, r, ends, marks, at)

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
