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

from .._compiled import stored
from .._compiled.features import (
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
from .seen import WIDE, restricted

MANY = 2**18  # stored values from which threads are worth their while
DRAWN = 2**12  # stored values that say which features occur how often


class Stored(NamedTuple):
    """What is known of the stored values of sparse rows."""

    F: Array  # a line per feature
    B: Array  # the same for the second look
    hashes: Array  # Σ_j key of feature j over the stored values of every row; zeros do not count
    large: Array  # where values are stored that may be beyond a fence
    memory: Array  # that of F and B, and perhaps more


class Overview(NamedTuple):
    """Rows without features that do not occur, and what is known of the others."""

    X: Any
    rows: Rows  # those of X
    features: Array  # numbers of the features of X
    weight: Array
    F: Array  # a line per feature
    hashes: Array  # Σ_j mix(u_j + key of feature j) of every row, for u_j in coarse steps
    salt: np.uint64
    stored: Stored | None = None  # where hashes are of stored values alone


def overview(X: Any, weight: Array, threads: Workers, salt: np.uint64 = ODD) -> Overview:
    """Look at all rows; `salt` makes hashes of their own. Rows of weight zero do not count.

    In a hash, u_j is the place of x_j in the range of feature j. A constant feature adds nothing. Wide
    rows have others: which features a row has tells nearly all of them apart.
    """
    wide = X.shape[1] > WIDE
    X, features = restricted(sp.csr_array(X) if wide and not sp.issparse(X) else X)
    rows = as_rows(X if sp.issparse(X) else np.ascontiguousarray(X))
    weight = read_only(np.ascontiguousarray(weight, np.float64))
    if wide:
        found = stored_values(X, weight, threads, salt)
        return Overview(X, rows, features, weight, found.F, found.hashes, salt, found)
    F = aligned_zeros((X.shape[1], FIELDS))
    threads.run([partial(describe, rows, weight, F, *part) for part in features_of(X, threads)])
    sums = float(np.count_nonzero(weight)), max(float(weight.sum()), 1e-300)
    keys = partial(set_keys, F, F.view(np.uint64), salt, *sums)
    zeros = threads.run([partial(keys, *part) for part in evenly(X.shape[1], X, threads)])
    hashes = np.full(len(weight), np.array(zeros, np.uint64).sum(dtype=np.uint64))
    task = partial(look_again, rows, F, F.view(np.uint64), hashes)
    threads.run([partial(task, *part) for part in evenly(len(weight), X, threads)])
    return Overview(X, rows, features, weight, F, hashes, salt)


def stored_values(
    X: Any, weight: Array, threads: Workers, salt: np.uint64 = ODD, hashed: bool = True
) -> Stored:
    """Two looks at the stored values of sparse rows: magnitudes, then hashes and values far out.

    Without hashes, a single look does where no value is far out.
    """
    rows, features = as_rows(X), X.shape[1]
    ends = np.cumsum([stored.FIELDS, stored.NEEDED]) * features
    # if little is missing, there is room for all values later; what is not touched takes no memory
    memory = aligned_zeros((max(int(ends[1]), min(X.nnz, 2 * int(ends[1]))),))
    F, B = (part.reshape(features, -1) for part in np.split(memory, ends)[:2])
    bits, hashes = B.view(np.uint64), np.zeros(len(weight), np.uint64)
    measure = partial(stored.measure, rows, weight, F)
    threads.run([partial(measure, *part) for part in features_of(X, threads)])
    bound = partial(stored.set_bounds, F, B, bits, salt)
    bounds = threads.run([partial(bound, *part) for part in evenly(features, X, threads)])
    parts = evenly(len(weight), X, threads) if hashed or sum(bounds) else [(0, 0)]
    rooms = [np.empty(X.nnz, np.int64) for _ in parts]
    task = partial(stored.sum_up, rows, B, bits, hashes)
    each = zip(rooms, parts, strict=True)
    found = threads.run([partial(task, room, *part) for room, part in each])
    large = np.concatenate([room[:n] for room, n in zip(rooms, found, strict=True)])
    return Stored(F, B, hashes, large, memory)


def coarse_hashes(seen: Overview, some: Array, threads: Workers) -> Array:
    """Σ_j mix(u_j + key of feature j) of some wide sparse rows, for |x_j| in coarse steps."""
    assert seen.stored is not None
    known = seen.F, seen.stored.B.view(np.uint64)
    return _summed(partial(stored.add_coarse_sums, seen.rows, *known), seen.X, some, threads)


def fine_hashes(seen: Overview, some: Array, threads: Workers) -> Array:
    """Σ_j mix(u_j + number of feature j) of some rows, for all but the last bits of u_j."""
    number = read_only(seen.features.astype(np.int64, copy=False))
    known = seen.F, number, seen.salt
    if seen.stored is not None:
        return _summed(partial(stored.add_fine_sums, seen.rows, *known), seen.X, some, threads)
    if not len(some):
        return np.zeros(0, np.uint64)
    parts = evenly(len(number), seen.X, threads)
    zeros = threads.run([partial(fine_zeros, *known, *part) for part in parts])
    sums = _summed(partial(add_fine_hashes, seen.rows, *known), seen.X, some, threads)
    return sums + np.array(zeros, np.uint64).sum(dtype=np.uint64)


def _summed(add: Any, X: Any, some: Array, threads: Workers) -> Array:
    """What a loop adds to the hashes of some rows."""
    sums, some = np.zeros(len(some), np.uint64), read_only(some)
    parts = evenly(len(some), X, threads)
    threads.run([partial(add, some[lo:hi], sums[lo:hi]) for lo, hi in parts])
    return sums


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
