"""Rows to predict that were learned: a score on them says little about rows to come.

Hashes of some training rows are kept in memory, not in files. Only a partial overlap is worth a word:
who predicts exactly the training rows knows it. Rows that repeat by themselves, such as those of a few
categories, are no sign of a mistake: what counts is how many more there are than among training rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.features import add_row_keys
from .._compiled.rows import as_rows
from .._compiled.threads import workers
from .._compiled.types import Array, read_only
from .notices import inspecting, say
from .validation import MANY

KEPT, LOOKED_AT = 1024, 2048  # training rows that are remembered, rows to predict that are compared
CALLS, FEW = 8, 20  # calls of so many rows or more that are looked at
NOTABLE, ALL = 0.05, 0.98  # shares of known rows between which something is said
HITS = 10  # rows that must have been found


@dataclass(frozen=True, eq=False)
class Remembered:
    """Hashes of some training rows, sorted; the share of all rows that they are."""

    keys: Array
    share: float
    natural: float  # the share of training rows that equal one of these and are another row
    looks: list[float] = field(default_factory=list)

    def look(self, X: Any) -> None:
        """Say if many of these encoded rows were learned; at most once, and only in early calls."""
        n = X.shape[0]
        if n < FEW or len(self.looks) >= CALLS or inspecting():
            return
        found = np.isin(row_keys(X, np.arange(0, n, -(-n // LOOKED_AT))), self.keys)
        hits, expected = float(found.sum()), self.share * len(found)
        known = min((hits - self.natural * len(found)) / expected, 1.0)
        surely = hits >= HITS and known > NOTABLE
        self.looks.extend([known] * (CALLS if surely else 1))
        noise = 2.0 * np.sqrt(hits) / expected if self.share < 1.0 else 0.0
        if surely and hits / expected + noise <= ALL:
            say(
                [
                    f"about {known:.0%} of these {n} rows were learned; errors on them say little "
                    "about rows to come"
                ]
            )


def remember(keys: Array, n: int) -> Remembered | None:
    """Hashes of some rows out of n that are learned; None where they cannot be told apart."""
    kept, rest = np.unique(keys[:KEPT]), keys[KEPT:]
    share = min(len(keys), KEPT) / max(n, 1)
    natural = float(np.isin(rest, kept).mean()) if len(rest) else 1.0 - len(kept) / len(keys)
    return Remembered(kept, share, natural) if natural < 0.5 * share else None


def some_rows(n: int) -> Array:
    """Numbers of rows to remember, and as many again to compare with them."""
    if n <= KEPT:
        return np.arange(n)
    return np.random.default_rng(0).permutation(n)[: 2 * KEPT]


def row_keys(X: Any, at: Array | None = None, n_jobs: int | None = 1) -> Array:
    """A hash of each of these dense or sparse rows, or of all; zeros do not count."""
    at = np.arange(X.shape[0]) if at is None else at
    keys = np.zeros(len(at), np.uint64)
    rows = as_rows(sp.csr_array(X) if sp.issparse(X) else np.ascontiguousarray(X))
    with workers(n_jobs if len(rows.data) >= MANY else 1) as threads:
        ends = np.linspace(0, len(at), threads.n + 1).astype(int)
        parts = [slice(lo, hi) for lo, hi in pairwise(ends)]
        threads.run(
            [partial(add_row_keys, rows, read_only(at[part]), keys[part]) for part in parts]
        )
    return keys
