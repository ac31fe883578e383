"""Slots for features: a learner of very wide sparse rows keeps numbers for the features it has seen.

The features are numbered in the order in which they are first seen; a feature's number is its slot.
Slots are found by a hash table with open addressing and linear probing: a bucket holds a slot, and
the list of features says whose it is. A key is put into the first free bucket from its home on and
never moves, so the buckets of the first n features depend on these alone. Taking the latest features
out again is therefore an exact undo.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba.core import types

from .cache import plain
from .types import Array, indices, loop, read_only

BLOCK = 2**15  # keys looked up together; a table has room for as many new ones
LEAST = 16  # buckets
FREE = -1  # a bucket without a slot, and the slot of an unknown feature
FACTOR = 2_654_435_769  # 2^32 over the golden ratio: neighbours end up far apart


@plain
def _bucket(table, features, key):
    """The bucket that holds this feature's slot, or the free one where it belongs."""
    folded = (key ^ (key >> 31)) & 0x7FFFFFFF  # products stay below 2^63
    at = ((folded * FACTOR & 0xFFFFFFFF) * len(table)) >> 32
    while table[at] != FREE and features[table[at]] != key:
        at = (at + 1) & (len(table) - 1)
    return at


_table, _list, _out = types.int32[::1], types.int64[::1], types.int32[::1]


@loop(lambda dtype: types.void(_table, _list, indices, _out))
def _find(table, features, keys, slots):
    """The slots of the keys; FREE for those that have none."""
    for k in range(len(keys)):
        slots[k] = table[_bucket(table, features, keys[k])]


@loop(lambda dtype: types.void(_table, _list, types.int64[::1], indices, _out))
def _enter(table, features, count, keys, slots):
    """The slots of the keys; those that have none get the next ones. Needs room for all keys."""
    for k in range(len(keys)):
        at = _bucket(table, features, keys[k])
        if table[at] == FREE:
            features[count[0]] = keys[k]
            table[at] = count[0]
            count[0] += 1
        slots[k] = table[at]


@loop(lambda dtype: types.void(_table, _list, types.int64[::1], types.int64))
def _leave(table, features, count, n):
    """Take out all features but the first n, the latest first: the rest is found as before."""
    while count[0] > n:
        table[_bucket(table, features, features[count[0] - 1])] = FREE
        count[0] -= 1


class Slots:
    """A growing table from feature numbers to slots 0, 1, …

    It takes 16 to 28 bytes per feature seen, and room for one block of new ones (0.9 MB at most),
    however wide the rows are.

    Parameters
    ----------
    features : array of int, default=()
        The features of the first slots, without repetition.
    """

    def __init__(self, features: Any = ()) -> None:
        self._count = np.zeros(1, np.int64)
        self._features = np.empty(0, np.int64)
        self._table = np.full(LEAST, FREE, np.int32)
        self._entered(np.asarray(features, np.int64))

    def __len__(self) -> int:
        return int(self._count[0])

    def __reduce__(self) -> Any:
        return Slots, (self._features[: len(self)].copy(),)

    @property
    def features(self) -> Array:
        """The feature in each slot."""
        return read_only(self._features[: len(self)])

    def copy(self) -> Slots:
        """A table of its own with the same slots."""
        other = Slots()
        other._count, other._table = self._count.copy(), self._table.copy()
        other._features = self._features[: len(self)].copy()
        return other

    def compress(self, X: Any, grow: bool) -> Any:
        """The CSR rows of X with slots in place of features; the entries of a row keep their order.

        Parameters
        ----------
        X : CSR matrix
            Rows of any width.
        grow : bool
            Whether unknown features get new slots. Otherwise their entries are dropped.

        Returns
        -------
        rows : CSR array of shape (rows of X, len(self))
            It shares the values of X where no entry is dropped.
        """
        slots = self._entered(X.indices) if grow else self._found(X.indices)
        data, indptr = X.data, X.indptr
        if not grow and (known := slots != FREE).sum() < len(slots):
            slots, data = slots[known], data[known]
            indptr = np.append(0, np.cumsum(known))[indptr]
        return sp.csr_array((data, slots, indptr), shape=(X.shape[0], len(self)), copy=False)

    def truncate(self, n: int) -> None:
        """Forget all slots but the first n, as if the others had never been given away."""
        _leave(self._table, self._features, self._count, n)

    def _found(self, keys: Array) -> Array:
        slots = np.empty(len(keys), np.int32)
        for at, block in _blocks(keys):
            _find(self._table, self._features, block, slots[at])
        return slots

    def _entered(self, keys: Array) -> Array:
        slots = np.empty(len(keys), np.int32)
        for at, block in _blocks(keys):
            self._reserve(len(block))
            _enter(self._table, self._features, self._count, block, slots[at])
        return slots

    def _reserve(self, more: int) -> None:
        """Room for so many features, with at most half of the buckets in use."""
        n = len(self)
        if n + more > len(self._features):
            features = np.empty(max(n + more, 3 * n // 2), np.int64)
            features[:n] = self._features[:n]
            self._features = features
        if 2 * (n + more) > len(self._table):
            table = np.full(1 << (2 * (n + more) - 1).bit_length(), FREE, np.int32)
            known, slots = read_only(self._features[:n]), np.empty(n, np.int32)
            _enter(table, self._features, np.zeros(1, np.int64), known, slots)
            self._table = table


def _blocks(keys: Array) -> Any:
    """Slices of the keys, and their numbers in the form that the loops take."""
    for lo in range(0, len(keys), BLOCK):
        at = slice(lo, lo + BLOCK)
        yield at, read_only(np.ascontiguousarray(keys[at], np.int64))
