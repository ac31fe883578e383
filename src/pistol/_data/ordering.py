"""The order in which rows are played, and what a sample weight means: weight k is k rounds.

A random order is drawn from the rows' *content*: each round's place is a hash of its row, of how
many equal rounds there are before it, and of the seed. So `fit` does not depend on the order of
the rows, a sample of weight k is played exactly like k copies of it, dense and sparse rows are
played alike, the units of the features do not matter, and equal rows are still scattered over the
whole pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array, read_only

Rounds = tuple[Array, Array]  # row played in each round, and the size of the round

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def mix(x: Array) -> Array:
    """Scramble 64-bit integers one to one; zero stays zero."""
    x = (x ^ (x >> np.uint64(30))) * _MIX[0]
    x = (x ^ (x >> np.uint64(27))) * _MIX[1]
    return x ^ (x >> np.uint64(31))


def content(X: Any, Y: Array, weight: Array) -> Array:
    """A 64-bit hash of every row and its targets."""
    return mix(_hash(X, weight, _ODD)) + _hash(Y, weight, _MIX[1])


def _hash(X: Any, weight: Array, salt: np.uint64) -> Array:
    """Σ_j mix(x_j) mix(j), with x_j divided by the largest magnitude of column j.

    Zeros do not count, and rows of weight zero have no say in what is large.
    """
    columns = mix(np.arange(1, X.shape[1] + 1, dtype=np.uint64) * salt)
    largest = _largest(X, weight)
    if sp.issparse(X):
        terms = mix(_in_units(X.data, largest[X.indices])) * columns[X.indices]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    h = np.empty(X.shape[0], np.uint64)
    for lo in range(0, len(h), 4096):  # the hashed copy of X is never larger than this
        h[lo : lo + 4096] = mix(_in_units(X[lo : lo + 4096], largest)) @ columns
    return h


def _largest(X: Any, weight: Array) -> Array:
    """The largest magnitude in each column; 1 where there is none."""
    largest = np.zeros(X.shape[1])
    if sp.issparse(X):
        counted = np.repeat(weight > 0, np.diff(X.indptr))
        np.maximum.at(largest, X.indices[counted], np.abs(X.data[counted]))
    else:
        for lo in range(0, X.shape[0], 4096):
            part = X[lo : lo + 4096][weight[lo : lo + 4096] > 0]
            np.maximum(largest, np.abs(part).max(axis=0, initial=0.0), out=largest)
    return np.where(largest > 0, largest, 1.0)


def _in_units(x: Array, largest: Array) -> Array:
    """The bits of x / largest without the last sixteen, which would depend on the unit."""
    ratio = np.clip(x, -largest, largest) / largest + 0.0  # + 0.0: -0.0 equals 0.0
    return (ratio.astype(np.float64).view(np.uint64) + np.uint64(1 << 15)) >> np.uint64(16)


def as_given(weight: Array) -> Rounds:
    """The rows as they come: weight 2.5 is two rounds of size 1 and one of size 0.5."""
    if weight.strides == (0,) and weight[:1] == 1.0:  # no weights were given
        return read_only(np.arange(len(weight))), weight
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
