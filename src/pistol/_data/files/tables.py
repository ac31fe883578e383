"""Parquet, Arrow and NumPy files, and what all tables share: columns, one of which is the target."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..._compiled.types import Array
from ..arrow import values_of
from .basics import PIECE, Chunk, DataFileError, Trouble, ahead, damaged, on_disk, opened

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
    kinds: dict[str, str] | None = None  # of features whose kind is known: numbers or words

    @property
    def others(self) -> list[str]:
        """The columns with targets and weights, where they are needed."""
        return [
            str(name) for name in (self.target, self.weight) if self.needed and name is not None
        ]


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
    except DataFileError:
        raise
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, EOFError, OSError) as problem:
        if isinstance(problem, OSError) and problem.errno is not None:
            raise
        raise DataFileError(f"{path}: {str(problem).splitlines()[0]}") from None


def read_parquet(path: str, trouble: Trouble, roles: Roles) -> Iterator[Chunk]:
    """Chunks of a Parquet file."""
    arrow()
    from pyarrow import parquet

    with named(path), on_disk(path) as plain, parquet.ParquetFile(plain) as file:
        names, rows = resolved(file.schema_arrow.names, roles, path), 0
        wanted = [*(names.features or ()), *names.others]
        for batch in ahead(file.iter_batches(ROWS, columns=list(dict.fromkeys(wanted)))):
            yield from split(batch, names, path, trouble, rows)
            rows += batch.num_rows


def read_arrow(path: str, trouble: Trouble, roles: Roles) -> Iterator[Chunk]:
    """Chunks of an Arrow file, or of a stream of record batches."""
    pa = arrow()
    with named(path), damaged(path), opened(path) as file:
        start = file.read(8)
        whole = start.startswith(b"ARROW1")  # a file is a stream after its first 8 bytes
        stream = pa.ipc.open_stream(io.BufferedReader(Chained(b"" if whole else start, file)))
        yield from _batches(stream, roles, path, trouble)


def read_stream(source: Any, trouble: Trouble, roles: Roles) -> Iterator[Chunk]:
    """Chunks of whatever hands out an Arrow stream."""
    name = type(source).__name__
    with named(name):
        yield from _batches(arrow().RecordBatchReader.from_stream(source), roles, name, trouble)


def _batches(stream: Any, roles: Roles, path: str, trouble: Trouble) -> Iterator[Chunk]:
    names, rows = resolved(stream.schema.names, roles, path), 0
    for batch in stream:
        yield from split(batch, names, path, trouble, rows)
        rows += batch.num_rows


def resolved(columns: list[str], roles: Roles, path: str) -> Roles:
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
    return Roles(target, weight, features, roles.needed, roles.kinds)


def _name(columns: list[str], wanted: str | int | None, path: str, needed: bool) -> str | None:
    if wanted is None or wanted in columns:
        return wanted
    number = int(wanted) if str(wanted).lstrip("-").isdigit() else None
    if number is not None and -len(columns) <= number < len(columns):
        return columns[number]
    if not needed:
        return None
    raise DataFileError(f"{path} has no column {wanted!r}; it has {', '.join(columns)}")


def split(batch: Any, names: Roles, path: str, trouble: Trouble, before: int) -> Iterator[Chunk]:
    """A record batch as chunks of features, targets and weights; `before` rows came earlier."""
    pa = arrow()
    for lo in range(0, batch.num_rows, ROWS):
        part = batch.slice(lo, ROWS)
        part = part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
        for name in names.others:
            part = _with_values(part, name, path, trouble, before + lo)
        y, weight = (
            values_of(part[name]) if name in names.others else None
            for name in (names.target, names.weight)
        )
        if part.num_rows:
            yield Chunk(part.select(list(names.features or ())), y, weight)


def _with_values(table: Any, name: str, path: str, trouble: Trouble, before: int) -> Any:
    """Without the rows that have no target or no weight, which are met as malformed lines are."""
    import pyarrow.compute as pc

    column = table[name]
    words = str(column.type) in ("string", "large_string")
    if not (words or column.null_count):
        return table
    there = column.is_valid()
    if words:
        there = pc.and_kleene(there, pc.binary_length(column).cast("bool"))
    many = len(there) - (pc.sum(there).as_py() or 0)
    if not many:
        return table
    row = before + pc.index(there, False).as_py() + 1
    trouble.meet(many, f"{path}, row {row}: column {name!r} has no value")
    return table.filter(there)


def read_npy(path: str, trouble: Trouble, roles: Roles) -> Iterator[Chunk]:
    """Chunks of a matrix that is not read before it is needed; the target is a column."""
    with on_disk(path) as plain:
        matrix = _mapped(path, plain)
        columns = [str(number) for number in range(matrix.shape[1])]
        names = resolved(columns, roles._replace(features=None), path)
        others = [number for number, name in enumerate(columns) if name in (names.features or ())]
        size = max(1, min(ROWS, PIECE // max(1, matrix.shape[1])))
        for lo in range(0, len(matrix), size):
            rows = np.asarray(matrix[lo : lo + size])
            y, weight = (
                rows[:, int(str(name))].copy() if name in names.others else None
                for name in (names.target, names.weight)
            )
            yield Chunk(np.ascontiguousarray(rows[:, others], np.float64), y, weight)


def _mapped(path: str, plain: str) -> Array:
    try:
        matrix = np.load(plain, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as problem:
        raise DataFileError(f"{path} is no file of numbers: {problem}") from None
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise DataFileError(f"{path} must hold a matrix of numbers")
    return matrix
