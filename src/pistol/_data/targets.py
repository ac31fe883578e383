"""Scaling of targets: around the median, around the mean, or as multiples of the mean.

PiSTOL's exponent is ‖g‖²/2α, with α = a (L + Σ |s|). Gradients that only are noise make ‖g‖² about
Σ s². So a has to be about E s²/E |s|, which is near 1 for losses whose gradients are mostly ±1. The
gradients of a squared error are as large as the residuals, and a few far out make E s² much larger
than E |s|. There this ratio, of the deviations from the mean, is what targets are divided by. It is
at most half the range of the targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.rows import like
from .._compiled.types import Array, read_only
from ..losses import STEPS, Loss, bounded
from .scaling import LEAST, MOST, plain
from .validation import MAX_TARGET

RECENT = 1024  # rounds of a stream that say how targets are scaled
NEWEST = 64  # rounds that say whether what was learned is worth keeping
MOST_RANGE = 1e100  # of scaled targets
FEWEST = 2.0  # multiples of the mean in the range of counts
TRIMMED = 0.9  # deviations beyond this quantile count as if they were there
FINE = 4.0  # a part of the ratio above, so that scores are as large as those around the median
FAINT = 1e-9  # deviations, relative to the mean, that are rounding
CENTER_BITS = 30  # of a mean, counted from the size of the deviations
LOG_LEAST, LOG_MOST = -600.0, 600.0  # logarithms of which exp is taken
LOG_JUMP = 5.0  # the largest change of a logarithm when counts are scaled anew


@dataclass(frozen=True, eq=False)
class TargetScaler:
    """Targets become (y - center) · scale; all targets seen so far are between low and high."""

    center: Array
    scale: Array
    low: Array | float = 0.0
    high: Array | float = 0.0

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
        """The scaler with the other's numbers for some outputs, and with its range."""
        center = np.where(outputs, other.center, self.center)
        scale = np.where(outputs, other.scale, self.scale)
        return TargetScaler(center, scale, other.low, other.high)

    def gaps(self, P: Array, V: Array) -> Array:
        """Absolute errors of scores, in the user's units."""
        with np.errstate(over="ignore"):
            return np.minimum(np.abs(P - V) * self.unit, MAX_TARGET)

    def onto(self, new: TargetScaler) -> tuple[Array, Array]:
        """Factor and offset that turn scores into the other's for the same targets."""
        with np.errstate(over="ignore"):
            factor, offset = new.scale * self.unit, (self.center - new.center) * new.scale
        return np.minimum(factor, 1e150), np.clip(offset, -1e150, 1e150)

    def bounded(self, loss: Loss) -> Loss:
        """The loss for these targets: no residual within their range is larger than its theta."""
        if not loss.ranged:
            return loss
        low, high = np.minimum(self.low, self.center), np.maximum(self.high, self.center)
        with np.errstate(over="ignore"):
            reach = float(np.max((high - low) * self.scale))
        return bounded(loss, min(max(reach, 2.0 * FINE), MOST_RANGE))


@dataclass(frozen=True, eq=False)
class LogScaler:
    """Counts become multiples of their mean; a score is 16 times the logarithm of a multiple."""

    mean: Array
    most: Array  # the largest multiple
    spread_of: Array  # E (v - 1)²/E |v - 1| of the multiples

    @property
    def center(self) -> Array:
        """What is added to the logarithms: that of the mean."""
        return np.log(self.mean)

    def transform(self, Y: Array) -> Array:
        """Multiples of the mean."""
        with np.errstate(over="ignore"):
            V = Y / self.mean
        return read_only(np.ascontiguousarray(np.clip(V, 0.0, self.most)))

    def spread(self, coef: Array) -> Array:
        """Coefficients of logarithms from those of scores."""
        return coef / STEPS

    def inverse_transform(self, scores: Array) -> Array:
        """Expected counts, none above the largest count seen: there the loss is linear."""
        return self.mean * self._multiples(scores)

    def _multiples(self, scores: Array) -> Array:
        return np.minimum(np.exp(np.clip(scores / STEPS, LOG_LEAST, LOG_MOST)), self.most)

    def differs(self, other: LogScaler) -> Array:
        """For each output whether scaling by the other would make a difference."""
        with np.errstate(over="ignore"):
            ratio = other.mean / self.mean
        return ~((ratio < 1.25) & (ratio > 0.8)) & (other.mean > LEAST)

    def replaced(self, other: LogScaler, outputs: Array) -> LogScaler:
        """The scaler with the other's numbers for some outputs, and with the largest count of both.

        A multiple of a mean of next to nothing may be cut off: the range so far is never forgotten.
        """
        mean = np.where(outputs, other.mean, self.mean)
        with np.errstate(over="ignore"):
            both = [one.most * (one.mean / mean) for one in (self, other)]
        most = np.clip(np.maximum(*both), FEWEST, MOST_RANGE)
        return LogScaler(mean, most, np.where(outputs, other.spread_of, self.spread_of))

    def gaps(self, P: Array, V: Array) -> Array:
        """Absolute errors of expected counts."""
        return np.minimum(np.abs(self.inverse_transform(P) - self.mean * V), MAX_TARGET)

    def onto(self, new: LogScaler) -> tuple[Array, Array]:
        """Factor and offset that turn scores into the other's for the same expected counts."""
        with np.errstate(over="ignore"):
            ratio = np.clip(self.mean / new.mean, np.exp(-LOG_JUMP), np.exp(LOG_JUMP))
        return np.ones(len(ratio)), STEPS * np.log(ratio)

    def calibrated(self, scores: Array, share: Array) -> LogScaler:
        """With a mean that makes the expected counts of rows add up to what was counted.

        The scores are averages of logarithms, whose exponentials add up to less.
        """
        factor = plain(1.0 / np.clip(share @ self._multiples(scores), 0.5, 2.0))
        return LogScaler(np.maximum(self.mean * factor, LEAST), self.most / factor, self.spread_of)

    def bounded(self, loss: Loss) -> Loss:
        """The loss for these counts: no expected count is above the largest count seen."""
        if not loss.ranged:
            return loss
        return replace(bounded(loss, float(self.most.max())), unit=float(self.spread_of.max()))


def unscaled(outputs: int) -> TargetScaler:
    """The scaler that does nothing."""
    return TargetScaler(np.zeros(outputs), np.ones(outputs))


def around_mean(Y: Array, weight: Array, centred: bool, low: Array, high: Array) -> TargetScaler:
    """The mean, and a quarter of the deviations' mean square over their mean magnitude."""
    share = weight / max(weight.sum(), LEAST)
    center = (share @ Y).clip(Y.min(axis=0), Y.max(axis=0)) if centred else np.zeros(Y.shape[1])
    deviation = _square_over_size(Y - center, share)
    varies = deviation > FAINT * np.abs(center)
    deviation = np.where(varies, deviation, np.abs(center))
    known = deviation > LEAST
    deviation = plain(np.where(known, deviation, 1.0))
    # without the bits that depend on the order of the rows
    step = np.ldexp(1.0, np.frexp(deviation)[1] - CENTER_BITS)
    center = np.where(varies & known, np.rint(center / step) * step, center)
    return TargetScaler(center, np.where(known, FINE / deviation, 1.0), low, high)


def multiples(Y: Array, weight: Array, centred: bool, low: Array, high: Array) -> LogScaler:
    """Multiples of the mean, or of 1 if it is not part of the model."""
    share = weight / max(weight.sum(), LEAST)
    mean = np.maximum(plain(share @ Y), LEAST) if centred else np.ones(Y.shape[1])
    with np.errstate(over="ignore"):
        V, most = np.minimum(Y / mean, MOST_RANGE), np.minimum(high / mean, MOST_RANGE)
    spread = plain(_square_over_size(V - 1.0, share))
    return LogScaler(mean, np.maximum(most, FEWEST), np.where(spread > FAINT, spread, 1.0))


def _square_over_size(gap: Array, share: Array) -> Array:
    """E v²/E |v| for every output; zero where all v are."""
    largest = np.abs(gap).max(axis=0, initial=0.0)
    unit = np.abs(gap) / np.where(largest > 0, largest, 1.0)  # squares of v itself may overflow
    return largest * (share @ np.square(unit)) / np.maximum(share @ unit, LEAST)


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


Scaling = Callable[[Array, Array, bool, Array, Array], Any]
# from Y, weight, centred, and the least and largest targets seen: of a data set, and in a stream
SCALINGS: dict[str, tuple[Scaling, Scaling]] = {
    "median": (lambda Y, w, c, *_: typical(Y, w, c), lambda Y, w, c, *_: robust(Y, w, c)),
    "mean": (around_mean, around_mean),
    "log": (multiples, multiples),
}


def weighted_quantile(Y: Array, weight: Array, q: float) -> Array:
    """The smallest value of every output that a share q of the weight does not exceed.

    Values of +inf do not count, unless all are.
    """
    last = np.maximum(np.less(Y, np.inf).sum(axis=0) - 1, 0)
    every = np.arange(Y.shape[1])
    if (weight == weight[0]).all():  # then one share is that of all outputs; sorting takes a tenth
        share = np.cumsum(weight)
        return np.sort(Y, axis=0)[np.searchsorted(share, q * share[last]), every]
    rank = np.argsort(Y, axis=0)  # equal values may come in any order
    share = np.cumsum(weight[rank], axis=0)
    at = (share >= q * share[last, every]).argmax(axis=0)
    return np.take_along_axis(Y, rank, axis=0)[at, every]


def _halves(center: Array, deviation: Array) -> TargetScaler:
    known = deviation > LEAST
    deviation = np.where(known, deviation, 1.0)
    return TargetScaler(center, np.where(known, 2.0 / plain(deviation), 1.0))


@dataclass(frozen=True, eq=False)
class Recent:
    """The last rounds of a stream: targets and sizes, and the rows of the newest."""

    Y: Array
    r: Array
    low: Array  # the least target of all rounds
    high: Array
    X: Any = None  # rows of the newest rounds, as given

    @classmethod
    def none(cls, outputs: int) -> Recent:
        """Before the first round."""
        nothing = np.full(outputs, np.inf)
        return cls(np.zeros((0, outputs)), np.zeros(0), nothing, -nothing)

    def then(self, X: Any, Y: Array, r: Array) -> Recent:
        """After more rounds."""
        newest = X[-NEWEST:]
        if self.X is not None and newest.shape[0] < NEWEST:
            stack = sp.vstack if sp.issparse(newest) else np.vstack
            before = like(newest, self.X[-(NEWEST - newest.shape[0]) :])
            newest = stack([before, newest])
            newest = sp.csr_array(newest) if sp.issparse(newest) else newest
        low, high = Y.min(axis=0, initial=np.inf), Y.max(axis=0, initial=-np.inf)
        low, high = np.minimum(self.low, low), np.maximum(self.high, high)
        parts = zip((self.Y, self.r), (Y, r), strict=True)
        Y, r = (np.concatenate([a, b[-RECENT:]])[-RECENT:] for a, b in parts)
        return Recent(Y, r, low, high, newest)

    def scaler(self, targets: str, centred: bool) -> Any:
        """The scaler that the recent targets suggest."""
        return SCALINGS[targets][1](self.Y, self.r, centred, self.low, self.high)

    def better_without(self, P: Array, center: Array) -> Array:
        """For each output whether this centre is nearer to most of the newest targets than P."""
        Y, r = self.Y[-len(P) :], self.r[-len(P) :]
        nearer = np.abs(Y - center) < (1 - 1e-6) * np.abs(Y - P)  # rounding breaks no tie
        return r @ nearer > (0.5 + 1e-6) * r.sum()
