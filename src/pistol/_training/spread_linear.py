"""Linear models that are learned on several machines.

Every block is learned by a learner of its own, all from one start, and the mean of their models is the
start of the next round. Rounds end when the loss of held-out rows does not fall any more. The mean is
as good as its parts by Jensen's inequality, because the losses are convex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.slots import Slots
from .._compiled.threads import one_blas_thread, workers
from .._compiled.types import Array, read_only
from .._data.fences import SAMPLE as FENCED
from .._data.fences import Fences, fences_of, within_stored
from .._data.ordering import Rounds, as_given
from .._data.origin import origin_scaler
from .._data.overview import overview
from .._data.scaling import Moments, Unscaled, moments_of
from .._data.seen import WIDE, Seen
from .._learners import Chunk, Rule
from .._learners.models import Linear
from .families import Data, stacked
from .fitted import Counts, Fitted, Online, joined, learned_before
from .tasks import summed_loss
from .work import Problem, Setup

MOST = 16  # rounds over the blocks
GAIN = 0.005  # a round has to bring this much, relatively
SHARE, HELD_OUT = 1 / 16, 2**14  # of the rows are held out: this share, but not more than so many


class Common(NamedTuple):
    """What all blocks are learned with."""

    blank: Fitted
    rule: Rule
    fences: Fences | None  # of dense rows
    usual: Array | None  # the usual values of dense features, from a sample
    seed: int
    share: float  # of held-out rows


class Block(NamedTuple):
    """Scaled rows of a block, and the rounds to learn."""

    data: Data
    rounds: Rounds


class Mean(NamedTuple):
    """Sums of the weights of models, each times its rounds; and of rounds and online losses."""

    total: Array
    rounds: float
    online: Online

    @property
    def weights(self) -> Array:
        """Those of the mean model."""
        return self.total / max(self.rounds, 1e-300)


def begin_linear(
    data: Data, problem: Problem, setup: Setup, total: Counts, weight: float, ends: Any
) -> Common:
    """What a sample says; the scaling of the rows is that of the sample until `scaled` is called."""
    task, family = problem.task.suited(data.Y, data.weight, ends), problem.family
    targets = task.scaler(data.Y, data.weight, ends)
    fences, usual, scaler = None, None, Unscaled(data.X.shape[1])
    assert hasattr(family, "scaling")
    if family.scaling and not sp.issparse(data.X):
        some = slice(0, FENCED)  # the sample is in random order
        fences = fences_of(data.X[some], data.weight[some])
        usual = moments_of(fences.within(data.X), data.weight).usual
    blank = Fitted(
        task, family, setup.columns, scaler, targets, [], 0, Online(), total,
        settings=setup.settings,
    )  # fmt: skip
    seed = int(setup.random().randint(2**31 - 1))
    rule = problem._replace(task=task).rule(weight, total.size)
    share = min(SHARE, HELD_OUT / max(total.rounds, 1))
    return Common(blank, rule, fences, usual, seed, share)


def fenced(common: Common, data: Data) -> Data:
    """The rows with values far out moved inwards."""
    if common.fences is not None:
        return data._replace(X=common.fences.within(data.X))
    if common.blank.family.scaling and sp.issparse(data.X):
        with workers(1) as threads:  # a block is one of many
            seen = overview(data.X, data.weight, threads)
            return data._replace(X=within_stored(data.X, seen, threads))
    return data


def features(common: Common, data: Data) -> Any:
    """What the scaling of a block's features needs: statistics, or which of them occur."""
    if common.fences is not None:
        moments = Moments(data.X.shape[1])
        X = fenced(common, data).X
        moments.add(X, data.weight)
        assert common.usual is not None
        moments.usual = common.usual
        moments.recount(X, data.weight)
        return moments
    if sp.issparse(data.X) and data.X.shape[1] > WIDE:
        return np.unique(data.X.indices)
    return None


def merged_features(parts: Sequence[Any]) -> Any:
    """The same for some blocks."""
    if isinstance(parts[0], Moments):
        return Moments.merged(parts)
    return None if parts[0] is None else np.unique(np.concatenate(parts))


def scaled(common: Common, found: Any) -> Common:
    """With the scaling that all blocks together suggest."""
    family, scaler = common.blank.family, common.blank.scaler
    if isinstance(found, Moments):
        scaler = found.scaler() if family.fit_intercept else origin_scaler(found)
    elif found is not None:
        scaler = Seen(Slots(found), common.blank.columns.n, len(found))
    return common._replace(blank=replace(common.blank, scaler=scaler))


def prepared(common: Common, number: int, data: Data) -> tuple[Block, Block]:
    """The rows of a block to learn from, and those held out."""
    data = fenced(common, data)
    blank = common.blank
    Z, V = blank.scaler.transform(data.X), blank.targets.transform(data.Y)
    held = np.random.default_rng((common.seed, number, 2)).random(len(V)) < common.share
    whole = Data(Z, read_only(V), data.weight, data.ids)
    at = np.flatnonzero(held)
    apart = Data(Z[at], read_only(V[at]), data.weight[at], data.ids[at])
    learned = _rounds(common, data.weight, np.flatnonzero(~held))  # of the whole, without a copy
    return Block(whole, learned), Block(apart, _rounds(common, apart.weight, np.arange(len(at))))


def together(parts: Sequence[Block]) -> Block:
    """The rows of some blocks, one block after the other."""
    starts = np.cumsum([0, *(len(part.data.Y) for part in parts)])
    rows = [part.rounds.rows + start for part, start in zip(parts, starts)]
    rounds = Rounds(np.concatenate(rows), np.concatenate([part.rounds.r for part in parts]))
    return Block(stacked([part.data for part in parts]), rounds)


def _rounds(common: Common, weight: Array, at: Array) -> Rounds:
    """The rounds of some rows."""
    found = as_given(np.array(weight[at]), common.blank.counts.size)
    return found._replace(rows=read_only(at[found.rows]))


def learn_block(common: Common, start: Array | None, number: int, turn: int, block: Block) -> Mean:
    """Learn the rows of a block in a shuffled order, from a start."""
    blank, (data, rounds) = common.blank, block
    n, outputs = data.X.shape[1], data.Y.shape[1]
    learner: Any = blank.family.learner((), n, outputs, common.rule)
    if start is not None:
        learner.start_from(start, np.ones(n))
    at = np.random.default_rng((common.seed, number, 3, turn)).permutation(len(rounds.rows))
    order, r = read_only(rounds.rows[at]), read_only(np.ascontiguousarray(rounds.r[at]))
    online = Online()
    with one_blas_thread():
        for chunk in learner.play(data.X, data.Y, order, r):
            if turn == 0:
                before = learned_before(chunk.r, learner.t - float(chunk.r.sum()))
                online = online.then(chunk, data.Y, blank.task, blank.targets, common.rule, before)
    t = float(r.sum())
    return Mean(learner.model().weights * t, t, online)


def merged(parts: Sequence[Mean]) -> Mean:
    """The sums over some blocks, in their order."""
    total = parts[0].total.copy()
    for part in parts[1:]:
        total += part.total
    online = joined([part.online for part in parts])
    return Mean(total, sum(part.rounds for part in parts), online)


def held_out_loss(common: Common, weights: Array, block: Block) -> tuple[float, float]:
    """The loss on held-out rows, and their rounds."""
    data, rounds = block
    with one_blas_thread():
        P = Linear(weights).decide(data.X)[rounds.rows]
    chunk = Chunk(read_only(rounds.rows), read_only(np.ascontiguousarray(rounds.r)), P)
    return summed_loss(common.rule, chunk, data.Y), float(rounds.r.sum())


def finished(common: Common, mean: Mean, weights: Array, turns: int) -> Fitted:
    """The model with these weights."""
    blank = common.blank
    learner: Any = blank.family.learner((), weights.shape[1] - 1, len(weights), common.rule)
    learner.start_from(weights, np.ones(weights.shape[1] - 1))
    learner.S.t[0, 0] = mean.rounds
    return replace(blank, learners=[learner], passes=turns, online=mean.online)
