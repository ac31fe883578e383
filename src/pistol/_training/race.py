"""How often the rows are played and by which sum of kernels: decided by rows that are left out.

Each of a few random orders leaves out its own share of the rows. After 1, 2, 4, … passes the average
f̄ of every order is asked for the rows it has not seen; the sum of kernels and the number of passes that
do best there are kept. Then a few more orders of all rows are played in the chosen way. The model is
the average of these and of the very models that were asked; where rows are many and few orders left out
a large share of them, of the orders of all rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from .._compiled.threads import Workers
from .._compiled.types import Array, read_only
from .._data.ordering import Rounds
from .._learners import Learner

FOLDS, WHOLE = 5, 3  # orders that leave rows out, and orders of all rows that follow
SOME, SOME_FOLDS, SOME_WHOLE = 600, 3, 2  # the same for more rounds than these, alone in the model
GAIN = 0.02  # a doubling of the passes has to bring this much, relatively
EARLY = 8  # up to so many passes a doubling that brings nothing is followed by another
RACE = {2: 3, 4: 2, 16: 1}  # after so many passes only the best so many sums go on
MOST_PASSES, SOME_PASSES = 256, 64


class Play(Protocol):
    """One order that is played pass after pass."""

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients: they grow as long as anything is learned."""

    def learn(self, Y: Array, order: Array, r: Array) -> Array:
        """Play these rounds; what was predicted in them."""

    def scores(self, at: Array) -> Array:
        """f̄ at the rows with these numbers."""

    def snapshot(self) -> Any:
        """What has been learned so far."""

    def learner(self, kept: Any = None) -> Learner:
        """A learner that can go on with other rows, from a snapshot if one is given."""


@dataclass
class Candidate:
    """A way to learn, played on every fold."""

    number: int
    plays: list[Play]
    best: float = np.inf
    passes: int = 0
    kept: list[Any] = field(default_factory=list)
    left_out: Array = field(default_factory=lambda: np.empty(0))  # scores of rounds not played
    idle: int = 0  # doublings that brought nothing

    def learners(self) -> list[Learner]:
        """What it has learned when it did best, one an order."""
        return [play.learner(kept) for play, kept in zip(self.plays, self.kept, strict=True)]


@dataclass(frozen=True)
class Choice:
    """What was chosen, what it learned, and how it did on rows left out."""

    number: int
    passes: int
    learners: list[Learner]
    left_out: Array
    loss: float


def folds(groups: Array, r: Array, k: int) -> Array:
    """A fold for every round, given in random order, so that each has its share of every group."""
    fold = np.empty(len(r), np.int64)
    for group in np.unique(groups):
        at = np.flatnonzero(groups == group)
        middle = np.cumsum(r[at]) - 0.5 * r[at]
        fold[at] = np.minimum(k * middle / max(r[at].sum(), 1e-300), k - 1)
    return fold


def choose(
    ways: Sequence[Callable[[], Play]],
    Y: Array,
    rounds: Rounds,
    fold: Array,
    k: int,
    seed: int,
    loss: Callable[[Array], float],
    threads: Workers,
    most: int = MOST_PASSES,
    whole: int = WHOLE,
    seen: Callable[[Learner, Array, Array, Array], None] = lambda *_: None,
    stop: Callable[[Callable[[], list[Learner]]], bool] = lambda now: False,
) -> Choice:
    """Play all ways on all folds, pass by pass, and keep what does best on rows left out.

    Parameters
    ----------
    ways : sequence of callables
        What there is to choose from: each makes a player that has not played yet.
    Y : array of shape (rows, columns)
        Targets.
    rounds : (rows, sizes)
        The rounds of a pass, in an order that depends on nothing but content.
    fold, k : array of int, int
        The order, of k, that leaves out a round.
    seed : int
        Of the random orders.
    loss : callable
        From scores of all rounds to the loss that decides.
    threads : Workers
        Who plays.
    most, whole : int
        The most passes, and how many orders of all rows follow.
    seen : callable
        Told what each order predicted in its first pass, for what was chosen.
    stop : callable
        Asked after each doubling whether to be content with what there is, which it can have a look at.
    """
    rows, r = rounds
    out = [read_only(rows[fold == i]) for i in range(k)]
    kept_in = [np.flatnonzero(fold != i) for i in range(k)]
    candidates = [Candidate(i, [way() for _ in range(k)]) for i, way in enumerate(ways)]
    first: dict[int, list[Any]] = {}
    racing, done, mark = list(candidates), 0, 1
    while racing:
        tasks = [
            partial(
                _stretch, c.plays[i], Y, rows, r, kept_in[i], (seed, i), range(done, mark), out[i]
            )
            for c in racing
            for i in range(k)
        ]
        results = threads.run(tasks)
        for number, c in enumerate(racing):
            mine = results[number * k : (number + 1) * k]
            if not done:
                first[id(c)] = [m[1] for m in mine]
            scores = np.zeros((len(fold), Y.shape[1]))
            for i in range(k):
                scores[fold == i] = mine[i][0]
            value = loss(scores)
            c.idle = 0 if value < (1 - GAIN) * c.best else c.idle + 1
            if value < c.best:
                c.best, c.passes, c.left_out = value, mark, scores
                c.kept = [play.snapshot() for play in c.plays]
            if not any(m[2] for m in mine):  # nobody learned anything: nobody ever will
                c.idle = EARLY
        racing = [c for c in racing if c.idle < (2 if mark <= EARLY else 1)]
        racing = sorted(racing, key=lambda c: c.best)[: RACE.get(mark)]
        done, mark = mark, 2 * mark
        won = min(candidates, key=lambda c: c.best)
        if stop(won.learners) or mark > most:
            break
    learners = won.learners()
    for learner, (order, P) in zip(learners, first[id(won)], strict=True):
        seen(learner, rows[order], r[order], P)
    extra = [ways[won.number]() for _ in range(whole)]
    every = np.arange(len(rows))
    threads.run(
        [
            partial(_stretch, play, Y, rows, r, every, (seed, k + i), range(won.passes), out[0][:0])
            for i, play in enumerate(extra)
        ]
    )
    more = [play.learner() for play in extra]
    learners = more if more and len(rows) > SOME else learners + more
    return Choice(won.number, won.passes, learners, won.left_out, won.best)


def _stretch(
    play: Play, Y: Array, rows: Array, r: Array, among: Array, seed: tuple[int, ...],
    passes: range, out: Array,
) -> tuple[Array, tuple[Array, Array], bool]:  # fmt: skip
    """Play some passes; scores of the rows left out, the first pass, and whether anything moved."""
    before, first = play.alpha.copy(), (np.empty(0, np.int64), np.empty(0))
    for number in passes:
        order = np.random.default_rng((*seed, number)).permutation(among)
        P = play.learn(Y, read_only(rows[order]), read_only(r[order]))
        if number == 0:
            first = order, P
    return play.scores(out), first, bool((play.alpha != before).any())
