"""What each kind of column becomes: numbers with a flag where one was missing, or one column per level.

A part is what was learned about one column. `encode` gives dense columns and the number of the one
column that is 1, for columns that are one-hot. `then` does the same for rows of a stream, and learns
from them after each was encoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from .._compiled.types import Array
from .tables import Column
from .targets import weighted_quantile

DAY, YEAR = 86400.0, 365.2425
LONG, WEEKS = 300.0, 14.0  # days of a column of dates, from which on season and weekday count
FREE = 16  # columns that a stream keeps for levels to come
OTHER, MISSING = "other", "missing"


class Encoded(NamedTuple):
    """Dense columns, and the number of the column that is 1 among one-hot ones; -1 for none."""

    dense: Array
    hot: Array | None = None


class Part(Protocol):
    """What was learned about one column."""

    @property
    def dense(self) -> Sequence[str]:
        """Names of the dense columns."""

    @property
    def hot(self) -> Sequence[str]:
        """Names of the one-hot columns, which follow."""

    def encode(self, column: Column) -> Encoded:
        """The columns of rows to predict."""

    def then(self, column: Column, V: Array, weight: Array) -> tuple[Any, Encoded]:
        """The part after more rows of a stream, and their columns."""


class Fixed:
    """A part that more rows do not change."""

    def then(self, column: Column, V: Array, weight: Array) -> tuple[Self, Encoded]:
        """The same part."""
        return self, self.encode(column)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Dropped(Fixed):
    """A column that tells nothing."""

    dense: tuple[str, ...] = ()
    hot: tuple[str, ...] = ()

    def encode(self, column: Column) -> Encoded:
        """No columns."""
        return Encoded(np.empty((len(column.values), 0)))


@dataclass(frozen=True)
class Number(Fixed):
    """A number, its median where it is missing, and a flag for that if it was missing in training."""

    name: str
    fill: float
    flag: bool
    hot: tuple[str, ...] = ()

    @property
    def dense(self) -> Sequence[str]:
        """The number and its flag."""
        return [self.name, f"{self.name} {MISSING}"][: 1 + self.flag]

    def encode(self, column: Column) -> Encoded:
        """The number without gaps."""
        gaps = np.isnan(column.values)
        return Encoded(_flagged([np.where(gaps, self.fill, column.values)], gaps, self.flag))


@dataclass(frozen=True)
class Two(Fixed):
    """Two levels as 0 and 1; anything else is as likely as in training to be either."""

    name: str
    levels: tuple[Any, Any]
    share: float  # of the second
    hot: tuple[str, ...] = ()

    @property
    def dense(self) -> Sequence[str]:
        """One column."""
        return [f"{self.name}={self.levels[1]}"]

    def encode(self, column: Column) -> Encoded:
        """0 or 1."""
        known = dict(zip(self.levels, (0.0, 1.0), strict=True))
        values = np.array([*(known.get(level, self.share) for level in column.levels), self.share])
        return Encoded(values[_codes(column)][:, None])


@dataclass(frozen=True)
class Levels:
    """One column per level, one for rare levels together, one for missing values.

    Levels not seen in training count as rare ones; where there were none, all columns are zero. In a
    stream new levels take columns kept for them, as long as there are any.
    """

    name: str
    slots: dict[Any, int]  # None is the level of missing values
    other: int  # the column of all other levels, or -1
    width: int
    free: int = 0
    dense: tuple[str, ...] = ()

    @property
    def hot(self) -> Sequence[str]:
        """One name per column."""
        names = [f"{self.name}: to come" for _ in range(self.width)]
        for level, slot in self.slots.items():
            names[slot] = f"{self.name}={MISSING if level is None else level}"
        if self.other >= 0:
            names[self.other] = f"{self.name}={OTHER}"
        return names

    def encode(self, column: Column) -> Encoded:
        """The column of each row's level."""
        slots = [self.slots.get(level, self.other) for level in [*column.levels, None]]
        return Encoded(np.empty((len(column.values), 0)), np.array(slots)[_codes(column)])

    def then(self, column: Column, V: Array, weight: Array) -> tuple[Levels, Encoded]:
        """With columns for new levels, in the order in which they come."""
        part = self
        if self.free:
            codes = _codes(column)
            found, first = np.unique(codes[codes < len(column.levels)], return_index=True)
            order = found[first.argsort()]
            new = [column.levels[i] for i in order if column.levels[i] not in self.slots]
            new = new[: self.free]
            start = self.width - self.free
            slots = self.slots | {level: start + i for i, level in enumerate(new)}
            part = replace(self, slots=slots, free=self.free - len(new))
        return part, part.encode(column)


@dataclass(frozen=True)
class Dates(Fixed):
    """Days for the trend; the time of the year, the day of the week and the hour where they vary."""

    name: str
    fill: float
    flag: bool
    season: bool
    hours: bool
    weekdays: bool
    trend: bool = True
    days: tuple[str, ...] = field(default=("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"))

    @property
    def dense(self) -> Sequence[str]:
        """Trend, season, hour, flag."""
        names = ["days"] * self.trend
        names += ["sin year", "cos year"] * self.season + ["sin day", "cos day"] * self.hours
        return [f"{self.name} {word}" for word in [*names, *[MISSING] * self.flag]]

    @property
    def hot(self) -> Sequence[str]:
        """The days of the week."""
        return [f"{self.name}={day}" for day in self.days] if self.weekdays else []

    def encode(self, column: Column) -> Encoded:
        """The numbers that matter of each date."""
        gaps = np.isnan(column.values)
        days = np.where(gaps, self.fill, column.values) / DAY
        parts = [days] * self.trend
        for there, period in ((self.season, YEAR), (self.hours, 1.0)):
            if there:
                turn = 2.0 * np.pi * (days % period) / period
                parts += [np.sin(turn), np.cos(turn)]
        hot = None
        if self.weekdays:
            hot = np.where(gaps, -1, (np.floor(days).astype(np.int64) + 3) % 7)
        return Encoded(_flagged(parts, gaps, self.flag), hot)


def _codes(column: Column) -> Array:
    """Codes with the number of levels for what is missing; all of them in an empty column."""
    if column.values.dtype.kind == "f":
        return np.zeros(len(column.values), np.int64)
    return np.where(column.values < 0, len(column.levels), column.values)


def _flagged(parts: list[Array], gaps: Array, flag: bool) -> Array:
    return np.column_stack([*parts, gaps.astype(np.float64)] if flag else parts)


# Learning


def learn_number(column: Column, weight: Array) -> Number:
    """The median, and whether something is missing."""
    return Number(str(column.name), *_middle(column, weight))


def learn_dates(column: Column, weight: Array) -> Dates:
    """Which of the numbers vary enough to matter."""
    fill, flag = _middle(column, weight)
    there = column.values[~np.isnan(column.values)]
    span = float(there.max() - there.min()) / DAY
    several = len(np.unique(np.floor(there / DAY) % 7)) > 1
    hours = len(np.unique(there % DAY)) > 1
    return Dates(str(column.name), fill, flag, span >= LONG, hours, bool(span >= WEEKS and several))


def learn_clock(column: Column, weight: Array) -> Dates:
    """The time of day as a number and on the circle."""
    return Dates(str(column.name), *_middle(column, weight), False, True, False)


def _middle(column: Column, weight: Array) -> tuple[float, bool]:
    there = ~np.isnan(column.values)
    values, w = column.values[there], weight[there]
    if weight.strides == (0,):
        middle = float(np.quantile(values, 0.5, method="inverted_cdf"))
    else:
        middle = float(weighted_quantile(values[:, None], w, 0.5)[0])
    return middle, not bool(there.all())


def learn_levels(
    column: Column, weight: Array, least: float, most: int, stream: bool
) -> Levels | Two:
    """A column for each of at most so many levels that have at least so much weight."""
    counts = np.bincount(_codes(column), weight, len(column.levels) + 1)
    gap, counts = counts[-1], counts[:-1]
    rank = np.argsort(-counts, kind="stable")[:most]
    kept = np.sort(rank[counts[rank] >= least]) if not stream else np.sort(rank)
    levels = [column.levels[i] for i in kept]
    rare = len(counts) - len(kept)
    if rare == 1 and len(counts) <= most:  # one rare level is a level of its own
        levels, rare = column.levels, 0
    name = str(column.name)
    if len(levels) == 2 and not (rare or gap or stream):
        a, b = levels
        return Two(name, (a, b), float(counts[1] / counts.sum()))
    slots = {level: i for i, level in enumerate(levels)}
    other = -1
    if rare or stream:
        other = len(slots)
    width = len(slots) + (other >= 0)
    if gap or stream:
        slots[None] = width
        width += 1
    free = min(FREE, max(most - len(levels), 0)) if stream else 0
    return Levels(name, slots, other, width + free, free)
