"""From tables to rows of numbers: what was learned about every column, and how it is used.

A new kind of column begins in `tables.py`, which reads it, and `parts.py`, which says what it becomes;
docs/adding.md lists the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from threading import Lock
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.threads import workers
from .._compiled.types import Array
from .layout import Layout
from .ordering import mix
from .parts import (
    Dropped,
    Encoded,
    Levels,
    Number,
    Part,
    learn_clock,
    learn_dates,
    learn_levels,
    learn_number,
)
from .scaling import CHUNK, ENTRIES
from .statistics import learn_many
from .tables import CLOCK, DATE, EMPTY, NUMBER, WORDS, Column, Table

LEAST, TWENTIETH = 3.0, 0.05  # rows of a level that gets a column; in tiny tables this share of all
MOST = 256  # levels of a column that are one-hot encoded
POOLED = 0.2  # the largest share of rows whose levels are too rare for a column
FREQUENT, OFTEN = 16, 0.02  # of many levels, at most so many with at least this share have columns
FEW, QUARTER = 8, 0.25  # in a stream, levels of its first rows: so many, or this share of the rows
DISTINCT, ENOUGH = 0.9, 20  # words that hardly ever repeat, in so many rows, are identifiers

CODES = "numbers as categories"
LEARN: dict[str, Callable[[Column, Array], Part]] = {
    NUMBER: learn_number,
    DATE: learn_dates,
    CLOCK: learn_clock,
}


@dataclass(frozen=True, eq=False)
class Encoder:
    """One part per column of the table, in its order."""

    names: list[Any]
    kinds: list[str]
    zones: dict[Any, str | None]
    parts: list[Part]
    scale: tuple[Array, Array] | None = None  # center and unit of dense columns in sparse rows

    @property
    def width(self) -> int:
        """How many columns of numbers there are."""
        return sum(len(part.dense) + len(part.hot) for part in self.parts)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of numbers."""
        return [name for part in self.parts for name in [*part.dense, *part.hot]]

    @cached_property
    def layout(self) -> Layout:
        """Which columns of numbers belong together."""
        owner: list[int] = []
        group: list[int] = []
        hot: list[bool] = []
        for i, part in enumerate(self.parts):
            for _ in part.dense:
                group.append(group[-1] + 1 if group else 0)
            first = group[-1] + 1 if group else 0
            group += [first] * len(part.hot)
            hot += [False] * len(part.dense) + [True] * len(part.hot)
            owner += [i] * (len(part.dense) + len(part.hot))
        columns = len(self.parts)
        return Layout(np.array(owner, int), np.array(group, int), np.array(hot, bool), columns)

    def encode(self, table: Table, n_jobs: int | None = None) -> Any:
        """Rows of numbers: dense, or sparse where the rows learned from were too many for that."""
        pairs = zip(self.parts, table.columns, strict=True)
        return self._rows([part.encode(column) for part, column in pairs], table.rows, n_jobs)

    def then(
        self, table: Table, Y: Array, weight: Array, n_jobs: int | None = None
    ) -> tuple[Encoder, Any]:
        """The encoder after more rows of a stream, and these rows."""
        pairs = zip(self.parts, table.columns, strict=True)
        parts, encoded = zip(*(p.then(c, Y, weight) for p, c in pairs), strict=True)
        return replace(self, parts=list(parts)), self._rows(encoded, table.rows, n_jobs)

    def _rows(self, encoded: Sequence[Encoded], n: int, n_jobs: int | None) -> Any:
        if self.scale is None:
            return _dense_rows(self, encoded, n)
        return _sparse(self, encoded, n, n_jobs)


def learn_encoder(
    table: Table,
    Y: Array | None,
    weight: Array,
    stream: bool = False,
    n_jobs: int | None = None,
) -> tuple[Encoder, Any]:
    """What the columns of a table say, and the rows to learn from."""
    keys = _once(partial(_keys, table, Y))
    learn = partial(_learn, Y=Y, weight=weight, keys=keys, stream=stream)
    with workers(n_jobs if table.rows > CHUNK else 1) as threads:
        found = threads.run([partial(learn, column) for column in table.columns])
    encoder = Encoder(
        [column.name for column in table.columns],
        [_kind(column) for column in table.columns],
        {column.name: column.zone for column in table.columns},
        [part for part, _ in found],
    )
    if not encoder.width:
        raise ValueError(
            "no column of X can be learned from: each is constant, without values or an identifier"
        )
    encoded = [rows for _, rows in found]
    dense = sum(len(part.dense) for part in encoder.parts)
    if table.rows * encoder.width > ENTRIES and 2 * dense < encoder.width:
        encoder = replace(encoder, scale=_scale(encoded, weight))
    return encoder, encoder._rows(encoded, table.rows, n_jobs)


def _kind(column: Column) -> str:
    return CODES if column.levels and not isinstance(column.levels[0], str) else column.kind


def _learn(
    column: Column, Y: Array | None, weight: Array, keys: Callable[[], Array], stream: bool
) -> tuple[Part, Encoded]:
    part: Part
    if column.kind == EMPTY or (constant(column) and not stream) or identifier(column, stream):
        part = Dropped()
    elif column.kind != WORDS:
        part = LEARN[column.kind](column, weight)
    else:
        total = float(weight.sum())
        least = min(LEAST, TWENTIETH * total)
        levels = learn_levels(column, weight, least, MOST, stream)
        if not isinstance(levels, Levels) or not _too_many(column, levels, weight, stream):
            part = levels
        else:
            often = max(least, OFTEN * total)
            frequent = learn_levels(column, weight, often, FREQUENT, False)
            assert isinstance(frequent, Levels)
            return learn_many(column, Y, weight, frequent, keys(), stream)
    return part, part.encode(column)


def _too_many(column: Column, levels: Levels, weight: Array, stream: bool) -> bool:
    """Whether one column per level would not do; in a stream, whether many more are likely to come."""
    if len(column.levels) > MOST:
        return True
    if stream:
        return len(column.levels) > max(FEW, QUARTER * len(weight))
    pooled = levels.encode(column).hot == levels.other
    return bool(levels.other >= 0 and float(weight @ pooled) > POOLED * float(weight.sum()))


def constant(column: Column) -> bool:
    """Whether all values are the same, and none is missing."""
    if column.missing.any():
        return False
    if column.kind == WORDS:
        return len(column.levels) < 2
    return bool(column.values.min() == column.values.max())


def identifier(column: Column, stream: bool = False) -> bool:
    """Whether words hardly ever repeat; the first rows of a stream have to be more to tell."""
    if column.kind != WORDS:
        return False
    there = len(column.values) - int(column.missing.sum())
    return there >= ENOUGH * (10 if stream else 1) and len(column.levels) > DISTINCT * there


def _once(work: Callable[[], Array]) -> Callable[[], Array]:
    """The result of the first call, also where threads ask at once."""
    lock, found = Lock(), lru_cache(maxsize=1)(work)

    def ask() -> Array:
        with lock:
            return found()

    return ask


def _keys(table: Table, Y: Array | None) -> Array:
    """A hash of every row's content, which says in which fold it is."""
    keys = np.zeros(table.rows, np.uint64)
    targets = [] if Y is None else list(Y.T)
    for i, values in enumerate([*(column.values for column in table.columns), *targets]):
        numbers = np.asarray(values, np.float64) + 0.0  # + 0.0: -0.0 equals 0.0
        bits = np.where(np.isnan(numbers), np.uint64(i), numbers.view(np.uint64))
        keys += mix(mix(bits) + mix(np.full(1, i + 1, np.uint64)))
    return mix(keys)


def _dense_rows(encoder: Encoder, encoded: Sequence[Encoded], n: int) -> Array:
    out = np.zeros((n, encoder.width))
    at, rows = 0, np.arange(n)
    for part, (dense, hot) in zip(encoder.parts, encoded, strict=True):
        out[:, at : at + dense.shape[1]] = dense
        at += dense.shape[1]
        if hot is not None:
            there = hot >= 0
            out[rows[there], at + hot[there]] = 1.0
        at += len(part.hot)
    return out


def _scale(encoded: Sequence[Encoded], weight: Array) -> tuple[Array, Array]:
    """Mean and deviation of the dense columns; that of flags is 1, so that they stay sparse."""
    total = float(weight.sum())
    center, unit = [], []
    for dense, _ in encoded:
        for values in dense.T:
            mean = float(weight @ values) / total
            deviation = float(np.sqrt(weight @ np.square(values - mean) / total))
            flag = np.isin(values, (0.0, 1.0)).all()
            center.append(0.0 if flag else mean)
            unit.append(1.0 if flag or not deviation > 0 else deviation)
    return np.array(center), np.array(unit)


def _sparse(encoder: Encoder, encoded: Sequence[Encoded], n: int, n_jobs: int | None) -> Any:
    """CSR rows: dense columns scaled, and a one for each level."""
    cuts = [slice(lo, min(lo + CHUNK, n)) for lo in range(0, n, CHUNK)]
    with workers(n_jobs) as threads:
        blocks = threads.run([partial(_sparse_block, encoder, encoded, cut) for cut in cuts])
    data, indices, sizes = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    indptr = np.append(0, np.cumsum(sizes))
    if len(data) < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)  # 64-bit ones would make the columns 64-bit numbers, too
    return sp.csr_array((data, indices, indptr), shape=(n, encoder.width))


def _sparse_block(
    encoder: Encoder, encoded: Sequence[Encoded], rows: slice
) -> tuple[Array, Array, Array]:
    """Values, columns and numbers of entries of some rows."""
    assert encoder.scale is not None
    each = sum(dense.shape[1] + (hot is not None) for dense, hot in encoded)
    values = np.empty((rows.stop - rows.start, each))
    places = np.empty(values.shape, np.int32)
    at = number = j = 0
    for part, (dense, hot) in zip(encoder.parts, encoded, strict=True):
        width = dense.shape[1]
        center, unit = (x[number : number + width] for x in encoder.scale)
        values[:, j : j + width] = (dense[rows] - center) / unit
        places[:, j : j + width] = np.arange(at, at + width)
        at, number, j = at + width, number + width, j + width
        if hot is not None:
            values[:, j] = hot[rows] >= 0
            places[:, j] = at + np.maximum(hot[rows], 0)
            j += 1
        at += len(part.hot)
    kept = values != 0
    return values[kept], places[kept], kept.sum(axis=1)


def plain_encoder(names: Sequence[Any], fill: Array) -> Encoder:
    """The encoder of numbers of which none is missing: it only fills gaps of rows to come."""
    parts: list[Part] = [Number(str(n), float(x), False) for n, x in zip(names, fill, strict=True)]
    return Encoder(list(names), [NUMBER] * len(parts), {}, parts)
