"""The order in which rows are played, and what a sample weight means: weight k is k rounds.

A random order is drawn from the rows' *content*: each round's place is a hash of its row, of how
many equal rounds there are before it, and of the seed. So `fit` does not depend on the order of
the rows, a sample of weight k is played exactly like k copies of it, dense and sparse rows are
played alike, and equal rows are still scattered over the whole pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ._types import Array, read_only

Rounds = tuple[Array, Array]  # row played in each round, and the size of the round

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def mix(x: Array) -> Array:
    """Scramble 64-bit integers one to one; zero stays zero."""
    x = (x ^ (x >> np.uint64(30))) * _MIX[0]
    x = (x ^ (x >> np.uint64(27))) * _MIX[1]
    return x ^ (x >> np.uint64(31))


def content(X: Any, Y: Array) -> Array:
    """A 64-bit hash of every row and its targets: Σ_j mix(x_j) mix(j). Zeros do not count."""
    columns = mix(np.arange(1, X.shape[1] + 1, dtype=np.uint64) * _ODD)
    if sp.issparse(X):
        terms = mix(_bits(X.data)) * columns[X.indices]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        h = sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    else:
        h = np.empty(X.shape[0], np.uint64)
        for lo in range(0, len(h), 4096):  # the hashed copy of X is never larger than this
            h[lo : lo + 4096] = mix(_bits(X[lo : lo + 4096])) @ columns
    targets = mix(np.arange(1, Y.shape[1] + 1, dtype=np.uint64) * _MIX[1])
    return mix(h) + mix(_bits(Y)) @ targets


def _bits(x: Array) -> Array:
    return (np.ascontiguousarray(x, np.float64) + 0.0).view(np.uint64)  # + 0.0: -0.0 equals 0.0


def as_given(weight: Array) -> Rounds:
    """The rows as they come: weight 2.5 is two rounds of size 1 and one of size 0.5."""
    copies = np.ceil(weight).astype(np.int64)
    rows = np.repeat(np.arange(len(weight)), copies)
    r = np.ones(len(rows))
    last = np.cumsum(copies)[copies > 0] - 1
    r[last] = (weight - (copies - 1))[copies > 0]
    return read_only(rows), read_only(r)


def shuffled(hashes: Array, weight: Array, seed: int) -> Rounds:
    """The rounds of `as_given` in a random order that depends on the content of the rows alone."""
    rows, r = as_given(weight)
    by_content = np.lexsort((-r, hashes[rows]))
    rows, r = rows[by_content], r[by_content]
    h = hashes[rows]
    starts = np.flatnonzero(np.append(True, h[1:] != h[:-1])) if len(h) else np.zeros(0, int)
    copy = np.arange(len(h)) - np.repeat(starts, np.diff(np.append(starts, len(h))))
    salt = mix(np.array([seed + 1], np.uint64) * _ODD)
    order = np.argsort(mix(mix(h + copy.astype(np.uint64) * _ODD) ^ salt), kind="stable")
    return read_only(rows[order]), read_only(r[order])
