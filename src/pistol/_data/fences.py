"""Fences around the values of a feature: a few values far out shall not set the scale of all others.

Linear estimators learn from rows without values beyond the fences: each is moved to the nearest one.
Rows that are predicted stay as they are, so a linear model stays linear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.features import COUNT, LARGEST, MOST, TOTAL, add_sizes, limit_sizes
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
    rows, weight = as_rows(Z), read_only(np.ascontiguousarray(weight, np.float64))
    most = np.full(Z.shape[1], np.inf)
    for _ in range(1 + TIMES):
        F = np.zeros((Z.shape[1], 4))
        F[:, MOST] = most
        add_sizes(rows, weight, F)
        most = STORED * (F[:, TOTAL] / np.maximum(F[:, COUNT], 1e-300))
        if (F[:, LARGEST] <= most).all():
            return X
    F[:, MOST], data = most, np.empty_like(X.data)
    limit_sizes(rows, read_only(F), data)
    return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
