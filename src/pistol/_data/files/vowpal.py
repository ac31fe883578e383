"""Vowpal Wabbit's text format: namespaces, importance weights and tags; names are hashed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._compiled import text as _text
from ..._compiled import vowpal_text as _vowpal
from .basics import Chunk, Room, Trouble, as_bytes, at_line, in_threads, line_at, pieces

BITS = 18  # of a hash, as in Vowpal Wabbit
PROBLEMS = {
    _text.NO_TARGET: "label and importance must be numbers, the importance not negative",
    _text.NO_VALUE: "the value of a feature or a namespace is no number",
    _vowpal.NO_BAR: "a bar before the features was expected",
}


def _arrays(size: int) -> Any:
    """Arrays for all that a text of this size can hold; what is not needed is never touched."""
    y, weight, values = np.empty(size + 1), np.empty(size + 1), np.empty(size // 2 + 2)
    indptr, indices = np.zeros(size + 2, np.int64), np.empty(len(values), np.int32)
    reals = [part for x in (y, weight) for part in (x, x.view(np.uint64))]
    return *reals, indptr, indices, values, values.view(np.uint64)


ROOM = Room(_arrays)


def parse(piece: bytes, bits: int = BITS) -> tuple[bytes, Chunk, Any]:
    """Rows, labels and weights of a piece of text; a label that is missing is NaN."""
    piece = piece if piece.endswith(b"\n") else piece + b"\n"
    arrays, counts = ROOM.of(len(piece)), np.zeros(_text.COUNTS, np.int64)
    _vowpal.vowpal(as_bytes(piece), np.uint64(2**bits - 1), *arrays, counts)
    y, _, weight, _, indptr, indices, values, _ = arrays
    rows, entries = counts[_text.ROWS], counts[_text.ENTRIES]
    own = values[:entries].copy(), indices[:entries].copy(), indptr[: rows + 1].astype(np.int32)
    X = sp.csr_array(own, shape=(rows, 2**bits))
    X.sum_duplicates()
    return piece, Chunk(X, y[:rows].copy(), weight[:rows].copy()), counts


def read_vowpal(
    path: str, trouble: Trouble, bits: int = BITS, threads: int = 2, piece: int | None = None
) -> Iterator[Chunk]:
    """Chunks of CSR rows of 2^bits features."""
    lines = 0
    work = partial(parse, bits=bits)
    for text, chunk, counts in in_threads(work, pieces(path, piece), threads):
        if counts[_text.BAD]:
            problem = PROBLEMS[int(counts[_text.BAD_KIND])]
            line, at = lines + int(counts[_text.BAD_LINE]) + 1, int(counts[_text.BAD_AT])
            trouble.meet(int(counts[_text.BAD]), at_line(path, line, line_at(text, at), problem))
        if len(chunk.y):
            yield chunk
        lines += int(counts[_text.LINES])
