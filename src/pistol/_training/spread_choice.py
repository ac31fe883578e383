"""What a sample of rows on several machines chooses for all of them.

The choice has three steps. `begin_choice` scales the sample. `search` is called once for each scaling
that the race chooses from. No call needs what another has found, so they run side by side. `settled`
takes the best of them, learns the base, and divides space into groups of cells. Each step is a function
of its arguments alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._compiled.threads import one_blas_thread, workers
from .._compiled.types import Array, read_only
from .._data.metric import Weighted, mean_weights
from .._data.ordering import as_given, fingerprints, shuffled
from .._learners import Rule
from .._learners.models import Expansion
from .._learners.trees import Tree, grow_tree
from .batch import error_of, moved_on, scaled_work, scalings_of, ways_of
from .cells import learn_base
from .families import Data
from .fitted import Counts, Fitted
from .metric import best_way
from .plan import Plan
from .work import Problem, Setup, Work

SCALINGS = 2  # that a race chooses from, at most
GROUP = 16  # cells of a group, where there are many rows
FEWEST, MOST = 16, 1024  # groups


class Start(NamedTuple):
    """A sample as it is before anything is chosen, and scaled."""

    X: Any
    work: Work
    plan: Plan
    weight: float  # of all rows

    def sample(self) -> Start:
        """The same with the rows that races are on."""
        assert self.plan.race is not None
        return self._replace(X=None, work=self.work.sample(self.plan.race.sample))


class Found(NamedTuple):
    """What races in one scaling have found."""

    losses: tuple[float, ...]  # after each phase
    weight: Array | None  # the metric
    number: int  # of the candidate
    passes: int
    error: float | None


class Shared(NamedTuple):
    """What a sample has chosen for all rows."""

    blank: Fitted
    base: Expansion
    rule: Rule
    plan: Plan
    size: float
    seed: int
    tops: list[Tree]  # one per tree; their cells are the groups
    learned: Array  # fingerprints of the rows that the base has learned


def groups_of(rounds: float, cell: int) -> int:
    """How many groups so many rounds have; it does not depend on the number of machines."""
    fewest = min(FEWEST, rounds / (2 * cell))  # a group has more than one cell
    return int(np.clip(rounds / (GROUP * cell), max(fewest, 1), MOST))


def begin_choice(
    data: Data, problem: Problem, setup: Setup, plan: Plan, total: Counts, weight: float, ends: Any
) -> Start:
    """Scale a sample of all `total` rows, whose weights add up to `weight`."""
    task, size = problem.task.suited(data.Y, data.weight, ends), total.size
    problem = problem._replace(task=task)
    targets = task.scaler(data.Y, data.weight, ends)
    work = scaled_work(data, as_given(data.weight, size), problem, setup, size, targets)
    return Start(data.X, work._replace(blank=replace(work.blank, counts=total)), plan, weight)


def search(some: Start, number: int) -> Found | None:
    """What races in the scaling with this number find; None if there is no such scaling."""
    work, plan = some.work, some.plan
    assert plan.race is not None
    with workers(work.problem.family.n_jobs) as threads, one_blas_thread():
        ways = ways_of(work, plan.race, work.seed(), threads)
        if number >= len(ways.scalers):
            return None
        losses = []
        for level in ways.alone(number):
            losses.append(level.best.best)
    best, weight = level.best, None if level.weights is None else mean_weights(level.weights)
    return Found(tuple(losses), weight, best.number, best.passes, error_of(work, ways, best))


def settled(start: Start, every: Sequence[Found | None]) -> Shared:
    """The best of all scalings, a base in its metric, and the groups of cells."""
    found = [each for each in every if each is not None]
    way = best_way([each.losses for each in found])
    best, scaler = found[way], scalings_of(start.sample().work)[way]
    scaler = scaler if best.weight is None else Weighted(scaler, best.weight)
    work, plan = moved_on(start.work, scaler, best.error), start.plan
    seed, blank = work.seed(), work.blank
    with workers(work.problem.family.n_jobs) as threads, one_blas_thread():
        base, known = learn_base(work, best.number, best.passes, plan, seed, threads)
    order = shuffled(work.hashes, work.rounds, 0).rows
    most = max(1, len(order) // groups_of(blank.counts.rounds, plan.cell))
    Z = work.data.X[order]
    tops = [grow_tree(Z, most, np.random.default_rng((seed, t))) for t in range(plan.orders or 1)]
    some = compact(blank, start.X[known]), read_only(work.data.Y[known])
    rule = work.problem.rule(start.weight, work.size)
    return Shared(blank, base, rule, plan, work.size, seed, tops, np.unique(fingerprints(*some)))


def compact(blank: Fitted, X: Any) -> Any:
    """Rows scaled, as workers keep them."""
    return blank.family.compact(blank.scaler.transform(X))
