"""From scores to probabilities, by one number that is fitted to held-out rows.

P(class) ∝ exp(T f): the most likely class stays the one of the largest score.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax

from .._compiled.types import Array


def log_loss(scores: Array, codes: Array, weight: Array, T: float) -> float:
    """Mean of -log P of the true classes."""
    logits = T * two_sided(scores)
    picked = logits[np.arange(len(codes)), codes]
    return float(weight @ (logsumexp(logits, axis=1) - picked) / max(weight.sum(), 1e-300))


def two_sided(scores: Array) -> Array:
    """One score per class; a single score f of two classes becomes (-f/2, f/2)."""
    return np.hstack([-scores, scores]) / 2 if scores.shape[1] == 1 else scores


def temperature(scores: Array, codes: Array, weight: Array) -> float:
    """The T of least log-loss; a pseudo-count keeps it finite where all rows are right."""
    size = float(np.abs(scores).mean()) or 1.0
    rows = max(weight.sum(), 1e-300)

    def loss(log_t: float) -> float:
        T = np.exp(log_t) / size
        doubt = np.logaddexp(0.0, T * size) / (rows + 2)  # a row of typical score that is wrong
        return log_loss(scores, codes, weight, T) + doubt

    return float(np.exp(minimize_scalar(loss, bounds=(-6.0, 6.0), method="bounded").x) / size)


def probabilities(scores: Array, T: float) -> Array:
    """Rows that sum to one."""
    return softmax(T * two_sided(scores), axis=1)
