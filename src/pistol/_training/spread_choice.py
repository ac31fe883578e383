"""What a sample of rows on several machines chooses for all of them.

The choice has two steps. `begin_choice` scales the sample. `settled` runs the races on some of its
rows, learns the base from more of them and trees beside it from the others, and divides space into
groups of cells. Each step is a function of its arguments alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._compiled.threads import one_blas_thread, workers
from .._compiled.types import Array, read_only
from .._data.ordering import as_given, fingerprints, learned_share, shuffled
from .._learners import Rule
from .._learners.cells import start_of
from .._learners.forest import Forest
from .._learners.models import Expansion
from .._learners.trees import Tree, grow_tree
from .batch import race_on_sample, scaled_work
from .cells import learn_base
from .families import Data
from .fitted import Counts, Fitted
from .forest import beside_base
from .plan import Plan
from .work import Problem, Setup, Work

GROUP = 16  # cells of a group, where there are many rows
FEWEST, MOST = 16, 1024  # groups


class Start(NamedTuple):
    """A sample as it is before anything is chosen, and scaled."""

    X: Any
    work: Work
    plan: Plan
    weight: float  # of all rows


class Known(NamedTuple):
    """Rows that were learned, by their fingerprints, ascending, and how much of each."""

    prints: Array
    learned: Array

    @classmethod
    def counted(cls, prints: Array, weight: Array) -> Known:
        """These rows, each once."""
        found, at = np.unique(prints, return_inverse=True)
        return cls(found, np.bincount(at, weight, len(found)))

    def of(self, prints: Array) -> Array:
        """How much was learned of rows like these."""
        at = np.minimum(np.searchsorted(self.prints, prints), len(self.prints) - 1)
        return np.where(self.prints[at] == prints, self.learned[at], 0.0)


class Scored(NamedTuple):
    """Rows of the sample, by fingerprints in order, and scores by trees that have not seen them."""

    prints: Array
    scores: Array

    def put(self, prints: Array, scores: Array) -> None:
        """Set the scores of rows like these, among others."""
        at = np.minimum(np.searchsorted(self.prints, prints), len(self.prints) - 1)
        same = self.prints[at] == prints
        scores[same] = self.scores[at[same]]


class Shared(NamedTuple):
    """What a sample has chosen for all rows."""

    blank: Fitted
    base: Expansion
    rule: Rule
    plan: Plan
    size: float
    seed: int
    tops: list[Tree]  # one per tree; their cells are the groups
    learned: Known  # the rows that the base has learned
    forest: Forest | None = None
    scored: Scored | None = None  # where there is a forest

    def start(self, Z: Any, prints: Array) -> Array:
        """Scores that cells go on from, of rows with these fingerprints."""
        scores = start_of(self.base, self.forest, Z)
        if self.scored is not None:
            self.scored.put(prints, scores)
        return scores


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
    work = work.in_memory()
    return Start(data.X, work._replace(blank=replace(work.blank, counts=total)), plan, weight)


def settled(start: Start) -> Shared:
    """What races on the sample choose, a base in their metric, and the groups of cells."""
    plan = start.plan
    assert plan.race is not None
    chosen, work = race_on_sample(start.work, plan.race)
    seed, blank = work.seed(), work.blank
    with workers(work.problem.family.n_jobs) as threads, one_blas_thread():
        passes = chosen.fitted.passes
        base = learn_base(work, chosen.number, passes, plan, seed, threads)
        known = learned_share(work.hashes, work.data.weight, *work.rows_of(plan.base))
        rounds = shuffled(work.hashes, work.rounds, 0)
        scores = base.decide(work.data.X, work.hashes)
        found = beside_base(work, scores, known, rounds, seed, threads)
    order = rounds.rows
    most = max(1, len(order) // groups_of(blank.counts.rounds, plan.cell))
    random = [np.random.default_rng((seed, t)) for t in range(plan.orders or 1)]
    tops = [grow_tree(work.data.X, most, each, order) for each in random]
    rows, weight = work.rows_of(plan.base)
    some = compact(blank, start.X[rows]), read_only(work.data.Y[rows])
    learned = Known.counted(fingerprints(*some), weight)
    rule = work.problem.rule(start.weight, work.size)
    shared = Shared(blank, base.model, rule, plan, work.size, seed, tops, learned)
    if found.forest is None:
        return shared
    prints = fingerprints(compact(blank, start.X), work.data.Y)
    prints, first = np.unique(prints, return_index=True)
    return shared._replace(forest=found.forest, scored=Scored(prints, found.start[first]))


def compact(blank: Fitted, X: Any) -> Any:
    """Rows scaled, as workers keep them."""
    return blank.family.compact(blank.scaler.transform(X))
