"""What is handed from step to step of a `fit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._compiled.types import Array, read_only
from .._data.intake import Columns
from .._data.mapped import Mapped
from .._data.ordering import Rounds, as_given, sampled
from .._learners import Learner, Rule
from ..losses import Loss
from .families import Candidate, Data, Family
from .fitted import Fitted
from .folds import shuffled_passes
from .race import Run, learn_passes
from .tasks import Task

RuleOf = Callable[[Loss, float | None, float], Rule]  # of a loss, rounds to come, size of a round


class Problem(NamedTuple):
    """What is asked, what learns, and by which rule."""

    task: Task
    family: Family
    rule_of: RuleOf
    drift: bool = False

    def rule(self, T: float | None, size: float) -> Rule:
        """The rule for so many rounds to come, of this size."""
        return self.rule_of(self.task.loss, T, size)


class Setup(NamedTuple):
    """The rest of what a fit needs to know."""

    passes: int | str
    orders: int | str | None
    random: Callable[[], np.random.RandomState]
    columns: Columns
    n_rows: int  # rows given, those of weight zero included
    settings: dict[str, Any]


class Work(NamedTuple):
    """Scaled rows and all that is known before anything is learned."""

    data: Data
    rounds: Rounds
    hashes: Array
    problem: Problem
    setup: Setup
    size: float
    blank: Fitted  # the result but for learners and what they tell

    def learner(self, candidate: Candidate, rule: Rule) -> Learner:
        """A new learner for these rows."""
        X, Y = self.data.X, self.data.Y
        return self.problem.family.learner(candidate, X.shape[1], Y.shape[1], rule)

    def in_memory(self) -> Work:
        """With all rows in memory, rather than made when they are asked for."""
        X = self.data.X
        return self._replace(
            data=self.data._replace(X=X.in_parts() if isinstance(X, Mapped) else X)
        )

    def narrow(self) -> Work:
        """With all rows in memory but for ramps, which are made when they are asked for."""
        X = self.data.X
        return self._replace(data=self.data._replace(X=X.narrow() if isinstance(X, Mapped) else X))

    def seed(self) -> int:
        """The user's."""
        return int(self.setup.random().randint(2**31 - 1))

    def rows_of(self, n: int) -> tuple[Array, Array]:
        """Rows of n rounds, chosen by content alone, and how much each of these rows counts."""
        return sampled(self.hashes, self.rounds, n)

    def sample(self, n: int) -> Work:
        """The same with n of the rounds."""
        return self.only(*self.rows_of(n))

    def only(self, rows: Array, weight: Array) -> Work:
        """The same with some of the rows, each with this weight."""
        X, Y, _, ids = self.data
        data = Data(X[rows], read_only(Y[rows]), weight, ids[rows])
        rounds = as_given(weight, self.size)
        return self._replace(data=data, rounds=rounds, hashes=self.hashes[rows])


def all_passes(
    run: Run, V: Array, rounds: Rounds, among: Array, seed: tuple[int, ...], numbers: range
) -> Run:
    """Learn these rounds in passes with these numbers, each time in another order."""
    learn_passes(run, V, shuffled_passes(rounds, among, seed, numbers))
    return run
