"""Tables from files: CSV, Parquet, Arrow, NumPy."""

import gzip
import io
import os
import random
from contextlib import suppress

import numpy as np
import pytest

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
