"""Many rows together, beside cells: where few rows have a gradient, one learner can learn them all.

A pass costs rows × support rows. Where labels are nearly certain most rows are never support rows, and
passes over those that are cost little. Cells have too few rows of a rare class each, so on such tables
both are learned, and held-out rows choose.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from .._compiled.types import Array, read_only
from .._data.ordering import Rounds, shuffled
from .._learners import Learner
from .._learners.models import mean_model
from .cells import learn_cells
from .fitted import Fitted, Online, learned_before
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
STAGES = 1, 4, 8  # passes after which held-out rows are looked at
GAIN = 0.02  # what more passes have to bring, relatively


def learn_many(work: Work, number: int, passes: int, plan: Plan, watch: Watch) -> Fitted:
    """Cells, or all rows together where that has the smaller loss on held-out rows."""
    if not (_eligible(work, plan) and few_gradients(work)):
        return learn_cells(work, number, passes, plan, watch)
    held_out = _held_out(work, plan.base)
    rest, held = _only(work, ~held_out), _only(work, held_out)
    if not len(held.rounds.rows):
        return learn_cells(work, number, passes, plan, watch)
    one = _together(rest, held)
    cells = learn_cells(rest, number, passes, plan, watch)
    return _told(held, min(cells, one, key=lambda fitted: _judged(held, fitted.learners).loss))


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


def _only(work: Work, some: Array) -> Work:
    """The same with some of the rows."""
    rows = np.flatnonzero(some)
    return work.only(rows, read_only(work.data.weight[rows]))


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


def _together(work: Work, held: Work) -> Fitted:
    """One learner of all rows, with as many passes as held-out rows ask for."""
    learner, seed, loss = _learner(work), work.seed(), np.inf
    sums: list[Online] = []  # of each pass
    for stage in STAGES:
        for number in range(len(sums), stage):
            sums.append(_learn(work, learner, _pass(work, learner, seed, number)))
        before, loss = loss, _judged(held, [learner]).loss
        if loss > (1 - GAIN) * before:
            break
    return replace(work.blank, learners=[learner], passes=len(sums), online=sums[0])


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
