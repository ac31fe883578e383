"""The multiplier c_t of f_t = c_t g_{t-1}, one pure function an algorithm, in the log domain.

A potential maps (‖g‖², α, t, b) to log c_t, with the scalars as they are before round t + 1. The
logarithm is what keeps a long stream of aligned gradients finite: at a = 0.25 some 350 of them
overflow exp(‖g‖²/2α).
"""

from __future__ import annotations

from math import exp, log

from numba import njit

# e^300 ≈ 1e130 leaves room for |g(x)| and for the sums of the average below 1e308.
LOG_C_MAX = 300.0


@njit(cache=True)
def pistol(g_norm_sq, alpha, t, b):
    """Algorithm 3, line 4: c = (b/α) exp(‖g‖²/2α)."""
    return log(b / alpha) + g_norm_sq / (2.0 * alpha)


@njit(cache=True)
def pistol_anytime(g_norm_sq, alpha, t, b):
    """Algorithm 3 with b_t = b √(2α): no horizon. With b = ½ the contract's anytime rule."""
    return log(b) + 0.5 * log(2.0 / alpha) + g_norm_sq / (2.0 * alpha)


@njit(cache=True)
def constant(g_norm_sq, alpha, t, b):
    """Algorithm 1 with η = b, and Algorithm 2 with b = 1: c = b."""
    return log(b)


@njit(cache=True)
def decaying(g_norm_sq, alpha, t, b):
    """Algorithm 1 without a horizon, in its lazy form: c = b/√t."""
    return log(b) - 0.5 * log(t + 1.0)


@njit(cache=True)
def multiplier(log_c):
    """c from log c, capped far above any useful value so that nothing ever overflows."""
    return exp(min(log_c, LOG_C_MAX))


POTENTIALS = {
    "pistol": pistol,
    "pistol_anytime": pistol_anytime,
    "constant": constant,
    "decaying": decaying,
}
