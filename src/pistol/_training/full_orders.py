"""Shuffled orders of all rows by the best candidate of a race, learned after it or beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .._compiled.types import Array
from .._data.ordering import Rounds
from .race import Racer, Run
from .work import all_passes


class FullOrders:
    """Runs on all rounds, each in an order of its own.

    The number of passes with which a candidate did best only grows. So the orders can learn these
    passes while it learns on. If another candidate takes the lead, they start again.
    """

    def __init__(self, V: Array, rounds: Rounds, seeds: Sequence[tuple[int, ...]]) -> None:
        self.V, self.rounds, self.seeds = V, rounds, seeds
        self.best: Racer | None = None
        self.runs: list[Run] = []
        self.done = 0  # passes so far

    def follow(self, best: Racer, make: Callable[[], Run]) -> list[Callable[[], Any]]:
        """What is left to learn until each order has had as many passes as this candidate."""
        if not best.passes:  # nobody has been judged yet
            return []
        if best is not self.best:
            self.best, self.done = best, 0
            self.runs = [make() for _ in self.seeds]
        numbers, self.done = range(self.done, best.passes), best.passes
        every = np.arange(len(self.rounds.rows))
        return [
            partial(all_passes, run, self.V, self.rounds, every, seed, numbers)
            for run, seed in zip(self.runs, self.seeds, strict=True)
            if numbers
        ]
