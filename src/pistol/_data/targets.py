"""Scaling of targets: centred, and divided by half their typical deviation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._compiled.types import Array, read_only
from .scaling import LEAST, MOST, plain
from .validation import MAX_TARGET

RECENT = 1024  # rounds of a stream that say how targets are scaled
TRIMMED = 0.9  # deviations beyond this quantile count as if they were there


@dataclass(frozen=True, eq=False)
class TargetScaler:
    """Targets become (y - center) · scale."""

    center: Array
    scale: Array

    @property
    def unit(self) -> Array:
        """1 / scale."""
        return 1.0 / self.scale

    def transform(self, Y: Array) -> Array:
        """Scaled targets, clipped to what leaves room for arithmetic."""
        with np.errstate(over="ignore"):
            V = (Y - self.center) * self.scale
        return read_only(np.ascontiguousarray(np.clip(V, -MAX_TARGET, MAX_TARGET)))

    def spread(self, coef: Array) -> Array:
        """Coefficients (one row per output) of unscaled targets from those of scaled ones."""
        with np.errstate(over="ignore"):
            return np.clip(coef * self.unit[:, None], -MOST, MOST)

    def inverse_transform(self, scores: Array) -> Array:
        """Targets from scores."""
        return self.spread(scores.T).T + self.center

    def differs(self, other: TargetScaler) -> Array:
        """For each output whether scaling by the other would make a difference."""
        with np.errstate(over="ignore"):
            ratio = other.scale / self.scale
            shift = np.abs(self.center - other.center) * self.scale
        return ~((ratio < 1.25) & (ratio > 0.8) & (shift < 0.25))

    def replaced(self, other: TargetScaler, outputs: Array) -> TargetScaler:
        """The scaler with the other's numbers for some outputs."""
        center = np.where(outputs, other.center, self.center)
        return TargetScaler(center, np.where(outputs, other.scale, self.scale))


def unscaled(outputs: int) -> TargetScaler:
    """The scaler that does nothing."""
    return TargetScaler(np.zeros(outputs), np.ones(outputs))


def typical(Y: Array, weight: Array, centred: bool = True) -> TargetScaler:
    """The scaler of all targets of a data set: the median, and half the mean deviation from it."""
    center = weighted_quantile(Y, weight, 0.5) if centred else np.zeros(Y.shape[1])
    deviation = weight / max(weight.sum(), LEAST) @ np.abs(Y - center)
    return _halves(center, np.where(deviation > LEAST, deviation, np.abs(center)))


def robust(Y: Array, weight: Array, centred: bool = True) -> TargetScaler:
    """Like `typical`, but a few targets far out change it little."""
    center = weighted_quantile(Y, weight, 0.5) if centred else np.zeros(Y.shape[1])
    gap = np.abs(Y - center)
    trimmed = np.minimum(gap, weighted_quantile(gap, weight, TRIMMED))
    total = max(weight.sum(), LEAST)
    deviation = weight / total @ trimmed
    for other in (weight / total @ gap, np.abs(center)):
        deviation = np.where(deviation > LEAST, deviation, other)
    return _halves(center, deviation)


def weighted_quantile(Y: Array, weight: Array, q: float) -> Array:
    """The smallest value of every output that a share q of the weight does not exceed."""
    rank = np.argsort(Y, axis=0, kind="stable")
    share = np.cumsum(weight[rank], axis=0)
    at = (share >= q * share[-1]).argmax(axis=0)
    return np.take_along_axis(Y, rank, axis=0)[at, np.arange(Y.shape[1])]


def _halves(center: Array, deviation: Array) -> TargetScaler:
    known = deviation > LEAST
    deviation = np.where(known, deviation, 1.0)
    return TargetScaler(center, np.where(known, 2.0 / plain(deviation), 1.0))


@dataclass(frozen=True, eq=False)
class Recent:
    """The last rounds of a stream: targets, what was predicted for them, and sizes."""

    Y: Array
    P: Array
    r: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def none(cls, outputs: int) -> Recent:
        """Before the first round."""
        return cls(np.zeros((0, outputs)), np.zeros((0, outputs)))

    def then(self, Y: Array, P: Array, r: Array) -> Recent:
        """After more rounds."""
        parts: Any = zip((self.Y, self.P, self.r), (Y, P, r), strict=True)
        return Recent(*(np.concatenate([a[-RECENT:], b[-RECENT:]])[-RECENT:] for a, b in parts))

    def scaler(self, centred: bool) -> TargetScaler:
        """The scaler that the recent targets suggest."""
        return robust(self.Y, self.r, centred)

    def better_without(self, center: Array) -> Array:
        """For each output whether the centre alone predicts most recent targets better."""
        gain = np.abs(self.Y - self.P) - np.abs(self.Y - center)
        return self.r @ (gain > 0) > 0.5 * self.r.sum()
