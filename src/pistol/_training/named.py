"""A kernel learner of single events whose features have names."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compiled.types import Array, Scalars, read_only
from .._data.sums import MIXED
from .._learners import Chunk, Dual, Rule
from .._learners.named import Names
from .._learners.storage import Growing, Store
from .tasks import summed_loss

ROUND = read_only(np.zeros(1, np.int64)), read_only(np.ones(1))
FAR = 8.0  # standard deviations: values farther out are moved there


class NamedKernels:
    """The mixed sum of kernels for events with named features, with at most so many support rows.

    Features are standardised; what is absent counts as its mean. Each time the number of events has
    doubled, the statistics are looked at again and support rows and kernels follow.
    """

    def __init__(self, rule: Rule, outputs: int, max_support: int | None) -> None:
        self.rule, self.names, self.max_support, self.t = rule, Names(), max_support, 0
        self.sums = np.zeros(
            (3, 8)
        )  # per feature: events that have it, their mean, squares around it
        self.center, self.scale = np.zeros(8), np.ones(8)  # in use
        self.dual = Dual(rule, MIXED.kernels(2.0, 1), outputs, 1, max_support)
        self.dual.support = self.dual.support._replace(rows=Store(np.empty((0, 8))))
        self.scores = np.zeros(outputs)

    def fresh(self) -> NamedKernels:
        """A learner of the same kind that has learned nothing yet."""
        return NamedKernels(self.rule, len(self.scores), self.max_support)

    def predict(self, x: Any) -> Array:
        """f_t of the event, of shape (outputs,)."""
        columns, values, _ = self.names.read(x, False)
        row = self._row(columns, values)
        self.scores = self.dual.model(last=True).decide(row)[0]
        return self.scores

    def learn(self, x: Any, y: tuple[float, ...]) -> float:
        """Learn the event with one target per output; the loss suffered. `scores` has what f_t was."""
        columns, values, _ = self.names.read(x, True)
        self._widen()
        if self.t & (self.t - 1) == 0:
            self._rescale()
        row, Y = self._row(columns, values), read_only(np.array([y], np.float64))
        (chunk,) = self.dual.play(row, Y, *ROUND, np.array([self.t]))
        self.scores, self.t = chunk.P[0], self.t + 1
        self._count(columns, values)
        return _loss(self.rule, chunk.P, Y)

    def _row(self, columns: list[int], values: list[float]) -> Array:
        """The event as a scaled row."""
        row, at = np.zeros((1, len(self.center))), np.array(columns, np.int64)
        row[0, at] = np.clip((np.array(values) - self.center[at]) / self.scale[at], -FAR, FAR)
        return row

    def _count(self, columns: list[int], values: list[float]) -> None:
        at, x = np.array(columns, np.int64), np.array(values)
        n, mean, squares = self.sums[:, at]
        moved = mean + (x - mean) / (n + 1.0)
        self.sums[:, at] = n + 1.0, moved, squares + (x - mean) * (x - moved)

    def _widen(self) -> None:
        """Room for all names; support rows have zeros there."""
        known, n = len(self.center), len(self.names.slots)
        if n <= known:
            return
        more = max(n, 2 * known) - known
        self.sums = np.hstack([self.sums, np.zeros((3, more))])
        self.center = np.append(self.center, np.zeros(more))
        self.scale = np.append(self.scale, np.ones(more))
        rows = self.dual.support.rows.rows
        store = Store(np.empty((0, known + more)))
        store.append(np.hstack([rows, np.zeros((len(rows), more))]))
        self.dual.support = self.dual.support._replace(rows=store)
        self.dual.forget_spans()

    def _rescale(self) -> None:
        """Another scale for the features, and kernels for it."""
        n, mean, squares = self.sums
        numbers = np.zeros(len(n), bool)
        numbers[: len(self.names.words)] = ~np.array(self.names.words, bool)
        spread = np.sqrt(squares / np.maximum(n, 1.0))
        varies = numbers & (spread > 1e-9 * np.abs(mean)) & (spread > 0)
        center, scale = np.where(numbers, mean, 0.0), np.where(varies, spread, 1.0)
        old_center, old_scale = self.center, self.scale

        def change(Z: Array) -> Array:
            moved = np.clip((Z * old_scale + old_center - center) / scale, -FAR, FAR)
            return np.where(Z == 0.0, 0.0, moved)  # what was absent stays so

        words = n[: len(self.names.words)][np.array(self.names.words, bool)] / max(self.t, 1)
        square = 2.0 * (varies.sum() + float((words * (1.0 - words)).sum()))
        self.center, self.scale = center, scale
        kernels = MIXED.kernels(max(square, 1e-3), max(int(varies.sum()), 1))
        rows = self.dual.support.rows
        self.dual.rescale(change, kernels)
        if not self.dual.support.ids.n:
            self.dual.support = self.dual.support._replace(rows=rows)

    def add_outputs(self, outputs: int, first: int = 0) -> None:
        """Go on with more outputs; those that there are come after `first` new ones."""
        old, at = self.dual, slice(first, first + len(self.scores))
        new = Dual(self.rule, old.kernels, outputs, 1, self.max_support)
        wider = [_with_outputs(x, outputs, at) for x in old.support[3:]]
        new.support = type(old.support)(*old.support[:3], *wider)
        S = [_placed(x, y, at) for x, y in zip(old.S[:3], new.S[:3], strict=True)]
        new.S = Scalars(S[0], S[1], S[2], old.S.t, old.S.weight)
        if old.projected is not None:
            n = old.support.ids.n
            blank = np.zeros((len(old.kernels), n, outputs))
            new.projected = _placed(old.projected, blank, at)
        new.since[:] = old.S.weight[0, 0]
        new.since[at] = old.since
        self.dual, self.scores = new, np.zeros(outputs)


def _loss(rule: Rule, P: Array, Y: Array) -> float:
    return summed_loss(rule, Chunk(*ROUND, P), Y)


def _placed(old: Array, new: Array, at: slice) -> Array:
    """The new values, with the old ones at some places of the last axis."""
    new[..., at] = old
    return new


def _with_outputs(x: Growing, outputs: int, at: slice) -> Growing:
    """The same values with more outputs along the last axis."""
    values = x.values
    wider = Growing((*values.shape[1:-1], outputs), values.dtype)
    wider.append(_placed(values, np.zeros((*values.shape[:-1], outputs)), at))
    return wider
