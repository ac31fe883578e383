"""From scores to probabilities, by one number that is fitted to held-out rows.

P(class) ∝ exp(T f): the most likely class stays the one of the largest score. SciPy's functions are
imported where they are used, as `pistol predict` need not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._compiled.likely import mean_log
from .._compiled.types import Array, read_only


def log_loss(scores: Array, codes: Array, weight: Array) -> Callable[[float], float]:
    """The mean of -log P of the true classes, as a function of T."""
    share = read_only(np.ascontiguousarray(weight / max(weight.sum(), 1e-300)))
    if scores.shape[1] == 1:
        behind = -np.abs(scores.T)  # the other class, the less likely one
        sure = float(share @ np.where((scores[:, 0] > 0) == codes, 0.0, -behind[0]))
        return _of_temperature(sure, behind, share, 1.0)
    logits = np.array(scores.T, order="C")  # sums over classes are sums of lines
    logits -= logits[codes, np.arange(len(codes))]
    most = logits.max(axis=0)  # before the true class, by so much
    logits -= most
    return _of_temperature(float(share @ most), logits, share, 0.0)


def _of_temperature(
    sure: float, logits: Array, share: Array, first: float
) -> Callable[[float], float]:
    """T times what is sure, and the logarithms."""
    lines = read_only(np.ascontiguousarray(logits))
    return lambda T: T * sure + mean_log(lines, share, T, first)


def least(loss: Callable[[float], float], points: Array) -> float:
    """The least value of a convex function at twelve ascending points, from its values at five.

    Of two points inside an interval, the smaller value tells in which part the least one is; the
    lengths are Fibonacci's numbers, so that the next interval has one of the two points inside.
    """
    assert len(points) == 12
    low, long, short = -1, 8, 5
    first, second = loss(points[low + short]), loss(points[low + long])
    while short > 1:
        long, short, step = short, long - short, short
        if first <= second:
            first, second = loss(points[low + short]), first
        else:
            low += step
            first, second = second, loss(points[low + long])
    return min(first, second)


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
