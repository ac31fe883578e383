"""Robust scaling: values far out neither set the scale of a feature nor count much themselves.

The scale of a feature comes from values within its fences, six typical distances from the median.
Scaled values larger than 2 are bent towards 4, which none of them reaches. A feature that has many
values beyond its fences is replaced by its normal scores: its ranks, spread like the values of a normal
distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array
from .fences import fences_of
from .scaling import GRAIN, Scaler, scaler_of

FAR_OUT = 6.0  # typical distances from the median to a fence; of a normal feature 7 deviations
STRAIGHT, ROOM = 2.0, 2.0  # scaled values that stay, and how much farther out others can be
OUTSIDE, TIED = 0.01, 0.3  # ranked: a larger share beyond the fences, no value with a larger share
PART = 2**18  # entries that are bent together
KNOTS, FARTHEST = 128, 3.0  # of normal scores


@dataclass(frozen=True, eq=False)
class Bent:
    """Rows are scaled, then values far out are bent, or all values of a feature ranked."""

    scaler: Scaler
    ranked: dict[int, tuple[Array, Array]] = field(default_factory=dict)  # knots: values, scores

    @property
    def features(self) -> int:
        """Of scaled rows."""
        return self.scaler.features

    @property
    def varies(self) -> Array:
        """Which features are not dropped."""
        return self.scaler.varies

    def transform(self, X: Any) -> Any:
        """The scaled and bent rows."""
        Z = self.scaler.transform(X)
        if sp.issparse(Z):
            return sp.csr_array((_bent(Z.data), Z.indices, Z.indptr), shape=Z.shape)
        size = max(1, PART // Z.shape[1])
        for lo in range(0, Z.shape[0], size):
            part = Z[lo : lo + size]
            ranks = self._ranks(part) if self.ranked else None
            _bent(part.reshape(-1))
            if ranks is not None:
                part[:, list(self.ranked)] = ranks
        return Z

    def _ranks(self, Z: Array) -> Array:
        """The normal scores of the features that have some."""
        out = Z[:, list(self.ranked)]
        for column, knots in zip(out.T, self.ranked.values(), strict=True):
            column[:] = np.interp(column, *knots)
        return in_steps(out)

    def inverse_transform(self, Z: Any) -> Any:
        """Rows from scaled and bent rows; values very far out come back less exactly."""
        if sp.issparse(Z):
            straight = sp.csr_array((unbend(Z.data), Z.indices, Z.indptr), shape=Z.shape)
            return self.scaler.inverse_transform(straight)
        straight = unbend(Z)
        for i, (values, scores) in self.ranked.items():
            straight[:, i] = np.interp(Z[:, i], scores, values)
        return self.scaler.inverse_transform(straight)

    def grown(self, X: Any) -> Bent:
        """This scaler: it knows all features."""
        return self

    def near(self, other: Any) -> bool:
        """Whether scaling by the other would change next to nothing."""
        return isinstance(other, Bent) and self.scaler.near(other.scaler)


def bend(Z: Array) -> Array:
    """z up to a size of 2; beyond, 2 + u / (1 + u/2) for a size of 2 + u."""
    size = np.abs(Z)
    beyond = np.maximum(size - STRAIGHT, 0.0)
    return np.copysign(np.minimum(size, STRAIGHT) + beyond / (1.0 + beyond / ROOM), Z)


def _bent(z: Array) -> Array:
    """Scaled values, in place: few are so large that they are bent, and the others are in steps."""
    far = np.flatnonzero(np.abs(z) > STRAIGHT)
    z[far] = in_steps(bend(z[far]))
    return z


def in_steps(Z: Array) -> Array:
    """Values without what depends on rounding; faint ones, which no step would leave, stay."""
    steps = (np.rint(Z * GRAIN) / GRAIN).astype(Z.dtype, copy=False)
    return np.where(np.abs(Z) < 1.0 / GRAIN, Z, steps)


def unbend(Z: Array) -> Array:
    """z from bend(z)."""
    size = np.abs(Z)
    beyond = np.clip(size - STRAIGHT, 0.0, ROOM * (1.0 - 1e-6))
    return np.copysign(np.minimum(size, STRAIGHT) + beyond / (1.0 - beyond / ROOM), Z)


def bent_scaler(X: Any, weight: Array, rows: Array, each: Array) -> Bent:
    """The robust scaler of all rows; some of them, which count `each`, say what is far out."""
    if sp.issparse(X) or not len(rows):
        return Bent(scaler_of(X, weight))
    sample = X[rows].astype(np.float64, copy=False)
    fences = fences_of(sample, each, FAR_OUT)
    near = fences.within(X)
    scaler = scaler_of(near, weight)
    if near is X:
        return Bent(scaler)
    outside = each @ ((sample < fences.low) | (sample > fences.high)) / each.sum()
    heavy = np.flatnonzero((outside > OUTSIDE) & scaler.varies)
    Z = scaler.transform(sample) if len(heavy) else sample
    found = ((int(i), normal_scores(Z[:, i], each)) for i in heavy)
    return Bent(scaler, {i: knots for i, knots in found if knots is not None})


def normal_scores(z: Array, weight: Array) -> tuple[Array, Array] | None:
    """Some values of a feature and their normal scores; None where one value is too frequent."""
    from scipy.special import ndtri  # only where features are learned

    values, place = np.unique(z, return_inverse=True)
    share = np.bincount(place, weight) / weight.sum()
    if share.max() > TIED:
        return None
    middle = np.cumsum(share) - 0.5 * share
    at = np.unique(np.searchsorted(middle, np.linspace(middle[0], middle[-1], KNOTS)))
    return values[at], np.clip(ndtri(middle[at]), -FARTHEST, FARTHEST)
