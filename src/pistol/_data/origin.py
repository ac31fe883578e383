"""Centring for linear models without an intercept.

Such a model must stay linear: f(0) = 0, so no constant can be subtracted from a row. But the direction
of the mean μ can be separated from the rest. With x̃ the features divided by their standard deviations
and h(x) = ⟨x̃, μ̃⟩/‖μ̃‖², the features x̃ - h(x) μ̃ have mean zero, h itself is one feature more that is 1
on average, and both are linear in x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._compiled.types import Array
from .scaling import (
    CHUNK,
    FAINT,
    FAR,
    GRAIN,
    LARGE,
    LEAST,
    MOST,
    Moments,
    Scaler,
    bounded,
    in_steps,
    within,
)


@dataclass(frozen=True, eq=False)
class OriginScaler:
    """Rows become (x̃ - h μ̃, h), with x̃ = x · scale and h = ⟨x̃, μ̃⟩/‖μ̃‖²; h = 0 where μ̃ = 0."""

    mu: Array  # of x̃
    scale: Array

    @property
    def features(self) -> int:
        """Of scaled rows."""
        return len(self.mu) + 1

    @property
    def direction(self) -> Array:
        """μ̃/‖μ̃‖²."""
        return self.mu / max(self.mu @ self.mu, 1e-300)

    def transform(self, X: Any) -> Array:
        """The scaled rows, with one feature more."""
        far = FAR[X.dtype.char]
        if (self.scale == FAINT).any():
            X = X.astype(np.float64, copy=False)  # float32 has no numbers that are faint
        out = np.empty((X.shape[0], X.shape[1] + 1), X.dtype)
        for lo in range(0, X.shape[0], CHUNK):
            rows = X[lo : lo + CHUNK]
            rows = rows.toarray() if hasattr(rows, "toarray") else rows
            scaled = within(rows.astype(np.float64, copy=False), 0.0, self.scale, far)
            h = scaled @ self.direction
            out[lo : lo + CHUNK, :-1] = in_steps(scaled - h[:, None] * self.mu, self.scale)
            out[lo : lo + CHUNK, -1] = np.rint(h * GRAIN) / GRAIN
        return out

    def grown(self, X: Any) -> OriginScaler:
        """This scaler: it knows all features."""
        return self

    def to_raw(self, weights: Array) -> Array:
        """Weights of unscaled rows; the last column is an intercept of zero."""
        w, v = weights[:, :-2], weights[:, -2]
        raw = bounded(w + np.outer(v - w @ self.mu, self.direction), self.scale, MOST)
        return np.column_stack([raw, weights[:, -1]])

    def from_raw(self, raw: Array) -> Array:
        """Weights of scaled rows from those of unscaled rows."""
        unit = np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0)
        w = bounded(raw[:, :-1], unit, LARGE)
        return np.column_stack([w, w @ self.mu, raw[:, -1]])

    def per_feature(self) -> Array:
        """What each scaled feature was multiplied by."""
        return np.append(self.scale, 1.0)

    def near(self, other: OriginScaler) -> bool:
        """Whether the other scaler would change next to nothing."""
        zero = np.zeros_like(self.mu)
        shift = np.abs(self.mu - other.mu).max(initial=0.0)
        return bool(shift < 0.25 and Scaler(zero, self.scale).near(Scaler(zero, other.scale)))


def origin_scaler(moments: Moments) -> OriginScaler:
    """The scaler of a linear model without intercept; rows around the origin are not changed."""
    scaler = moments.scaler()
    constant = ~scaler.varies & (np.abs(scaler.center) > LEAST)  # the user's own intercept, perhaps
    scale = np.where(constant, 1.0 / np.where(constant, np.abs(scaler.center), 1.0), scaler.scale)
    mu = scaler.center * scale
    scale = np.where(scale > 0, scale, FAINT)
    return OriginScaler(mu if mu @ mu >= 1.0 else np.zeros_like(mu), scale)
