"""CSV, TSV, Parquet, Arrow and NumPy files: columns, one of which is the target."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..._compiled.types import Array
from .basics import PIECE, Chunk, DataFileError, Trouble, opened

ROWS = 2**14  # of a chunk
USUAL = ("target", "label", "y", "class")


class Roles(NamedTuple):
    """Which columns are what: by name or number; `features` are all others unless they are named.

    Without a target and with no column of a usual name, it is the last one. Where rows are to be
    predicted, none is needed.
    """

    target: str | int | None = None
    weight: str | int | None = None
    features: tuple[str, ...] | None = None
    needed: bool = True


def arrow() -> Any:
    """pyarrow, or an error that names the extra."""
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise DataFileError(
            "CSV, Parquet and Arrow files need pyarrow: pip install 'pistol[files]'"
        ) from None
    return pyarrow


class Chained(io.RawIOBase):
    """Bytes that were read already, and then those of a file."""

    def __init__(self, first: bytes, file: Any) -> None:
        self.first, self.file = first, file

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, into: Any) -> int:
        """Fill a buffer as far as possible."""
        part = self.first[: len(into)] or self.file.read(len(into))
        self.first = self.first[len(into) :]
        into[: len(part)] = part
        return len(part)


@contextmanager
def named(path: str) -> Iterator[None]:
    """Turn errors of pyarrow into ours, with the path."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, EOFError) as problem:
        raise DataFileError(f"{path}: {str(problem).splitlines()[0]}") from None


def read_csv(path: str, trouble: Trouble, roles: Roles, separator: str = ",") -> Iterator[Chunk]:
    """Chunks of a CSV file with names in its first line; columns of whole numbers are real ones."""
    pa = arrow()
    from pyarrow import csv

    failed: list[DataFileError] = []

    def on_row(row: Any) -> str:
        problem = f"{row.expected_columns} columns were expected, there are {row.actual_columns}"
        try:
            trouble.meet(1, path, row.number or 0, (row.text or "").encode(), problem)
        except DataFileError as error:
            failed.append(error)
            return "error"
        return "skip"

    parse = csv.ParseOptions(delimiter=separator, invalid_row_handler=on_row)
    reading = csv.ReadOptions(block_size=PIECE, use_threads=False)
    with opened(path) as file, named(path):
        first = file.read(PIECE)
        if not first.strip():
            raise DataFileError(f"{path} is empty")
        quiet = csv.ParseOptions(delimiter=separator, invalid_row_handler=lambda row: "skip")
        whole = first if len(first) < PIECE else first[: first.rfind(b"\n") + 1] or first
        schema = csv.open_csv(io.BytesIO(whole), csv.ReadOptions(use_threads=False), quiet).schema
        real = {f.name: pa.float64() for f in schema if pa.types.is_integer(f.type)}
        names = _roles(schema.names, roles, path)
        if names.target in real and _whole(schema, names.target):
            real.pop(names.target)
        source = io.BufferedReader(Chained(first, file), PIECE)
        convert = csv.ConvertOptions(column_types=real)
        try:
            for batch in csv.open_csv(source, reading, parse, convert):
                yield from split(batch, names, path)
        except pa.ArrowInvalid:
            if failed:
                raise failed[0] from None
            raise


def _whole(schema: Any, name: Any) -> bool:
    return str(schema.field(name).type) == "int64"


def read_parquet(path: str, trouble: Trouble, roles: Roles) -> Iterator[Chunk]:
    """Chunks of a Parquet file."""
    arrow()
    from pyarrow import parquet

    with named(path), parquet.ParquetFile(path) as file:
        names = _roles(file.schema_arrow.names, roles, path)
        for batch in file.iter_batches(ROWS):
            yield from split(batch, names, path)


def read_arrow(path: str, trouble: Trouble, roles: Roles) -> Iterator[Chunk]:
    """Chunks of an Arrow file, or of a stream of record batches."""
    pa = arrow()
    with opened(path) as file, named(path):
        start = file.read(6)
        if start == b"ARROW1":
            with pa.memory_map(path) as memory:
                reader = pa.ipc.open_file(memory)
                names = _roles(reader.schema.names, roles, path)
                for number in range(reader.num_record_batches):
                    yield from split(reader.get_batch(number), names, path)
            return
        stream = pa.ipc.open_stream(io.BufferedReader(Chained(start, file)))
        yield from _batches(stream, roles, path)


def read_stream(source: Any, roles: Roles) -> Iterator[Chunk]:
    """Chunks of whatever hands out an Arrow stream."""
    name = type(source).__name__
    with named(name):
        yield from _batches(arrow().RecordBatchReader.from_stream(source), roles, name)


def _batches(stream: Any, roles: Roles, path: str) -> Iterator[Chunk]:
    names = _roles(stream.schema.names, roles, path)
    for batch in stream:
        yield from split(batch, names, path)


def _roles(columns: list[str], roles: Roles, path: str) -> Roles:
    """The roles with names in place of numbers."""
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise DataFileError(f"{path}: two columns have the name {twice!r}")
    target = roles.target
    if target is None:
        usual = [name for name in columns if name.lower() in USUAL]
        last = columns[-1] if roles.needed and len(columns) > 1 else None
        target = usual[0] if len(usual) == 1 else last
    target = _name(columns, target, path, roles.needed)
    weight = _name(columns, roles.weight, path, roles.needed)
    features = roles.features or tuple(name for name in columns if name not in (target, weight))
    missing = [name for name in features if name not in columns]
    if missing:
        raise DataFileError(f"{path} has no column {missing[0]!r}; it has {', '.join(columns)}")
    return Roles(target, weight, features, roles.needed)


def _name(columns: list[str], wanted: str | int | None, path: str, needed: bool) -> str | None:
    if wanted is None or wanted in columns:
        return wanted
    number = int(wanted) if str(wanted).lstrip("-").isdigit() else None
    if number is not None and -len(columns) <= number < len(columns):
        return columns[number]
    if not needed:
        return None
    raise DataFileError(f"{path} has no column {wanted!r}; it has {', '.join(columns)}")


def split(batch: Any, names: Roles, path: str) -> Iterator[Chunk]:
    """A record batch as chunks of features, targets and weights."""
    for lo in range(0, batch.num_rows, ROWS):
        part = arrow().Table.from_batches([batch.slice(lo, ROWS)])
        y = None if names.target is None else _values(part, names.target, path)
        weight = None if names.weight is None else _values(part, names.weight, path)
        yield Chunk(part.select(list(names.features or ())), y, weight)


def _values(table: Any, name: Any, path: str) -> Array:
    column = table[name].combine_chunks()
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataFileError(f"{path}: column {name!r} has no value in a row (row {row} of a chunk)")
    return column.to_numpy(zero_copy_only=False)


def read_npy(path: str, trouble: Trouble, roles: Roles) -> Iterator[Chunk]:
    """Chunks of a matrix that is not read before it is needed; the target is a column."""
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as problem:
        raise DataFileError(f"{path} is no file of numbers: {problem}") from None
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise DataFileError(f"{path} must hold a matrix of numbers")
    columns = [str(number) for number in range(matrix.shape[1])]
    names = _roles(columns, roles._replace(features=None), path)
    at = {role: None if name is None else int(name) for role, name in names._asdict().items()
          if role in ("target", "weight")}  # fmt: skip
    others = [number for number in range(len(columns)) if number not in at.values()]
    size = max(1, min(ROWS, PIECE // max(1, matrix.shape[1])))
    for lo in range(0, len(matrix), size):
        rows = np.asarray(matrix[lo : lo + size])
        y = None if at["target"] is None else rows[:, at["target"]].copy()
        weight = None if at["weight"] is None else rows[:, at["weight"]].astype(np.float64)
        yield Chunk(np.ascontiguousarray(rows[:, others], np.float64), y, weight)
