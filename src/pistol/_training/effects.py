"""Effects of columns: the mean prediction if all rows had the same value in one or two columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._compiled.types import Array
from .._data.tables import DATE, WORDS, Column, Table
from .fitted import ROWS, Fitted
from .tasks import Classification

MIDDLE = 0.01, 0.99  # quantiles between which numbers are shown
FEW = 6  # values of numbers that are shown one by one
LEVELS = 12  # of words, those of most rows


class Grid(NamedTuple):
    """Some values of a column: as they are encoded, and as they are shown."""

    name: Any
    values: Array
    shown: list[Any]  # numbers, times, or words


def grid_of(column: Column, size: int) -> Grid:
    """Values of a column: levels, all of few numbers, or as many between the extreme ones."""
    if column.kind == WORDS:
        codes, counts = np.unique(column.values, return_counts=True)
        codes = np.sort(codes[np.argsort(-counts, kind="stable")[:LEVELS]])
        codes = np.append(codes[codes >= 0], codes[codes < 0])  # what is missing comes last
        levels = [*column.levels, "missing"]
        return Grid(column.name, codes, [str(levels[code]) for code in codes])
    values = np.unique(column.values[~column.missing])
    if len(values) > FEW:
        low, high = np.quantile(column.values[~column.missing], MIDDLE)
        values = np.unique(np.linspace(low, high, size))
    if column.kind == DATE:
        return Grid(column.name, values, list((1e3 * values).astype("datetime64[ms]")))
    shown = [f"{value:.6g}" for value in values] if len(values) <= FEW else list(values)
    return Grid(column.name, values, shown)


def responses(fitted: Fitted, scores: Array) -> Array:
    """Probabilities of classes, or targets, of shape (rows, outputs)."""
    task = fitted.task
    if not isinstance(task, Classification):
        found = task.answers(scores, fitted.targets)
        return found[:, None] if found.ndim == 1 else found
    return scores if task.loss.link is None else task.probabilities(scores, fitted.temperature)


def effects(fitted: Fitted, table: Table, grids: Sequence[Grid], most: int) -> Array:
    """Mean responses over some rows at all pairs of values: (values, …, outputs)."""
    encoder = fitted.columns.encoder
    assert encoder is not None
    some = table.among(np.arange(table.rows)[:: -(-table.rows // most)])
    shape = [len(grid.values) for grid in grids]
    places = np.indices(shape).reshape(len(grids), -1).T
    found = []
    for part in _parts(places, some.rows):
        given = {
            grid.name: np.repeat(grid.values[part[:, i]], some.rows) for i, grid in enumerate(grids)
        }
        repeated = _with(some, table, given, len(part))
        scores = np.concatenate(list(fitted.scores(encoder.encode(repeated))))
        out = responses(fitted, scores)
        found.append(out.reshape(len(part), some.rows, -1).mean(axis=1))
    return np.concatenate(found).reshape(*shape, -1)


def _parts(places: Array, rows: int) -> Iterator[Array]:
    """Some of the places at a time, so that no table is large."""
    step = max(1, ROWS // rows)
    return (places[lo : lo + step] for lo in range(0, len(places), step))


def _with(some: Table, table: Table, given: dict[Any, Array], times: int) -> Table:
    """The rows so many times, with other values in some columns."""
    columns = []
    for own, whole in zip(some.columns, table.columns, strict=True):
        if own.name in given:  # levels are those of the whole table
            columns.append(whole._replace(values=given[own.name]))
        else:
            columns.append(own._replace(values=np.tile(own.values, times)))
    return Table(columns, some.rows * times)
