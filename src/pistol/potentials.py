"""The multiplier c_t of f_t = c_t g_{t-1}, one pure function an algorithm.

A potential maps (‖g‖², α, t, b) to c_t, with the scalars as they are before round t + 1. A long
stream of aligned gradients makes ‖g‖²/2α as large as you like: at a = 0.25 some 350 of them overflow
its exponential. So c is capped by its logarithm, far above any useful value.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, sqrt
from numbers import Real

from ._compiled.cache import helper, jit
from ._compiled.exp import prompt_exp

# e^300 ≈ 1e130 leaves room for |g(x)| and for the sums of the average below 1e308.
LOG_C_MAX = 300.0
C_MAX = exp(LOG_C_MAX)
LOG_MAX = 700.0  # the largest exponent that exp takes
VOWPAL_B = 0.5  # Vowpal Wabbit's own choice, its --ftrl_beta


@helper(inline="always")
def _capped(scale, exponent):
    """scale · exp(exponent), or C_MAX where that is less; an infinite product is more."""
    c = scale * prompt_exp(LOG_MAX if exponent > LOG_MAX else exponent)
    return C_MAX if c > C_MAX else c  # `min` would be compiled on its own


@jit(inline="always")
def pistol(g_norm_sq, alpha, t, b):
    """Algorithm 3, line 4: c = (b/α) exp(‖g‖²/2α)."""
    inverse = 1.0 / alpha
    return _capped(b * inverse, 0.5 * g_norm_sq * inverse)


@jit(inline="always")
def pistol_anytime(g_norm_sq, alpha, t, b):
    """Algorithm 3 with b_t = b √(2α), which needs no horizon; `b="anytime"` means b = ½."""
    inverse = 1.0 / alpha
    return _capped(b * sqrt(2.0 * inverse), 0.5 * g_norm_sq * inverse)


@jit
def constant(g_norm_sq, alpha, t, b):
    """Algorithm 1 with η = b, and Algorithm 2 with b = 1: c = b."""
    return min(b, C_MAX)


@jit
def decaying(g_norm_sq, alpha, t, b):
    """Algorithm 1 without a horizon, in its lazy form: c = b/√t."""
    return min(b / sqrt(t + 1.0), C_MAX)


# "pistol_vowpal" and "pistol_shared" are none of these: their b_t = b √G and b_t = b √(2α/k) need the
# G of a coordinate and the entries k of a row, see `_compiled.coordinates`.
POTENTIALS = {
    "pistol": pistol,
    "pistol_anytime": pistol_anytime,
    "constant": constant,
    "decaying": decaying,
}


def pistol_choice(
    b: str | float, a: float, L: float, T: float | None, anytime: float = 0.5
) -> tuple[str, float]:
    """Potential and number for a user's b: "anytime", "horizon" = √(2 a L T), "vowpal", or a number.

    "vowpal" is b_t = ½ √G with the G = Σ |s x_i| of a coordinate, as in Vowpal Wabbit's --pistol: only
    per-coordinate learning has it. G depends on the scale of the feature, and so do the predictions.
    """
    if isinstance(b, str) and b == "vowpal":
        return "pistol_vowpal", VOWPAL_B
    return _choice("b", b, "pistol_anytime", anytime, "pistol", lambda T: sqrt(2 * a * L * T), T)


def sgd_choice(eta: str | float, T: float | None) -> tuple[str, float]:
    """Potential and number for a user's η: "anytime" = 1/√t, "horizon" = 1/√T, or a number."""
    return _choice("eta", eta, "decaying", 1.0, "constant", lambda T: 1 / sqrt(T), T)


def _choice(
    name: str,
    value: str | float,
    anytime: str,
    at_anytime: float,
    fixed: str,
    horizon: Callable[[float], float],
    T: float | None,
) -> tuple[str, float]:
    if isinstance(value, str) and value == "anytime":
        return anytime, at_anytime
    if isinstance(value, str) and value == "horizon":
        if T is None:
            raise ValueError(
                f"{name}='horizon' needs the number of rounds in advance, which only fit knows; "
                f"for a stream use {name}='anytime' or a number"
            )
        return fixed, horizon(max(T, 1e-300))
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < value < inf:
        raise ValueError(f"{name} must be 'anytime', 'horizon' or a positive number; got {value!r}")
    return fixed, float(value)
