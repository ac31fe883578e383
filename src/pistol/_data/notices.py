"""What is worth saying about a table before it is learned. Each is said once, in one warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from .._compiled.types import Array
from .encoder import constant, identifier
from .tables import EMPTY, NUMBER, WORDS, Column, Table

SPARSE = 0.99  # a larger share of missing values is worth a word
FEW = 5  # rows of a class
ROWS = 10_000  # rows that are compared with the target
ENOUGH = 20  # rows from which on a column that equals the target is no accident
OURS = (__name__.split(".")[0], "sklearn")
FIRST = 256  # rows that rule out most columns of numbers


class TableWarning(UserWarning):
    """Something about the columns of a table that the user may want to know.

    Silence it with ``warnings.simplefilter("ignore", pistol.TableWarning)``.
    """


def say(notices: Iterable[str]) -> tuple[str, ...]:
    """One warning for all notices; what was said."""
    found = tuple(notices)
    if found:
        warnings.warn("\n".join(found), TableWarning, stacklevel=_outside())
    return found


def inspecting() -> bool:
    """Whether the call came from scikit-learn's tools that change rows to see what happens."""
    frame: Any = sys._getframe(1)
    while frame and not frame.f_globals.get("__name__", "").startswith("sklearn.inspection"):
        frame = frame.f_back
    return frame is not None


def _outside() -> int:
    """How far up the call is that came from neither this library nor scikit-learn."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in OURS:
        frame, level = frame.f_back, level + 1
    return level


def notices(table: Table, Y: Array, classes: Any = None) -> Iterable[str]:
    """What is noticed in the columns, and in their relation to the encoded targets."""
    for column in table.columns:
        gaps = float(column.missing.mean()) if table.rows else 0.0
        if column.kind == EMPTY:
            yield f"column {column.name!r} has no values and is not used"
        elif constant(column):
            yield f"column {column.name!r} is constant and is not used"
        elif identifier(column):
            yield (
                f"column {column.name!r} looks like an identifier, as its words hardly ever repeat, "
                "and is not used"
            )
        elif _counts_rows(column):
            yield f"column {column.name!r} counts the rows; if it is only their number, drop it"
        elif gaps > SPARSE:
            yield f"column {column.name!r} is missing in {gaps:.1%} of the rows"
        if table.rows >= ENOUGH and _is_target(column, Y):
            yield f"column {column.name!r} determines the target; is it known when you predict?"
    if classes is not None:
        yield from _small_classes(Y, classes)


def notices_of_numbers(X: Any, Y: Array, names: Any, classes: Any = None) -> Iterable[str]:
    """What is noticed in rows of numbers, if X is given and has several columns, and in targets."""
    if X is not None and X.shape[1] > 1 and len(X) >= ENOUGH:
        for i in np.flatnonzero(_suspects(X, Y)):
            name = int(i) if names is None else names[i]
            column = Column(name, NUMBER, X[:, i].astype(np.float64), [])
            if _counts_rows(column):
                yield f"column {name!r} counts the rows; if it is only their number, drop it"
            if _is_target(column, Y):
                yield f"column {name!r} determines the target; is it known when you predict?"
    if classes is not None:
        yield from _small_classes(Y, classes)


def _suspects(X: Array, Y: Array) -> Array:
    """Columns whose first rows allow that they count the rows or determine the target."""
    X, Y = X[:FIRST].astype(np.float64), Y[:FIRST]
    with np.errstate(all="ignore"):
        counts = X[-1] - X[0] == len(X) - 1.0
        same = (Y[0] == Y).all(axis=1)
        kept = (X[same] == X[0]).all(axis=0)
        if len(np.unique(Y)) == 2:
            return counts | (kept & (X[~same] != X[0]).all(axis=0))
        x, y = X - X.mean(axis=0), Y[:, 0] - Y[:, 0].mean()
        return counts | ((y @ x) ** 2 >= 0.999 * (y @ y) * np.square(x).sum(axis=0))


def _small_classes(Y: Array, classes: Any) -> Iterable[str]:
    codes = Y.argmax(axis=1) if Y.shape[1] > 1 else (Y[:, 0] > 0).astype(int)
    counts = np.bincount(codes, minlength=len(classes))
    for label, count in zip(classes, counts, strict=True):
        if 0 < count <= FEW < len(Y) / len(classes):
            label = label.item() if isinstance(label, np.generic) else label
            yield f"class {label!r} has {count} row(s), which is little to learn from"


def _counts_rows(column: Column) -> bool:
    if column.kind != NUMBER or len(column.values) < ENOUGH:
        return False
    return bool((np.diff(column.values) == 1.0).all())


def _is_target(column: Column, Y: Array) -> bool:
    """Whether the column and the target determine each other, on some rows."""
    step = max(1, len(Y) // ROWS)
    values, Y = column.values[::step], Y[::step]
    if column.kind == EMPTY or column.missing[::step].any():
        return False
    if column.kind == WORDS or len(np.unique(Y)) == 2:
        return _one_to_one(values, Y)
    return Y.shape[1] == 1 and _in_line(values, Y[:, 0])


def _one_to_one(values: Array, Y: Array) -> bool:
    targets = np.unique(Y, axis=0, return_inverse=True)[1].ravel()
    levels, codes = np.unique(values, return_inverse=True)
    n = targets.max() + 1
    if not 1 < n == len(levels) < len(values) / 2:
        return False
    return len(np.unique(codes * n + targets)) == n


def _in_line(x: Array, y: Array) -> bool:
    """Whether one is a constant times the other plus a constant."""
    x, y = x - x.mean(), y - y.mean()
    size = np.abs(x).max(initial=0.0), np.abs(y).max(initial=0.0)
    if not (0 < size[0] < np.inf and 0 < size[1] < np.inf):
        return False
    x, y = x / size[0], y / size[1]
    return bool((x @ y) ** 2 >= (1.0 - 1e-9) * (x @ x) * (y @ y))
