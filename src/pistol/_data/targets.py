"""Scaling of targets: centred, and divided by half their typical deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.rows import like
from .._compiled.types import Array, read_only
from .scaling import LEAST, MOST, plain
from .validation import MAX_TARGET

RECENT = 1024  # rounds of a stream that say how targets are scaled
NEWEST = 64  # rounds that say whether what was learned is worth keeping
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
        return ~((ratio < 1.25) & (ratio > 0.8) & (shift < 0.5))

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
    """The last rounds of a stream: targets and sizes, and the rows of the newest."""

    Y: Array
    r: Array
    X: Any = None  # rows of the newest rounds, as given

    @classmethod
    def none(cls, outputs: int) -> Recent:
        """Before the first round."""
        return cls(np.zeros((0, outputs)), np.zeros(0))

    def then(self, X: Any, Y: Array, r: Array) -> Recent:
        """After more rounds."""
        newest = X[-NEWEST:]
        if self.X is not None and newest.shape[0] < NEWEST:
            stack = sp.vstack if sp.issparse(newest) else np.vstack
            before = like(newest, self.X[-(NEWEST - newest.shape[0]) :])
            newest = stack([before, newest])
            newest = sp.csr_array(newest) if sp.issparse(newest) else newest
        parts = zip((self.Y, self.r), (Y, r), strict=True)
        Y, r = (np.concatenate([a, b[-RECENT:]])[-RECENT:] for a, b in parts)
        return Recent(Y, r, newest)

    def scaler(self, centred: bool) -> TargetScaler:
        """The scaler that the recent targets suggest."""
        return robust(self.Y, self.r, centred)

    def better_without(self, P: Array, center: Array) -> Array:
        """For each output whether this centre is nearer to most of the newest targets than P."""
        Y, r = self.Y[-len(P) :], self.r[-len(P) :]
        nearer = np.abs(Y - center) < (1 - 1e-6) * np.abs(Y - P)  # rounding breaks no tie
        return r @ nearer > (0.5 + 1e-6) * r.sum()
