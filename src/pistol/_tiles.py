"""Scores of a block of rows against a support set, in cache-sized tiles shared out to threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from ._types import Array
from .kernels import Kernel

TILE = 1024  # support rows a tile
BLOCK = 256  # rows scored together: a tile of values is 2 MB


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Any]:
    """A `map` over threads, with BLAS kept to one thread each: the results do not depend on n_jobs."""
    n = effective_n_jobs(-1 if n_jobs is None else n_jobs)
    with _controller().limit(limits=1, user_api="blas"):
        if n == 1:
            yield map
        else:
            with ThreadPoolExecutor(n) as pool:
                yield pool.map


def kernel_values(
    kernels: Sequence[Kernel], S: Any, A: Any, s_sq: Array, a_sq: Array
) -> Iterator[Array]:
    """The values of shape (S, A) of each kernel in turn, from one base."""
    base = kernels[0].base(S, A)
    for q, kernel in enumerate(kernels):
        K = base.copy() if q + 1 < len(kernels) else base
        kernel.map_tile(K, s_sq, a_sq)
        yield K


def scores(
    kernels: Sequence[Kernel],
    S: Any,
    s_sq: Array,
    coef: Array,
    A: Any,
    a_sq: Array,
    thread_map: Any,
) -> Array:
    """Σ_n coef[q, n, j] k_q(s_n, a_i), of shape (kernels, columns, rows of A)."""

    def tile(lo: int) -> Array:
        at = slice(lo, lo + TILE)
        values = kernel_values(kernels, S[at], A, s_sq[at], a_sq)
        return np.stack([c[at].T @ K for c, K in zip(coef, values, strict=True)])

    out = np.zeros((len(kernels), coef.shape[2], A.shape[0]))
    for part in thread_map(tile, range(0, S.shape[0], TILE)):
        out += part
    return out
