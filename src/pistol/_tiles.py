"""Scores of a block of rows against a support set, in cache-sized tiles shared out to threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from threading import local
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from ._types import Array
from .kernels import Kernel
from .rows import Block

TILE = 1024  # support rows a tile
BLOCK = 256  # rows scored together: a tile of values fits a core's own cache
FEW = 4  # columns up to which a tile is multiplied while it is made; BLAS is better at more

_buffers = local()


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class Workers:
    """Threads for tiles, started when there is more than one tile to share out."""

    def __init__(self, n_jobs: int | None, stack: ExitStack) -> None:
        self.n, self.stack = effective_n_jobs(-1 if n_jobs is None else n_jobs), stack
        self.pool: ThreadPoolExecutor | None = None

    def map(self, function: Any, items: Sequence[Any]) -> Iterator[Any]:
        """Results in order; BLAS is kept to one thread each, so they do not depend on n_jobs."""
        with _controller().limit(limits=1, user_api="blas"):
            if self.n == 1 or len(items) < 2:
                yield from map(function, items)
                return
            if self.pool is None:
                self.pool = self.stack.enter_context(ThreadPoolExecutor(self.n))
            yield from self.pool.map(function, items)


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Workers]:
    """Workers whose threads end with the block."""
    with ExitStack() as stack:
        yield Workers(n_jobs, stack)


def _buffer(n: int, m: int, dtype: Any) -> Array:
    """A matrix to be overwritten, one a thread: fresh memory for every tile would cost as much."""
    key = np.dtype(dtype).char
    if getattr(_buffers, key, np.empty(0)).size < n * m:
        setattr(_buffers, key, np.empty(n * m, dtype))
    return getattr(_buffers, key)[: n * m].reshape(n, m)


def kernel_values(
    kernels: Sequence[Kernel], S: Any, A: Any, s_sq: Array, a_sq: Array
) -> list[Array]:
    """The values of shape (S, A) of each kernel, from one base, in float64."""
    block = Block(A.astype(np.float64, copy=False))
    base = kernels[0].base(S.astype(np.float64, copy=False), block, None)
    out = [base] + [base.copy() for _ in kernels[1:]]
    for kernel, K in zip(kernels, out, strict=True):
        nothing = np.empty((len(K), 0), K.dtype), np.empty((0, K.shape[1]), K.dtype)
        kernel.map_tile(K, s_sq, a_sq, *nothing)
    return out


def scores(
    kernels: Sequence[Kernel],
    S: Any,
    s_sq: Array,
    coef: Array,
    A: Any,
    a_sq: Array,
    threads: Workers,
) -> Array:
    """Σ_n coef[q, n, j] k_q(s_n, a_i), of shape (kernels, columns, rows of A).

    Tiles are made and summed in the precision of the rows, and added up in float64.
    """
    columns, given = coef.shape[2], np.result_type(S.dtype, A.dtype)
    largest = max(s_sq.max(initial=0.0), a_sq.max(initial=0.0))
    dtype = np.result_type(*(kernel.precision(given, largest) for kernel in kernels))
    block = Block(A.astype(dtype, copy=False))
    size = np.abs(coef).max(axis=1, initial=0.0)  # coefficients may be larger than float32 can be
    size = np.where(size > 0, size, 1.0)

    def tile(lo: int) -> Array:
        at = slice(lo, min(lo + TILE, S.shape[0]))
        buffer = _buffer(at.stop - lo, block.n, dtype)
        base = kernels[0].base(S[at].astype(dtype, copy=False), block, buffer)
        G = np.zeros((len(kernels), columns, block.n), base.dtype)
        for q, kernel in enumerate(kernels):
            K = base.copy() if q + 1 < len(kernels) else base
            c = (coef[q, at] / size[q]).astype(K.dtype)
            fused = c if columns <= FEW else c[:, :0]
            kernel.map_tile(K, s_sq[at], a_sq, fused, G[q, : fused.shape[1]])
            if columns > FEW:
                np.matmul(c.T, K, out=G[q])
        return G

    out = np.zeros((len(kernels), columns, block.n))
    for part in threads.map(tile, range(0, S.shape[0], TILE)):
        out += part
    return out * size[:, :, None]
