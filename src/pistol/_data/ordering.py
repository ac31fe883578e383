"""The order in which rows are learned, and what a sample weight means: weight k is k rounds.

A shuffled order depends on the rows' *content*: each round's place is a hash of its row, of how many
equal rounds there are before it, and of the seed. So `fit` does not depend on how the rows are sorted,
a row of weight k is learned exactly like k copies of it, dense and sparse rows are learned alike, origin
and scale of the features do not matter, and equal rows are still scattered over the whole pass.

Large weights must not cost more than small ones. Where all of them would add up to more rounds than
`most_rounds` allows, a round counts more than once: its gradient is multiplied by its size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array, read_only

FREE, PER_ROW = 4096, 8  # rounds that are always allowed, and rounds per row
STEPS = 2.0**36  # in which the values of a feature are told apart


class Rounds(NamedTuple):
    """The row of each round, and the size of the round."""

    rows: Array
    r: Array


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
    """Σ_j mix(u_j) mix(j), with u_j the place of x_j between the extremes of feature j, in steps.

    Neither the origin nor the unit of a feature matters. Rows of weight zero do not count for extremes.
    """
    columns = mix(np.arange(1, X.shape[1] + 1, dtype=np.uint64) * salt)
    low, high = _extremes(X, weight)
    if sp.issparse(X):
        zeros = mix(_places(np.zeros(1), low, high))
        at = X.indices
        terms = (mix(_places(X.data, low[at], high[at])) - zeros[at]) * columns[at]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return sums[X.indptr[1:]] - sums[X.indptr[:-1]] + zeros @ columns
    h = np.empty(X.shape[0], np.uint64)
    for lo in range(0, len(h), 4096):  # the hashed copy of X is never larger than this
        h[lo : lo + 4096] = mix(_places(X[lo : lo + 4096], low, high)) @ columns
    return h


def _extremes(X: Any, weight: Array) -> tuple[Array, Array]:
    """The smallest and the largest value of each feature."""
    if sp.issparse(X):
        counted = np.repeat(weight > 0, np.diff(X.indptr))
        stored = np.bincount(X.indices[counted], minlength=X.shape[1])
        all_stored = stored == np.count_nonzero(weight)
        low, high = np.where(all_stored, np.inf, 0.0), np.where(all_stored, -np.inf, 0.0)
        np.minimum.at(low, X.indices[counted], X.data[counted])
        np.maximum.at(high, X.indices[counted], X.data[counted])
        return low, high
    low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    for lo in range(0, X.shape[0], 4096):
        part = X[lo : lo + 4096][weight[lo : lo + 4096] > 0]
        np.minimum(low, part.min(axis=0, initial=np.inf), out=low)
        np.maximum(high, part.max(axis=0, initial=-np.inf), out=high)
    return low, high


def _places(x: Array, low: Array, high: Array) -> Array:
    """Where x is between low and high, in steps that rounding seldom changes."""
    varies = high > low
    low, range_ = np.where(varies, low, 0.0), np.where(varies, high - low, 1.0)
    place = np.where(varies, np.clip((x - low) / range_, 0.0, 1.0), 0.0)
    return np.rint(STEPS * place).astype(np.uint64)


def round_size(weight: Array) -> float:
    """The size of a whole round: 1, or more where the weights add up to too many rounds."""
    most = _most(weight)
    if np.ceil(weight).sum() <= most:
        return 1.0
    return float(weight.sum()) / (most - int(np.count_nonzero(weight)))


def _most(weight: Array) -> int:
    """How many rounds one call may have."""
    return max(FREE, PER_ROW * int(np.count_nonzero(weight)))


def check_size(weight: Array, size: float) -> None:
    """Refuse weights that would take too many rounds of this size."""
    rounds, most = np.ceil(weight / size).sum(), _most(weight)
    if rounds > most:
        raise ValueError(
            f"sample_weight adds up to {rounds:.4g} rounds of size {size:g}, which the first call of "
            f"partial_fit has set; at most {most} are learned in one call. Use weights of the size of "
            "those in the first call"
        )


def as_given(weight: Array, size: float = 1.0) -> Rounds:
    """The rows as they come: weight 2.5 is two rounds of size 1 and one of size 0.5."""
    if weight.strides == (0,) and len(weight) and weight[0] == size:  # no weights were given
        return Rounds(read_only(np.arange(len(weight))), weight)
    copies = np.ceil(weight / size).astype(np.int64)
    rows = np.repeat(np.arange(len(weight)), copies)
    r = np.full(len(rows), size)
    last = np.cumsum(copies)[copies > 0] - 1
    r[last] = np.maximum(weight - size * (copies - 1), 0.0)[copies > 0]
    return Rounds(read_only(rows), read_only(r))


def by_content(hashes: Array, rounds: Rounds) -> tuple[Rounds, Array]:
    """The rounds sorted by content, and a hash of each that tells equal ones apart."""
    place = np.lexsort((-rounds.r, hashes[rounds.rows]))
    rows, r = rounds.rows[place], rounds.r[place]
    h = hashes[rows]
    starts = np.flatnonzero(np.append(True, h[1:] != h[:-1])) if len(h) else np.zeros(0, int)
    copy = np.arange(len(h)) - np.repeat(starts, np.diff(np.append(starts, len(h))))
    return Rounds(rows, r), mix(h + copy.astype(np.uint64) * _ODD)


def shuffled(hashes: Array, rounds: Rounds, seed: int) -> Rounds:
    """The rounds in a random order that depends on their content and the seed alone."""
    rounds, keys = by_content(hashes, rounds)
    salt = mix(np.array([seed + 1], np.uint64) * _ODD)
    order = np.argsort(mix(keys ^ salt), kind="stable")
    return Rounds(read_only(rounds.rows[order]), read_only(rounds.r[order]))


def sampled(hashes: Array, rounds: Rounds, n: int) -> tuple[Array, Array]:
    """Rows of n rounds, chosen by content alone, and how much each of these rows counts."""
    rounds, keys = by_content(hashes, rounds)
    first = np.argsort(keys, kind="stable")[:n]
    rows, at, row = np.unique(rounds.rows[first], return_index=True, return_inverse=True)
    weight = np.bincount(row, rounds.r[first])
    return rows[at.argsort()], weight[at.argsort()]
