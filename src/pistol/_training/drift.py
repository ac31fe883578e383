"""Forgetting without a rate: younger learners challenge the one that predicts.

Challengers begin at the multiples of 256, 2,048, 16,384, … rounds and learn from the same stream. A
challenger that has had a smaller loss than the incumbent since it began, although it has seen less,
shows that the data have changed. When it is ahead by two standard errors of the difference it takes
over, and what came before is forgotten. On a stream that does not change the incumbent stays. The
average of the incumbent's f_t begins anew with the youngest challenger: the f_t follow a change by
themselves, an average over all of them would not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import sqrt

from .._learners import Learner

STEP = 16  # rounds between two comparisons
FIRST, FACTOR = 256, 8  # how often the youngest begins anew, and each of the next
LEAST = 4  # comparisons before a challenger may win
MOST = 1e150  # its square is a number


@dataclass(frozen=True)
class Duel:
    """A challenger, and how much less it has lost than the incumbent since it began."""

    learner: Learner
    every: int  # rounds after which it begins anew
    looks: int = 0  # comparisons so far
    gain: float = 0.0
    squares: float = 0.0
    pending: float = 0.0  # gain since the last comparison

    def then(self, gain: float, complete: bool) -> Duel:
        """With the incumbent's loss minus the challenger's over rounds that may complete a step."""
        pending = max(-MOST, min(MOST, self.pending + gain))
        if not complete:
            return replace(self, pending=pending)
        return replace(
            self,
            looks=self.looks + 1,
            gain=self.gain + pending,
            squares=self.squares + pending**2,
            pending=0.0,
        )

    @property
    def won(self) -> bool:
        """Whether it is ahead by two standard errors."""
        return self.looks >= LEAST and self.gain > 2.0 * sqrt(self.squares)


@dataclass(frozen=True)
class Challengers:
    """All challengers of an incumbent."""

    age: int = 0  # of the incumbent, in rounds
    duels: tuple[Duel, ...] = ()

    def winner(self) -> Duel | None:
        """The challenger that takes over, if any: the one that is ahead by most standard errors."""
        won = [duel for duel in self.duels if duel.won]
        return (
            max(won, key=lambda duel: duel.gain / max(sqrt(duel.squares), 1e-300)) if won else None
        )

    def after(self, winner: Duel) -> Challengers:
        """The challengers that are left when one has taken over: those younger than it."""
        younger = tuple(duel for duel in self.duels if duel.looks < winner.looks)
        return Challengers(winner.looks * STEP, younger)

    def renewed(self, rounds: int, new: Callable[[], Learner]) -> Challengers:
        """A step later, after so many rounds in all: challengers whose turn it is begin anew."""
        age, duels, every = self.age + STEP, self.duels, FIRST
        while every <= age:
            if rounds % every == 0:
                duels = (*(duel for duel in duels if duel.every != every), Duel(new(), every))
            every *= FACTOR
        return Challengers(age, duels)


def steps(first: int, pieces: Iterator[slice]) -> Iterator[slice]:
    """Pieces of rounds that follow `first` others, cut where a comparison is due."""
    for piece in pieces:
        lo, end = first + piece.start, first + piece.stop
        while lo < end:
            hi = min(STEP * (lo // STEP + 1), end)
            yield slice(lo - first, hi - first)
            lo = hi
