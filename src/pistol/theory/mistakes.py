"""Lemma 1: the risk of misclassification, from the risk in terms of the loss."""

from __future__ import annotations

from math import inf

import numpy as np

from ._checks import Number, at_least_0, checked, plain, positive
from .risk import rate_exponent


def misclassification_exponent(beta: Number, q: Number = 0.0, noise: bool = True) -> Number:
    """The r of the excess misclassification risk Õ(T^-r): Theorem 2 by way of Lemma 1.

    Parameters
    ----------
    beta : float or array
        As in `rate_exponent`.
    q : float or array, default=0.0
        Tsybakov's noise exponent, equation (7). 0 asks for nothing; inf is a regression function
        that keeps away from zero.
    noise : bool, default=True
        Whether the best risk is above zero.

    Returns
    -------
    r : float or array
        `rate_exponent` / (2 - α) with α = q/(q + 1).
    """
    return plain(rate_exponent(beta, noise) / (2 - _tsybakov_alpha(q)))


def comparison_constant(d_loss: Number, d2_loss: Number) -> Number:
    """C of Lemma 1, min(-ℓ'(0), ℓ'(0)²/ℓ''(0)).

    Parameters
    ----------
    d_loss, d2_loss : float or array
        ℓ'(0) < 0 and ℓ''(0) > 0.

    Returns
    -------
    C : float or array
        2 for the square loss, 1/2 for the logistic loss.
    """
    d = checked("d_loss", d_loss, lambda v: (v < 0) & (v > -inf), "finite and below 0")
    return plain(np.minimum(-d, d * d / positive("d2_loss", d2_loss)))


def misclassification_bound(
    excess: Number, C: Number, q: Number = 0.0, c_q: Number = 0.0, factor: float = 4.0
) -> Number:
    """Lemma 1: the excess misclassification risk, from the excess risk in terms of the loss.

    Parameters
    ----------
    excess : float or array
        The (expected) risk above the best one, in terms of the loss.
    C : float or array
        See `comparison_constant`.
    q, c_q : float or array, default=0.0
        Tsybakov's noise condition, equation (7): P(|f_ρ(x)| ≤ s) ≤ c_q s^q.
    factor : float, default=4.0
        The lemma has 32, its proof ends with 4.

    Returns
    -------
    bound : float or array
        (factor (c_q + 1)/C · excess)^(1/(2 - α)) with α = q/(q + 1).

    Notes
    -----
    The bound holds if the loss at zero exceeds the best by at least (C/factor) f_ρ² wherever the
    regression function is f_ρ. The square, logistic, modified Huber and smooth hinge losses do even
    with a factor of 2. The lemma asks less, only for ℓ'(0) and ℓ''(0), and that is not enough for
    any factor: a loss may bend sharply just beside zero. The proof's step ∫ f_ρ² ≤ excess/C is off
    by two for the square loss; Cauchy-Schwarz in the step before makes up for it.
    """
    alpha, C = _tsybakov_alpha(q), positive("C", C)
    excess, c_q = at_least_0("excess", excess), at_least_0("c_q", c_q)
    return plain((positive("factor", factor) * (c_q + 1) / C * excess) ** (1 / (2 - alpha)))


def _tsybakov_alpha(q: Number) -> Number:
    q = checked("q", q, lambda v: v >= 0, "at least 0")
    return 1 - 1 / (1 + q)  # q/(q + 1), and 1 for q = inf
