"""Cells: a partition of space, with a learner of its own in each part.

k(x, z) · 1[x and z in the same cell] is a kernel, so one learner per cell is PiSTOL with one more
kernel in a sum, and the regret of the sum covers it. All cells go on from one function `base` of all
space.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.threads import one_blas_thread, workers
from .._compiled.types import Array, read_only
from .dual import Dual
from .forest import Forest
from .models import LITTLE, Expansion, mean_model
from .rule import Chunk, Rule
from .trees import Tree

SOME = 512  # rows that tell how large the scores of a forest are


class Parts(NamedTuple):
    """A tree, and what each of its cells has: the mean of its rows, and a model."""

    tree: Tree
    centres: list[Array]
    models: list[Expansion]

    def decide(self, Z: Any, cell: int, at: Array, out: Array) -> None:
        """Set scores of shape (rows, outputs), for rows `at`, which are in this cell."""
        out[at] = self.models[cell].decide(centred(Z[at], self.centres[cell]))


@dataclass(frozen=True, eq=False)
class Patchwork:
    """f = base + forest + the mean over trees of the model of the cell that a row is in."""

    base: Expansion
    parts: tuple[Parts, ...]
    forest: Forest | None = None

    def decide(self, Z: Any) -> Array:
        """Scores of shape (rows, outputs)."""
        total = start_of(self.base, self.forest, Z)
        own = [(part, np.zeros_like(total)) for part in self.parts]
        found = [(*one, cell, at) for one in own for cell, at in members(one[0].tree, Z)]
        work = sum(part.models[cell].work(len(at)) for part, _, cell, at in found)
        many = work > LITTLE * len(found)
        with workers(self.base.n_jobs if many else 1) as threads, one_blas_thread():
            threads.run([partial(part.decide, Z, cell, at, out) for part, out, cell, at in found])
        for _, out in own:
            total += out / len(own)
        return total

    @staticmethod
    def mean(models: Sequence[Patchwork]) -> Patchwork:
        """The average of models that go on from the same function."""
        return replace(models[0], parts=tuple(part for model in models for part in model.parts))

    def shares(self) -> dict[str, float]:
        """What each kernel contributes: that of the base, and all of a kind in cells; the sum is 1."""
        found: dict[str, float] = {}
        names = [kernel.name for kernel in self.base.kernels]
        found.update(zip(names, np.square(self.base.sizes()), strict=True))
        count = max(sum(len(one.ids) for part in self.parts for one in part.models), 1)
        for part in self.parts:
            for one in filter(lambda one: len(one.ids), part.models):
                for kernel, size in zip(one.kernels, one.sizes(), strict=True):
                    name = f"{kernel.name.split('(')[0]} in cells"
                    found[name] = found.get(name, 0.0) + size**2 * len(one.ids) / count
        if self.forest is not None and len(self.base.ids):
            some = self.base.rows[:: max(1, len(self.base.ids) // SOME)]
            found["trees"] = float(np.square(self.forest.decide(some)).mean())
        total = max(sum(np.sqrt(square) for square in found.values()), 1e-300)
        return {name: float(np.sqrt(square) / total) for name, square in found.items()}

    def expansions(self) -> list[tuple[Expansion, float]]:
        """The base and the models of all cells, on rows as scaled, and how much each counts."""
        found = [(self.base, 1.0)]
        for part in self.parts:
            for centre, model in zip(part.centres, part.models, strict=True):
                rows = centred(model.rows[:], -centre)
                found.append((replace(model, rows=rows), 1.0 / len(self.parts)))
        return found


def start_of(base: Expansion, forest: Forest | None, Z: Any) -> Array:
    """Scores of a base, and of a forest beside it: what all cells go on from."""
    scores = base.decide(Z)
    return scores if forest is None else scores + forest.decide(Z)


class Cells:
    """A learner for each cell of a tree. Each learns what is left by the base and the forest."""

    def __init__(
        self,
        tree: Tree,
        centres: list[Array],
        learners: list[Dual],
        base: Expansion,
        forest: Forest | None = None,
    ) -> None:
        self.tree, self.centres, self.learners = tree, centres, learners
        self.base, self.forest = base, forest

    @property
    def rule(self) -> Rule:
        """What all of them follow."""
        return self.learners[0].rule

    @rule.setter
    def rule(self, rule: Rule) -> None:
        for learner in self.learners:
            learner.rule = rule

    @property
    def t(self) -> float:
        """Rounds so far."""
        return sum(learner.t for learner in self.learners)

    def set_cell(self, number: int, centre: Array, learner: Dual) -> None:
        """What has been learned in a cell, and the mean of its rows."""
        self.centres[number], self.learners[number] = centre, learner

    def fresh(self) -> Cells:
        """A learner of the same kind whose cells have learned nothing yet."""
        learners = [learner.fresh() for learner in self.learners]
        return Cells(self.tree, self.centres, learners, self.base, self.forest)

    def play(
        self, X: Any, Y: Array, order: Array, r: Array, ids: Array | None = None
    ) -> Iterator[Chunk]:
        """Learn from the rows of X in this order, one cell after the other."""
        ids = np.arange(X.shape[0]) if ids is None else ids
        start = start_of(self.base, self.forest, X)
        cell = self.tree.cell_of(X)
        for number, rows in members(self.tree, X):
            here = np.flatnonzero(cell[order] == number)
            local = read_only(np.searchsorted(rows, order[here]))
            Z, V = centred(X[rows], self.centres[number]), read_only(Y[rows])
            learner = self.learners[number]
            for chunk in learner.play(Z, V, local, r[here], ids[rows], start[rows]):
                yield chunk._replace(rows=rows[chunk.rows])

    def model(self, last: bool = False) -> Patchwork:
        """f̄, or the f to come."""
        models: list[Any] = [mean_model([learner.model(last)]) for learner in self.learners]
        return Patchwork(self.base, (Parts(self.tree, self.centres, models),), self.forest)

    def mark(self, features: Any) -> Any:
        """What `roll_back` needs to undo what is learned from rows that were not learned before."""
        return [learner.mark(features) for learner in self.learners], self.base, self.forest

    def roll_back(self, mark: Any) -> None:
        """Be as at the time of the mark."""
        marks, self.base, self.forest = mark
        for learner, own in zip(self.learners, marks, strict=True):
            learner.roll_back(own)

    def forget_average(self, outputs: Array | slice = slice(None)) -> None:
        """Begin the average of these outputs anew."""
        for learner in self.learners:
            learner.forget_average(outputs)

    def restart(self, factor: Array, offset: Array, outputs: Array) -> None:
        """Go on from factor · f̄ + offset, one of each per output, for some outputs."""
        coef, shift = self.base.coef.copy(), np.zeros(len(factor))
        coef[:, outputs] *= factor[outputs][:, None]
        if self.base.offset is not None:
            shift[:] = self.base.offset
        shift[outputs] = (factor * shift + offset)[outputs]
        self.base = replace(self.base, coef=coef, offset=shift)
        if self.forest is not None:
            own = np.ones(len(factor))
            own[outputs] = factor[outputs]
            self.forest = self.forest.times(own)
        for learner in self.learners:
            learner.restart(factor, np.zeros(len(factor)), outputs)


def members(tree: Tree, Z: Any) -> Iterator[tuple[int, Array]]:
    """The numbers of the cells that have any of these rows, and of their rows."""
    cell = tree.cell_of(Z)
    order = np.argsort(cell, kind="stable")
    numbers, starts = np.unique(cell[order], return_index=True)
    for number, rows in zip(numbers, np.split(order, starts[1:]), strict=True):
        yield int(number), rows


def centred(Z: Any, centre: Array) -> Any:
    """Rows relative to a point; sparse rows stay as they are."""
    return Z if sp.issparse(Z) else (Z - centre).astype(Z.dtype, copy=False)
