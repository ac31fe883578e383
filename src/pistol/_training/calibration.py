"""From scores to probabilities, by one number that is fitted to held-out rows.

P(class) ∝ exp(T f): the most likely class stays the one of the largest score. SciPy's functions are
imported where they are used, as `pistol predict` need not wait for them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._compiled.likely import least_loss, loss_at
from .._compiled.types import Array, read_only


class LogLoss(NamedTuple):
    """The mean of -log P of the true classes, as a function of T."""

    logits: Array  # of the classes but for what is sure, one line per class
    share: Array  # of each row in the mean
    sure: float
    first: float  # e^0 of the more likely class, where there is a line for the other one alone

    def __call__(self, T: float) -> float:
        return loss_at(self.logits, self.share, self.sure, self.first, T)

    def least(self, points: Array) -> float:
        """The least value at twelve ascending points."""
        assert len(points) == 12
        return least_loss(self.logits, self.share, self.sure, self.first, read_only(points))


def log_loss(scores: Array, codes: Array, weight: Array) -> LogLoss:
    """That of these scores of rows of some weight."""
    share = read_only(np.ascontiguousarray(weight / max(weight.sum(), 1e-300), np.float64))
    if scores.shape[1] == 1:
        behind = -np.abs(scores.T)  # the other class, the less likely one
        sure = float(share @ np.where((scores[:, 0] > 0) == codes, 0.0, -behind[0]))
        return LogLoss(read_only(np.ascontiguousarray(behind)), share, sure, 1.0)
    logits = np.array(scores.T, order="C")  # sums over classes are sums of lines
    logits -= logits[codes, np.arange(len(codes))]
    most = logits.max(axis=0)  # before the true class, by so much
    logits -= most
    return LogLoss(read_only(logits), share, float(share @ most), 0.0)


def two_sided(scores: Array) -> Array:
    """One score per class; a single score f of two classes becomes (-f/2, f/2)."""
    return np.hstack([-scores, scores]) / 2 if scores.shape[1] == 1 else scores


def temperature(scores: Array, codes: Array, weight: Array) -> float:
    """The T of least log-loss; a pseudo-count keeps it finite where all rows are right."""
    from scipy.optimize import minimize_scalar

    size = float(np.abs(scores).mean()) or 1.0
    rows, likely = max(weight.sum(), 1e-300), log_loss(scores, codes, weight)

    def loss(log_t: float) -> float:
        T = np.exp(log_t) / size
        doubt = np.logaddexp(0.0, T * size) / (rows + 2)  # a row of typical score that is wrong
        return likely(T) + doubt

    return float(np.exp(minimize_scalar(loss, bounds=(-6.0, 6.0), method="bounded").x) / size)


def probabilities(scores: Array, T: float) -> Array:
    """Rows that sum to one."""
    from scipy.special import softmax

    return softmax(T * two_sided(scores), axis=1)
