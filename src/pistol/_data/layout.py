"""Which encoded columns belong together: those of one category count as one feature.

Any two levels of a category are as far apart as the two values of a flag, so a rare level is no farther
from the others than a frequent one. In the learned metric all columns of a category have one weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array
from .bends import Bent
from .scaling import Scaler

APART = np.sqrt(2.0)  # the scale of a one-hot column: the squared distance of two levels is 4


@dataclass(frozen=True, eq=False)
class Layout:
    """For each encoded column: the column of the table it is from, and its group.

    One-hot columns of a category are one group. Every other column is a group of its own.
    """

    owner: Array
    group: Array
    hot: Array
    columns: int  # of the table

    def levelled(self, scaler: Any, mean: Array) -> Any:
        """The scaler with one scale for all columns of a group, given the mean of each column."""
        if not self.hot.any():
            return scaler
        if isinstance(scaler, Bent):
            return replace(scaler, scaler=self.levelled(scaler.scaler, mean))
        if not isinstance(scaler, Scaler):
            return scaler
        scale = np.where(self.hot, APART, scaler.scale)
        center = np.where(self.hot, mean, scaler.center) if scaler.centred else scaler.center
        return replace(scaler, center=center, scale=scale)

    def means(self, X: Any, weight: Array) -> Array:
        """The mean of each one-hot column."""
        mean = np.zeros(len(self.hot))
        if self.hot.any():
            part = X[:, np.flatnonzero(self.hot)]
            mean[self.hot] = np.asarray((weight / weight.sum()) @ part).ravel()
        return mean

    def by_column(self, squares: Array) -> Array:
        """Sums over the columns of the table, of values that are alike within a group."""
        first = np.unique(self.group, return_index=True)[1]
        return np.bincount(self.owner[first], squares[first], self.columns)

    def count(self, varies: Array) -> int:
        """How many groups have a column that varies."""
        return len(np.unique(self.group[varies]))


def pooled(squares: Array, group: Array, rows: Any, weight: Array) -> Array:
    """One value for all columns of a group: their mean, weighted by how much each varies."""
    alone = np.bincount(group)[group] == 1
    if alone.all():
        return squares
    share = variance(rows, weight)
    total, whole = np.bincount(group, squares * share), np.bincount(group, share)
    mean = total / np.where(whole > 0, whole, 1.0)
    return np.where(alone, squares, mean[group])


def variance(rows: Any, weight: Array) -> Array:
    """Of each column of dense or sparse rows."""
    share = weight / max(weight.sum(), 1e-300)
    mean = np.asarray(share @ rows).ravel()
    if sp.issparse(rows):
        square = np.asarray(share @ rows.multiply(rows)).ravel()
        return np.maximum(square - mean * mean, 0.0)
    return np.asarray(share @ np.square(rows - mean))
