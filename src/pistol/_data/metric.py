"""A metric: what scaled features are multiplied by, so that those that matter count more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array, read_only

BITS = 12  # of a weight
FAINT = 2.0**-20  # of the largest weight: a feature that hardly counts can still be recovered


@dataclass(frozen=True, eq=False)
class Weighted:
    """Rows are scaled, then every feature is multiplied by its weight."""

    scaler: Any
    weight: Array

    @property
    def features(self) -> int:
        """Of scaled rows."""
        return self.scaler.features

    @property
    def varies(self) -> Array:
        """Which features are not dropped."""
        return self.scaler.varies

    @property
    def effective(self) -> float:
        """How many features of equal weight would be as many: (Σ w²)² / Σ w⁴."""
        weight = self.weight[: len(self.varies)][self.varies]  # ramps count with their features
        square = np.square(weight / max(self.weight.max(initial=0.0), 1e-300))
        return (
            float(square.sum() ** 2 / max(np.square(square).sum(), 1e-300)) if square.any() else 1
        )

    def transform(self, X: Any) -> Any:
        """The scaled and weighted rows."""
        return weighted(self.scaler.transform(X), self.weight)

    def inverse_transform(self, Z: Any) -> Any:
        """Rows from scaled and weighted rows."""
        return self.scaler.inverse_transform(weighted(Z, 1.0 / self.weight))

    def near(self, other: Any) -> bool:
        """Whether scaling by the other would change next to nothing."""
        return (
            isinstance(other, Weighted)
            and _alike(self.weight, other.weight)
            and (self.scaler is other.scaler or self.scaler.near(other.scaler))
        )

    def grown(self, X: Any) -> Weighted:
        """This scaler: it knows all features."""
        return self


def _alike(a: Array, b: Array) -> bool:
    """Whether the weights that count differ by less than a quarter."""
    large = np.maximum(a, b) > 0.25 * max(a.max(), b.max())
    ratio = a[large] / b[large]
    return bool((ratio < 1.25).all() and (ratio > 0.8).all())


def weighted(Z: Any, weight: Array) -> Any:
    """The rows with every feature multiplied by its weight."""
    if sp.issparse(Z):
        data = (Z.data * weight[Z.indices]).astype(Z.dtype)
        return sp.csr_array((data, Z.indices, Z.indptr), shape=Z.shape)
    return np.multiply(Z, weight, out=np.empty_like(Z), casting="same_kind")


def metric_weights(weight: Array, squares: Array) -> Array:
    """Weights from mean squared derivatives with respect to features of these weights.

    The derivative with respect to the unweighted feature is weight times as large. The mean of the
    squares of all weights is 1.
    """
    size = weight * np.sqrt(squares)
    largest = size.max(initial=0.0)
    if not (np.isfinite(largest) and largest > 0):
        return weight
    return normalised(np.maximum(size / largest, FAINT))


def mean_weights(weights: Array) -> Array:
    """The root mean square of the weights that several folds have found."""
    return normalised(np.sqrt(np.square(weights).mean(axis=0)))


def normalised(weight: Array) -> Array:
    """Weights with a mean square of about 1, without the bits that depend on rounding."""
    fraction, power = np.frexp(weight / np.sqrt(np.square(weight).mean()))
    return read_only(np.ldexp(np.rint(np.ldexp(fraction, BITS)), power - BITS))
