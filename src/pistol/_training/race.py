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
from .._compiled.types import Array
from .._learners import Chunk, Learner
from .folds import Folds, Passes

GAIN = 0.02  # a doubling of the passes has to bring this much, relatively,
LATE, LATE_GAIN = 16, 0.05  # and a doubling to so many passes or more this much
EARLY = 8  # up to so many passes a doubling that brings nothing is followed by another
SURVIVORS = {2: 3, 4: 2, 16: 1}  # after so many passes, and later, only so many of the best go on
NEAR = 0.1  # by so much a loss on few folds may be larger than the least for the others to follow


class Run(Protocol):
    """One candidate on one shuffled order, pass after pass."""

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients: they grow as long as anything is learned."""

    def learn(self, V: Array, order: Array, r: Array, ends: Array | None = None) -> Array:
        """Learn these rounds; what was predicted in them. Several passes end at `ends`."""

    def learn_and_score(
        self, V: Array, order: Array, r: Array, ends: Array, marks: Array, at: Array
    ) -> tuple[Array, Array]:
        """The same; and f̄ at the rows with numbers `at`, after as many passes as each of `marks`."""

    def expansion(self) -> Any:
        """f̄ as a function of scaled rows, where a metric is to be learned from it."""

    def snapshot(self) -> Any:
        """What has been learned so far."""

    def learner(self, kept: Any = None) -> Learner:
        """A learner that can go on with other rows, from a snapshot if one is given."""


@dataclass
class Racer:
    """A candidate on every fold, and how it did when it did best."""

    number: int
    runs: list[Run]
    # makes a run for one more fold, where folds share values
    again: Callable[[], Run] | None = None
    best: float = np.inf
    passes: int = 0  # when it did best
    held_out: Array = field(default_factory=lambda: np.empty(0))  # scores of held-out rounds then
    kept: Any = None  # what the first fold had learned then, where somebody may ask for it
    marks: list[int] = field(default_factory=list)  # passes after which it was judged
    scores: list[Array] = field(default_factory=list)  # then, of each fold so far
    snapshots: list[Any] = field(default_factory=list)  # then, of the first fold
    first: list[Chunk] = field(default_factory=list)  # first passes, one per fold
    idle: int = 0  # doublings that brought nothing
    still: bool = False  # nothing was learned in the last passes: nothing ever will be

    @property
    def done(self) -> int:
        """Passes so far."""
        return self.marks[-1] if self.marks else 0

    @property
    def improving(self) -> bool:
        """Whether more passes may bring more."""
        return not self.still and self.idle < (2 if self.done <= EARLY else 1)

    def judged(self, fold: int) -> int:
        """At how many of its marks there are scores of a fold."""
        return len(self.scores[fold]) if fold < len(self.scores) else 0

    def note(self, fold: int, new: _Learned) -> None:
        """Keep what a fold has learned after what it had learned before."""
        if fold == len(self.scores):
            self.first.append(new.first)
            self.scores.append(new.scores)
        else:
            self.scores[fold] = np.concatenate([self.scores[fold], new.scores])

    def learner(self) -> Learner:
        """What the first fold had learned when the candidate did best."""
        return self.runs[0].learner(self.kept)


class Contest(NamedTuple):
    """What all candidates are given: targets, folds, the loss to compare, and threads."""

    V: Array  # scaled targets of all rows
    folds: Folds
    loss: Callable[[Array], float]  # of scores of all rounds, each by the fold that held it out
    threads: Workers
    watched: bool = False  # whether somebody may ask for what was learned on the way
    few: Contest | None = None  # the same on some of the folds, for a first look
    # tasks for threads that the race does not need
    beside: Callable[[], list[Callable[[], Any]]] = list

    def race(self, racers: list[Racer], most: int, least: int = 0) -> Iterator[Racer]:
        """Let all candidates learn and yield the best so far after each doubling of the passes.

        Those that fall behind stop early, and so do those that do not improve any more, after the
        least number of passes.
        """
        for (leader,) in self.races([racers], most, least):
            yield leader

    def races(
        self, several: Sequence[list[Racer]], most: int, least: int = 0
    ) -> Iterator[list[Racer]]:
        """Races beside each other, which shares them out better among threads; the best of each."""
        marks = [max(racer.done for racer in racers) for racers in several]
        racing = [_going_on(*race, most, least) for race in zip(several, marks, strict=True)]
        while any(racing):
            steps = [self.steps(*race, most, least) for race in zip(racing, marks, strict=True)]
            self.go_on(
                [
                    (racer, step)
                    for racers, step in zip(racing, steps, strict=True)
                    for racer in racers
                ]
            )
            marks = [step[-1] for step in steps]
            racing = [_going_on(*race, most, least) for race in zip(racing, marks, strict=True)]
            yield [min(racers, key=lambda racer: racer.best) for racers in several]

    def longer(self, racers: list[Racer], most: int) -> Iterator[Racer]:
        """Let the best learn on and yield the best of all after each doubling of the passes.

        The last doubling brings nothing, so a few folds have a look at each of them first. The other
        folds follow if it lowers the loss of these few.
        """
        if self.few is None:
            yield from self.race(racers, most)
            return
        mark = max(racer.done for racer in racers)
        while racing := _going_on(racers, mark, most, 0):
            mark *= 2
            self.catch_up(self.few.improved(racing, mark))
            yield min(racers, key=lambda racer: racer.best)

    def improved(self, racers: list[Racer], mark: int) -> list[Racer]:
        """Let candidates learn so many passes in all; those that this makes better, and good enough."""
        before = [self._last_loss(racer) for racer in racers]
        self._learn([(racer, [mark]) for racer in racers])
        after = [self._last_loss(racer) for racer in racers]
        good = [i for i in within(NEAR, after) if after[i] < before[i]]
        for i in set(range(len(racers))) - set(good):
            racers[i].idle += 1
        return [racers[i] for i in good]

    def steps(self, racers: list[Racer], mark: int, most: int, least: int) -> list[int]:
        """Doublings of the passes after `mark`, up to the next one that may end somebody's race.

        Nobody falls behind before two passes, and a candidate alone not before the least number. Who
        looks on sees every one of them.
        """
        steps = [max(1, 2 * mark)]
        free = least if len(racers) == 1 else min(SURVIVORS)
        while 2 * steps[-1] <= min(free, most) and not self.watched:
            steps.append(2 * steps[-1])
        return steps

    def go_on(self, racers: Sequence[tuple[Racer, list[int]]]) -> None:
        """Let candidates learn on, and note how they do after each of these numbers of passes."""
        self._learn(racers)
        for racer, marks in racers:
            self._judge(racer, len(racer.marks) - len(marks))

    def _learn(self, racers: Sequence[tuple[Racer, list[int]]]) -> None:
        """Let candidates learn on; they are not judged."""
        folds = range(self.folds.k)
        tasks = [(racer.runs[i], i, racer.done, marks) for racer, marks in racers for i in folds]
        results = iter(self._run(tasks))
        for racer, marks in racers:
            new = [next(results) for _ in folds]
            for i, fold in enumerate(new):
                racer.note(i, fold)
            racer.still = not any(fold.moved for fold in new)
            racer.marks += marks
            racer.snapshots += [new[0].kept] * len(marks)

    def catch_up(self, racers: Sequence[Racer]) -> None:
        """Let candidates learn as much on the other folds as on the first; they are judged anew."""
        places = [(racer, i, racer.judged(i)) for racer in racers for i in range(self.folds.k)]
        behind = [(racer, i, at) for racer, i, at in places if at < len(racer.marks)]
        tasks = [
            (racer.runs[i], i, racer.marks[at - 1] if at else 0, racer.marks[at:])
            for racer, i, at in behind
        ]
        for (racer, i, _), new in zip(behind, self._run(tasks), strict=True):
            racer.note(i, new)
            racer.still &= not new.moved
        for racer in racers:
            racer.best, racer.idle = np.inf, 0
            self._judge(racer, 0)

    def _run(self, tasks: Sequence[tuple[Run, int, int, list[int]]]) -> list[_Learned]:
        runs: list[Callable[[], Any]] = [partial(_learned, self, *task) for task in tasks]
        idle = len(runs) < self.threads.n
        return self.threads.run([*runs, *(self.beside() if idle else [])])[: len(runs)]

    def _last_loss(self, racer: Racer) -> float:
        """The loss of a candidate at its last mark."""
        return self.loss(self._scores(racer, len(racer.marks) - 1)[0])

    def least(self, racer: Racer) -> float:
        """The least loss of a candidate on the folds of this contest, of which it may have had more."""
        return min(self.loss(scores) for scores in self._scores(racer, 0))

    def _scores(self, racer: Racer, first: int) -> Array:
        """Scores of held-out rounds from one of the marks on; zero where no fold holds a round out."""
        marks, _, outputs = racer.scores[0].shape
        scores = np.zeros((marks - first, len(self.folds.fold), outputs))
        for rounds, by_fold in zip(self.folds.held_out, racer.scores, strict=False):
            scores[:, rounds] = by_fold[first:]
        return scores

    def _judge(self, racer: Racer, first: int) -> None:
        """Note how a candidate does from one of its marks on."""
        for at, scores in enumerate(self._scores(racer, first), first):
            value, mark = self.loss(scores), racer.marks[at]
            gain = GAIN if mark < LATE else LATE_GAIN
            racer.idle = 0 if value < (1 - gain) * racer.best else racer.idle + 1
            if value < racer.best:
                racer.best, racer.passes, racer.held_out = value, mark, scores
                racer.kept = racer.snapshots[at]


def _going_on(racers: list[Racer], mark: int, most: int, least: int) -> list[Racer]:
    """Those that learn on after so many passes, best first."""
    racing = [
        racer
        for racer in racers
        if racer.done == mark < most and (racer.improving or (mark < least and not racer.still))
    ]
    most_left = [left for passes, left in SURVIVORS.items() if passes <= mark]
    return sorted(racing, key=lambda racer: racer.best)[: min(most_left, default=None)]


def within(share: float, losses: list[float]) -> list[int]:
    """Which losses are larger than the least by this share at most."""
    least = min(losses)
    return [i for i, loss in enumerate(losses) if loss <= least + share * abs(least)]


class _Learned(NamedTuple):
    """Some passes of one run: scores of held-out rounds at each mark, and the first pass of all."""

    scores: Array
    first: Chunk
    moved: bool  # whether anything was learned
    kept: Any  # what has been learned, where somebody may ask for it


def _learned(contest: Contest, run: Run, i: int, done: int, marks: list[int]) -> _Learned:
    """Let the run of fold i learn until it has had so many passes in all."""
    folds, before = contest.folds, run.alpha.copy()
    rows, r, ends = folds.passes(i, range(done, marks[-1]))
    held_out = folds.rounds.rows[folds.held_out[i]]
    P, scores = run.learn_and_score(contest.V, rows, r, ends, np.array(marks) - done, held_out)
    first, kept = slice(ends[0]), run.snapshot() if contest.watched and i == 0 else None
    chunk = Chunk(rows[first], r[first], P[first])
    return _Learned(scores, chunk, bool((run.alpha != before).any()), kept)


def learn_passes(run: Run, V: Array, passes: Passes) -> Chunk:
    """Learn some passes, one after the other; the last of them."""
    P = run.learn(V, *passes)
    last = slice(passes.ends[-2] if len(passes.ends) > 1 else 0, None)
    return Chunk(passes.rows[last], passes.r[last], P[last])
