"""Fences around the values of a feature: a few values far out shall not set the scale of all others.

Linear estimators learn from rows without values beyond the fences: each is moved to the nearest one.
Rows that are predicted stay as they are, so a linear model stays linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.stored import FENCE, TOTAL, WEIGHT, add_rest
from .._compiled.threads import Workers
from .._compiled.types import Array
from .overview import Overview, Stored, evenly, stored_values
from .targets import weighted_quantile

SAMPLE = 2048  # rounds that the fences are computed from
TYPICAL = 0.75  # the quantile of the distances from the median that is a typical one
FAR_OUT = 12.0  # typical distances from the median to a fence; of a normal feature 14 deviations
PART = 2**16  # entries that are sorted together: more would need new memory, which takes longer
AGAIN = 2  # times that the fences of a sparse feature are computed again
LITTLE = 2.0**-10  # a smaller part of a sum is no difference: too many digits would be lost


@dataclass(frozen=True, eq=False)
class Fences:
    """The smallest and the largest value that each feature may have."""

    low: Array
    high: Array

    def within(self, X: Array) -> Array:
        """The rows with every value between the fences; X itself where all of them are."""
        if (X.min(axis=0) >= self.low).all() and (X.max(axis=0) <= self.high).all():
            return X
        return np.clip(X, self.low, self.high).astype(X.dtype, copy=False)


def fences_of(X: Array, weight: Array, far_out: float = FAR_OUT) -> Fences:
    """Fences at so many typical distances from the median."""
    parts = [_fences_of(some, weight, far_out) for some in some_features(X)]
    low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
    return Fences(low, high)


def some_features(X: Array) -> Iterator[Array]:
    """All features of X, a few at a time."""
    n, d = X.shape
    size = max(1, PART // n)
    return (X[:, lo : lo + size] for lo in range(0, d, size))


def _fences_of(X: Array, weight: Array, far_out: float) -> tuple[Array, Array]:
    """Those of some features.

    A value that more than half of the rows have is the median. The distance of the other rows from it
    is typical then.
    """
    median = weighted_quantile(X, weight, 0.5)
    gap = np.abs(X.astype(np.float64, copy=False) - median)
    same = gap == 0
    usual = weight @ same > 0.5 * weight.sum()
    gap[same & usual] = np.inf
    typical = weighted_quantile(gap, weight, TYPICAL)
    with np.errstate(over="ignore"):
        reach = np.where(typical > 0, far_out * typical, np.inf)
    return median - reach, median + reach


def within_stored(X: Any, seen: Overview, threads: Workers) -> Any:
    """Sparse rows with no stored value larger than four typical ones of its feature.

    The typical one is the mean magnitude, computed again with values moved to the fences so far. What
    was seen of the features is gone then: the new values may be where it was.
    """
    found = seen.stored or stored_values(seen.X, seen.weight, threads, hashed=False)
    at = found.large
    if not len(at):
        return X
    features, each = np.unique(seen.rows.indices[at], return_inverse=True)
    weight = seen.weight[np.searchsorted(seen.rows.indptr, at, side="right") - 1]
    values = X.data[at].astype(np.float64)
    total, count = found.F[features, TOTAL], found.F[features, WEIGHT]
    rest = total - np.bincount(each, weight * np.abs(values), len(features))
    lost = rest < LITTLE * total
    if lost.any():
        rest = np.where(lost, _rest(seen, found, features[lost])[features], rest)
    high = FENCE * (total / count)
    for _ in range(AGAIN):
        near = np.bincount(each, weight * np.minimum(np.abs(values), high[each]), len(features))
        high = FENCE * ((rest + near) / count)
    data = _copied(X, found.memory, threads)
    data[at] = np.clip(values, -high[each], high[each])
    near = sp.csr_array(X.shape, dtype=X.dtype)  # given arrays, it copies short views
    near.data, near.indices, near.indptr = data, X.indices, X.indptr
    near.has_sorted_indices = X.has_sorted_indices  # it would have to look at all of them
    return near


def _rest(seen: Overview, found: Stored, features: Array) -> Array:
    """Weighted sums of magnitudes that are not beyond the bounds of some features."""
    wanted, sums = np.zeros(len(found.F), bool), np.zeros(len(found.F))
    wanted[features] = True
    add_rest(seen.rows, seen.weight, found.B, wanted, sums)
    return sums


def _copied(X: Any, used: Array, threads: Workers) -> Array:
    """A copy of the stored values, in used memory if it is large enough.

    Memory that was never touched comes from the system page by page, which may take longer.
    """
    memory = used.view(X.dtype)
    values = memory[: X.nnz] if X.nnz <= len(memory) else np.empty(X.nnz, X.dtype)
    parts = evenly(X.nnz, X, threads)
    threads.run([partial(np.copyto, values[lo:hi], X.data[lo:hi]) for lo, hi in parts])
    return values
