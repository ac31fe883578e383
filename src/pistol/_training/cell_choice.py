"""The choice of kernels and passes for all cells, by held-out rows of one of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._compiled.threads import Workers
from .._compiled.types import Array, read_only
from .._data.ordering import Rounds, copies
from .._learners import Gram
from .families import Candidate
from .folds import Folds
from .ground import Cell, Ground, run_of
from .plan import ALONE, Plan
from .race import EARLY, Contest, Racer
from .tasks import mean_error

ENOUGH = 4096  # rounds of a cell that choose for all, at most
TIE = 0.01  # a loss that is larger by this share is as good


class Chosen(NamedTuple):
    """What rows of a cell have chosen for all cells."""

    number: int
    passes: int
    temperature: float | None
    error: float | None  # on held-out rows


def probe(ground: Ground, cells: list[Array]) -> Cell:
    """The cell with the most rounds that the base has not learned; the largest where it knows all.

    Of many rounds some are enough: the first, as they are in an order of content.
    """
    unknown = [len(own) - float(ground.known[ground.order.rows[own]].sum()) for own in cells]
    largest = max(range(len(cells)), key=lambda i: (unknown[i], len(cells[i])))
    return ground.cell(cells[largest][:ENOUGH])


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
    racers = _racers(ground, cell, candidates, folds, threads)
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
    ground: Ground, cell: Cell, candidates: dict[int, Candidate], folds: Folds, threads: Workers
) -> list[Racer]:
    """All candidates, on kernel values that are computed once for all."""
    kernels = [kernel for candidate in candidates.values() for kernel in candidate]
    gram = Gram(cell.data.X, kernels, threads, *folds.columns(0))
    return [
        Racer(number, [run_of(ground, cell, gram, kernels)])
        for number, kernels in candidates.items()
    ]
