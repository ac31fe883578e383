"""Tables from files: CSV, Parquet, Arrow, NumPy."""

import gzip
import io
import os
import random
import threading
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pistol._data.files import basics
from pistol._data.files.csv import Form
from pistol.files import DataFileError, chunks, read

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

MUTATIONS = int(os.environ.get("PISTOL_MUTATIONS", "150"))
MARKS = [b"", b",", b'"', b"\n", b"\r", b"e", b"-", b"9" * 40, b"\0", b"\xff", b" ", b"nan"]
TABLE = pa.table(
    {
        "size": [1.0, 2.5, None, 4.0], "town": ["Bern", "Ulm", "Bern", None], "n": [1, 2, 3, 4],
        "w": [1.0, 2.0, 0.5, 1.0], "price": [10, 20, 30, 40],
    }
)  # fmt: skip


def write(table, path):
    from pyarrow import csv, ipc, parquet

    if path.suffix in (".csv", ".tsv", ".gz"):
        sink = pa.BufferOutputStream()
        csv.write_csv(
            table, sink, csv.WriteOptions(delimiter="\t" if path.suffix == ".tsv" else ",")
        )
        content = sink.getvalue().to_pybytes()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    elif path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=3)
    else:
        new = ipc.new_file if path.suffix == ".arrow" else ipc.new_stream
        with new(path, table.schema) as sink:
            sink.write_table(table, max_chunksize=3)
    return path


@pytest.mark.every_case_counts_lines
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.parquet", "a.arrow", "a.ipc"])
def test_the_table_comes_back(tmp_path, name):
    X, y, weight = read(write(TABLE, tmp_path / name), target="price", weight=3)
    assert X.column_names == ["size", "town", "n"]
    assert X["size"].to_pylist() == [1.0, 2.5, None, 4.0]
    assert [word or None for word in X["town"].to_pylist()] == ["Bern", "Ulm", "Bern", None]
    assert (y.tolist(), weight.tolist()) == ([10, 20, 30, 40], [1.0, 2.0, 0.5, 1.0])
    assert y.dtype == np.int64


def test_the_target_is_the_last_column_or_has_a_usual_name(tmp_path):
    path = write(TABLE, tmp_path / "a.parquet")
    assert read(path).y.tolist() == [10, 20, 30, 40]
    renamed = TABLE.rename_columns(["size", "Label", "n", "w", "price"]).slice(0, 3)
    assert read(write(renamed, path)).y.tolist() == ["Bern", "Ulm", "Bern"]
    with pytest.raises(DataFileError, match="'Label' has no value"):
        read(write(TABLE.rename_columns(["size", "Label", "n", "w", "price"]), path))
    with pytest.raises(DataFileError, match="no column 'cost'; it has size"):
        read(path, target="cost")


def test_any_arrow_stream_can_be_read():
    polars = pytest.importorskip("polars")
    assert read(polars.from_arrow(TABLE)).y.tolist() == [10, 20, 30, 40]


def test_whole_numbers_may_become_real_ones_later(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("a,y\n" + "1,0\n" * 1_200_000 + "1.5,0\n")
    parts = list(chunks(path))
    assert len(parts) > 1
    assert parts[-1].X["a"].to_pylist()[-1] == 1.5


def test_a_malformed_line_of_a_csv_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,y\n1,2,3\n4,5\n6,7,8\n")
    with pytest.raises(DataFileError, match=r"a\.csv, line 3: 3 columns were expected.*'4,5'"):
        read(path)
    parts = chunks(path, on_error="skip")
    assert sum(len(y) for _, y, _ in parts) == 2
    assert parts.skipped == 1
    for content in ("", "a,a\n1,2\n"):
        path.write_text(content)
        with pytest.raises(DataFileError, match=r"is empty|two columns"):
            read(path)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(DataFileError, match=r"b\.parquet"):
        read(tmp_path / "b.parquet")


def test_matrices(tmp_path):
    path, matrix = tmp_path / "a.npy", np.arange(12.0).reshape(4, 3)
    np.save(path, matrix)
    X, y, weight = read(path, target=0, weight=2)
    np.testing.assert_array_equal(X, matrix[:, 1:2])
    assert (y.tolist(), weight.tolist()) == ([0, 3, 6, 9], [2, 5, 8, 11])
    np.save(path, np.array([{"code": 1}], object), allow_pickle=True)
    with pytest.raises(DataFileError, match="no file of numbers"):
        read(path)


def test_a_value_that_does_not_fit_its_column_is_a_malformed_line(tmp_path):
    """Types are learned from the first piece; what comes later is named, or left out."""
    path = tmp_path / "a.csv"
    path.write_text("a,b,y\n" + '1.5,"x\ny",0\n' * 250_000 + "spam,x,1\n2,z,1\n")
    with pytest.raises(DataFileError, match=r"line 500002: column 'a' should hold a number.*spam"):
        read(path)
    parts = chunks(path, on_error="skip")
    assert sum(len(y) for _, y, _ in parts) == 250_001
    assert parts.skipped == 1


def test_rows_without_a_target_are_malformed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,y\n1,up\n2,\n3,down\n")
    with pytest.raises(DataFileError, match="row 2: column 'y' has no value"):
        read(path)
    assert read(path, on_error="skip").y.tolist() == ["up", "down"]


def test_a_first_line_of_numbers_is_data(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1.5,2,0\n3,4,1\n")
    assert read(path).y.tolist() == [0, 1]
    path.write_text("0,1,2\n3,4,1\n")  # numbered columns
    assert read(path).y.tolist() == [1]


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow", "a.ipc"])
@pytest.mark.every_case_counts_lines
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_pipe_may_hold_any_format(tmp_path, monkeypatch, name, pack):
    path = write(TABLE, tmp_path / name)
    kind = "arrow" if name.endswith("ipc") else name[2:]
    content = io.BufferedReader(io.BytesIO(pack(path.read_bytes())))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(content))
    assert read("-", format=kind).y.tolist() == [10, 20, 30, 40]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_mutated_csv_is_read_or_refused(tmp_path, on_error):
    """Whatever the bytes, rows that fit each other come back, or a clear error."""
    path, rng, read_whole = tmp_path / "a.csv", random.Random(0), 0
    for _ in range(MUTATIONS):
        text = bytearray(b'size,town,price\n1.5,"Bern, old",10\n,Ulm,20\n2.5,Bern,30\n')
        for _ in range(rng.randrange(1, 9)):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.randrange(3)] = rng.choice(MARKS)
        path.write_bytes(text)
        with suppress(DataFileError):
            X, y, _ = read(path, on_error=on_error)
            read_whole += 1
            assert y is None or X.num_rows == len(y)  # a single column is no target
    assert 0 < read_whole < MUTATIONS


def looped(test):
    """A test that is run with the loops as Python, too, where numbers that wrap around are told."""
    return pytest.mark.interpreted(pytest.mark.filterwarnings("ignore:overflow")(test))


FIELDS = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.integers().map(str)
ODD = st.sampled_from(
    ["", "NA", "nan", "inf", "1e999", "-", ".", "5.", ".5", "-.5", "+1", " 1", "1 ", "1e", "1e-400",
     "0x1", "007", "-0", "--1", '"1"', "1_0", "9" * 30, "0." + "3" * 40, "true", "1\t2", "x"]
)  # fmt: skip


def form(names="abc", wanted="cab"):
    """Columns of numbers, one of which is not read unless it is wanted; c has whole numbers."""
    types = {name: pa.int64() if name == "c" else pa.float64() for name in wanted}
    return Form(",", list(names), types, list(wanted))


@looped
@given(
    st.lists(st.lists(FIELDS | ODD, min_size=2, max_size=4), max_size=4),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
    st.booleans(),
    st.sampled_from(["cab", "ca", "b"]),
)
@example([["1", "2.5", "3"], ["-4e-3", "0", "-5"]], "\n", True, "cab")
def test_our_loop_reads_what_pyarrow_reads(rows, end, ended, wanted):
    text = end.join(",".join(row) for row in rows) + end * ended
    found = form(wanted=wanted)._numbers(text.encode())
    if found is not None and text.strip():
        assert found.equals(form(wanted=wanted)._parsed(text.encode()))


@looped
def test_plain_numbers_are_read_by_our_loop(monkeypatch, tmp_path):
    rows = np.random.default_rng(0).normal(size=(50, 3)).round(3)
    text = "a,b,c\n" + "".join(f"{a},{b:g},{c > 0:d}\n" for a, b, c in rows)
    (tmp_path / "rows.csv").write_text(text)
    monkeypatch.setattr(basics, "PIECE", 200)
    monkeypatch.setattr("pistol._data.files.csv.MUCH", 100)
    expected = read(tmp_path / "rows.csv")
    parsed, before = [], Form._parsed
    monkeypatch.setattr(Form, "_parsed", lambda *x: parsed.append(1) or before(*x))
    X, y, _ = read(tmp_path / "rows.csv")
    assert len(parsed) == 1, "pyarrow tells the types, and reads nothing else"
    assert X.equals(expected.X)
    assert (y.dtype, y.tolist()) == (np.int64, (rows[:, 2] > 0).tolist())
    np.testing.assert_array_equal(X["a"].to_numpy(), rows[:, 0])


# Reading ahead


def threads():
    return set(threading.enumerate())


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_parts_that_are_made_ahead_are_the_same(n):
    assert list(basics.ahead(iter(range(n)))) == list(range(n))


def test_an_error_comes_after_the_parts_before_it():
    def parts():
        yield from range(3)
        raise DataFileError("at the end")

    before, found = threads(), []
    with pytest.raises(DataFileError, match="at the end"):
        found.extend(basics.ahead(parts()))
    assert (found, threads()) == ([0, 1, 2], before)


def test_who_stops_early_leaves_no_thread_and_reads_no_more():
    made, before = [], threads()

    def parts():
        for number in range(100):
            made.append(number)
            yield number

    several = basics.ahead(parts())
    assert next(several) == 0
    several.close()
    assert threads() == before
    assert len(made) <= 4


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.svm"])
def test_chunks_that_are_left_leave_no_thread(tmp_path, monkeypatch, name):
    path, before = tmp_path / name, threads()
    if name == "a.svm":
        path.write_text("1 1:2\n" * 1000)
    else:
        write(pa.table({"x": np.arange(1000.0), "y": np.arange(1000) % 2}), path)
    monkeypatch.setattr(basics, "PIECE", 100)
    monkeypatch.setattr("pistol._data.files.tables.ROWS", 10)
    several = iter(chunks(path))
    assert len(next(several).y)
    several.close()
    assert threads() == before
