"""What cells are learned from: all rows with values of a base, and the rows of each cell."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array, read_only
from .._data.ordering import Rounds
from .._learners import Gram, GramRun, Rule
from .._learners.cells import centred
from .._learners.forest import Forest
from .._learners.models import Expansion
from .._learners.trees import Tree
from .families import Candidate, Data
from .work import Work


class Cell(NamedTuple):
    """Rows of a cell, relative to their mean, with values of the base; and its rounds."""

    data: Data
    centre: Array
    start: Array
    rounds: Rounds
    rows: Array  # their numbers among all rows

    def candidates(self, work: Work, numbers: list[int] | None = None) -> dict[int, Candidate]:
        """Sums of kernels for the scale of these rows, all or some, by number."""
        data, family = self.data, work.problem.family
        return family.candidates(data.X, data.weight, work.blank.scaler, numbers)


class Ground(NamedTuple):
    """All rows, with what is known of them when cells are learned."""

    work: Work
    base: Expansion
    start: Array  # scores that cells go on from, of all rows
    known: Array  # the share of each row, copies included, that the base was learned from
    order: Rounds  # all rounds, in an order of content
    most: int  # rounds of a cell
    forest: Forest | None = None  # beside the base

    @property
    def rule(self) -> Rule:
        """What all cells follow."""
        return self.work.problem.rule(float(self.work.data.weight.sum()), self.work.size)

    def cells(self, tree: Tree) -> list[Array]:
        """The rounds of each cell."""
        return rounds_of(tree, self.work.data.X, self.order, self.most)

    def cell(self, own: Array) -> Cell:
        """The cell with these rounds."""
        rows, at = _in_order(self.order.rows[own])
        r, data = self.order.r[own], self.work.data
        Z = data.X[rows]
        centre = _centre(Z)
        weight = np.bincount(at, r, len(rows))
        inside = Data(centred(Z, centre), read_only(data.Y[rows]), weight, data.ids[rows])
        return Cell(inside, centre, self.start[rows], Rounds(read_only(at), r), rows)


def rounds_of(tree: Tree, X: Any, order: Rounds, most: int) -> list[Array]:
    """The rounds of each cell. Of rows too many and too alike to be split, some are enough."""
    of_round = tree.cell_of(X)[order.rows]
    by_cell = np.argsort(of_round, kind="stable")
    ends = np.searchsorted(of_round[by_cell], np.arange(1, tree.cells))
    return [own[:most] for own in np.split(narrow(by_cell), ends)]


def narrow(numbers: Array) -> Array:
    """Numbers of rows or rounds in half the memory, where they are not too large."""
    small = numbers.max(initial=0) <= np.iinfo(np.int32).max
    return numbers.astype(np.int32 if small else np.int64)


def _in_order(rows: Array) -> tuple[Array, Array]:
    """These rows, each once, by their first round, and which of them each round is.

    An order of content: the last bits of what is learned do not depend on how rows are given.
    """
    sorted_rows, first, at = np.unique(rows, return_index=True, return_inverse=True)
    by_round = np.argsort(first)
    return sorted_rows[by_round], np.argsort(by_round)[at]


def _centre(Z: Any) -> Array:
    """The mean of dense rows; zero for sparse rows, which are not shifted, and where there are none."""
    if sp.issparse(Z) or not Z.shape[0]:
        return np.zeros(Z.shape[1], Z.dtype)
    return Z.mean(axis=0, dtype=np.float64).astype(Z.dtype)


def run_of(ground: Ground, cell: Cell, gram: Gram, kernels: Candidate) -> GramRun:
    """A run on the rows of a cell, beside the base."""
    data, outputs = cell.data, cell.data.Y.shape[1]
    family: Any = ground.work.problem.family
    return GramRun(
        gram, kernels, ground.rule, outputs, data.X, data.ids, 1, cell.start, family.max_support
    )
