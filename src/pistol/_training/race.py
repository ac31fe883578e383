"""A race between candidates on held-out rows: which kernels, and how many passes.

Each of a few shuffled orders holds out its own share of the rows, and every candidate learns from the
rest. After 1, 2, 4, … passes the average f̄ of every order predicts the rows it has not seen. The
candidate and the number of passes with the smallest loss on these rows win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._compiled.threads import Workers
from .._compiled.types import Array, read_only
from .._data.ordering import Rounds
from .._learners import Chunk, Learner

GAIN = 0.02  # a doubling of the passes has to bring this much, relatively
EARLY = 8  # up to so many passes a doubling that brings nothing is followed by another
ON = {2: 3, 4: 2, 16: 1}  # after so many passes only the best so many candidates go on


class Run(Protocol):
    """One candidate on one shuffled order, pass after pass."""

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients: they grow as long as anything is learned."""

    def learn(self, V: Array, order: Array, r: Array) -> Array:
        """Learn these rounds; what was predicted in them."""

    def scores(self, at: Array) -> Array:
        """f̄ at the rows with these numbers."""

    def snapshot(self) -> Any:
        """What has been learned so far."""

    def learner(self, kept: Any = None) -> Learner:
        """A learner that can go on with other rows, from a snapshot if one is given."""


class Folds(NamedTuple):
    """The rounds of a pass in an order of content, and the fold that holds out each of them."""

    rounds: Rounds
    fold: Array
    k: int
    seed: int

    def learned(self, i: int) -> Array:
        """Numbers of the rounds that fold i learns from."""
        return np.flatnonzero(self.fold != i)

    def held_out(self, i: int) -> Array:
        """Rows that fold i holds out, one entry per round."""
        return read_only(self.rounds.rows[self.fold == i])


@dataclass
class Racer:
    """A candidate on every fold, and how it did when it did best."""

    number: int
    runs: list[Run]
    best: float = np.inf
    passes: int = 0
    kept: list[Any] = field(default_factory=list)
    held_out: Array = field(default_factory=lambda: np.empty(0))  # scores of held-out rounds
    first: list[Chunk] = field(default_factory=list)  # first passes, one per fold
    idle: int = 0  # doublings that brought nothing

    def learners(self) -> list[Learner]:
        """What it had learned when it did best, one learner per fold."""
        return [run.learner(kept) for run, kept in zip(self.runs, self.kept, strict=True)]


def assign_folds(groups: Array, r: Array, k: int) -> Array:
    """A fold for every round, given in random order, so that each has its share of every group."""
    fold = np.empty(len(r), np.int64)
    for group in np.unique(groups):
        at = np.flatnonzero(groups == group)
        middle = np.cumsum(r[at]) - 0.5 * r[at]
        fold[at] = np.minimum(k * middle / max(r[at].sum(), 1e-300), k - 1)
    return fold


def race(
    makers: Sequence[Callable[[], Run]],
    V: Array,
    folds: Folds,
    loss: Callable[[Array], float],
    most: int,
    threads: Workers,
) -> Iterator[Racer]:
    """Run all candidates on all folds and yield the best so far after each doubling of the passes.

    Parameters
    ----------
    makers : sequence of callables
        Each makes a run of one candidate that has learned nothing yet.
    V : array of shape (rows, outputs)
        Scaled targets.
    folds : Folds
        Rounds and what each fold holds out.
    loss : callable
        From scores of all rounds, each by the fold that held it out, to the loss to compare.
    most : int
        The most passes.
    threads : Workers
        Who runs them.
    """
    candidates = [Racer(i, [make() for _ in range(folds.k)]) for i, make in enumerate(makers)]
    racing, done, mark = list(candidates), 0, 1
    while racing and mark <= most:
        tasks = [
            partial(_passes, run, V, folds, i, range(done, mark))
            for candidate in racing
            for i, run in enumerate(candidate.runs)
        ]
        results = threads.run(tasks)
        for number, candidate in enumerate(racing):
            mine = results[number * folds.k : (number + 1) * folds.k]
            _judge(candidate, mine, folds, loss, mark)
        racing = [c for c in racing if c.idle < (2 if mark <= EARLY else 1)]
        racing = sorted(racing, key=lambda c: c.best)[: ON.get(mark)]
        done, mark = mark, 2 * mark
        yield min(candidates, key=lambda c: c.best)


class _Passes(NamedTuple):
    """Some passes of one run: scores of held-out rounds, the last pass, whether anything moved."""

    scores: Array
    chunk: Chunk
    moved: bool


def _passes(run: Run, V: Array, folds: Folds, i: int, passes: range) -> _Passes:
    before, among = run.alpha.copy(), folds.learned(i)
    for number in passes:
        chunk = one_pass(run, V, folds.rounds, among, (folds.seed, i, number))
    return _Passes(run.scores(folds.held_out(i)), chunk, bool((run.alpha != before).any()))


def one_pass(run: Run, V: Array, rounds: Rounds, among: Array, seed: tuple[int, ...]) -> Chunk:
    """Learn these rounds once, in a shuffled order."""
    order = np.random.default_rng(seed).permutation(among)
    rows, r = read_only(rounds.rows[order]), read_only(rounds.r[order])
    return Chunk(rows, r, run.learn(V, rows, r))


def _judge(candidate: Racer, results: list[_Passes], folds: Folds, loss: Any, mark: int) -> None:
    """Note how a candidate does after so many passes."""
    if mark == 1:
        candidate.first = [result.chunk for result in results]
    scores = np.zeros((len(folds.fold), results[0].scores.shape[1]))
    for i, result in enumerate(results):
        scores[folds.fold == i] = result.scores
    value = loss(scores)
    candidate.idle = 0 if value < (1 - GAIN) * candidate.best else candidate.idle + 1
    if value < candidate.best:
        candidate.best, candidate.passes, candidate.held_out = value, mark, scores
        candidate.kept = [run.snapshot() for run in candidate.runs]
    if not any(result.moved for result in results):  # nothing was learned: nothing ever will be
        candidate.idle = EARLY
