"""X and y as users hand them in: rows of numbers, or a table that an encoder turns into such rows.

scikit-learn is imported where something has to be converted: `pistol predict` starts faster without.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array
from .encoder import CODES, Encoder, plain_encoder
from .fences import some_features
from .notices import say
from .tables import (
    DATE,
    EMPTY,
    NUMBER,
    Column,
    Table,
    as_numbers,
    as_words,
    chosen,
    frame_of,
    is_frame,
    is_number,
    is_plain,
    matrix_of,
    read_array,
    read_frame,
)
from .validation import DTYPES, LAYOUT, usable

SAMPLE = 10_000  # rows that tell the medians of columns without missing values


class Columns(NamedTuple):
    """How many features there are, their names where X has any, and how they become numbers."""

    n: int
    names: Array | None = None
    encoder: Encoder | None = None  # None for sparse rows and Gram matrices
    plain: bool = True  # whether rows of numbers are learned as they are
    notices: tuple[str, ...] = ()  # what was said about them when training began


class Intake(NamedTuple):
    """Checked rows of numbers, or a table; targets; columns."""

    X: Any
    y: Any
    columns: Columns

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.X.rows if isinstance(self.X, Table) else self.X.shape[0]


def check_first(estimator: Any, X: Any, y: Any) -> Intake:
    """Rows and targets of a first call."""
    given, who = estimator.categorical_features, type(estimator).__name__
    names: Any
    if is_frame(X) and not _pairwise(estimator):
        frame = frame_of(X)
        names = list(frame.columns)
        picked = chosen(given, names, len(names))
        if picked or not is_plain(frame):
            table = _finite(read_frame(frame, picked))
            if given is None:
                table = table._replace(columns=[as_numbers(column) for column in table.columns])
            columns = Columns(len(names), _texts(X, frame), plain=False)
            return _tabular(who, table, y, columns)
        names = _texts(X, frame)
        X = X if _known_to_sklearn(frame) else matrix_of(frame)
    else:
        names = _names(X)
    try:
        X, y = _checked(X, y, who)
    except ValueError as error:
        table_of_objects = _objects(X)
        if table_of_objects is None or "could not convert" not in str(error):
            raise
        X = table_of_objects
    n = X.shape[1]
    if sp.issparse(X) or _pairwise(estimator):
        n_jobs = getattr(estimator, "n_jobs", None)
        return Intake(usable(X, names, n_jobs), y, Columns(n, names))
    picked = chosen(given, None, n)
    if picked or X.dtype == object or _has_gaps(X):
        table = _finite(read_array(X, picked))
        return _tabular(who, table, y, Columns(n, names, plain=False))
    X = usable(X, names)
    fill = _medians(X[:: max(1, len(X) // SAMPLE)])
    return Intake(X, y, Columns(n, names, plain_encoder(_labels(names, n), fill)))


def check_more(X: Any, y: Any, columns: Columns, who: str) -> Intake:
    """Rows and targets of a later call: the same features as in the first.

    `who` is the name of the estimator, for messages.
    """
    if not columns.plain:
        return _tabular(who, read_known(X, columns, who), y, columns)
    X, y = _numbers(X, y, columns, who)
    return Intake(X, y, columns)


def check_rows(X: Any, columns: Columns, who: str, n_jobs: int | None = None) -> Any:
    """Rows to predict: the same features as those that were learned."""
    if not columns.plain:
        assert columns.encoder is not None
        table = read_known(X, columns, who)
        if not table.rows:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        return usable(columns.encoder.encode(table, n_jobs), columns.encoder.feature_names)
    return _numbers(X, None, columns, who)[0]


def read_known(X: Any, columns: Columns, who: str) -> Table:
    """The columns of a table like the one that was learned."""
    encoder = columns.encoder
    assert encoder is not None
    if is_frame(X):
        frame = frame_of(X)
        if isinstance(encoder.names[0], str):
            _refuse_names(list(frame.columns), encoder.names)
            frame = frame.select(encoder.names)
        _refuse_number(who, len(frame.columns), columns.n)
        table = read_frame(frame, zones=encoder.zones)
    else:
        X = _array(X)
        _refuse_number(who, X.shape[1], columns.n)
        if columns.names is not None:
            _say_names("does not have valid", who, "with")
        table = read_array(X, names=encoder.names)
    pairs = zip(encoder.kinds, encoder.names, table.columns, strict=True)
    found = [_like(kind, encoder.zones.get(name), column) for kind, name, column in pairs]
    return _finite(Table(found, table.rows))


def _like(kind: str, zone: str | None, column: Column) -> Column:
    """The column as the kind that was learned; an error if it holds something else."""
    if EMPTY in (kind, column.kind):
        return column
    numbers = as_numbers(column)
    if kind in (NUMBER, CODES) and numbers.kind == NUMBER:
        return numbers if kind == NUMBER else as_words(numbers)
    if kind != column.kind:
        was = NUMBER if kind == CODES else kind
        shown = f", such as {column.levels[0]!r}" if column.levels else ""
        raise ValueError(
            f"column {column.name!r} held {was} when training began and holds {column.kind} "
            f"now{shown}"
        )
    if kind == DATE and (zone is None) != (column.zone is None):
        zones = [f"the zone {z}" if z else "no zone" for z in (zone, column.zone)]
        raise ValueError(
            f"column {column.name!r} had times of {zones[0]} when training began and has times of "
            f"{zones[1]} now"
        )
    return column


def _tabular(who: str, table: Table, y: Any, columns: Columns) -> Intake:
    """A table with targets of the same length."""
    _, y = _checked(np.zeros((table.rows, 1)), y, who)
    return Intake(table, y, columns)


def _numbers(X: Any, y: Any, columns: Columns, who: str) -> tuple[Any, Any]:
    """Rows of numbers with the features that were learned, and targets where there are any."""
    if is_frame(X) and columns.names is not None:
        X = _in_order(X, columns.names)
    elif columns.names is not None:
        _say_names("does not have valid", who, "with")
    elif _names(X) is not None:
        _say_names("has", who, "without")
    X, y = _checked(X, y, who)
    _refuse_number(who, X.shape[1], columns.n)
    return usable(_filled(X, columns), columns.names), y


def _say_names(has: str, who: str, fitted: str) -> None:
    warnings.warn(
        f"X {has} feature names, but {who} was fitted {fitted} feature names", stacklevel=5
    )


def _checked(X: Any, y: Any, who: str) -> tuple[Any, Any]:
    """Rows of numbers, and targets where there are any."""
    if _as_wanted(X) and (y is None or _are_numbers(y, X.shape[0])):
        return X, y
    from sklearn.utils.validation import check_array, check_X_y

    if y is None:
        return check_array(X, estimator=who, input_name="X", **LAYOUT), None
    return check_X_y(X, y, multi_output=True, estimator=who, **LAYOUT)


def _as_wanted(X: Any) -> bool:
    """Whether X is what `check_array` would make of it."""
    rows = X.format == "csr" if sp.issparse(X) else type(X) is np.ndarray and X.flags.c_contiguous
    return bool(rows and X.ndim == 2 and min(X.shape) > 0 and X.dtype in DTYPES)


def _are_numbers(y: Any, rows: int) -> bool:
    """Whether y is what `check_X_y` would make of it: a number per row."""
    plain = type(y) is np.ndarray and y.shape == (rows,) and y.dtype.kind in "biuf"
    return bool(plain and np.isfinite(y).all())


def _pairwise(estimator: Any) -> bool:
    from sklearn.utils import get_tags

    return bool(get_tags(estimator).input_tags.pairwise)


def _names(X: Any) -> Array | None:
    """The names that scikit-learn finds in X, which only frames have."""
    if not is_frame(X):
        return None
    from sklearn.utils.validation import _get_feature_names

    return _get_feature_names(X)


def _texts(X: Any, frame: Any) -> Array | None:
    """The names of a frame, if they are strings in it."""
    known = _known_to_sklearn(frame)
    return _names(X) if known else np.array(frame.columns, object)


def _has_gaps(X: Array) -> bool:
    """Whether a number is missing; the sum tells cheaply that none is."""
    with np.errstate(all="ignore"):
        return bool(np.isnan(X.sum()) and np.isnan(X).any())


def _medians(X: Array) -> Array:
    """The median of every feature."""
    n = len(X)
    ordered = (np.sort(some, axis=0) for some in some_features(X))
    return np.concatenate([part[(n - 1) // 2 : n // 2 + 1].mean(axis=0) for part in ordered])


def _labels(names: Array | None, n: int) -> list[Any]:
    return list(range(n)) if names is None else list(names)


def _objects(X: Any) -> Array | None:
    """An array of objects with two axes, if X is one."""
    if isinstance(X, list | tuple):
        X = np.array(X, object)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype == object:
        return X
    return None


def _array(X: Any) -> Array:
    """An array of numbers or objects with two axes."""
    if sp.issparse(X):
        raise TypeError("X is sparse; a table with named or categorical columns was learned")
    found = np.asarray(X, None if hasattr(X, "dtype") else object)
    if found.ndim != 2:
        raise ValueError(f"Expected 2D array, got {found.ndim}D array instead")
    if found.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    return found if found.dtype.kind in "fiub" else found.astype(object)


def _finite(table: Table) -> Table:
    """The table, if no number in it is infinite."""
    for column in table.columns:
        if column.kind == NUMBER and np.isinf(column.values).any():
            row = int(np.isinf(column.values).argmax())
            raise ValueError(
                f"X contains infinity: row {row}, feature {column.name!r}. Finite numbers are expected."
            )
    return table


def _in_order(X: Any, known: Array) -> Any:
    """A frame of numbers with its columns in the order that was learned."""
    frame = frame_of(X)
    names = list(frame.columns)
    _refuse_names(names, list(known))
    for name, kind in frame.schema.items():
        if not is_number(kind):
            column = read_frame(frame.select(name)).columns[0]
            _like(NUMBER, None, column)
    frame = frame if names == list(known) else frame.select(list(known))
    return frame.to_native() if _known_to_sklearn(frame) else matrix_of(frame)


def _known_to_sklearn(frame: Any) -> bool:
    return frame.implementation.is_pandas() or frame.implementation.is_polars()


def _filled(X: Any, columns: Columns) -> Any:
    """Rows with medians where numbers are missing that never were in training."""
    encoder = columns.encoder
    if sp.issparse(X) or encoder is None or not _has_gaps(X):
        return X
    gaps = np.isnan(X)
    fill = np.array([part.fill for part in encoder.parts])  # type: ignore[attr-defined]
    missing = [repr(encoder.names[i]) for i in np.flatnonzero(gaps.any(axis=0))]
    say(
        [
            f"missing values in {', '.join(missing[:5])}{' and others' * (len(missing) > 5)}, where "
            "none were when training began; the medians are taken"
        ]
    )
    return np.where(gaps, fill, X).astype(X.dtype)


def _refuse_names(found: list[Any], known: list[Any]) -> None:
    missing = [name for name in known if name not in set(found)]
    unknown = [name for name in found if name not in set(known)]
    parts = [f"column {name!r} is missing" for name in missing[:1]]
    parts += [f"column {name!r} was not there when training began" for name in unknown[:1]]
    if parts:
        raise ValueError(f"X has other columns than the table that was learned: {'; '.join(parts)}")


def _refuse_number(who: str, found: int, known: int) -> None:
    if found != known:
        raise ValueError(
            f"X has {found} features, but {who} is expecting {known} features as input"
        )
