"""One look at the data before training: how many rows and features, and what the targets are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._data.files.basics import STDIN, Chunk, DataFileError, Trouble, expand
from .._data.files.reading import Reader
from .._data.files.svmlight import MOST_FEATURES

CLASSES = 100  # whole numbers of more values than this are no classes
FEW = 20  # … nor are more than this, unless every one has 20 rows


class Survey(NamedTuple):
    """What is known before training."""

    reader: Reader
    files: list[str]
    rows: int | None  # None where nobody has counted them
    classes: list[Any] | None  # None for regression
    width: int
    dense: bool
    once: bool = False  # whether the data can be read only once


def look(
    paths: list[str], reader: Reader, skip: bool, task: str | None, classes: Any, stream: bool
) -> Survey:
    """Read the files once, unless the options say all that a stream needs.

    Of the standard input only the options tell.
    """
    files = expand(paths)
    classes = None if task == "regression" else classes
    if any(path == STDIN or not Path(path).is_file() for path in files):
        if task != "regression" and classes is None:
            raise DataFileError(
                "data from the standard input are read once: say what they are, with "
                "--task regression or with --classes and all labels"
            )
        return Survey(reader, files, None, classes, reader.n_features or 0, False, once=True)
    text = any(reader.format_of(path) == "svmlight" for path in files)
    told = (task == "regression" or classes is not None) and (reader.n_features or not text)
    if stream and told:
        return Survey(reader, files, None, classes, reader.n_features or 0, False)
    seen, rows, width, dense = Labels(), 0, reader.n_features or 1, True
    wide = replace(reader, n_features=reader.n_features or MOST_FEATURES)
    for X, y, _ in wide.chunks(files, Trouble(skip)):
        if y is None:
            raise DataFileError(f"{files[0]} has no targets")
        sparse = sp.issparse(X)
        found = X.shape[1] if X.shape[1] < MOST_FEATURES else int(X.indices.max(initial=0)) + 1
        rows, width, dense = rows + len(y), max(width, found), dense and not sparse
        seen.add(y)
    if not rows:
        raise DataFileError(f"{', '.join(files)}: there are no rows")
    labels = seen.classes("classification" if classes else task, rows)
    if classes:
        labels = _declared(classes, labels or [], files)
    return Survey(replace(reader, n_features=width), files, rows, labels, width, dense)


def _declared(classes: list[Any], found: list[Any], files: list[str]) -> list[Any]:
    """The classes that were declared, which must be all that occur."""
    known = set(map(str, classes))
    other = [label for label in found if str(label) not in known]
    if other:
        raise DataFileError(
            f"{', '.join(files)}: the label {other[0]!r} is not among --classes "
            f"{','.join(map(str, classes))}"
        )
    return classes


class Labels:
    """The values of targets so far, as long as they may be classes."""

    def __init__(self) -> None:
        self.values: dict[Any, int] = {}
        self.open, self.words = True, False

    def add(self, y: Any) -> None:
        """More targets."""
        if not self.open:
            return
        if y.dtype.kind == "f" and not (y == np.floor(y)).all():
            self.open = False
            return
        found, counts = np.unique(y, return_counts=True)
        self.words = self.words or y.dtype.kind in "OUb"
        for value, count in zip(tidy(found).tolist(), counts.tolist()):
            self.values[value] = self.values.get(value, 0) + count
        self.open = self.words or len(self.values) <= 10 * CLASSES

    def classes(self, task: str | None, rows: int) -> list[Any] | None:
        """The classes, if this is classification."""
        if task == "regression":
            return None
        n = len(self.values)
        many = n > CLASSES or (n > FEW and rows < 20 * n)
        if task is None and (not self.open or (many and not self.words)):
            return None
        if not self.open:
            raise DataFileError("the targets are no classes: too many different numbers")
        if n < 2:
            raise DataFileError(f"there is one class only: {next(iter(self.values), None)!r}")
        return sorted(self.values)


def tidy(y: Any) -> Any:
    """Labels: whole numbers as such, words as strings."""
    if y.dtype.kind == "f" and (y == np.floor(y)).all() and np.abs(y).max(initial=0.0) < 2**53:
        return y.astype(np.int64)
    return y


def targets(chunk: Chunk, classes: list[Any] | None, path: str) -> Any:
    """The targets of a chunk, as they are learned."""
    if chunk.y is None:
        raise DataFileError(f"{path} has no targets")
    if chunk.y.dtype.kind == "f" and np.isnan(chunk.y).any():
        row = int(np.flatnonzero(np.isnan(chunk.y))[0])
        raise DataFileError(f"{path}: a row without a target (row {row} of a chunk)")
    return chunk.y if classes is None else tidy(chunk.y)
