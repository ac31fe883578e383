"""Scores of a block of rows against a support set, in cache-sized tiles shared out to threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import local
from typing import Any, NamedTuple

import numpy as np

from ..kernels import Kernel
from .flags import Columns, Flags
from .panels import Panels, width
from .rows import Block, products
from .sums import FOUR, Groups, expand_panels, expand_tile, groups_of
from .threads import Workers
from .types import Array, read_only

TILE = 2048  # support rows a tile, at most
BLOCK = 384  # rows scored together
FEW = 4  # columns up to which a tile is multiplied while it is made; BLAS is better at more

_buffers = local()


def _buffer(n: int, m: int, dtype: Any) -> Array:
    """A matrix to be overwritten, one a thread: fresh memory for every tile would cost as much."""
    key = np.dtype(dtype).char
    if getattr(_buffers, key, np.empty(0)).size < n * m:
        setattr(_buffers, key, np.empty(n * m, dtype))
    return getattr(_buffers, key)[: n * m].reshape(n, m)


def nothing(K: Array) -> tuple[Array, Array]:
    """No coefficients and no sums, for those who want a tile's values alone."""
    return np.empty((K.shape[0], 0), K.dtype), np.empty((0, K.shape[1]), K.dtype)


def kernel_values(
    kernels: Sequence[Kernel], S: Any, A: Any, s_sq: Array, a_sq: Array
) -> list[Array]:
    """The values of shape (S, A) of each kernel, from one base, in float64."""
    block = Block(A.astype(np.float64, copy=False))
    base = kernels[0].base(S.astype(np.float64, copy=False), block, None)
    out: list[Array] = []
    for q, kernel in enumerate(kernels):
        powers = q > 0 and kernel.follows(kernels[q - 1])
        out.append(out[-1].copy() if powers else base.copy())
        kernel.map_tile(out[-1], s_sq, a_sq, *nothing(base), powers)
    return out


def scores(
    kernels: Sequence[Kernel],
    S: Any,
    s_sq: Array,
    coef: Array,
    A: Any,
    a_sq: Array,
    threads: Workers,
    more: Sequence[Callable[[], Any]] = (),
    flags: Flags | None = None,
) -> tuple[Array, list[Any]]:
    """Σ_n coef[q, n, j] k_q(s_n, a_i), of shape (kernels, columns, rows of A).

    Tiles are made and summed in the precision of the support rows, and added up in float64. Tasks
    that have to be done anyway can be handed in, to be run by the same threads; what they return
    comes second. So can what is unusual about the rows of S, if that is known.
    """
    setting = _Setting.of(kernels, S, s_sq, A, a_sq, flags)
    columns, block = coef.shape[2], setting.block
    size = np.abs(coef).max(axis=1, initial=0.0)  # coefficients may be larger than float32 can be
    size = np.where(size > 0, size, 1.0)
    weights = (coef / size[:, None]).astype(setting.dtype)

    def tile(at: slice) -> Array:
        base = setting.base(at)
        G = np.zeros((len(kernels), columns, block.n), base.dtype)
        K = base
        for q, kernel in enumerate(kernels):
            powers = q > 0 and kernel.follows(kernels[q - 1])
            if not powers:
                K = base.copy() if q + 1 < len(kernels) else base
            c = weights[q, at].astype(K.dtype, copy=False)
            fused = c if columns <= FEW else c[:, :0]
            kernel.map_tile(
                K, setting.s_sq[at], setting.a_sq, fused, G[q, : fused.shape[1]], powers
            )
            if columns > FEW:
                np.matmul(c.T, K, out=G[q])
        return G

    tasks = [partial(tile, at) for at in tiles(S.shape[0])]
    results = threads.run([*more, *tasks])
    out = np.zeros((len(kernels), columns, block.n))
    for part in results[len(more) :]:
        out += part
    return out * size[:, :, None], results[: len(more)]


def total_scores(
    kernels: Sequence[Kernel],
    S: Any,
    s_sq: Array,
    coef: Array,
    A: Any,
    a_sq: Array,
    threads: Workers,
    layout: Flags | Panels | None = None,
) -> Array:
    """Σ_q Σ_n coef[q, n, j] k_q(s_n, a_i), of shape (columns, rows of A).

    `layout` has the support rows once more, in a form in which their products take less time.
    """
    flags = layout if isinstance(layout, Flags) else None
    groups = _groups(kernels, coef.shape[2])
    if groups is None:
        return scores(kernels, S, s_sq, coef, A, a_sq, threads, flags=flags)[0].sum(axis=0)
    setting = _Setting.of(kernels, S, s_sq, A, a_sq, flags)
    size = np.abs(coef).max(initial=0.0) or 1.0  # may be larger than float32 can be
    each = np.zeros((S.shape[0], coef.shape[2], FOUR * len(groups.kinds)), setting.dtype)
    each[:, :, groups.slots] = (coef / size).transpose(1, 2, 0)
    add = _added_by_panels if _fits(layout, setting.dtype) else _added_by_tiles
    tables = groups.kinds, read_only(groups.theta.astype(setting.dtype)), read_only(each)
    out = np.zeros((coef.shape[2], setting.block.n))
    for part in threads.run(add(setting, layout, *tables)):
        out += part
    return out * size


def laid_out(kernels: Sequence[Kernel], S: Any, outputs: int) -> Flags | Panels | None:
    """Dense support rows in the form in which many rows are scored fastest; None if there is none."""
    flags = Flags.of(S)
    if flags is not None or not isinstance(S, np.ndarray) or _groups(kernels, outputs) is None:
        return flags
    return Panels.of(S, np.arange(len(S)), S.dtype)


def _groups(kernels: Sequence[Kernel], columns: int) -> Groups | None:
    """The kernels in groups, where all of them are computed in one call."""
    return groups_of(kernels) if len(kernels) > 1 and columns <= FEW else None


def _fits(layout: Flags | Panels | None, dtype: Any) -> bool:
    """Whether these are panels of numbers as precise as they have to be."""
    return isinstance(layout, Panels) and layout.rows.dtype == dtype


def _added_by_tiles(
    setting: _Setting, _: Any, kinds: Array, theta: Array, coef: Array
) -> list[Callable[[], Array]]:
    """What support rows add, tile by tile."""
    a_sq = read_only(setting.a_sq)

    def tile(at: slice) -> Array:
        K, own = setting.base(at), read_only(setting.s_sq[at])
        G = np.zeros((coef.shape[1], setting.block.n), K.dtype)
        expand_tile(K, own, a_sq, kinds, theta, coef[at], G)
        return G

    return [partial(tile, at) for at in tiles(len(coef))]


def _added_by_panels(
    setting: _Setting, support: Any, kinds: Array, theta: Array, coef: Array
) -> list[Callable[[], Array]]:
    """The same, some panels at a time: no product of rows leaves the cache."""
    s_sq, a_sq = read_only(setting.s_sq), read_only(setting.a_sq)
    A = Panels.of(setting.block.rows, np.arange(setting.block.n), setting.dtype).rows

    def some(at: slice) -> Array:
        G = np.zeros((coef.shape[1], setting.block.n), setting.dtype)
        expand_panels(support.rows, A, s_sq, a_sq, kinds, theta, coef, at.start, at.stop, G)
        return G

    return [partial(some, at) for at in tiles(len(support.rows), TILE // width(setting.dtype))]


class _Setting(NamedTuple):
    """Support rows and a block of rows in the precision that kernel values can be had in."""

    kernels: Sequence[Kernel]
    dtype: Any
    S: Any
    s_sq: Array
    block: Block
    a_sq: Array
    flags: Flags | None = None  # the support rows in another form
    columns: Columns | None = None  # and the block, laid out for it

    @classmethod
    def of(
        cls,
        kernels: Sequence[Kernel],
        S: Any,
        s_sq: Array,
        A: Any,
        a_sq: Array,
        flags: Flags | None,
    ) -> _Setting:
        largest = max(s_sq.max(initial=0.0), a_sq.max(initial=0.0))
        dtype = np.result_type(*(kernel.precision(S.dtype, largest) for kernel in kernels))
        s_sq, a_sq = s_sq.astype(dtype, copy=False), a_sq.astype(dtype, copy=False)
        block = Block(A.astype(dtype, copy=False))
        setting = cls(kernels, dtype, S, s_sq, block, a_sq)
        if flags is None or flags.data.dtype != dtype or kernels[0].base is not products:
            return setting
        return setting._replace(flags=flags, columns=flags.columns(block.rows))

    def base(self, at: slice) -> Array:
        """What kernel values are made of, for some support rows."""
        buffer = _buffer(at.stop - at.start, self.block.n, self.dtype)
        if self.flags is not None and self.columns is not None:
            return self.flags.products(at, self.columns, buffer)
        S = self.S[at].astype(self.dtype, copy=False)
        return self.kernels[0].base(S, self.block, buffer)


def tiles(n: int, most: int = TILE) -> list[slice]:
    """n support rows in tiles of equal size: a multiple of four, so that few threads end together.

    How rows are shared out depends on n alone, not on the number of threads: neither do the sums.
    """
    size = -(-n // (4 * -(-n // (4 * most)))) if n else 1
    return [slice(lo, min(lo + size, n)) for lo in range(0, n, size)]
