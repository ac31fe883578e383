"""Dask collections, delayed blocks and files, as lists of delayed blocks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
from dask import delayed
from dask.delayed import Delayed

from .._data.blocks import chunk_of
from .._data.files.basics import Chunk, expand, trouble
from .._data.files.reading import Reader, joined
from .._data.files.svmlight import scan
from .._data.files.tables import Roles

frames: Any
try:
    import dask.dataframe as frames
except ImportError:  # which needs pandas
    frames = None


class Blocks(NamedTuple):
    """Blocks that are not read yet, and their bytes where these are known."""

    read: Callable[..., Chunk]
    parts: list[tuple[Any, ...]]  # what `read` takes for each block
    bytes: float | None = None

    @property
    def rows(self) -> list[Any]:
        """X of each block."""
        firsts = [part[0] for part in self.parts]
        return [first[0] if isinstance(first, tuple) else first for first in firsts]


def is_dask_frame(X: Any) -> bool:
    """Whether X is a Dask data frame or series."""
    return frames is not None and isinstance(X, frames.DataFrame | frames.Series)


def is_blocks(X: Any) -> bool:
    """Whether X is a list of delayed blocks."""
    return isinstance(X, list) and bool(X) and all(isinstance(part, Delayed | tuple) for part in X)


def whole_rows(X: da.Array) -> da.Array:
    """The array with every block as wide as the array."""
    if X.ndim != 2:
        raise ValueError(f"X must have two axes; got a Dask array with {X.ndim}")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def blocks_of(X: Any, y: Any = None, weight: Any = None, name: str = "fit") -> Blocks:
    """What users hand in, as blocks."""
    if is_blocks(X):
        if y is not None or weight is not None:
            raise ValueError("a list of delayed blocks (X, y) has y in it; leave y away")
        return Blocks(_packed, [(part,) for part in X])
    if not (isinstance(X, da.Array) or is_dask_frame(X)):
        raise TypeError(
            f"{name} takes a Dask array, a Dask data frame or a list of delayed blocks (X, y); got "
            f"{type(X).__name__}. pistol.dask.blocks reads files. For data in memory use the plain "
            "estimator"
        )
    if isinstance(X, da.Array):
        X = whole_rows(X)
    rows = _parts(X)
    columns: list[list[Any]] = [rows]
    for what, part in (("y", y), ("sample_weight", weight)):
        columns.append([None] * len(rows) if part is None else _aligned(part, X, len(rows), what))
    size = X.nbytes if isinstance(X, da.Array) else None
    known = size is not None and size == size  # not NaN
    return Blocks(chunk_of, list(zip(*columns, strict=True)), size if known else None)


def _packed(chunk: Any) -> Chunk:
    """A block from what a delayed chunk is: a tuple (X, y) or (X, y, weight), or X alone."""
    return chunk_of(*chunk) if isinstance(chunk, tuple) else chunk_of(chunk)


def _parts(X: Any) -> list[Delayed]:
    found = X.to_delayed()
    return list(found.ravel()) if isinstance(X, da.Array) else list(found)


def _aligned(part: Any, X: Any, n: int, name: str) -> list[Delayed]:
    """The blocks of y or of the weights, cut where X is."""
    if not (isinstance(part, da.Array) or is_dask_frame(part)):
        raise TypeError(
            f"{name} must be a Dask collection like X; got {type(part).__name__}. "
            "dask.array.from_array makes one"
        )
    if isinstance(part, da.Array):
        if isinstance(X, da.Array) and _sized(X) and _sized(part):
            if part.shape[0] != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} rows and {name} has {part.shape[0]}")
            part = part.rechunk({0: X.chunks[0]})
        if part.ndim == 2 and part.numblocks[1] > 1:
            part = part.rechunk({1: -1})
    found = _parts(part)
    if len(found) != n:
        raise ValueError(
            f"X has {n} blocks and {name} has {len(found)}; they must be cut at the same rows"
        )
    return found


def _sized(X: da.Array) -> bool:
    return not any(n != n for n in X.chunks[0])  # NaN where the rows of a block are not known


def file_blocks(paths: Any, on_error: str, n_features: int | None, **options: Any) -> list[Delayed]:
    """One delayed block per file."""
    files = expand(
        [_inside(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    )
    roles = Roles(options.pop("target"), options.pop("weight"))
    reader = Reader(roles=roles, n_features=n_features, threads=1, **options)
    width: Any = n_features
    text = [path for path in files if reader.format_of(path) == "svmlight"]
    if text and n_features is None:
        found = [delayed(_width, pure=True)(reader, path, on_error) for path in text]
        width = delayed(max, pure=True)(found)
    return [delayed(_read, pure=True)(reader, path, on_error, width) for path in files]


def _inside(path: Any) -> str:
    """A folder stands for its Parquet files."""
    return str(Path(path) / "*.parquet") if Path(path).is_dir() else str(path)


def _width(reader: Reader, path: str, on_error: str) -> int:
    return max(1, scan(path, trouble(on_error), 0 if reader.zero_based else 1, 1))


def _read(reader: Reader, path: str, on_error: str, width: int | None) -> tuple[Any, Any, Any]:
    sized = reader if width is None else replace(reader, n_features=width)
    block = tuple(joined(list(sized.chunks([path], trouble(on_error)))))
    if "pyarrow" in sys.modules:  # it keeps memory for later, which counts against a worker's limit
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    return block
