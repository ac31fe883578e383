"""Two looks at all rows: what is known of every feature, then hashes of rows and values far out.

Threads share out the features, or the rows where nothing is summed up. So each sum is made in the order
of the rows, and nothing depends on the number of threads.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.features import (
    FENCE,
    FIELDS,
    ODD,
    add_fine_hashes,
    describe,
    fine_zeros,
    look_again,
    set_keys,
)
from .._compiled.rows import as_rows
from .._compiled.threads import Workers
from .._compiled.types import Array, Rows, aligned_zeros, read_only
from .seen import restricted

MANY = 2**18  # stored values from which threads are worth their while
DRAWN = 2**12  # stored values that say which features occur how often


class Overview(NamedTuple):
    """Rows without features that do not occur, and what is known of the others."""

    X: Any
    rows: Rows  # those of X
    features: Array  # numbers of the features of X
    weight: Array
    F: Array  # a line per feature
    hashes: Array  # Σ_j mix(u_j + key of feature j) of every row, for u_j in coarse steps
    large: Array  # where values of sparse rows are stored that may be beyond a fence
    salt: np.uint64


def overview(X: Any, weight: Array, threads: Workers, salt: np.uint64 = ODD) -> Overview:
    """Look at all rows; `salt` makes hashes of their own. Rows of weight zero do not count.

    In a hash, u_j is the place of x_j in the range of feature j. A constant feature adds nothing.
    """
    X, features = restricted(X)
    rows = as_rows(X if sp.issparse(X) else np.ascontiguousarray(X))
    weight = read_only(np.ascontiguousarray(weight, np.float64))
    F, parts = aligned_zeros((X.shape[1], FIELDS)), features_of(X, threads)
    threads.run([partial(describe, rows, weight, F, *part) for part in parts])
    sums = float(np.count_nonzero(weight)), max(float(weight.sum()), 1e-300)
    fence, most = (FENCE, X.nnz) if sp.issparse(X) else (np.inf, 0)  # dense rows have others
    keys = partial(set_keys, F, F.view(np.uint64), fence, salt, *sums)
    zeros = threads.run([partial(keys, *part) for part in evenly(X.shape[1], X, threads)])
    shares = np.zeros((len(parts), len(weight)), np.uint64)
    rooms = [np.empty(most, np.int64) for _ in parts]  # what is not touched takes no memory
    task = partial(look_again, rows, weight, F, F.view(np.uint64))
    each = zip(shares, rooms, parts, strict=True)
    found = threads.run([partial(task, share, room, *part) for share, room, part in each])
    hashes = shares.sum(axis=0) + np.array(zeros, np.uint64).sum(dtype=np.uint64)
    large = np.concatenate([room[:n] for room, n in zip(rooms, found, strict=True)])
    return Overview(X, rows, features, weight, F, hashes, large, salt)


def fine_hashes(seen: Overview, some: Array, threads: Workers) -> Array:
    """Σ_j mix(u_j + number of feature j) of some rows, for all but the last bits of u_j."""
    number = read_only(seen.features.astype(np.int64, copy=False))
    sums, some = np.zeros(len(some), np.uint64), read_only(some)
    if not len(some):
        return sums
    known = seen.F, number, seen.salt
    parts = evenly(len(number), seen.X, threads)
    zeros = threads.run([partial(fine_zeros, *known, *part) for part in parts])
    parts = evenly(len(some), seen.X, threads)
    task = partial(add_fine_hashes, seen.rows, *known)
    threads.run([partial(task, some[lo:hi], sums[lo:hi]) for lo, hi in parts])
    return sums + np.array(zeros, np.uint64).sum(dtype=np.uint64)


def features_of(X: Any, threads: Workers) -> list[tuple[int, int]]:
    """Ranges of features with as many stored values each; one, where rows are not sorted by them."""
    if not sp.issparse(X):
        return evenly(X.shape[1], X, threads)
    n = _parts(X, threads) if X.has_sorted_indices else 1
    drawn = np.sort(X.indices[:: max(1, X.nnz // DRAWN)])
    inner = drawn[[len(drawn) * k // n for k in range(1, n)]].tolist()
    return list(pairwise([0, *inner, X.shape[1]]))


def evenly(n: int, X: Any, threads: Workers) -> list[tuple[int, int]]:
    """Ranges of so many rows or features of X."""
    parts = min(_parts(X, threads), max(n, 1))
    return list(pairwise([n * k // parts for k in range(parts + 1)]))


def _parts(X: Any, threads: Workers) -> int:
    """How many ranges."""
    stored = X.nnz if sp.issparse(X) else X.size
    return threads.n if stored >= MANY else 1
