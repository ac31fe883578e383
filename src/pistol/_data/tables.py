"""Tables as they come: frames of any library, read into columns of numbers, words and times.

A column of words is known by codes and levels; the levels are sorted, so that a column means the same
whichever library it comes from. Times are seconds of the clock on the wall, in the zone of the column.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array
from .arrow import as_floats, codes_of

NUMBER, WORDS, DATE, CLOCK, EMPTY = "numbers", "words", "dates", "times of day", "nothing"
EPOCH = dt.datetime(1970, 1, 1)
BLOCK = 2**14  # rows that are filled in together, column by column
FROM_DTYPE = "from_dtype"
NO_ZONES: Mapping[Any, str | None] = {}


class Column(NamedTuple):
    """One column: its name or number, what it holds, and the values.

    Numbers and times are float64 with NaN where they are missing. Words are codes of levels, with -1
    where they are missing.
    """

    name: Any
    kind: str
    values: Array
    levels: list[Any]
    zone: str | None = None  # of dates

    @property
    def missing(self) -> Array:
        """Which values are missing."""
        return self.values < 0 if self.kind == WORDS else np.isnan(self.values)


class Table(NamedTuple):
    """Columns of equal length."""

    columns: list[Column]
    rows: int

    def among(self, rows: Array) -> Table:
        """Some of the rows, with the levels that occur in them."""
        found = []
        for column in self.columns:
            column = column._replace(values=column.values[rows])
            if column.kind == WORDS:
                column = _words(column.name, column.values, column.levels)
            found.append(column)
        return Table(found, len(rows))


def is_frame(X: Any) -> bool:
    """Whether X has columns with names, whatever its library."""
    if isinstance(X, np.ndarray | list | tuple) or sp.issparse(X):
        return False
    if len(getattr(X, "shape", (0, 0))) != 2:
        return False
    return _is_native(X) or hasattr(X, "__arrow_c_stream__")


def _is_native(X: Any) -> bool:
    frame = nw.from_native(X, pass_through=True)
    return isinstance(frame, nw.DataFrame | nw.LazyFrame)


def frame_of(X: Any) -> Any:
    """The frame with the interface of narwhals and names that are strings.

    Lazy frames and equal names are refused.
    """
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            f"X is a lazy frame ({type(X).__name__}), which has no rows yet; pass X.collect()"
        )
    if not isinstance(frame, nw.DataFrame):
        frame = nw.DataFrame.from_arrow(X, backend=_arrow_backend())
    names = [str(name) for name in frame.columns]
    if names != list(frame.columns):  # pandas has names that are numbers
        frame = nw.from_native(frame.to_native().set_axis(names, axis=1), eager_only=True)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has more than one column {twice!r}; names must differ")
    return frame


def _arrow_backend() -> Any:
    for name in ("pyarrow", "polars"):
        try:
            __import__(name)
        except ImportError:
            continue
        return name
    raise ImportError("to read this table install pyarrow or polars")


def is_plain(frame: Any) -> bool:
    """Whether all columns are numbers or booleans, and none of them is missing."""
    return all(
        is_number(kind) and kind != nw.Decimal for kind in frame.schema.values()
    ) and not any(_gaps(frame.get_column(name)) for name in frame.columns)


def is_number(kind: Any) -> bool:
    """Whether a column of this type holds numbers or booleans."""
    return kind.is_numeric() or kind == nw.Boolean


def _gaps(series: Any) -> bool:
    return bool(series.is_null().any() or (series.dtype.is_float() and series.is_nan().any()))


def matrix_of(frame: Any) -> Array:
    """The numbers of a plain frame, row by row; in float32 if all of them are."""
    single = all(kind == nw.Float32 for kind in frame.schema.values())
    if frame.implementation.is_pyarrow():
        columns = [as_floats(column) for column in frame.to_native().columns]
    else:
        columns = [_floats(frame.get_column(name)) for name in frame.columns]
    matrix = np.empty((len(frame), len(columns)), np.float32 if single else np.float64)
    for lo in range(0, len(matrix), BLOCK):
        rows = matrix[lo : lo + BLOCK]
        for j, column in enumerate(columns):
            rows[:, j] = column[lo : lo + BLOCK]
    return matrix


def read_frame(
    frame: Any,
    categorical: Collection[Any] = (),
    zones: Mapping[Any, str | None] = NO_ZONES,
) -> Table:
    """The columns of a frame; those that are categorical as words, times in the zones given."""
    columns = [
        _column(name, frame.get_column(name), name in categorical, zones.get(name))
        for name in frame.columns
    ]
    return Table(columns, len(frame))


def read_array(X: Array, categorical: Collection[Any] = (), names: Sequence[Any] = ()) -> Table:
    """The columns of an array, by number or by the names of a fitted table."""
    columns = []
    for i in range(X.shape[1]):
        name = names[i] if len(names) else i
        if X.dtype == object:
            column = _objects(name, X[:, i].tolist())
        else:
            column = Column(name, NUMBER, np.asarray(X[:, i], np.float64), [])
        columns.append(as_words(column) if name in categorical else column)
    return Table(columns, X.shape[0])


def chosen(categorical_features: Any, names: Sequence[Any] | None, n: int) -> set[Any]:
    """The columns that `categorical_features` names: by name in a frame, else by number."""
    given = categorical_features
    if given is None or (isinstance(given, str) and given == FROM_DTYPE):
        return set()
    keys = list(names) if names is not None else list(range(n))
    if isinstance(given, str) or np.ndim(given) != 1:
        raise ValueError(
            "categorical_features must be 'from_dtype', None, a list of names or numbers of columns, "
            f"or a mask; got {given!r}"
        )
    values = list(given.tolist() if isinstance(given, np.ndarray) else given)
    if values and all(isinstance(value, bool) for value in values):
        if len(values) != n:
            raise ValueError(
                f"the mask categorical_features has {len(values)} entries; X has {n} columns"
            )
        return {key for key, value in zip(keys, values, strict=True) if value}
    found = set()
    for value in values:
        if names is not None and value in keys:
            found.add(value)
        elif isinstance(value, int) and 0 <= value < n:
            found.add(keys[value])
        else:
            raise ValueError(f"categorical_features names {value!r}, which is no column of X")
    return found


def as_words(column: Column) -> Column:
    """A column of numbers with its values as levels."""
    if column.kind in (WORDS, EMPTY):
        return column
    if column.kind != NUMBER:
        raise ValueError(f"column {column.name!r} holds {column.kind}, which are no categories")
    gaps = np.isnan(column.values)
    levels, codes = np.unique(column.values[~gaps], return_inverse=True)
    values = np.full(len(gaps), -1)
    values[~gaps] = codes
    whole = [int(level) if level.is_integer() else level for level in levels.tolist()]
    return column._replace(kind=WORDS, values=values, levels=whole)


def as_numbers(column: Column) -> Column:
    """A column of levels that are numbers as these numbers."""
    if column.kind != WORDS or not all(_real(level) for level in column.levels):
        return column
    values = np.append(np.array(column.levels, np.float64), np.nan)[column.values]
    return column._replace(kind=NUMBER, values=values, levels=[])


def _real(value: Any) -> bool:
    return isinstance(value, Real | Decimal)


def _column(name: Any, series: Any, categorical: bool, zone: str | None) -> Column:
    kind = series.dtype
    if is_number(kind):
        column = Column(name, NUMBER, _floats(series), [])
        return as_words(column) if categorical else column
    if kind in (nw.Categorical, nw.Enum, nw.String):
        return _words(name, *_codes(series))
    if categorical and kind in (nw.Date, nw.Datetime, nw.Duration, nw.Time):
        raise ValueError(f"column {name!r} holds {kind}, which are no categories")
    if kind in (nw.Date, nw.Datetime):
        return _dates(name, series, getattr(kind, "time_zone", None), zone)
    if kind == nw.Duration:
        return Column(name, NUMBER, _floats(series.dt.total_microseconds()) / 1e6, [])
    if kind in (nw.Time, nw.Object):
        column = _objects(name, series.to_list())
        return as_words(column) if categorical else column
    if series.is_null().all():
        return _nothing(name, len(series))
    native = getattr(series.to_native(), "dtype", kind)
    raise ValueError(
        f"column {name!r} holds {native}; numbers, words, dates, times and durations are expected"
    )


def _dates(name: Any, series: Any, own: str | None, zone: str | None) -> Column:
    """Seconds of the clock on the wall, in the zone given or else in the column's own."""
    if own:
        if series.implementation.is_pandas() and "pyarrow" in str(series.to_native().dtype):
            series = nw.from_native(series.to_frame().to_arrow(), eager_only=True)[series.name]
        series = series.dt.convert_time_zone(zone or own).dt.replace_time_zone(None)
    seconds = _floats(series.dt.timestamp("us")) / 1e6
    return Column(name, DATE, seconds, [], (zone or own) if own else None)


def _nothing(name: Any, n: int) -> Column:
    return Column(name, EMPTY, np.full(n, np.nan), [])


def _floats(series: Any) -> Array:
    if series.implementation.is_pyarrow():
        return as_floats(series.to_native())
    series = series.cast(nw.Float64)
    return np.asarray(series.to_numpy(), np.float64)


def _codes(series: Any) -> tuple[Array, list[Any]]:
    """Codes and levels of a column of words, by the fast way of its library."""
    native, library = series.to_native(), series.implementation
    if library.is_pandas():
        if series.dtype in (nw.Categorical, nw.Enum):
            return np.asarray(native.cat.codes, np.int64), native.cat.categories.tolist()
        codes, levels = library.to_native_namespace().factorize(native)
        return np.asarray(codes, np.int64), list(levels)
    if library.is_polars():
        text = series.cast(nw.String).to_native()
        levels = text.drop_nulls().unique().sort()
        numbers = type(text)(range(len(levels)), dtype=library.to_native_namespace().Int64)
        if not len(levels):
            return np.full(len(text), -1), []
        codes = text.replace_strict(levels, numbers, default=None)
        return codes.fill_null(-1).to_numpy(), levels.to_list()
    if library.is_pyarrow():
        return codes_of(native)
    return _factorized(series.to_list())


def _factorized(values: list[Any]) -> tuple[Array, list[Any]]:
    levels = [value for value in dict.fromkeys(values) if not _missing(value)]
    number = dict.fromkeys(values, -1) | {level: i for i, level in enumerate(levels)}
    return np.fromiter(map(number.__getitem__, values), np.int64, len(values)), levels


def _words(name: Any, codes: Array, levels: list[Any]) -> Column:
    """Levels that occur, sorted."""
    count = np.bincount(codes[codes >= 0], minlength=len(levels))
    kept = [i for i in range(len(levels)) if count[i]]
    if not kept:
        return _nothing(name, len(codes))
    kept.sort(key=lambda i: _sort_key(levels[i]))
    place = np.full(len(levels) + 1, -1)
    place[kept] = np.arange(len(kept))
    return Column(name, WORDS, place[codes], [levels[i] for i in kept])


def _sort_key(level: Any) -> tuple[str, Any]:
    if _real(level):
        return "", level
    return (type(level).__name__, level if isinstance(level, str) else repr(level))


def _missing(value: Any) -> bool:
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    )


def _objects(name: Any, values: list[Any]) -> Column:
    """A column of Python objects, if all of them are of one kind."""
    there = [value for value in values if not _missing(value)]
    types = {type(value) for value in there}
    kinds = {_kind_of(name, type_) for type_ in types}
    if not kinds:
        return _nothing(name, len(values))
    if len(kinds) > 1:
        shown = [next(v for v in there if _kind_of(name, type(v)) is kind) for kind in kinds]
        examples = " and ".join(repr(value) for value in sorted(shown, key=repr)[:2])
        raise ValueError(f"column {name!r} has values of several types, such as {examples}")
    (kind,) = kinds
    if kind is _text:
        return _words(name, *_factorized(values))
    zone, convert = _converter(name, there, kind)
    numbers = np.array([np.nan if _missing(v) else convert(v) for v in values], np.float64)
    return Column(name, KINDS[kind], numbers, [], zone)


def _text(value: Any) -> Any:
    return value


def _seconds(value: dt.timedelta) -> float:
    return value.total_seconds()


def _since_midnight(value: dt.time) -> float:
    return 3600.0 * value.hour + 60.0 * value.minute + value.second + 1e-6 * value.microsecond


def _moment(value: dt.datetime) -> float:
    return (value.replace(tzinfo=None) - EPOCH).total_seconds()


def _day(value: dt.date) -> float:
    return 86400.0 * (value - EPOCH.date()).days


KINDS: dict[Any, str] = {
    float: NUMBER,
    _seconds: NUMBER,
    _since_midnight: CLOCK,
    _moment: DATE,
    _day: DATE,
}


def _kind_of(name: Any, type_: type) -> Callable[[Any], Any]:
    """What turns an object of this type into a number or a level."""
    known: list[tuple[Any, Callable[[Any], Any]]] = [
        (str, _text),
        (Real | Decimal | np.bool_, float),
        (dt.timedelta, _seconds),
        (dt.time, _since_midnight),
        (dt.datetime, _moment),
        (dt.date, _day),
    ]
    for types, convert in known:
        if issubclass(type_, types):
            return convert
    raise TypeError(
        f"column {name!r} has values of type {type_.__name__}; the argument must be a string, a real "
        "number, a date, a time or a duration"
    )


def _converter(name: Any, values: list[Any], kind: Any) -> tuple[str | None, Any]:
    """The zone of the values, and what turns each into a number."""
    if kind is not _moment:
        return None, kind
    zones = {None if value.tzinfo is None else str(value.tzinfo) for value in values}
    if len(zones) > 1:
        shown = ", ".join(sorted(str(zone or "no zone") for zone in zones))
        raise ValueError(
            f"column {name!r} has times of several zones ({shown}); convert them to one"
        )
    return zones.pop(), kind
