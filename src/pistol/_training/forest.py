"""Trees that all rows share, beside the base: what many rows tell of few features.

A cell knows its own rows alone, so noise in them does not average out however many cells there are. In
trees whose nodes all rows pass it does. Each of a few folds of the rows has trees of its own, learned
from the other folds. So every row has a score by trees that have not seen it: these scores say whether
trees help, and cells learn what is left by them. All trees together, averaged, predict.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import sqrt
from typing import NamedTuple

import numpy as np

from .._compiled.coordinates import GROWTHS
from .._compiled.threads import Workers
from .._compiled.types import Array, read_only
from .._data.ordering import Rounds, mix
from .._data.steps import feature_of
from .._learners import Rule
from .._learners.forest import Forest
from .._learners.nodes import Codes, TreeData, learned_forest
from .work import Work

FOLDS = 4
FEWEST = 1 / 16  # of the rounds that each fold has, at least
FIRST = 2  # folds that tell whether the others are worth their while
ENOUGH = 6144  # rounds that the base has not learned, at least, with one output; √K times with K
WIDEST = 1024  # features
SHARES = (0.25, 0.5, 0.75, 1.0)  # of the trees' scores
SAMPLE = 4096  # rows whose values are the thresholds of trees
PART = 2**13  # rows that are scored together
GAIN = 0.002  # what trees have to bring, relatively


class Beside(NamedTuple):
    """Scores of all rows, and the forest they contain; None where trees do not help."""

    start: Array
    forest: Forest | None = None


def beside_base(
    work: Work, start: Array, known: Array, order: Rounds, seed: int, threads: Workers
) -> Beside:
    """The base's scores of all rows, with those of a forest where these lower the loss."""
    rule = work.problem.rule(float(work.data.weight.sum()), work.size)
    left = 1.0 - known[order.rows]
    if not _eligible(work, float(left @ (order.r / work.size)), rule):
        return Beside(start)
    new = left > 0.0
    rounds = Rounds(order.rows[new], order.r[new])
    features = int(feature_of(work.blank.scaler).max()) + 1
    codes = Codes.of(work.data.X, features, rounds.rows[:SAMPLE], threads)
    fold = folds_of(codes)
    if np.bincount(fold[rounds.rows], minlength=FOLDS).min() < FEWEST * len(rounds.rows):
        return Beside(start)  # too many rows are alike
    forests: list[Forest] = []
    share = 0.0
    added = np.zeros_like(start)
    data = TreeData(codes.codes, work.data.Y, start, *rounds)
    learn = partial(_of_fold, data, fold, rule, seed, added)
    for some in (range(FIRST), range(FIRST, FOLDS)):
        forests += threads.run([partial(learn, k) for k in some])
        judged = [np.flatnonzero((known < 1.0) & (fold == k)) for k in range(len(forests))]
        share = _share(work, judged, start, added, rule)
        if not share:
            return Beside(start)
    forest = replace(Forest.mean(forests).times(share), n_jobs=work.problem.family.n_jobs)
    added *= share
    added += start
    return Beside(added, codes.thresholds(forest))


def folds_of(codes: Codes) -> Array:
    """The fold of each row, by its features alone: rows that trees cannot tell apart are in one.

    With their targets, too, rows that agree would be in folds by class, and each fold would be scored
    by trees that know the other classes only.
    """
    return (mix(codes.keys.astype(np.uint64)) % np.uint64(FOLDS)).astype(np.int8)


def _eligible(work: Work, rounds: float, rule: Rule) -> bool:
    """Whether there are rows enough, and not too many features to look at."""
    narrow = -1 < feature_of(work.blank.scaler).max(initial=-1) < WIDEST
    enough = rounds >= ENOUGH * sqrt(work.data.Y.shape[1])
    return narrow and enough and rule.potential in GROWTHS


def _of_fold(data: TreeData, fold: Array, rule: Rule, seed: int, added: Array, k: int) -> Forest:
    """A forest of the other folds; what it adds to the scores of the rows of this one is set."""
    others = fold[data.order] != k
    some = data._replace(order=data.order[others], r=data.r[others])
    forest = learned_forest(some, rule, (seed, k))
    own = np.flatnonzero(fold == k)
    for lo in range(0, len(own), PART):
        at = own[lo : lo + PART]
        added[at] = forest.decide(data.codes[at].astype(np.float32))
    return forest


def _share(work: Work, folds: list[Array], start: Array, added: Array, rule: Rule) -> float:
    """The share of the forests' scores with the least loss on these folds; 0 if that hardly helps.

    It has to help by more than one standard error over the folds.
    """
    losses = np.array([_losses(work, rows, start[rows], added[rows], rule) for rows in folds])
    without, *mean = losses.mean(axis=0)
    best = int(np.argmin(mean))
    gain = losses[:, 0] - losses[:, 1 + best]
    least = max(GAIN * abs(without), gain.std(ddof=1) / sqrt(len(gain)))
    return SHARES[best] if gain.mean() > least else 0.0


def _losses(work: Work, rows: Array, start: Array, added: Array, rule: Rule) -> list[float]:
    """The loss on these rows without the forest, and with each share of its scores."""
    V, weight = read_only(work.data.Y[rows]), work.data.weight[rows]
    loss = work.problem.task.held_out_loss(V, weight, rule)
    return [loss(start), *(loss(start + share * added) for share in SHARES)]
