"""How dense and CSR rows are laid out for the loops, and multiplied."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

from .cache import INTERPRETED, helper, plain
from .types import Array, Rows, loop, read_only, rows_type

_ONE = np.uintp(1)


def as_rows(X: Any) -> Rows:
    """The rows of a C-contiguous array or a CSR matrix, as views; nothing is copied."""
    if sp.issparse(X):
        indptr = X.indptr.astype(np.int64, copy=False)
        indices = X.indices.astype(np.int32, copy=False)
        return Rows(read_only(indptr), read_only(indices), read_only(X.data), 1)
    n, d = X.shape
    indptr = np.arange(0, n * d + 1, d, dtype=np.int64) if d else np.zeros(n + 1, np.int64)
    indices = np.arange(d, dtype=np.int32)
    return Rows(read_only(indptr), read_only(indices), read_only(X.reshape(-1)), 0)


def between(X: Any, lo: int, hi: int) -> Any:
    """Rows lo to hi, as views; SciPy would copy sparse ones."""
    if not sp.issparse(X):
        return X[lo:hi]
    start, end = X.indptr[lo], X.indptr[hi]
    part = sp.csr_array((hi - lo, X.shape[1]), dtype=X.dtype)  # given arrays, it copies short views
    part.data, part.indices = X.data[start:end], X.indices[start:end]
    part.indptr = X.indptr[lo : hi + 1] - start
    part.has_sorted_indices = X.has_sorted_indices  # known, or found once for all parts
    return part


@intrinsic
def _between(typingctx, x, lo, hi):
    """x[lo:hi] of a contiguous vector, without checks and without a reference: x has to outlive it."""

    def codegen(context, builder, signature, args):
        whole = context.make_array(x)(context, builder, args[0])
        part = context.make_array(x)(context, builder)
        size = context.get_constant(types.intp, context.get_abi_sizeof(whole.data.type.pointee))
        populate_array(
            part,
            data=builder.gep(whole.data, [args[1]]),
            shape=[builder.sub(args[2], args[1])],
            strides=[size],
            itemsize=size,
            meminfo=None,
        )
        return part._getvalue()

    return x(x, types.intp, types.intp), codegen


_part: Any = (lambda x, lo, hi: x[lo:hi]) if INTERPRETED else _between


@helper(inline="always")
def row(X, i):
    """Columns and values of row i, as views."""
    lo, hi = X.indptr[np.uintp(i)], X.indptr[np.uintp(i) + _ONE]
    start = lo * X.step
    return _part(X.indices, start, start + hi - lo), _part(X.data, lo, hi)


@plain
def longest(X, order):
    """The most stored values of a row."""
    most = 0
    for k in range(len(order)):
        most = max(most, X.indptr[order[k] + 1] - X.indptr[order[k]])
    return most


@plain
def dot(g, cols, vals):
    """⟨g, x⟩."""
    total = 0.0
    for k in range(len(cols)):
        total += g[cols[k]] * vals[k]
    return total


@plain
def square(vals):
    """‖x‖²."""
    total = 0.0
    for k in range(len(vals)):
        v = np.float64(vals[k])
        total += v * v
    return total


@plain
def add(g, scale, cols, vals):
    """g += scale · x."""
    for k in range(len(cols)):
        g[cols[k]] += scale * vals[k]


def like(S: Any, X: Any) -> Any:
    """X in the layout of S, dense or CSR."""
    if sp.issparse(S) == sp.issparse(X):
        return X
    return sp.csr_array(X) if sp.issparse(S) else X.toarray()


def sq_norms(X: Any, center: float = 0.0) -> Array:
    """Σ_j (x_ij - center)² of every row, in float64."""
    if sp.issparse(X):
        return sq_norms_between(X, 0, X.shape[0], center)
    if center == 0.0:
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)
    parts = (X[lo : lo + 4096] - center for lo in range(0, X.shape[0], 4096))
    return np.concatenate([np.einsum("ij,ij->i", x, x, dtype=np.float64) for x in parts])


def sq_norms_between(X: Any, lo: int, hi: int, center: float = 0.0) -> Array:
    """The same of sparse rows lo to hi."""
    rows, sums = as_rows(X), np.empty(hi - lo)
    _squares(rows._replace(indptr=rows.indptr[lo : hi + 1]), center, X.shape[1], sums)
    return sums


@loop(lambda data: types.void(rows_type(data), types.float64, types.int64, types.float64[::1]))
def _squares(X, center, features, out):
    """Σ_j (x_ij - center)² of every row."""
    for i in range(len(out)):
        _, vals = row(X, i)
        total = (features - len(vals)) * center * center
        for k in range(len(vals)):
            gap = np.float64(vals[k]) - center
            total += gap * gap
        out[i] = total


class Block:
    """A block of rows that many support rows are compared with, laid out for that once.

    Sparse rows are made dense over the columns they use, one block at a time: each stored value of a
    support row then adds one scaled row of that layout to a tile of products.
    """

    def __init__(self, rows: Any) -> None:
        self.rows, self.n = rows, rows.shape[0]
        if sp.issparse(rows):
            used = np.unique(rows.indices)
            self.place = np.full(rows.shape[1], -1, np.int32)
            self.place[used] = np.arange(len(used), dtype=np.int32)
            self.dense = np.zeros((len(used), self.n), rows.dtype)
            row = np.repeat(np.arange(self.n), np.diff(rows.indptr))
            self.dense[self.place[rows.indices], row] = rows.data


def products(S: Any, block: Block, out: Array | None = None) -> Array:
    """⟨s_n, a_i⟩ for every pair of rows, C-contiguous, of shape (S, block), into `out` if given."""
    if not sp.issparse(S):
        return np.matmul(S, block.rows.T, out=out)
    if out is None:
        out = np.empty((S.shape[0], block.n), S.dtype)
    out[:] = 0.0
    _sparse_products(as_rows(S), block.place, block.dense, out)
    return out


def _products_type(data: Any) -> Any:
    tile = types.Array(from_dtype(np.dtype(data)), 2, "C")
    return types.void(rows_type(data), types.int32[::1], tile, tile)


@loop(_products_type)
def _sparse_products(S, place, dense, out):
    for n in range(len(S.indptr) - 1):
        for k in range(S.indptr[n], S.indptr[n + 1]):
            at = place[S.indices[k]]
            if at >= 0:
                for i in range(out.shape[1]):
                    out[n, i] += S.data[k] * dense[at, i]


def manhattan(S: Any, block: Block, out: Array | None = None) -> Array:
    """Σ_j |s_nj - a_ij| for every pair of rows, of shape (S, block), in float64."""
    from sklearn.metrics.pairwise import manhattan_distances

    S, A = S.astype(np.float64), block.rows.astype(np.float64)
    if sp.issparse(S):  # its sparse loop takes 32-bit indices only
        for X in (S, A):
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return np.ascontiguousarray(manhattan_distances(S, A))


@plain(forceinline=True, fastmath={"contract"})
def _plus(total, a, p, b, q, c, r, d, s):
    """total + ap + bq + cr + ds, from left to right."""
    return (((total + a * p) + b * q) + c * r) + d * s


@plain(fastmath={"contract"})
def add_four(v, w, y, z, a, b, c, d, g):
    """g += av + bw + cy + dz."""
    for x in range(len(g)):
        g[x] = _plus(g[x], a, v[x], b, w[x], c, y[x], d, z[x])
