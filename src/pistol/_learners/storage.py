"""Arrays and rows that grow, and those that are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array


class Growing:
    """An array that grows along its first axis; room is doubled when it runs out."""

    def __init__(self, shape: tuple[int, ...] = (), dtype: Any = np.float64) -> None:
        self._room, self.n = np.empty((0, *shape), dtype), 0

    @property
    def values(self) -> Array:
        return self._room[: self.n]

    def reserve(self, more: int, dtype: Any = None) -> None:
        """Make room; what is not yet written takes no memory until it is."""
        dtype = np.result_type(self._room, dtype or self._room)
        if len(self._room) < self.n + more or dtype != self._room.dtype:
            room = np.empty((max(2 * self.n, self.n + more), *self._room.shape[1:]), dtype)
            room[: self.n] = self.values
            self._room = room

    def append(self, x: Array) -> None:
        self.reserve(len(x), x.dtype)
        self._room[self.n : self.n + len(x)] = x
        self.n += len(x)

    def truncate(self, n: int) -> None:
        self.n = n

    def mark(self) -> Any:
        """What `restore` needs, as long as no value is overwritten."""
        return self._room, self.n

    def restore(self, mark: Any) -> None:
        """Be as at the time of the mark."""
        self._room, self.n = mark

    def filled(self, values: Array) -> Growing:
        """Another array of this kind, with these values."""
        other = Growing(self._room.shape[1:], self._room.dtype)
        other.append(values)
        return other

    def cleared(self) -> Growing:
        """Another array of this length, of zeros."""
        return self.filled(np.zeros_like(self.values))

    def grown(self) -> Growing:
        """The array itself: it can grow."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"_room": self.values.copy(), "n": self.n}


class Later:
    """An array that is computed each time it is asked for, from what is in memory anyway."""

    def __init__(self, n: int, compute: Callable[[], Array]) -> None:
        self.n, self.compute = n, compute

    @property
    def values(self) -> Array:
        return self.compute()

    def mark(self) -> None:
        """Nothing: it stays as it is."""

    def restore(self, mark: None) -> None:
        """Be as at the time of the mark."""

    def grown(self) -> Growing:
        """The same as an array that can grow."""
        values = self.values
        out = Growing(values.shape[1:], values.dtype)
        out.append(values)
        return out


class Store:
    """Rows, dense or CSR, that are appended over time and read as one matrix without a copy."""

    def __init__(self, like: Any) -> None:
        self.width, self.sparse = like.shape[1], sp.issparse(like)
        if self.sparse:
            self._data, self._indices = Growing((), like.dtype), Growing((), np.int32)
            self._indptr = Growing((), np.int32)
            self._indptr.append(np.zeros(1, np.int32))
        else:
            self._data = Growing((self.width,), like.dtype)

    @property
    def rows(self) -> Any:
        if not self.sparse:
            return self._data.values
        parts = (self._data.values, self._indices.values, self._indptr.values)
        return sp.csr_array(parts, shape=(len(parts[2]) - 1, self.width), copy=False)

    def reserve(self, like: Any) -> None:
        """Make room for all rows of a matrix, so that rows never move while they are learned."""
        if self.sparse:
            self._indptr.reserve(like.shape[0])
            self._indices.reserve(getattr(like, "nnz", like.size))
            self._data.reserve(getattr(like, "nnz", like.size), like.dtype)
        else:
            self._data.reserve(like.shape[0], like.dtype)

    def append(self, X: Any) -> None:
        if self.sparse:
            ends = int(self._indptr.values[-1]) + X.indptr[1:].astype(np.int64)
            wide = len(ends) > 0 and ends[-1] > np.iinfo(np.int32).max
            self._indptr.append(ends if wide else ends.astype(np.int32))
            self._indices.append(X.indices.astype(np.int32, copy=False))
            self._data.append(X.data)
        else:
            self._data.append(X)

    def grown(self) -> Store:
        """The rows themselves: they can grow."""
        return self

    def mark(self) -> Any:
        """What `restore` needs."""
        return [growing.mark() for growing in self._parts()]

    def restore(self, mark: Any) -> None:
        """Be as at the time of the mark."""
        for growing, was in zip(self._parts(), mark, strict=True):
            growing.restore(was)

    def _parts(self) -> list[Growing]:
        return [self._data, self._indices, self._indptr] if self.sparse else [self._data]

    def truncate(self, n: int) -> None:
        """Forget all but the first n rows."""
        if self.sparse:
            self._indptr.truncate(n + 1)
            n = int(self._indptr.values[-1])
            self._indices.truncate(n)
        self._data.truncate(n)


class Picked:
    """Some rows of a dense matrix that others read, too, relative to a point: a copy is made of those
    that are asked for, and only then."""

    sparse = False

    def __init__(self, matrix: Any, at: Array, centre: Array) -> None:
        self.matrix, self.at, self.centre = matrix, at, centre

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.at), len(self.centre)

    @property
    def dtype(self) -> Any:
        return self.centre.dtype

    @property
    def width(self) -> int:
        return len(self.centre)

    @property
    def rows(self) -> Picked:
        return self

    def __getitem__(self, which: Any) -> Array:
        found = self.matrix.take(self.at[which], axis=0)  # a copy; faster than with brackets
        found -= self.centre
        return found

    def astype(self, dtype: Any, copy: bool = True) -> Array:
        """All of them."""
        return self[:].astype(dtype, copy=False)

    def mark(self) -> None:
        """Nothing: they stay as they are."""

    def restore(self, mark: None) -> None:
        """Be as at the time of the mark."""

    def grown(self) -> Store:
        """The same as rows that can grow."""
        rows = self[:]
        out = Store(rows)
        out.append(rows)
        return out
