"""Blocks of rows on several machines: what is counted in each, and a sample of all rows.

Everything here is a function of a block and its number, so it does not matter which machine computes
it, or how often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array
from .files.basics import Chunk
from .files.reading import joined
from .tables import frame_of, is_frame
from .validation import check_weights

SAMPLE = 2**15  # rows that choose what all rows share
ENTRIES = 2**25  # … or fewer, where these would have more entries than this
LEAST = 256  # rows that a block gives to the sample at least, if it has as many
SLACK = 2  # times a block's share of the sample that it may give


class Survey(NamedTuple):
    """Counts of one block or of several: all of them add up."""

    counts: tuple[int, ...]  # rows of each block
    counted: int  # rows whose weight is not zero
    weight: float
    rounds: float  # of size 1
    bytes: int
    labels: Array | None  # those found, with the weight of each …
    shares: Array | None
    ends: Array | None  # … or the least and the largest target

    @property
    def rows(self) -> int:
        """Of all blocks."""
        return sum(self.counts)

    def starts(self) -> list[int]:
        """The number of each block's first row."""
        return [int(n) for n in np.cumsum([0, *self.counts[:-1]])]


class Sample(NamedTuple):
    """Some rows of one block or of several, in the order of random keys."""

    rows: Chunk
    places: Array  # (rows, 2): the block of each row, and its number in the block
    keys: Array
    reach: float  # all rows with keys below it are there


def length(X: Any) -> int:
    """How many rows there are, of whatever kind."""
    return int(X.shape[0])


def taken(X: Any, rows: Array) -> Any:
    """Some rows of an array, a sparse matrix or a frame."""
    if not is_frame(X):
        return X[rows]
    return frame_of(X)[np.asarray(rows)].to_native()


def chunk_of(X: Any, y: Any = None, weight: Any = None) -> Chunk:
    """One block: X as it is, targets and weights as arrays; rows of sparse matrices are CSR."""
    if sp.issparse(X):
        X = sp.csr_array(X)
    y, weight = (None if part is None else _values(part) for part in (y, weight))
    for name, part in (("y", y), ("sample_weight", weight)):
        if part is not None and len(part) != length(X):
            raise ValueError(
                f"a block of X has {length(X)} rows and its block of {name} {len(part)}; they must be "
                "cut at the same rows"
            )
    return Chunk(X, y, weight)


def _values(part: Any) -> Array:
    found = part.to_numpy() if hasattr(part, "to_numpy") else np.asarray(part)
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def weights_of(block: Chunk) -> Array:
    """One weight per row."""
    if block.weight is None:
        return np.broadcast_to(1.0, length(block.X))
    return check_weights(np.asarray(block.weight, np.float64))


def survey(block: Chunk, classes: bool) -> Survey:
    """What is counted in a block."""
    weight, n = weights_of(block), length(block.X)
    if block.y is None:
        raise ValueError("y is None: blocks to learn from need targets")
    labels = shares = ends = None
    there = weight > 0
    if classes:
        labels, code = np.unique(block.y[there], return_inverse=True)
        shares = np.bincount(code.ravel(), weight[there], len(labels))
    elif there.any():
        ends = np.stack([block.y[there].min(axis=0), block.y[there].max(axis=0)])
    total, rounds = float(weight.sum()), float(np.ceil(weight).sum())
    return Survey((n,), int(there.sum()), total, rounds, bytes_of(block), labels, shares, ends)


def surveys(parts: Sequence[Survey]) -> Survey:
    """The counts of some blocks, one after the other."""
    counts = tuple(n for part in parts for n in part.counts)
    numbers = ([getattr(part, name) for part in parts] for name in Survey._fields[1:5])
    labels = shares = ends = None
    if parts[0].labels is not None:
        known: list[Any] = [part for part in parts if len(part.labels)]  # type: ignore[arg-type]
        found = [part.labels for part in known] or [parts[0].labels]
        labels, code = np.unique(np.concatenate(found), return_inverse=True)
        weight = np.concatenate([part.shares for part in known] or [np.zeros(0)])
        shares = np.bincount(code, weight, len(labels))
    some = [part.ends for part in parts if part.ends is not None]
    if some:
        low, high = zip(*some, strict=True)
        ends = np.stack([np.min(low, axis=0), np.max(high, axis=0)])
    counted, total, rounds, size = (sum(each) for each in numbers)
    return Survey(counts, counted, total, rounds, size, labels, shares, ends)


def sample(block: Chunk, number: int, blocks: int) -> Sample:
    """The rows of a block with the smallest keys, a bounded number of them."""
    keys = np.random.default_rng((number, 1)).random(length(block.X))
    most = min(SAMPLE, max(LEAST, SLACK * most_rows(block.X) // blocks))
    at = np.flatnonzero(weights_of(block) > 0)
    reach = float(np.partition(keys[at], most)[most]) if len(at) > most else 1.0
    at = at[keys[at] < reach]
    at = at[np.argsort(keys[at], kind="stable")]
    return _sample(block, at, np.column_stack([np.full_like(at, number), at]), keys[at], reach)


def samples(parts: Sequence[Sample]) -> Sample:
    """The rows with the smallest keys of some blocks."""
    reach = min(part.reach for part in parts)
    parts = [part for part in parts if len(part.keys)] or list(parts[:1])
    rows = stacked([part.rows for part in parts])
    keys = np.concatenate([part.keys for part in parts])
    at = np.argsort(keys, kind="stable")[: most_rows(rows.X)]
    at = at[keys[at] < reach] if reach < 1.0 else at
    places = np.concatenate([part.places for part in parts])
    return _sample(rows, at, places[at], keys[at], reach)


def _sample(rows: Chunk, at: Array, places: Array, keys: Array, reach: float) -> Sample:
    y, weight = (None if part is None else part[at] for part in rows[1:])
    return Sample(Chunk(taken(rows.X, at), y, weight), places, keys, reach)


def most_rows(X: Any) -> int:
    """Rows of the sample at most."""
    return SAMPLE if sp.issparse(X) else min(SAMPLE, max(2**12, ENTRIES // max(X.shape[1], 1)))


def stacked(parts: Sequence[Chunk]) -> Chunk:
    """The rows of some blocks, one block after the other."""
    if len(parts) == 1:
        return parts[0]
    if not is_frame(parts[0].X) or frame_of(parts[0].X).implementation.is_pyarrow():
        return joined(list(parts))
    X = nw.concat([frame_of(part.X) for part in parts], how="vertical").to_native()
    y, weight = (
        None if any(part[k] is None for part in parts) else np.concatenate([p[k] for p in parts])
        for k in (1, 2)
    )
    return Chunk(X, y, weight)


def bytes_of(part: Any) -> int:
    """Bytes of arrays and frames, and of tuples of them."""
    if isinstance(part, np.ndarray):
        return int(part.nbytes)
    if sp.issparse(part):
        return sum(int(x.nbytes) for x in (part.data, part.indices, part.indptr))
    if isinstance(part, tuple):
        return sum(map(bytes_of, part))
    return 0 if part is None else int(frame_of(part).estimated_size())
