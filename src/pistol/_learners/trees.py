"""A partition of space into cells, by thresholds of single features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.moments import add_gaps
from .._compiled.types import Array, read_only

PART = 2**16  # rows whose cells are looked up together
FEW = 2**9  # rows that stay in the cache while they are made, for the spread of their features
LOOKED_AT = 4096  # rows from which the spread of the features in a cell is computed
OFF = 0.15  # a split is at a quantile of 0.5, give or take this much


class Tree(NamedTuple):
    """Nodes of a tree: each sends a row to one of two others, or is a cell."""

    feature: Array  # that a node looks at; -1 for a cell
    threshold: Array
    children: (
        Array  # (nodes, 2): for values up to the threshold, and above; twice the cell's number
    )

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return int((self.feature < 0).sum())

    def cell_of(self, Z: Any) -> Array:
        """The number of the cell of every row."""
        used, column = np.unique(np.maximum(self.feature, 0), return_inverse=True)
        some = (_columns(Z, slice(lo, lo + PART), used) for lo in range(0, Z.shape[0], PART))
        parts = [self._cell_of(values, column) for values in some]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _cell_of(self, values: Array, column: Array) -> Array:
        """The same, given the features that are looked at, and which of them each node looks at."""
        node, rows = np.zeros(len(values), np.int64), np.arange(len(values))
        while True:
            inner = self.feature[node[rows]] >= 0
            rows = rows[inner]
            if not len(rows):
                return self.children[node, 0]
            at = node[rows]
            above = values[rows, column[at]] > self.threshold[at]
            node[rows] = self.children[at, above.astype(np.int64)]


def grafted(top: Tree, branches: Sequence[Tree]) -> Tree:
    """The tree that goes on with another one in each of its cells; cells are counted on."""
    feature, threshold, children = (part.copy() for part in top)
    parts: list[list[Array]] = [[feature], [threshold], [children]]
    nodes, cells = len(feature), 0
    for number, branch in enumerate(branches):
        own = branch.children.copy()
        inner = branch.feature >= 0
        own[inner] += nodes - 1  # the root takes the place of the cell
        own[~inner] += cells
        at = np.flatnonzero((top.feature < 0) & (top.children[:, 0] == number))[0]
        feature[at], threshold[at], children[at] = branch.feature[0], branch.threshold[0], own[0]
        for list_of, part in zip(parts, (branch.feature, branch.threshold, own), strict=True):
            list_of.append(part[1:])
        nodes, cells = nodes + len(branch.feature) - 1, cells + branch.cells
    return Tree(*(np.concatenate(part) for part in parts))


def _columns(Z: Any, rows: slice, features: Array) -> Array:
    """These features of some rows, dense."""
    return Z[rows][:, features].toarray() if sp.issparse(Z) else Z[rows, features]


def grow_tree(Z: Any, most: int, random: np.random.Generator, rows: Array | None = None) -> Tree:
    """Split at about the median of a feature until no cell has more of these rows than `most`.

    A feature is drawn with a probability in proportion to its variance in the cell: in a learned metric
    that is how much f changes along it. Rows that agree in all features cannot be split. `rows` are
    numbers of rows of Z, some of them perhaps more than once; all rows unless given.
    """
    rows = np.arange(Z.shape[0]) if rows is None else rows
    nodes: list[tuple[int, float, int, int]] = []
    waiting = [(rows, -1, 0)]  # rows, the node above, and on which side of it
    cells = 0
    Z = sp.csc_array(Z) if sp.issparse(Z) else Z
    while waiting:
        rows, parent, side = waiting.pop()
        number = len(nodes)
        if parent >= 0:
            above = list(nodes[parent])
            above[2 + side] = number
            nodes[parent] = (int(above[0]), above[1], int(above[2]), int(above[3]))
        split = _split(Z, rows, random) if len(rows) > most else None
        if split is None:
            nodes.append((-1, 0.0, cells, cells))
            cells += 1
            continue
        feature, threshold, larger = split
        nodes.append((feature, threshold, -1, -1))
        waiting += [(rows[larger], number, 1), (rows[~larger], number, 0)]
    table = np.array(nodes, np.float64)
    return Tree(table[:, 0].astype(np.int64), table[:, 1], table[:, 2:].astype(np.int64))


def _column(Z: Any, feature: int, rows: Array) -> Array:
    """One feature of some rows."""
    if sp.issparse(Z):
        return Z[:, [feature]].toarray()[rows, 0]
    if isinstance(Z, np.ndarray):
        return Z[:, feature][rows]
    return Z[rows, np.array([feature])][:, 0]  # rows that are made when they are asked for


def _split(Z: Any, rows: Array, random: np.random.Generator) -> tuple[int, float, Array] | None:
    """A feature, a threshold with rows on both sides, and which are above; None if all rows agree."""
    spread = _spread(Z, rows[:: max(1, len(rows) // LOOKED_AT)])
    quantile = random.uniform(0.5 - OFF, 0.5 + OFF)
    for feature in _drawn(spread, random):
        column = _column(Z, feature, rows)
        values = np.sort(column)
        at = int(quantile * len(values))
        steps = np.flatnonzero(values[1:] > values[:-1])  # after which the next value is larger
        if len(steps):
            last = steps[np.argmin(np.abs(steps + 1 - at))]
            threshold = _between(float(values[last]), float(values[last + 1]))
            return feature, threshold, column > threshold
    return None


def _spread(Z: Any, rows: Array) -> Array:
    """The variance of every feature in these rows; zero where all of them agree."""
    if not sp.issparse(Z):
        sums, squares = np.zeros((2, Z.shape[1]))
        for part, some in _parts(Z, rows):
            add_gaps(read_only(np.ascontiguousarray(part)), read_only(some), sums, squares)
        return np.maximum(squares - sums * sums / len(rows), 0.0) / len(rows)
    Z = Z[rows].astype(np.float64)  # its zeros need no memory
    mean, square = (part.sum(axis=0) / Z.shape[0] for part in (Z, Z.multiply(Z)))
    low, high = (part.toarray().ravel() for part in (Z.min(axis=0), Z.max(axis=0)))
    return np.where(low == high, 0.0, np.maximum(square - mean * mean, 0.0))


def _parts(Z: Any, rows: Array) -> Iterator[tuple[Array, Array]]:
    """Rows, and which of them: all at once, or a few that are made when they are asked for.

    The first of all rows is the first of each part.
    """
    if isinstance(Z, np.ndarray):
        yield Z, np.ascontiguousarray(rows, np.int64)
        return
    for lo in range(1, len(rows), FEW):
        part = Z[np.append(rows[:1], rows[lo : lo + FEW])]
        yield part, np.arange(len(part))


def _between(low: float, high: float) -> float:
    """The middle, so that rounding moves no row to the other side; low where there is none."""
    middle = low + 0.5 * (high - low)
    return middle if low <= middle < high else low


def _drawn(spread: Array, random: np.random.Generator) -> list[int]:
    """Features that vary in random order, those of a large spread more likely early."""
    varies = np.flatnonzero(spread > 0)
    waits = random.exponential(size=len(spread))[varies] / spread[varies]
    return [int(feature) for feature in varies[np.argsort(waits)]]
