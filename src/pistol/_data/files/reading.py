"""Files of any format, one or several, as chunks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .basics import STDIN, Chunk, DataFileError, Trouble, expand, inner_suffix
from .csv import read_csv
from .svmlight import read_svmlight, scan
from .tables import Roles, read_arrow, read_npy, read_parquet, read_stream
from .vowpal import BITS, read_vowpal

SUFFIXES = {
    ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".dat": "svmlight",
    ".txt": "svmlight", ".t": "svmlight", "": "svmlight", ".vw": "vw", ".csv": "csv", ".tsv": "tsv",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".npy": "npy",
}  # fmt: skip
ROLES = Roles()
TABLES = {"csv", "tsv", "parquet", "arrow"}  # with columns that have names
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))


@dataclass(frozen=True)
class Reader:
    """How files are read."""

    format: str | None = None  # None: by the suffix
    roles: Roles = ROLES
    n_features: int | None = None  # of svmlight rows
    zero_based: bool = False
    bits: int = BITS
    threads: int = 2
    piece: int | None = None  # bytes of text in a chunk
    crop: bool = False  # leave out features beyond n_features

    def format_of(self, path: str) -> str:
        """The format of a file."""
        if self.format is not None:
            if self.format not in FORMATS:
                raise ValueError(f"unknown format {self.format!r}; one of {', '.join(FORMATS)}")
            return self.format
        suffix = "" if path == STDIN else inner_suffix(path)
        if suffix not in SUFFIXES:
            raise DataFileError(
                f"{path}: the name does not tell the format; name one of {', '.join(FORMATS)}"
            )
        return SUFFIXES[suffix]

    def chunks(self, paths: Any, trouble: Trouble) -> Iterator[Chunk]:
        """All chunks of all files, in order."""
        if hasattr(paths, "__arrow_c_stream__"):
            yield from read_stream(paths, trouble, self.roles)
            return
        names = expand(paths)
        self._check_alike(names)
        for path in names:
            yield from self._read(path, trouble)

    def _check_alike(self, names: list[str]) -> None:
        """Refuse files of different formats, and columns of files that have none."""
        kinds = {self.format_of(path): path for path in names}
        if len(kinds) > 1 and not set(kinds) <= TABLES:
            (a, one), (b, other), *_ = kinds.items()
            raise DataFileError(f"{one} is read as {a} and {other} as {b}; use files of one format")
        named = {"target": self.roles.target, "weight": self.roles.weight}
        for role, column in named.items():
            if column is not None and not set(kinds) <= TABLES | {"npy"}:
                kind, path = next((k, p) for k, p in kinds.items() if k not in TABLES)
                raise DataFileError(f"{path}: rows of {kind} text have no column to name as {role}")

    def _read(self, path: str, trouble: Trouble) -> Iterator[Chunk]:
        kind = self.format_of(path)
        if path != STDIN and Path(path).is_dir():
            raise DataFileError(f"{path} is a folder")
        if kind == "svmlight":
            first = 0 if self.zero_based else 1
            return read_svmlight(
                path, trouble, first, self.n_features, self.threads, self.piece, self.crop
            )
        if kind == "vw":
            return read_vowpal(path, trouble, self.bits, self.threads, self.piece)
        if kind in ("csv", "tsv"):
            separator = "," if kind == "csv" else "\t"
            return read_csv(path, trouble, self.roles, separator, self.threads)
        read = {"parquet": read_parquet, "arrow": read_arrow, "npy": read_npy}[kind]
        return read(path, trouble, self.roles)

    def sized(self, paths: Any, trouble: Trouble) -> Reader:
        """With the number of features of svmlight files, which are read once to find it."""
        if self.n_features is not None or hasattr(paths, "__arrow_c_stream__"):
            return self
        names = expand(paths)
        text = [path for path in names if self.format_of(path) == "svmlight"]
        if not text or not all(Path(path).is_file() for path in text):
            return self
        first, apart = 0 if self.zero_based else 1, Trouble(trouble.skip)  # counted when read again
        widths = [scan(path, apart, first, self.threads) for path in text]
        return replace(self, n_features=max([1, *widths]))


def joined(chunks: list[Chunk], source: Any = "the data") -> Chunk:
    """One chunk of all rows."""
    if not chunks:
        raise DataFileError(f"there are no rows in {source}")
    parts, X = [chunk.X for chunk in chunks], chunks[0].X
    if sp.issparse(X):
        width = max(part.shape[1] for part in parts)
        for part in parts:
            part.resize(part.shape[0], width)
        X = sp.csr_array(sp.vstack(parts, format="csr")) if len(parts) > 1 else X
    elif isinstance(X, np.ndarray):
        X = np.concatenate(parts)
    elif len(parts) > 1:
        import pyarrow as pa

        X = pa.concat_tables(parts, promote_options="permissive")
    return Chunk(X, *(_joined([chunk[k] for chunk in chunks]) for k in (1, 2)))


def _joined(parts: list[Any]) -> Any:
    return None if any(part is None for part in parts) else np.concatenate(parts)


def threads_here() -> int:
    """Cores that this process may use."""
    count = getattr(os, "sched_getaffinity", None)
    return len(count(0)) if count else os.cpu_count() or 1
