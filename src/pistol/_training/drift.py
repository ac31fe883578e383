"""Forgetting without a rate: younger learners challenge the one that predicts.

Challengers begin at the multiples of 256, 2,048, 16,384, … rounds and play the same stream. One that
has had a smaller loss than the incumbent ever since it began, with less to learn from, shows that the
world has changed: by two standard errors of the difference it takes over, and what came before is
forgotten. On a stream that does not change the incumbent stays. The average of its f_t begins anew with
the youngest challenger: the f_t follow a change by themselves, an average over all of them would not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from .._learners import Learner

STEP = 16  # rounds between two looks
FIRST, FACTOR = 256, 8  # how often the youngest begins anew, and each of the next
LEAST = 4  # looks before a challenger may win


@dataclass
class Duel:
    """A challenger, and how much less it has lost than the incumbent since it began."""

    learner: Learner
    every: int
    looks: int = 0
    gain: float = 0.0
    squares: float = 0.0
    pending: float = 0.0

    def note(self, gain: float, complete: bool) -> None:
        """The incumbent's loss minus the challenger's over rounds that may complete a step."""
        self.pending += gain
        if complete:
            self.looks += 1
            self.gain += self.pending
            self.squares += self.pending**2
            self.pending = 0.0

    @property
    def won(self) -> bool:
        """By two standard errors."""
        return self.looks >= LEAST and self.gain > 2.0 * sqrt(self.squares)


@dataclass
class Challengers:
    """All who are in the race against an incumbent."""

    age: int = 0  # of the incumbent, in rounds
    duels: list[Duel] = field(default_factory=list)

    def begin(self, played: int, new: Callable[[], Learner]) -> None:
        """Those whose turn it is after so many rows begin anew."""
        self.age += STEP
        every = FIRST
        while every <= self.age:
            if played % every == 0:
                self.duels = [duel for duel in self.duels if duel.every != every]
                self.duels.append(Duel(new(), every))
            every *= FACTOR

    def winner(self) -> Learner | None:
        """Who takes over, if anyone: the one with most to show. Those older than it leave."""
        won = [duel for duel in self.duels if duel.won]
        if not won:
            return None
        best = max(won, key=lambda duel: duel.gain / sqrt(duel.squares))
        self.age = best.looks * STEP
        self.duels = [duel for duel in self.duels if duel.looks < best.looks]
        return best.learner


def steps(first: int, pieces: Any) -> Iterator[slice]:
    """Pieces of rows that follow `first` others, cut where a look is due."""
    for piece in pieces:
        lo, end = first + piece.start, first + piece.stop
        while lo < end:
            hi = min(STEP * (lo // STEP + 1), end)
            yield slice(lo - first, hi - first)
            lo = hi
