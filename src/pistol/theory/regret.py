"""Theorem 1, Corollary 1 and Appendix A: PiSTOL's regret on any sequence of losses."""

from __future__ import annotations

import numpy as np

from ._checks import (
    Number,
    at_least_0,
    checked,
    exp,
    finite,
    log,
    parameters,
    plain,
    positive,
    rounds,
)

MAX_X = 0.4446469425566583  # where 1 - x exp(x/2) - x, the denominator of φ, is zero
TINY = 1e-300


def phi(x: Number) -> Number:
    """φ(x), the constant of Theorem 1 as its proof has it; x = L/a.

    Parameters
    ----------
    x : float or array
        L/a, in (0, 0.4446…): the denominator D below is positive. Theorem 1 asks for x ≤ 1/2.25.

    Returns
    -------
    phi : float or array
        φ(x); inf where it exceeds 10³⁰⁸, which `log_phi` does not.

    Notes
    -----
    With B = (x + 1) exp(x/2) + 2 and D = 1 - x exp(x/2) - x,

        φ(x) = (x/2) B exp(x B / (2 D)).

    The proof bounds what a round adds to the potential b exp(‖g‖²/2α). With u = ‖g_{t-1}‖ and z =
    ‖g_t - g_{t-1}‖ this is at most b exp(u²/2α_t) (z²B - a D z u²/α_{t-1}) / (2 α_t) if the round
    goes against g_{t-1}, and less if it goes along. It is negative unless u²/α_{t-1} < (z/a) B/D,
    and then the exponential is at most exp(x B / (2 D)). The statement of the theorem has lost that
    exponential: see `phi_printed`. So the proof gives 5.3 at a = 3 L, 1.07 at a = 4 L, but about
    10⁷¹⁷ at a = 2.25 L, where D is 0.0005.
    """
    return exp(log_phi(x))


def log_phi(x: Number) -> Number:
    """The natural logarithm of `phi`, which does not overflow.

    Parameters
    ----------
    x : float or array
        L/a, in (0, 0.4446…).

    Returns
    -------
    log_phi : float or array
        log φ(x).
    """
    x, B, D = _phi_parts(x)
    return plain(np.log(x / 2) + np.log(B) + x * B / (2 * D))


def phi_printed(x: Number) -> Number:
    """φ(x) as Theorem 1 states it, (x/2) (B/D) B; the proof gives `phi` instead.

    Parameters
    ----------
    x : float or array
        L/a, in (0, 0.4446…).

    Returns
    -------
    phi : float or array
        7.8 at a = 3 L, 3.1 at a = 4 L, 6285 at a = 2.25 L. From a = 2.85 L on it is more than the
        proof gives, so it holds; for smaller a it is less.
    """
    x, B, D = _phi_parts(x)
    return plain(x / 2 * B / D * B)


def regret_bound(h_norm: Number, s_sum: Number, a: Number, b: Number, L: Number) -> Number:
    """Theorem 1: what PiSTOL's regret against h cannot exceed, on any sequence.

    Parameters
    ----------
    h_norm : float or array
        ‖h‖, the norm of the comparator in the RKHS.
    s_sum : float or array
        Σ|s_t| over all T rounds; at most L T, which may stand in for it beforehand.
    a, b, L : float or array
        The parameters of the algorithm; a ≥ 2.25 L.

    Returns
    -------
    bound : float or array
        ‖h‖ √(2 α log(‖h‖ √α / b + 1)) + b φ(L/a) log(1 + s_sum/L) with α = a (L + s_sum).

    Notes
    -----
    Assumes convex losses with |s_t| ≤ L, and ‖k(x_t, ·)‖ ≤ 1. This is the last line of the proof
    that still has the gradients in it. The theorem, computed by `regret_bound_printed`, sums the
    gradients of T - 1 rounds only, but the proof needs α_T, which has all of them.
    """
    h_norm, s_sum = at_least_0("h_norm", h_norm), at_least_0("s_sum", s_sum)
    a, b, L = parameters(a, b, L)
    alpha = a * (L + s_sum)
    return plain(_conjugate(h_norm, alpha, alpha, b) + price(np.log1p(s_sum / L), a, b, L))


def regret_bound_printed(
    h_norm: Number, s_sum: Number, T: Number, a: Number, b: Number, L: Number
) -> Number:
    """Theorem 1 to the letter; see `regret_bound` for what is proved.

    Parameters
    ----------
    h_norm : float or array
        ‖h‖.
    s_sum : float or array
        Σ|s_t| over the rounds 1, …, T - 1.
    T : int or array
        The number of rounds.
    a, b, L : float or array
        The parameters of the algorithm; a ≥ 2.25 L.

    Returns
    -------
    bound : float or array
        ‖h‖ √(2 a (L + s_sum) log(‖h‖ √(a L T) / b + 1)) + b φ(L/a) log(1 + T) with `phi_printed`.
    """
    h_norm, s_sum, T = at_least_0("h_norm", h_norm), at_least_0("s_sum", s_sum), rounds(T)
    a, b, L = parameters(a, b, L)
    if not np.all(s_sum <= L * (T - 1) * (1 + 1e-9)):
        raise ValueError(f"s_sum must be at most L (T - 1), as all |s_t| ≤ L; got {s_sum!r}")
    first = _conjugate(h_norm, a * (L + s_sum), a * L * T, b)
    return plain(first + b * phi_printed(L / a) * np.log1p(T))


def smooth_regret_bound(
    h_norm: Number, h_loss: Number, T: Number, a: Number, b: Number, L: Number, H: Number
) -> Number:
    """Corollary 1 with its constants: the regret for H-smooth losses, from the loss of h.

    Parameters
    ----------
    h_norm, h_loss : float or array
        ‖h‖ and Σ ℓ_t(h(x_t)) over all rounds.
    T : int or array
        The number of rounds.
    a, b, L : float or array
        The parameters of the algorithm; a ≥ 2.25 L.
    H : float or array
        The losses' derivatives are H-Lipschitz.

    Returns
    -------
    bound : float or array
        c + A max((2 A)^(1/3), (2 (h_loss + c + L²/4H))^(1/4)), where c = b φ(L/a) log(1 + T) and
        A = 2 ‖h‖ √(a √(H (T + 1)) log(‖h‖ √(a L (T + 1)) / b + 1)).

    Notes
    -----
    Assumes what Theorem 1 does, and losses that are never negative. The corollary is stated without
    constants and logarithms; they are from its proof, with T + 1 for T because α_T counts all T
    gradients.
    """
    h_norm, h_loss = at_least_0("h_norm", h_norm), at_least_0("h_loss", h_loss)
    T, H = rounds(T), positive("H", H)
    a, b, L = parameters(a, b, L)
    c = price(np.log1p(T), a, b, L)
    # ‖h‖ √(2 α_T log …) with α_T ≤ a √(T + 1) √(4 H) √(Σ ℓ_t(f_t(x_t)) + L²/4H)
    A = _conjugate(h_norm, 2 * a * np.sqrt(H * (T + 1)), a * L * (T + 1), b)
    A = np.maximum(A, TINY)  # h = 0 where c = inf
    return plain(c + A * np.maximum(np.cbrt(2 * A), (2 * (h_loss + c + L * L / (4 * H))) ** 0.25))


def per_coordinate_bound(
    u: Number, s_sums: Number, a: float, L: float, b: float | None = None
) -> float:
    """Appendix A: the regret of one copy of PiSTOL a coordinate against the weights u.

    Parameters
    ----------
    u : array of shape (d,)
        The comparator x ↦ ⟨u, x⟩.
    s_sums : array of shape (d,)
        Σ|s_t x_{t,i}| over all rounds, for each coordinate i.
    a, L : float
        The parameters of all copies; a ≥ 2.25 L.
    b : float or None, default=None
        Their b; None is the appendix's 1/d.

    Returns
    -------
    bound : float
        The sum of `regret_bound` over the coordinates.

    Notes
    -----
    Assumes |x_{t,i}| ≤ 1. The appendix replaces each |u_i| by the largest and each sum of gradients
    in the second term by L T, so this is smaller.
    """
    u, s_sums = np.atleast_1d(finite("u", u)), np.atleast_1d(at_least_0("s_sums", s_sums))
    if u.ndim != 1 or u.shape != s_sums.shape:
        raise ValueError(f"u and s_sums must be as long; got shapes {u.shape}, {s_sums.shape}")
    b = 1.0 / len(u) if b is None else b
    return float(np.sum(regret_bound(np.abs(u), s_sums, a, b, L)))


def price(log_term: Number, a: Number, b: Number, L: Number, per: Number = 1.0) -> Number:
    """b φ(L/a) log_term / per: what not knowing ‖h‖ costs even against h = 0."""
    return exp(np.log(b) + log_phi(L / a) + log(log_term) - np.log(per))


def _conjugate(h_norm: Number, alpha: Number, alpha_log: Number, b: Number) -> Number:
    """‖h‖ √(2 α log(‖h‖ √α′ / b + 1)): the paper's Lemma 3, where α′ = α, plus b."""
    inside = log(h_norm) + np.log(alpha_log) / 2 - np.log(b)  # ‖h‖ √α′ / b may overflow
    return h_norm * np.sqrt(2 * alpha * np.logaddexp(0.0, inside))


def _phi_parts(x: Number) -> tuple[Number, Number, Number]:
    """x, B and D of `phi`."""
    x = checked("x = L/a", x, lambda v: (v > 0) & (v < MAX_X), f"above 0 and below {MAX_X:.6f}")
    half = np.exp(x / 2)
    return x, half * (x + 1) + 2, 1 - x * half - x
