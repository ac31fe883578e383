"""Trees that all rows share: a function with one value per leaf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.leaves import add_steps, add_values, find_leaves
from .._compiled.threads import workers
from .._compiled.types import Array, read_only
from .rule import chunks

BLOCK = 4096  # rows that are looked up together
LITTLE = 2**17  # rows × trees that are looked up before another thread has started
LARGEST = 1e150  # of a value: its square is finite


class Trees(NamedTuple):
    """The nodes of several trees, in one table.

    A node looks at a feature: rows up to its threshold come to the node `child`, and others to the one
    after that. A leaf has the feature -1. `roots` are the first nodes of the trees.
    """

    roots: Array
    feature: Array
    threshold: Array
    child: Array

    def leaves(self, Z: Any) -> Array:
        """The leaf of every row in every tree."""
        leaf = np.empty((Z.shape[0], len(self.roots)), np.int32)
        find_leaves(*self.looked_up(Z), leaf)
        return leaf

    def looked_up(self, Z: Any) -> tuple[Array, ...]:
        """Rows and nodes, as the loops take them."""
        return tuple(read_only(part) for part in (dense(Z), *self))

    def parents(self) -> Array:
        """The node above each node; -1 for the first ones."""
        parent, inner = np.full(len(self.feature), -1, np.int32), np.flatnonzero(self.feature >= 0)
        parent[self.child[inner]] = parent[self.child[inner] + 1] = inner
        return parent

    @staticmethod
    def joined(parts: Sequence[Trees]) -> Trees:
        """The trees of all parts."""
        before = np.cumsum([0, *(len(part.feature) for part in parts)])[:-1]
        moved = [
            part._replace(roots=part.roots + first, child=part.child + first)
            for part, first in zip(parts, before.astype(np.int32), strict=True)
        ]
        return Trees(*(np.concatenate(part) for part in zip(*moved, strict=True)))


def dense(Z: Any) -> Array:
    """A few rows without holes between their values."""
    return Z.toarray() if sp.issparse(Z) else np.ascontiguousarray(Z)


@dataclass(frozen=True, eq=False)
class Forest:
    """f(x) = the sum over trees of the value of the leaf that x comes to.

    Inner nodes have values, too: what f would be if rows went no further.
    """

    trees: Trees
    value: Array  # of shape (nodes, outputs)
    n_jobs: int | None = None

    def decide(self, Z: Any) -> Array:
        """Scores of shape (rows, outputs)."""
        out = np.zeros((Z.shape[0], self.value.shape[1]))
        few = len(out) * len(self.trees.roots) <= LITTLE
        with workers(1 if few else self.n_jobs) as threads:
            threads.run([partial(self._add, Z, at, out[at]) for at in chunks(out, BLOCK)])
        return out

    def _add(self, Z: Any, at: slice, out: Array) -> None:
        add_values(*self.trees.looked_up(Z[at]), read_only(self.value), out)

    def steps(self, Z: Any) -> Array:
        """How much of each score is due to each feature, of shape (rows, outputs, features).

        A step from one node to the next is due to the feature that the node looks at. What remains is
        the value of the roots, the same for all rows.
        """
        out = np.zeros((Z.shape[0], self.value.shape[1], Z.shape[1]))
        add_steps(*self.trees.looked_up(Z), read_only(self.value), out)
        return out

    def times(self, factor: float | Array) -> Forest:
        """Scores multiplied by a factor, or by one per output."""
        with np.errstate(over="ignore"):
            return replace(self, value=np.clip(self.value * factor, -LARGEST, LARGEST))

    @staticmethod
    def mean(forests: Sequence[Forest]) -> Forest:
        """The average of forests."""
        value = np.concatenate([one.value for one in forests]) / len(forests)
        return replace(forests[0], trees=Trees.joined([one.trees for one in forests]), value=value)
