"""Fences around the values of a feature: a few values far out shall not set the scale of all others.

Linear estimators learn from rows without values beyond the fences: each is moved to the nearest one.
Rows that are predicted stay as they are, so a linear model stays linear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.features import COUNT, LARGEST, MOST, SIZES, TOTAL, add_sizes
from .._compiled.rows import as_rows
from .._compiled.types import Array, read_only
from .seen import restricted
from .targets import weighted_quantile

SAMPLE = 2048  # rounds that the fences are computed from
TYPICAL = 0.75  # the quantile of the distances from the median that is a typical one
FAR_OUT = 12.0  # typical distances from the median to a fence; of a normal feature 14 deviations
STORED, TIMES = (
    4.0,
    2,
)  # typical magnitudes of a sparse feature to its fence, and how often they are computed


@dataclass(frozen=True, eq=False)
class Fences:
    """The smallest and the largest value that each feature may have."""

    low: Array
    high: Array

    def within(self, X: Array) -> Array:
        """The rows with every value between the fences; X itself where all of them are."""
        if (X.min(axis=0) >= self.low).all() and (X.max(axis=0) <= self.high).all():
            return X
        return np.clip(X, self.low, self.high).astype(X.dtype)


def fences_of(X: Array, weight: Array, far_out: float = FAR_OUT) -> Fences:
    """Fences at so many typical distances from the median.

    A value that more than half of the rows have is the median. The distance of the other rows from it
    is typical then.
    """
    median = weighted_quantile(X, weight, 0.5)
    gap = np.abs(X.astype(np.float64) - median)
    usual = weight @ (gap == 0) > 0.5 * weight.sum()
    gap = np.where(usual & (gap == 0), np.inf, gap)
    rank = np.argsort(gap, axis=0, kind="stable")
    gap = np.take_along_axis(gap, rank, axis=0)
    share = np.cumsum(weight[rank] * np.isfinite(gap), axis=0)
    at = (share >= TYPICAL * share[-1]).argmax(axis=0)
    typical = gap[at, np.arange(X.shape[1])]
    with np.errstate(over="ignore"):
        reach = np.where(typical > 0, far_out * typical, np.inf)
    return Fences(median - reach, median + reach)


def within_stored(X: Any, weight: Array) -> Any:
    """Sparse rows with no stored value larger than four typical ones of its feature.

    The typical one is the mean magnitude, computed again with values moved to the fences so far.
    """
    Z = restricted(X)[0]
    most, largest = _fence(Z, weight, np.inf)
    far = largest > most
    if not far.any():
        return X
    at = np.flatnonzero(far[Z.indices])  # the other features stay as they are
    few = sp.csr_array(
        (Z.data[at], (np.cumsum(far) - 1)[Z.indices[at]], np.searchsorted(at, Z.indptr)),
        shape=(Z.shape[0], int(far.sum())),
    )
    high = most[far]
    for _ in range(TIMES):
        high, _ = _fence(few, weight, high)
    data = X.data.copy()
    data[at] = np.clip(few.data, -high[few.indices], high[few.indices])
    return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)


def _fence(X: Any, weight: Array, most: Array | float) -> tuple[Array, Array]:
    """Where the fence of each feature is, given the one so far, and the largest magnitude."""
    F = np.zeros((X.shape[1], SIZES))
    F[:, MOST] = most
    add_sizes(as_rows(X), read_only(np.ascontiguousarray(weight, np.float64)), F)
    return STORED * (F[:, TOTAL] / np.maximum(F[:, COUNT], 1e-300)), F[:, LARGEST]
