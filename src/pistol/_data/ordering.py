"""The order in which rows are learned, and what a sample weight means: weight k is k rounds.

A shuffled order depends on the rows' *content*: each round's place is a hash of its row, of how many
equal rounds there are before it, and of the seed. So `fit` does not depend on how the rows are sorted,
a row of weight k is learned exactly like k copies of it, dense and sparse rows are learned alike, the
order, origin and scale of the features do not matter, and equal rows are still scattered over the whole
pass.

Large weights must not cost more than small ones. Where all of them would add up to more rounds than
`_most` allows, a round counts more than once: its gradient is multiplied by its size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.features import ODD
from .._compiled.threads import Workers
from .._compiled.types import Array, read_only
from .overview import Overview, coarse_hashes, fine_hashes, overview

FREE, PER_ROW = 4096, 8  # rounds that are always allowed, and rounds per row


class Rounds(NamedTuple):
    """The row of each round, and the size of the round."""

    rows: Array
    r: Array


_HALF, _LOW = np.uint64(32), np.uint64(2**32 - 1)
_LAST = np.uint64(2**20 - 1)  # bits of the fine half that coarse steps of wide rows leave
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def mix(x: Array) -> Array:
    """Scramble 64-bit integers one to one; zero stays zero."""
    x = (x ^ (x >> np.uint64(30))) * _MIX[0]
    x = (x ^ (x >> np.uint64(27))) * _MIX[1]
    return x ^ (x >> np.uint64(31))


def content(X: Any, Y: Array, weight: Array, threads: Workers) -> tuple[Array, Overview]:
    """A 64-bit hash of every row and its targets: a coarse one in front of a fine one.

    The coarse half is that of values in large steps, whose features are known by what is in them. So
    it survives rounding, and another order, sign, origin or unit of the features. Of wide rows it is
    that of the features that a row has. The fine half tells apart what remains, and wide rows by
    values in large steps first; it is zero where nothing remains. What was seen of the features comes
    with them.
    """
    seen, targets = overview(X, weight, threads), overview(Y, weight, threads, _MIX[1])
    found = mix(mix(seen.hashes) + targets.hashes) & ~_LOW
    some = _alike(found, weight)
    fine = mix(fine_hashes(seen, some, threads)) + fine_hashes(targets, some, threads)
    if seen.stored is None:
        found[some] |= mix(fine) >> _HALF
        return found, seen
    found[some] |= (mix(coarse_hashes(seen, some, threads)) >> _HALF) & ~_LAST
    found[some] |= _numbers(found[some], mix(fine)) & _LAST
    return found, seen


def _numbers(group: Array, value: Array) -> Array:
    """For each value its place among the different ones of its group."""
    order = np.lexsort((value, group))
    first = np.ones(len(order), bool)  # of its group
    first[1:] = group[order[1:]] != group[order[:-1]]
    new = first.copy()
    new[1:] |= value[order[1:]] != value[order[:-1]]
    number, out = np.cumsum(new), np.empty(len(order), np.uint64)
    out[order] = number - np.maximum.accumulate(np.where(first, number, 0))
    return out


def _alike(found: Array, weight: Array) -> Array:
    """The numbers of rows that have the hash of another one; rows of weight zero do not count."""
    counted = np.flatnonzero(weight)
    order = counted[np.argsort(found[counted], kind="stable")]
    same = found[order[1:]] == found[order[:-1]]
    return np.sort(order[np.append(False, same) | np.append(same, False)]) if len(order) else order


def fingerprints(Z: Any, V: Array) -> Array:
    """A 64-bit hash of every row and its targets, bit for bit, for comparison between tables."""
    keys = mix(np.arange(1, Z.shape[1] + V.shape[1] + 1, dtype=np.uint64) * ODD)
    targets = mix((V + 0.0).view(np.uint64) + keys[Z.shape[1] :]).sum(axis=1)
    if not sp.issparse(Z):
        bits = (Z + Z.dtype.type(0)).astype(np.float64, copy=False).view(np.uint64)
        return targets + mix(bits + keys[: Z.shape[1]]).sum(axis=1)
    bits = np.ascontiguousarray(Z.data, np.float64).view(np.uint64)
    terms = np.cumsum(mix(bits + keys[Z.indices]), dtype=np.uint64)  # modulo 2^64
    sums = np.concatenate([np.zeros(1, np.uint64), terms])
    return targets + sums[Z.indptr[1:]] - sums[Z.indptr[:-1]]


def copies(rounds: Rounds, hashes: Array, Z: Any, V: Array) -> Array:
    """A number for each round, the same for copies: rounds of rows that agree, targets included.

    A row that occurs with different targets was observed several times, so its rounds are no copies.
    """
    known = hashes[rounds.rows]
    if len(np.unique(known)) == len(known):
        return np.arange(len(known))
    row, target = fingerprints(Z, V[:, :0])[rounds.rows], fingerprints(Z[:, :0], V)[rounds.rows]
    _, number = np.unique(row, return_inverse=True)
    _, number_of_both = np.unique(np.stack([row, target]), axis=1, return_inverse=True)
    pairs = np.unique(np.stack([number, number_of_both.ravel()]), axis=1)[0]
    several = np.bincount(pairs, minlength=len(known))[number] > 1
    return np.where(several, len(known) + np.arange(len(known)), number)


def round_size(weight: Array) -> float:
    """The size of a whole round: 1, or more where the weights add up to too many rounds."""
    counted = int(np.count_nonzero(weight))
    return size_of(float(np.ceil(weight).sum()), float(weight.sum()), counted)


def size_of(rounds: float, weight: float, rows: int) -> float:
    """The size of a round, given how many there would be of size 1, and of how many rows."""
    return 1.0 if rounds <= _most(rows) else weight / (_most(rows) - rows)


def _most(rows: int) -> int:
    """How many rounds one call with so many rows may have."""
    return max(FREE, PER_ROW * rows)


def check_size(weight: Array, size: float) -> None:
    """Refuse weights that would take too many rounds of this size."""
    rounds, most = np.ceil(weight / size).sum(), _most(int(np.count_nonzero(weight)))
    if rounds > most:
        raise ValueError(
            f"sample_weight adds up to {rounds:.4g} rounds of size {size:g}, which the first call of "
            f"partial_fit has set; at most {most} are learned in one call. Use weights of the size of "
            "those in the first call"
        )


def as_given(weight: Array, size: float = 1.0) -> Rounds:
    """The rows as they come: weight 2.5 is two rounds of size 1 and one of size 0.5."""
    if _of_one_size(weight) and len(weight) and weight[0] == size:  # no weights were given
        return Rounds(read_only(np.arange(len(weight))), weight)
    copies = np.ceil(weight / size).astype(np.int64)
    rows = np.repeat(np.arange(len(weight)), copies)
    r = np.full(len(rows), size)
    last = np.cumsum(copies)[copies > 0] - 1
    r[last] = np.maximum(weight - size * (copies - 1), 0.0)[copies > 0]
    return Rounds(read_only(rows), read_only(r))


def by_content(hashes: Array, rounds: Rounds) -> tuple[Rounds, Array]:
    """The rounds sorted by content, and a hash of each that tells equal ones apart.

    The hash is made of the coarse half of the content, and of how many rounds before have the same.
    """
    own = hashes[rounds.rows]
    place = (
        np.argsort(own, kind="stable") if _of_one_size(rounds.r) else np.lexsort((-rounds.r, own))
    )
    rows, r = rounds.rows[place], _taken(rounds.r, place)
    h = hashes[rows] >> _HALF
    starts = np.flatnonzero(np.append(True, h[1:] != h[:-1])) if len(h) else np.zeros(0, int)
    copy = np.arange(len(h)) - np.repeat(starts, np.diff(np.append(starts, len(h))))
    return Rounds(rows, r), mix(h + copy.astype(np.uint64) * ODD)


def shuffled(hashes: Array, rounds: Rounds, seed: int) -> Rounds:
    """The rounds in a random order that depends on their content and the seed alone."""
    rounds, keys = by_content(hashes, rounds)
    salt = mix(np.array([seed + 1], np.uint64) * ODD)
    order = np.argsort(mix(keys ^ salt), kind="stable")
    return Rounds(read_only(rounds.rows[order]), read_only(_taken(rounds.r, order)))


def _of_one_size(r: Array) -> bool:
    """Whether all rounds have one size, which is in memory once."""
    return r.strides == (0,)


def _taken(r: Array, at: Array) -> Array:
    """r[at], without a copy where all are alike and none is left out."""
    return r if _of_one_size(r) and len(r) == len(at) else r[at]


def sampled(hashes: Array, rounds: Rounds, n: int) -> tuple[Array, Array]:
    """Rows of n rounds, chosen by content alone, and how much each of these rows counts."""
    rounds, keys = by_content(hashes, rounds)
    first = np.argsort(keys, kind="stable")[:n]
    rows, at, row = np.unique(rounds.rows[first], return_index=True, return_inverse=True)
    weight = np.bincount(row, rounds.r[first])
    return rows[at.argsort()], weight[at.argsort()]


def learned_share(hashes: Array, weight: Array, rows: Array, learned: Array) -> Array:
    """Of each row and all that are like it, targets included, the share that was learned.

    `learned` tells how much of some rows was. Which of several copies these are makes no difference.
    """
    found, at = np.unique(hashes[rows], return_inverse=True)
    like = np.flatnonzero(np.isin(hashes, found))
    place = np.searchsorted(found, hashes[like])
    whole = np.bincount(place, weight[like], len(found))
    share = np.zeros(len(hashes), np.float32)
    share[like] = np.minimum(np.bincount(at, learned, len(found)) / whole, 1.0)[place]
    return share
