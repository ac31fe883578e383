"""Tables of any library are read into the same columns, and bad columns are named."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pistol._data.tables import (
    CLOCK,
    DATE,
    EMPTY,
    NUMBER,
    WORDS,
    as_words,
    chosen,
    frame_of,
    is_frame,
    is_plain,
    read_array,
    read_frame,
)

pytestmark = pytest.mark.every_case_counts_lines  # each goes its own way

VALUES = {
    "whole": [1, 2, None, 4],
    "real": [1.5, float("nan"), None, 0.0],
    "flag": [True, None, False, True],
    "word": ["b", None, "a", "b"],
    "day": [dt.date(2020, 1, 1), None, dt.date(2021, 1, 1), dt.date(1960, 5, 4)],
    "moment": [
        dt.datetime(2020, 1, 1, 3, 30),
        None,
        dt.datetime(2021, 1, 1),
        dt.datetime(1969, 1, 1),
    ],
    "length": [dt.timedelta(1), None, dt.timedelta(0, 5), dt.timedelta(0)],
    "clock": [dt.time(3, 4), None, dt.time(5), dt.time(0)],
    "nothing": [None] * 4,
}
KINDS = {
    "whole": NUMBER,
    "real": NUMBER,
    "flag": NUMBER,
    "word": WORDS,
    "day": DATE,
    "moment": DATE,
    "length": NUMBER,
    "clock": CLOCK,
    "nothing": EMPTY,
    "category": WORDS,
    "small": NUMBER,
    "zoned": DATE,
}


class Stream:
    """Something that only offers its columns to Arrow."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def polars():
    return pl.DataFrame(VALUES).with_columns(
        category=pl.col("word").cast(pl.Categorical),
        small=pl.col("whole").cast(pl.UInt8),
        zoned=pl.col("moment").dt.replace_time_zone("Europe/Berlin"),
    )


def pandas():
    table = pd.DataFrame(VALUES)
    table["moment"], table["length"] = pd.to_datetime(table.moment), pd.to_timedelta(table.length)
    table["category"], table["small"] = table.word.astype("category"), table.whole.astype("UInt8")
    table["zoned"] = table.moment.dt.tz_localize("Europe/Berlin")
    return table


FRAMES = {
    "polars": polars,
    "pyarrow": lambda: polars().to_arrow(),
    "stream": lambda: Stream(polars().to_arrow()),
    "pandas": pandas,
    "pandas-arrow": lambda: pandas().convert_dtypes(dtype_backend="pyarrow"),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=list(FRAMES))
def test_all_libraries_give_the_same_columns(make):
    X = make()
    assert is_frame(X)
    found = read_frame(frame_of(X)).columns
    assert {column.name: column.kind for column in found} == KINDS
    for ours, theirs in zip(found, read_frame(frame_of(polars())).columns, strict=True):
        np.testing.assert_array_equal(ours.values, theirs.values)
        assert (ours.levels, ours.zone) == (theirs.levels, theirs.zone)
    gaps = {name: [v is None or v != v for v in values] for name, values in VALUES.items()}
    assert {c.name: c.missing.tolist() for c in found if c.name in gaps} == gaps


def test_times_are_those_of_the_clock_on_the_wall():
    columns = {column.name: column for column in read_frame(frame_of(polars())).columns}
    np.testing.assert_array_equal(columns["zoned"].values, columns["moment"].values)
    assert columns["moment"].values[0] % 86400 == 3.5 * 3600
    assert columns["clock"].values[0] == 3 * 3600 + 4 * 60
    in_utc = read_frame(frame_of(polars().select("zoned")), zones={"zoned": "UTC"}).columns[0]
    assert (columns["zoned"].values[0] - in_utc.values[0]) == 3600


def test_levels_are_those_that_occur_in_order():
    category = pd.Categorical(["b", "a"], categories=["z", "b", "a"])
    column = read_frame(frame_of(pd.DataFrame({"c": category}))).columns[0]
    assert column.levels == ["a", "b"]
    assert column.values.tolist() == [1, 0]


def test_chunks_of_an_arrow_table_share_their_levels():
    parts = [
        pa.table({"c": pa.array(words).dictionary_encode()}) for words in (["b", "a"], ["c", "b"])
    ]
    column = read_frame(frame_of(pa.concat_tables(parts))).columns[0]
    assert [column.levels[code] for code in column.values] == ["b", "a", "c", "b"]


def test_plain_tables_have_numbers_and_no_gaps():
    assert is_plain(frame_of(pl.DataFrame({"a": [1, 2], "b": [True, False]})))
    for gap in (None, float("nan")):
        assert not is_plain(frame_of(pl.DataFrame({"a": [1.0, gap]}, strict=False)))
    assert not is_plain(frame_of(pl.DataFrame({"a": ["x", "y"]})))


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([1, "a", 2.0], ValueError, "column 'bad' has values of several types, such as .*1"),
        ([[1], [2], [3]], TypeError, "column 'bad' has values of type list"),
        ([{1}, {2}, {3}], TypeError, "column 'bad' has values of type set"),
        ([b"a", b"b", b"c"], TypeError, "column 'bad' has values of type bytes"),
        ([1j, 2j, 3j], ValueError, "column 'bad' holds complex128"),
        (
            [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1), None],
            ValueError,
            r"column 'bad' has times of several zones \(UTC, no zone\)",
        ),
    ],
    ids=["mixed", "lists", "sets", "bytes", "complex", "zones"],
)
def test_a_bad_column_is_named(values, error, message):
    dtype = None if isinstance(values[0], complex) else object
    frame = frame_of(pd.DataFrame({"good": [1, 2, 3], "bad": pd.Series(values, dtype=dtype)}))
    with pytest.raises(error, match=message):
        read_frame(frame)


def test_lists_in_polars_and_arrow_are_named():
    table = pl.DataFrame({"bad": [[1], [2]]})
    for X in (table, table.to_arrow()):
        with pytest.raises(ValueError, match=r"column 'bad' holds .*[Ll]ist"):
            read_frame(frame_of(X))


def test_lazy_frames_and_equal_names_are_refused():
    with pytest.raises(TypeError, match=r"lazy frame.*\.collect\(\)"):
        frame_of(pl.LazyFrame({"a": [1]}))
    with pytest.raises(ValueError, match="'a'"):
        frame_of(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_categorical_columns_by_name_number_or_mask():
    names = ["a", "b", "c"]
    for given in (
        ["b"],
        [1],
        [False, True, False],
        np.array([False, True, False]),
        np.array(["b"]),
    ):
        assert chosen(given, names, 3) == {"b"}
    assert chosen([2], None, 3) == {2}
    assert chosen("from_dtype", names, 3) == chosen(None, names, 3) == set()
    for given, message in (
        (["d"], "'d', which is no column"),
        ([3], "3, which is no column"),
        ([True], "has 1 entries; X has 3"),
        ("b", "must be 'from_dtype'"),
    ):
        with pytest.raises(ValueError, match=message):
            chosen(given, names, 3)


def test_numbers_as_words_and_objects_in_arrays():
    table = read_array(np.array([[1.0, 2.0], [np.nan, 2.0], [0.0, 3.0]]), {0})
    assert table.columns[0].levels == [0.0, 1.0]
    assert table.columns[0].values.tolist() == [1, -1, 0]
    mixed = np.array([["a", 1], [None, 2.5]], object)
    words, numbers = read_array(mixed).columns
    assert (words.kind, numbers.kind) == (WORDS, NUMBER)
    with pytest.raises(ValueError, match="holds dates, which are no categories"):
        as_words(read_frame(frame_of(polars().select("day"))).columns[0])
