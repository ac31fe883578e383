"""Which rounds each fold of a race learns and holds out, and the shuffled orders in which it learns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._compiled.types import Array, read_only
from .._data.ordering import Rounds


class Passes(NamedTuple):
    """Rounds of one pass after the other; `ends` tells where each of them ends."""

    rows: Array
    r: Array
    ends: Array


@dataclass(frozen=True)
class Folds:
    """The rounds of a pass in an order of content, and the fold that holds out each of them.

    With a single fold, rounds that it does not hold out have fold number 1.
    """

    rounds: Rounds
    fold: Array
    k: int
    seed: int
    known: dict[tuple[int, range], Passes] = field(default_factory=dict, repr=False)

    def passes(self, i: int, numbers: range) -> Passes:
        """Passes of fold i: what it learns, shuffled; the same for all candidates."""
        if (i, numbers) not in self.known:
            passes = shuffled_passes(self.rounds, self.learned[i], (self.seed, i), numbers)
            self.known[i, numbers] = passes
        return self.known[i, numbers]

    @classmethod
    def of(
        cls, rounds: Rounds, copy_of: Array, groups: Array, k: int, share: float, seed: int
    ) -> Folds:
        """So many folds of rounds in random order; each holds out this share of every group."""
        fold = assign_folds(copy_of, groups, rounds.r, share)
        return cls(rounds, np.minimum(fold, max(k - 1, 1)), k, seed)

    def first(self) -> Folds:
        """A third of the folds, for a first look at what cannot be good."""
        return replace(self, k=(self.k + 1) // 3)

    @property
    def counted(self) -> Array:
        """The sizes of all rounds that are held out by some fold; zero for others."""
        return read_only(np.where(self.fold < self.k, self.rounds.r, 0.0))

    def columns(self, i: int | None) -> tuple[Array, int]:
        """All rows in the order in which kernel values are kept, and how many of them are learned.

        Fold i learns the first ones: rows of which it learns any round. Without a fold they are for
        all, and rows that a fold holds out are next to each other.
        """
        n = int(self.rounds.rows.max()) + 1
        if i is None:
            fold = np.zeros(n, np.int64)
            fold[self.rounds.rows] = self.fold
            return np.argsort(fold, kind="stable"), n
        others = np.ones(n, bool)
        others[self.rounds.rows[self.learned[i]]] = False
        return np.argsort(others, kind="stable"), n - int(others.sum())

    @cached_property
    def learned(self) -> list[Array]:
        """Numbers of the rounds that each fold learns from."""
        return [np.flatnonzero(self.fold != i) for i in range(self.k)]

    @cached_property
    def held_out(self) -> list[Array]:
        """Numbers of the rounds that each fold holds out."""
        return [np.flatnonzero(self.fold == i) for i in range(self.k)]


def assign_folds(copy_of: Array, groups: Array, r: Array, share: float) -> Array:
    """A fold for every round, given in random order, so that each has this share of every group.

    Copies are in one fold: a held-out row that was learned, too, would tell nothing. `copy_of` has the
    same number for all of them.
    """
    _, first, which = np.unique(copy_of, return_index=True, return_inverse=True)
    weight, fold = np.bincount(which, r, len(first)), np.empty(len(first), np.int64)
    in_order = np.argsort(first)
    for group in np.unique(groups):
        at = in_order[groups[first[in_order]] == group]
        middle = np.cumsum(weight[at]) - 0.5 * weight[at]
        fold[at] = middle / max(share * weight[at].sum(), 1e-300)
        fold[at[-1:]] = np.maximum(fold[at[-1:]], 1)  # a single fold learns some of every group
    return fold[which]


def shuffled_passes(rounds: Rounds, among: Array, seed: tuple[int, ...], numbers: range) -> Passes:
    """Some of the rounds in one shuffled order after the other.

    A pass depends on its number: the first is drawn alone, the others from one doubling to the next.
    """
    drawn = [n for n in numbers if n & (n - 1) == 0 or n == numbers.start]
    orders = list[Array]()
    for n, end in pairwise([*drawn, numbers.stop]):
        rng = np.random.default_rng(np.array((*seed, n), np.uint32))  # a tuple takes longer
        orders.append(rng.permuted(among[None].repeat(end - n, axis=0), axis=1))
    order = np.concatenate(orders, axis=None)
    ends = len(among) * np.arange(1, len(numbers) + 1)
    return Passes(read_only(rounds.rows[order]), read_only(rounds.r[order]), read_only(ends))
