"""The svmlight format, also LIBSVM's: a target and features as `number:value`, one row per line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..._compiled import text as _text
from ..._compiled.types import Array
from .basics import (
    Chunk,
    DataFileError,
    Room,
    Trouble,
    as_bytes,
    at_line,
    in_threads,
    line_at,
    pieces,
)

MOST_FEATURES = _text.MOST_FEATURES + 1
PROBLEMS = {
    _text.NO_TARGET: "a target that is a number was expected",
    _text.NO_FEATURE: "a feature as number:value was expected",
    _text.NO_VALUE: "the value of a feature is no number",
    _text.NOT_ASCENDING: "feature numbers must ascend, from {first} on",
    _text.TOO_LARGE: f"a feature has a number above {_text.MOST_FEATURES}",
}


class Parsed(NamedTuple):
    """What a piece of text holds."""

    piece: bytes
    y: Array
    indptr: Array
    indices: Array
    values: Array
    counts: Array


def _arrays(size: int) -> Any:
    """Arrays for all that a text of this size can hold; what is not needed is never touched."""
    y, values = np.empty(size // 2 + 2), np.empty(size // 3 + 2)
    indptr, indices = np.zeros(len(y) + 1, np.int64), np.empty(len(values), np.int32)
    slow = np.empty((len(values), 2), np.int64)
    return y, y.view(np.uint64), indptr, indices, values, values.view(np.uint64), slow


ROOM = Room(_arrays)


def parse(piece: bytes, first: int = 1) -> Parsed:
    """Rows, targets and counts of a piece of text."""
    piece = piece if piece.endswith(b"\n") else piece + b"\n"
    arrays, counts = ROOM.of(len(piece)), np.zeros(_text.COUNTS, np.int64)
    counts[_text.LARGEST] = -1
    _text.svmlight(as_bytes(piece), first, *arrays, counts)
    y, _, indptr, indices, values, _, slow = arrays
    rows, entries = counts[_text.ROWS], counts[_text.ENTRIES]
    for k, at in slow[: counts[_text.SLOW]].tolist():
        if k < entries:  # else its line was left out
            values[k] = _slowly(piece, at)
    indices, values = indices[:entries].copy(), values[:entries].copy()
    ends = indptr[: rows + 1].astype(np.int32)
    return Parsed(piece, y[:rows].copy(), ends, indices, values, counts)


def _slowly(piece: bytes, at: int) -> float:
    return float(piece[at : at + 2000].split(None, 1)[0].split(b":", 1)[1].split(b"#")[0])


def read_svmlight(
    path: str,
    trouble: Trouble,
    first: int = 1,
    width: int | None = None,
    threads: int = 2,
    piece: int | None = None,
    crop: bool = False,
) -> Iterator[Chunk]:
    """Chunks of CSR rows of so many features, or as many as the first chunk has.

    With `crop`, features beyond these are left out.
    """
    lines = 0
    for parsed in in_threads(partial(parse, first=first), pieces(path, piece), threads):
        counts = parsed.counts
        if counts[_text.BAD]:
            problem = PROBLEMS[int(counts[_text.BAD_KIND])].format(first=first)
            line = lines + int(counts[_text.BAD_LINE]) + 1
            at = int(counts[_text.BAD_AT])
            text = line_at(parsed.piece, at)
            trouble.meet(int(counts[_text.BAD]), at_line(path, line, text, problem))
        if len(parsed.y):
            largest = int(counts[_text.LARGEST])
            width = max(largest + 1, 1) if width is None else width
            if largest >= width and crop:
                parsed = cropped(parsed, width)
            elif largest >= width:
                raise DataFileError(too_wide(path, parsed, lines, first, width))
            yield Chunk(_rows(parsed, width), parsed.y)
        lines += int(counts[_text.LINES])


def _rows(parsed: Parsed, width: int) -> Any:
    parts = parsed.values, parsed.indices, parsed.indptr
    rows = sp.csr_array(parts, shape=(len(parsed.y), width), copy=False)
    rows.has_canonical_format = True
    return rows


def cropped(parsed: Parsed, width: int) -> Parsed:
    """Without the features beyond a width."""
    keep = parsed.indices < width
    indptr = np.append(0, np.cumsum(keep))[parsed.indptr].astype(np.int32)
    return parsed._replace(indptr=indptr, indices=parsed.indices[keep], values=parsed.values[keep])


def too_wide(path: str, parsed: Parsed, lines: int, first: int, width: int) -> str:
    """A message about the first row that has a feature too many."""
    at = int(np.flatnonzero(parsed.indices >= width)[0])
    row = int(np.searchsorted(parsed.indptr, at, side="right"))
    number, text = _line_of(parsed.piece, row, first)
    return at_line(
        path,
        lines + number,
        text,
        f"feature {int(parsed.indices[at]) + first}, but {width} features are expected; say how many "
        "there are in all (n_features, in the shell --features)",
    )


def _line_of(piece: bytes, row: int, first: int) -> tuple[int, bytes]:
    """The number and the text of the line that holds a row; lines may be blank or wrong."""
    rows = 0
    for number, line in enumerate(piece.split(b"\n"), 1):
        rows += len(parse(line, first).y)
        if rows == row:
            return number, line
    raise AssertionError("the row is in the piece")


def scan(path: str, trouble: Trouble, first: int = 1, threads: int = 2) -> int:
    """How many features a file has."""
    chunks = read_svmlight(path, trouble, first, MOST_FEATURES, threads)
    return max((int(chunk.X.indices.max(initial=-1)) + 1 for chunk in chunks), default=0)
