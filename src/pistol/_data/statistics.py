"""Columns of very many levels: what the targets of each level were, and how frequent it is.

The row itself must not be part of its own statistic, or the model would learn to read its target from
it. A row to learn from is encoded with the targets of rows in other folds; in a stream, with those of
rows before it. A row to predict is encoded with all of them. Means of few rows are drawn to the mean
of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._compiled.types import Array
from .parts import Encoded, Levels
from .tables import Column

FOLDS = 8
SHRINK = 8.0  # rows of the mean of all that are added to the rows of a level
OUTPUTS = 8  # with more outputs than this there are no statistics of targets, only of counts
TAILS = 0.02  # share of the targets on either side that is moved inwards


@dataclass(frozen=True)
class Range:
    """Targets within the bulk of their distribution, from -1 to 1."""

    middle: Array
    half: Array

    def __call__(self, Y: Array) -> Array:
        return np.clip((Y - self.middle) / self.half, -1.0, 1.0)


def range_of(Y: Array) -> Range:
    """The range of the bulk; all of it where the bulk is a single value."""
    low, high = np.quantile(Y, [TAILS, 1.0 - TAILS], axis=0)
    flat = ~(high > low)
    low, high = np.where(flat, Y.min(axis=0), low), np.where(flat, Y.max(axis=0), high)
    half = 0.5 * high - 0.5 * low
    return Range(0.5 * high + 0.5 * low, np.where(half > 0, half, 1.0))


@dataclass(frozen=True)
class Many:
    """Means of the targets of each level, its frequency, and columns for the most frequent levels."""

    frequent: Levels
    levels: dict[Any, int]  # None is the level of missing values
    count: Array  # of each level
    total: Array  # sums of the targets of each level, of shape (levels, outputs)
    range: Range | None  # of the targets; None where there are none, or too many
    labels: tuple[str, ...] = ()  # of the outputs

    @property
    def dense(self) -> Sequence[str]:
        """A mean per output, and the logarithm of the count."""
        return [f"{self.frequent.name} {label}" for label in [*self.labels, "count"]]

    @property
    def hot(self) -> Sequence[str]:
        """The most frequent levels."""
        return self.frequent.hot

    def encode(self, column: Column) -> Encoded:
        """With what is known of each level; a new level has the mean of all."""
        at = self._places(column)
        count = np.append(self.count, 0.0)[at]
        total = np.vstack([self.total, np.zeros_like(self.total[:1])])[at]
        return self._encoded(column, total, count, count)

    def then(self, column: Column, V: Array, weight: Array) -> tuple[Many, Encoded]:
        """With what was known before each row, and what is known after all."""
        levels = self.levels | {
            level: len(self.levels) + i
            for i, level in enumerate(v for v in column.levels if v not in self.levels)
        }
        levels.setdefault(None, len(levels))
        more = len(levels) - len(self.count)
        count = np.append(self.count, np.zeros(more))
        total = np.vstack([self.total, np.zeros((more, self.total.shape[1]))])
        part = replace(self, levels=levels, count=count, total=total)
        at, W = part._places(column), part._targets(V)
        before = _before(at, np.column_stack([weight, weight[:, None] * W]))
        seen = before + np.column_stack([count, total])[at]
        encoded = part._encoded(column, seen[:, 1:], seen[:, 0], seen[:, 0])
        after = replace(
            part,
            count=count + np.bincount(at, weight, len(count)),
            total=total + _sums(at, weight[:, None] * W, len(count)),
        )
        return after, encoded

    def _places(self, column: Column) -> Array:
        """The number of each row's level; one more than there are for a new one."""
        new = len(self.count)
        known = np.array([self.levels.get(level, new) for level in [*column.levels, None]])
        codes = (
            column.values if column.values.dtype.kind != "f" else np.full(len(column.values), -1)
        )
        return known[codes]

    def _targets(self, Y: Array) -> Array:
        return np.empty((len(Y), 0)) if self.range is None else self.range(Y)

    def _encoded(self, column: Column, total: Array, n: Array, count: Array) -> Encoded:
        prior = self.total.sum(axis=0) / max(self.count.sum(), 1e-300)
        mean = (total + SHRINK * prior) / (n + SHRINK)[:, None]
        dense = np.column_stack([mean, np.log1p(count)])
        return Encoded(dense, self.frequent.encode(column).hot)


def learn_many(
    column: Column, Y: Array | None, weight: Array, frequent: Levels, keys: Array, stream: bool
) -> tuple[Many, Encoded]:
    """Statistics of all rows, and the rows encoded without their own targets."""
    usable = Y is not None and Y.shape[1] <= OUTPUTS and Y.shape[0]
    many = Many(
        frequent,
        {level: i for i, level in enumerate([*column.levels, None])},
        np.zeros(len(column.levels) + 1),
        np.zeros((len(column.levels) + 1, Y.shape[1] if usable and Y is not None else 0)),
        range_of(Y) if usable and Y is not None else None,
        tuple(_labels(Y.shape[1])) if usable and Y is not None else (),
    )
    V = np.empty((len(weight), 0)) if Y is None else Y
    if stream:
        return many.then(column, V, weight)
    at, W = many._places(column), weight[:, None] * many._targets(V)
    n, fold = len(many.count), (keys % np.uint64(FOLDS)).astype(np.int64)
    part = replace(many, count=np.bincount(at, weight, n), total=_sums(at, W, n))
    place = fold * n + at
    own = np.bincount(place, weight, FOLDS * n)[place], _sums(place, W, FOLDS * n)[place]
    rest = part.total[at] - own[1]
    return part, part._encoded(column, rest, part.count[at] - own[0], part.count[at])


def _labels(outputs: int) -> list[str]:
    return ["mean"] if outputs == 1 else [f"mean {i}" for i in range(outputs)]


def _sums(at: Array, values: Array, n: int) -> Array:
    """Sums of the rows of `values` by place."""
    sums = [np.bincount(at, column, n) for column in values.T]
    return np.column_stack(sums) if sums else np.empty((n, 0))


def _before(at: Array, values: Array) -> Array:
    """For each row the sum of the values of rows before it that have the same place."""
    order = np.argsort(at, kind="stable")
    sums = np.cumsum(values[order], axis=0) - values[order]
    first = (
        np.flatnonzero(np.append(True, np.diff(at[order]) != 0)) if len(at) else np.zeros(0, int)
    )
    size = np.diff(np.append(first, len(at)))
    found = np.empty_like(sums)
    found[order] = sums - np.repeat(sums[first], size, axis=0)
    return found
