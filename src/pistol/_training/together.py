"""Many rows together, beside cells: where few rows have a gradient, one learner can learn them all.

A pass costs rows × support rows. Where labels are nearly certain most rows are never support rows, and
passes over those that are cost little. Cells have too few rows of a rare class each, so on such tables
both are learned, and held-out rows choose.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from .._compiled.types import Array, read_only
from .._data.mapped import Mapped
from .._data.metric import Weighted, metric_weights, weighted
from .._data.ordering import Rounds, shuffled
from .._learners import Learner
from .._learners.gradients import mean_squares
from .._learners.models import mean_model
from .cells import learn_cells
from .fitted import Fitted, Online, learned_before
from .metric import SAMPLE
from .plan import Plan
from .tasks import mean_error
from .watch import Watch
from .work import Work

MOST_WORK = 2**40  # rounds × rounds × (columns + KERNELS), at most
KERNELS = 64  # columns that cost as much as the values of all kernels
SEVERAL = 4  # cells; where there are fewer, each of them has many rows
LOOKED_AT = 4096  # first rounds, which tell how many have a gradient
FEW = 1 / 3  # of them, at most
HELD_OUT = 2048  # rounds
WHOLE = 4  # the first of so many passes is over all rounds, the others over support rows
MOST = 8  # passes
GAIN = 0.02  # what more than one pass has to bring for more than WHOLE passes, relatively


def learn_many(work: Work, number: int, passes: int, plan: Plan, watch: Watch) -> Fitted:
    """Cells, or all rows together where that has the smaller loss on held-out rows."""
    if not (_eligible(work, plan) and few_gradients(work)):
        return learn_cells(work, number, passes, plan, watch)
    held_out = _held_out(work, plan.base)
    if not held_out.any():
        return learn_cells(work, number, passes, plan, watch)
    one = _together(work, held_out)
    rest, held = _parted(work, held_out)
    cells = learn_cells(rest, number, passes, plan, watch)
    if _judged(held, cells.learners).loss <= one.loss:
        return _told(held, cells)
    return _told(one.held, one.fitted())


def _eligible(work: Work, plan: Plan) -> bool:
    """Whether there are several cells, all rows are affordable, and support rows may be many."""
    rounds, features = len(work.rounds.rows), work.data.X.shape[1]
    unbounded = cast(Any, work.problem.family).max_support is None
    return unbounded and rounds > SEVERAL * plan.cell and affordable(rounds, features)


def affordable(rounds: int, features: int) -> bool:
    """Whether so many rounds can be learned together."""
    return rounds**2 * (features + KERNELS) <= MOST_WORK


def few_gradients(work: Work) -> bool:
    """Whether few of the first rounds have a gradient."""
    some, learner = work.sample(LOOKED_AT), _learner(work)
    order, r = shuffled(some.hashes, some.rounds, 0)
    for _ in learner.play(some.data.X, some.data.Y, order, r):
        pass
    return bool(learner.support.ids.n <= FEW * len(some.hashes))


def _held_out(work: Work, base: int) -> Array:
    """Which rows are held out: the next by content after those of the base; all copies of a row."""
    known, _ = work.rows_of(base)
    some, _ = work.rows_of(base + HELD_OUT)
    hashes = work.hashes
    return np.isin(hashes, hashes[some]) & ~np.isin(hashes, hashes[known])


def _parted(work: Work, held_out: Array) -> tuple[Work, Work]:
    """The same with the rows to learn, and with those that are held out."""
    parts = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    rest, held = (work.only(rows, read_only(work.data.weight[rows])) for rows in parts)
    return rest, held


def _learner(work: Work) -> Any:
    """A learner of the mixed sum, for rows like these."""
    some = work.sample(LOOKED_AT).data
    kernels = work.problem.family.usual(some.X, some.weight, work.blank.scaler)
    return work.learner(kernels, work.problem.rule(float(work.data.weight.sum()), work.size))


def _learn(work: Work, learner: Learner, rounds: Rounds) -> Online:
    """Learn these rounds; sums over what was predicted before they were learned."""
    data, online, before = work.data, Online(), 0.0
    task, targets = work.problem.task, work.blank.targets
    for chunk in learner.play(data.X, data.Y, rounds.rows, rounds.r, data.ids):
        past = learned_before(chunk.r, before)
        online = online.then(chunk, data.Y, task, targets, learner.rule, past)
        before += float(chunk.r.sum())
    return online


@dataclass
class One:
    """One learner of all rows in some metric, pass after pass, and what held-out rows say of it."""

    work: Work
    held: Work
    learner: Any
    loss: float = np.inf
    gained: bool = True  # whether the last passes brought enough
    sums: list[Online] = field(default_factory=list)  # of each pass

    @classmethod
    def unlearned(cls, work: Work, held_out: Array) -> One:
        """Before the first pass."""
        rest, held = _parted(work, held_out)
        return cls(rest, held, _learner(rest))

    def go_on(self, passes: int) -> None:
        """Learn until there were so many passes."""
        seed = self.work.seed()
        for number in range(len(self.sums), passes):
            rounds = _pass(self.work, self.learner, seed, number)
            self.sums.append(_learn(self.work, self.learner, rounds))
        before, self.loss = self.loss, _judged(self.held, [self.learner]).loss
        self.gained = self.loss <= (1 - GAIN) * before

    def metric(self) -> Array:
        """Weights of features: the more f changes along one, the larger."""
        data, scaler = self.work.sample(SAMPLE).data, self.work.blank.scaler
        squares = mean_squares(self.learner.model(), data.X, data.weight)
        squares = self.work.problem.family.pooled(squares, data.X, data.weight, scaler)
        return metric_weights(np.ones(len(squares)), squares)

    def fitted(self) -> Fitted:
        """What was learned, to be told what held-out rows say."""
        blank, passes = self.work.blank, len(self.sums)
        return replace(blank, learners=[self.learner], passes=passes, online=self.sums[0])


def _together(work: Work, held_out: Array) -> One:
    """One learner of all rows, in the metric that one without a metric has found, or in none.

    The metric of a sample is worth little where it has few rows of a rare class.
    """
    tried = [_tried(_plain(work), held_out)]
    if work.problem.family.metrics(work.data.X):
        tried.append(_tried(_weighted(work, tried[0].metric()), held_out))
    best = min(tried, key=lambda one: one.loss)
    if best.gained:
        best.go_on(MOST)
    return best


def _tried(work: Work, held_out: Array) -> One:
    """A few passes of one learner."""
    one = One.unlearned(work, held_out)
    one.go_on(1)
    one.go_on(WHOLE)
    return one


def _plain(work: Work) -> Work:
    """The same without the metric that a sample has found."""
    scaler = work.blank.scaler
    return _weighted(work, np.ones(scaler.features)) if isinstance(scaler, Weighted) else work


def _weighted(work: Work, weight: Array) -> Work:
    """The same with these weights of features, in place of those that a sample has found."""
    scaler, X = work.blank.scaler, work.data.X
    inner, found = (scaler.scaler, scaler.weight) if isinstance(scaler, Weighted) else (scaler, 1.0)
    step = partial(weighted, weight=weight / found)
    data = work.data._replace(X=X.then(step) if isinstance(X, Mapped) else step(X))
    return work._replace(data=data, blank=replace(work.blank, scaler=Weighted(inner, weight)))


def _pass(work: Work, learner: Any, seed: int, number: int) -> Rounds:
    """All rounds in another order, or those of support rows: others hardly have a gradient."""
    order, r = shuffled(work.hashes, work.rounds, (seed + number) % 2**31)
    if number % WHOLE == 0:
        return Rounds(order, r)
    again = np.isin(work.data.ids[order], learner.support.ids.values)
    return Rounds(read_only(order[again]), read_only(r[again]))


class Judged(NamedTuple):
    """Scores of held-out rows, and their loss."""

    scores: Array
    loss: float


def _judged(held: Work, learners: list[Learner]) -> Judged:
    """What these learners make of held-out rows."""
    data, problem = held.data, held.problem
    scores = mean_model([learner.model() for learner in learners]).decide(data.X)
    rule = problem.rule(float(data.weight.sum()), held.size)
    return Judged(scores, problem.task.held_out_loss(data.Y, data.weight, rule)(scores))


def _told(held: Work, fitted: Fitted) -> Fitted:
    """What held-out rows say, and these rows learned, too."""
    data, task = held.data, held.problem.task
    scores, _ = _judged(held, fitted.learners)
    T = task.temperature(scores, data.Y, data.weight)
    error = mean_error(task, scores, data.Y, data.weight, held.blank.targets)
    order, r = shuffled(held.hashes, held.rounds, 0)
    for learner in fitted.learners:
        for _ in learner.play(data.X, data.Y, order, r, data.ids):
            pass
    return replace(fitted, temperature=T, held_out_error=error)
