"""The paper's results as functions: what is guaranteed, in numbers.

Orabona (2014), *Simultaneous Model Selection and Optimization through Parameter-free Stochastic
Learning*. Where a statement and its proof differ, the functions compute what the proof gives, and
the notes say what is printed. All take floats or arrays and return a float where all are floats.

>>> from pistol import theory
>>> a, b, L = 3.0, 1.0, 1.0
>>> round(theory.phi(L / a), 2)
5.29
>>> round(theory.regret_bound(2.0, s_sum=100.0, a=a, b=b, L=L), 1)
117.5
>>> theory.rate_exponent(0.5), theory.rate_exponent(0.5, noise=False)
(0.5, 0.6666666666666666)
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

import numpy as np

Number = Any  # a float, or an array where an argument is one

MIN_A = 2.25  # Theorem 1 asks for a ≥ 2.25 L
MAX_X = 0.4446469425566583  # where 1 - x exp(x/2) - x, the denominator of φ, is zero
TINY = 1e-300


# Theorem 1 and Corollary 1: any sequence of losses.


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
    return _exp(log_phi(x))


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
    return _plain(np.log(x / 2) + np.log(B) + x * B / (2 * D))


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
    return _plain(x / 2 * B / D * B)


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
    h_norm, s_sum = _at_least_0("h_norm", h_norm), _at_least_0("s_sum", s_sum)
    a, b, L = _parameters(a, b, L)
    alpha = a * (L + s_sum)
    return _plain(_conjugate(h_norm, alpha, alpha, b) + _price(np.log1p(s_sum / L), a, b, L))


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
    h_norm, s_sum, T = _at_least_0("h_norm", h_norm), _at_least_0("s_sum", s_sum), _rounds(T)
    a, b, L = _parameters(a, b, L)
    if not np.all(s_sum <= L * (T - 1) * (1 + 1e-9)):
        raise ValueError(f"s_sum must be at most L (T - 1), as all |s_t| ≤ L; got {s_sum!r}")
    first = _conjugate(h_norm, a * (L + s_sum), a * L * T, b)
    return _plain(first + b * phi_printed(L / a) * np.log1p(T))


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
    h_norm, h_loss = _at_least_0("h_norm", h_norm), _at_least_0("h_loss", h_loss)
    T, H = _rounds(T), _positive("H", H)
    a, b, L = _parameters(a, b, L)
    c = _price(np.log1p(T), a, b, L)
    # ‖h‖ √(2 α_T log …) with α_T ≤ a √(T + 1) √(4 H) √(Σ ℓ_t(f_t(x_t)) + L²/4H)
    A = _conjugate(h_norm, 2 * a * np.sqrt(H * (T + 1)), a * L * (T + 1), b)
    A = np.maximum(A, TINY)  # h = 0 where c = inf
    return _plain(c + A * np.maximum(np.cbrt(2 * A), (2 * (h_loss + c + L * L / (4 * H))) ** 0.25))


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
    u, s_sums = np.atleast_1d(_finite("u", u)), np.atleast_1d(_at_least_0("s_sums", s_sums))
    if u.ndim != 1 or u.shape != s_sums.shape:
        raise ValueError(f"u and s_sums must be as long; got shapes {u.shape}, {s_sums.shape}")
    b = 1.0 / len(u) if b is None else b
    return float(np.sum(regret_bound(np.abs(u), s_sums, a, b, L)))


# Section 3: averaged SGD and the Perceptron.


class Tuned(NamedTuple):
    """A bound minimised over the step size, and the step size that does it."""

    bound: Number
    eta: Number


def asgd_bound(h_norm: Number, T: Number, eta: Number, h_risk: Number = 0.0) -> Number:
    """Equation (3): the expected risk of averaged SGD with the square loss.

    Parameters
    ----------
    h_norm : float or array
        ‖h‖.
    T : int or array
        The number of examples.
    eta : float or array
        The step size, in (0, 1/4].
    h_risk : float or array, default=0.0
        The risk of h.

    Returns
    -------
    bound : float or array
        h_risk + ‖h‖²/(η T) + 4 η.

    Notes
    -----
    For ℓ(x) = (1 - x)² and examples drawn independently. The proof even has ‖h‖²/(2 η T).
    """
    h_norm, T, h_risk = _at_least_0("h_norm", h_norm), _rounds(T), _at_least_0("h_risk", h_risk)
    eta = _checked("eta", eta, lambda v: (v > 0) & (v <= 0.25), "in (0, 1/4]")
    return _plain(h_risk + h_norm * h_norm / (eta * T) + 4 * eta)


def asgd_bound_tuned(h_norm: Number, T: Number, h_risk: Number = 0.0) -> Tuned:
    """Equation (4): the least of `asgd_bound` over the step sizes that it allows.

    Parameters
    ----------
    h_norm : float or array
        ‖h‖, which a learner does not know: that is the point of the equation.
    T : int or array
        The number of examples.
    h_risk : float or array, default=0.0
        The risk of h.

    Returns
    -------
    tuned : Tuned
        `bound` and `eta`: h_risk + 4 ‖h‖/√T at η = ‖h‖/(2 √T), if that is at most 1/4.

    Notes
    -----
    The paper takes the minimum over all η > 0, though equation (3) is for η ≤ 1/4. So its 4 ‖h‖/√T
    is right for T ≥ 4 ‖h‖²; for fewer examples η is 1/4 here and the bound is larger. For h = 0 the
    bound is a limit, and eta is 0.
    """
    h_norm, T, h_risk = _at_least_0("h_norm", h_norm), _rounds(T), _at_least_0("h_risk", h_risk)
    eta = np.minimum(h_norm / (2 * np.sqrt(T)), 0.25)
    bound = np.where(
        eta < 0.25, h_risk + 4 * h_norm / np.sqrt(T), h_risk + 4 * h_norm * h_norm / T + 1.0
    )
    return Tuned(_plain(bound), _plain(eta))


def perceptron_mistake_bound(h_norm: Number, h_hinge_loss: Number) -> Number:
    """Equation (5): the mistakes of the kernel Perceptron on any sequence.

    Parameters
    ----------
    h_norm : float or array
        ‖h‖.
    h_hinge_loss : float or array
        D = Σ max(1 - y_t h(x_t), 0).

    Returns
    -------
    bound : float or array
        D + ‖h‖² + ‖h‖ √D.

    Notes
    -----
    Assumes ‖k(x_t, ·)‖ ≤ 1, which the paper does not repeat here.
    """
    h_norm, D = _at_least_0("h_norm", h_norm), _at_least_0("h_hinge_loss", h_hinge_loss)
    return _plain(D + h_norm * h_norm + h_norm * np.sqrt(D))


# Section 5 and Appendix B: examples drawn independently from one distribution.


def risk_bound(
    h_norm: Number, h_risk: Number, T: Number, a: Number, b: Number, L: Number, H: Number
) -> Number:
    """Corollary 2 with its constants: the expected risk of the average of PiSTOL's predictors.

    Parameters
    ----------
    h_norm, h_risk : float or array
        ‖h‖ and the risk of h, for any h that does not depend on the sample.
    T : int or array
        The number of examples.
    a, b, L : float or array
        The parameters of the algorithm; a ≥ 2.25 L.
    H : float or array
        The loss's derivative is H-Lipschitz.

    Returns
    -------
    bound : float or array
        h_risk + `smooth_regret_bound` (h_norm, T h_risk, T, …) / T.

    Notes
    -----
    The corollary is stated without constants and logarithms. Its expectation has to be taken before
    the inequality of Corollary 1 is solved for the loss: a maximum is not concave, a root is.
    """
    h_risk, T = _at_least_0("h_risk", h_risk), _rounds(T)
    return _plain(h_risk + smooth_regret_bound(h_norm, T * h_risk, T, a, b, L, H) / T)


def rate_exponent(beta: Number, noise: bool = True) -> Number:
    """Theorem 2: the r of the excess risk Õ(T^-r), as T grows.

    Parameters
    ----------
    beta : float or array
        The best predictor lies in the range of L_K^β, 0 < β ≤ 1/2; it is in the RKHS for β = 1/2.
    noise : bool, default=True
        Whether the best risk is above zero.

    Returns
    -------
    r : float or array
        2β/(2β + 1) with noise, 2β/(β + 1) without.

    Notes
    -----
    For a best risk of zero the paper's text has 3β/(2β + 1). That is the first term of the theorem;
    the last, T^(-2β/(β+1)), is larger for all 0 < β < 1, and so it is the rate. At β = 1/2 it is
    2/3, as after Corollary 2, where the text would have 3/4.
    """
    beta = _smoothness(beta)
    return _plain(2 * beta / (2 * beta + 1) if noise else 2 * beta / (beta + 1))


def rates(T: Number, beta: Number, best_risk: Number = 0.0) -> Number:
    """Theorem 2: how the excess risk falls with T, without constants and logarithms.

    Parameters
    ----------
    T : int or array
        The number of examples.
    beta : float or array
        As in `rate_exponent`.
    best_risk : float or array, default=0.0
        The risk of the best predictor.

    Returns
    -------
    rate : float or array
        The largest term of the maximum; with R = best_risk + 1/T, the terms are
        R^(β/(2β+1)) T^(-2β/(2β+1)) and T^(-2β/(β+1)), for β > 1/3 also R^((3β-1)/4β) T^(-1/2).

    Notes
    -----
    The third term never decides: all three are equal at R = T^(-2β/(β+1)), and on either side one
    of the others is the largest. So both ranges of β have the same rate. The constants, which the
    theorem leaves out, depend on the norm of L_K^(-β) of the best predictor.
    """
    T, beta, best_risk = _rounds(T), _smoothness(beta), _at_least_0("best_risk", best_risk)
    log_T, log_R = np.log(T), np.log(best_risk + 1 / T)
    noisy = beta * (log_R - 2 * log_T) / (2 * beta + 1)
    clean = -2 * beta * log_T / (beta + 1)
    third = np.where(beta > 1 / 3, (3 * beta - 1) / (4 * beta) * log_R - log_T / 2, -inf)
    return _exp(np.maximum(np.maximum(noisy, clean), third))


def excess_risk_bound(
    g_norm: Number,
    best_risk: Number,
    T: Number,
    beta: Number,
    a: Number,
    b: Number,
    L: Number,
    H: Number,
) -> Number:
    """Theorem 2 with constants: the expected excess risk of the average of PiSTOL's predictors.

    Parameters
    ----------
    g_norm : float or array
        ‖g‖ in L², where the best predictor is f* = L_K^β g.
    best_risk : float or array
        The risk of f*.
    T : int or array
        The number of examples.
    beta : float or array
        As in `rate_exponent`.
    a, b, L : float or array
        The parameters of the algorithm; a ≥ 2.25 L.
    H : float or array
        The loss's derivative is H-Lipschitz.

    Returns
    -------
    bound : float or array
        The least over γ of `risk_bound` for an h of norm γ^(β-1/2) ‖g‖ and excess risk
        (H/2) γ^(2β) ‖g‖², less `best_risk`.

    Notes
    -----
    Such an h exists for each γ > 0: the minimiser of ‖h - f*‖² + γ ‖h‖²_K has a minimum of at most
    γ^(2β) ‖g‖² (the lemma the paper uses), and an excess risk of at most (H/2) ‖h - f*‖². This is
    shorter than the paper's proof, which bounds the branches of a maximum one by one, each with its
    own h and γ, where one choice has to do for all. The rates are the same.
    """
    g_norm, best_risk = _at_least_0("g_norm", g_norm), _at_least_0("best_risk", best_risk)
    T, beta = _rounds(T), _smoothness(beta)
    given = np.broadcast_arrays(g_norm, best_risk, T, beta, a, b, L, H)
    g_norm, best_risk, T, beta, a, b, L, H = (np.asarray(v)[..., None] for v in given)
    log_gamma = 20 - np.linspace(0, 1, 500) * (40 + 3 * np.log(T))  # any γ gives a bound
    h_norm = g_norm * np.exp((beta - 0.5) * log_gamma)
    h_excess = _positive("H", H) / 2 * g_norm * g_norm * np.exp(2 * beta * log_gamma)
    regret = smooth_regret_bound(h_norm, T * (best_risk + h_excess), T, a, b, L, H)
    return _plain((h_excess + regret / T).min(axis=-1))


def crossover(beta: Number, best_risk: Number) -> Number:
    """The T up to which Theorem 2 has its fast rate T^(-2β/(β+1)).

    Parameters
    ----------
    beta : float or array
        As in `rate_exponent`.
    best_risk : float or array
        The risk of the best predictor.

    Returns
    -------
    T : float or array
        best_risk^(-(β+1)/(2β)), up to a constant; inf for a best risk of zero.
    """
    beta, best_risk = _smoothness(beta), _at_least_0("best_risk", best_risk)
    return _exp(-(beta + 1) / (2 * beta) * _log(best_risk))


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
    return _plain(rate_exponent(beta, noise) / (2 - _tsybakov_alpha(q)))


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
    d = _checked("d_loss", d_loss, lambda v: (v < 0) & (v > -inf), "finite and below 0")
    return _plain(np.minimum(-d, d * d / _positive("d2_loss", d2_loss)))


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
    alpha, C = _tsybakov_alpha(q), _positive("C", C)
    excess, c_q = _at_least_0("excess", excess), _at_least_0("c_q", c_q)
    return _plain((_positive("factor", factor) * (c_q + 1) / C * excess) ** (1 / (2 - alpha)))


def l1_rate_exponent(beta: Number) -> Number:
    """Theorem 3: the r of the excess risk Õ(T^-r) where approximation is measured in L¹.

    Parameters
    ----------
    beta : float or array
        In (0, 1], such that inf_f ‖f - f*‖₁ + γ ‖f‖² ≤ C γ^β for all γ > 0, where f* is the best
        predictor. This is equation (10), not the β of Theorem 2.

    Returns
    -------
    r : float or array
        β/(β + 1).
    """
    beta = _l1_smoothness(beta)
    return _plain(beta / (beta + 1))


def l1_excess_bound(
    T: Number, beta: Number, C: Number, a: Number, b: Number, L: Number, loss_at_0: Number = 1.0
) -> Number:
    """Theorem 3 with its constants: the expected excess risk of PiSTOL's average.

    Parameters
    ----------
    T : int or array
        The number of examples.
    beta, C : float or array
        The condition of `l1_rate_exponent`.
    a, b, L : float or array
        The parameters of the algorithm; a ≥ 2.25 L. The loss need not be smooth.
    loss_at_0 : float or array, default=1.0
        ℓ(0).

    Returns
    -------
    bound : float or array
        C^(1/(1+β)) (2L)^((1-β)/(1+β)) (D²/T)^(β/(β+1)) + b φ(L/a) log(1 + T)/T, where
        D² = 2 a L (1 + 1/T) log(ℓ(0) T/(√2 b) + φ(L/a) log(1 + T) + 2).

    Notes
    -----
    The theorem leaves out all but T^(-β/(β+1)). The constants are from its proof, with 1 + 1/T
    because α_T counts all T gradients.
    """
    T, beta, C = _rounds(T), _l1_smoothness(beta), _positive("C", C)
    loss_at_0 = _at_least_0("loss_at_0", loss_at_0)
    a, b, L = _parameters(a, b, L)
    log_phi_T = log_phi(L / a) + np.log(np.log1p(T))
    log_inside = np.logaddexp(np.log(loss_at_0 * T / (np.sqrt(2) * b) + 2), log_phi_T)
    D_sq = 2 * a * L * (1 + 1 / T) * log_inside
    slow = C ** (1 / (1 + beta)) * (2 * L) ** ((1 - beta) / (1 + beta))
    return _plain(slow * (D_sq / T) ** (beta / (beta + 1)) + _price(np.log1p(T), a, b, L, per=T))


# Section 6.


def optimal_regularisation(
    T: Number, beta: Number, q: Number = 1.0, eigenvalue_decay: Number = 1.0
) -> Number:
    """The weight λ of the regulariser λ ‖h‖^q that gives the square loss its best rate.

    Parameters
    ----------
    T : int or array
        The number of examples.
    beta : float or array
        As in `rate_exponent`.
    q : float or array, default=1.0
        The power of the norm, at least 1.
    eigenvalue_decay : float or array, default=1.0
        The paper's b of equation (9): eigenvalues of L_K fall as i^-b. 1 assumes nothing.

    Returns
    -------
    weight : float or array
        T^-r with r = (4β + q (1 - 2β)) / (4β + 2/b), up to a constant.

    Notes
    -----
    For q = 1 and b = 1 it is T^(-1/2) whatever β: nothing has to be tuned. That is what PiSTOL uses
    without saying so. The paper prints r = (2β + q (1 - β)) / (2β + 2/b), where β is the exponent
    of the approximation error γ^β; that error is γ^(2β) in terms of the paper's own β, hence the
    doubling here. For q = 2 this agrees with Section 3, where 1/(η T) = T^(-1/(2β+1)); the printed
    form would have T^(-1/(β+1)). For q = 1 and b = 1 both are the same.
    """
    T, beta = _rounds(T), _smoothness(beta)
    q = _checked("q", q, lambda v: (v >= 1) & (v < inf), "finite and at least 1")
    decay = _checked(
        "eigenvalue_decay", eigenvalue_decay, lambda v: (v >= 1) & (v < inf), "finite, at least 1"
    )
    return _exp(-(4 * beta + q * (1 - 2 * beta)) / (4 * beta + 2 / decay) * np.log(T))


# Pieces.


def _phi_parts(x: Number) -> tuple[Number, Number, Number]:
    """x, B and D of `phi`."""
    x = _checked("x = L/a", x, lambda v: (v > 0) & (v < MAX_X), f"above 0 and below {MAX_X:.6f}")
    half = np.exp(x / 2)
    return x, half * (x + 1) + 2, 1 - x * half - x


def _conjugate(h_norm: Number, alpha: Number, alpha_log: Number, b: Number) -> Number:
    """‖h‖ √(2 α log(‖h‖ √α′ / b + 1)): the paper's Lemma 3, where α′ = α, plus b."""
    inside = _log(h_norm) + np.log(alpha_log) / 2 - np.log(b)  # ‖h‖ √α′ / b may overflow
    return h_norm * np.sqrt(2 * alpha * np.logaddexp(0.0, inside))


def _price(log_term: Number, a: Number, b: Number, L: Number, per: Number = 1.0) -> Number:
    """b φ(L/a) log_term / per: what not knowing ‖h‖ costs even against h = 0."""
    return _exp(np.log(b) + log_phi(L / a) + _log(log_term) - np.log(per))


def _tsybakov_alpha(q: Number) -> Number:
    q = _checked("q", q, lambda v: v >= 0, "at least 0")
    return 1 - 1 / (1 + q)  # q/(q + 1), and 1 for q = inf


def _parameters(a: Number, b: Number, L: Number) -> tuple[Number, Number, Number]:
    a, b, L = _positive("a", a), _positive("b", b), _positive("L", L)
    if not np.all(a >= MIN_A * L * (1 - 1e-12)):
        raise ValueError(f"a must be at least 2.25 L (Theorem 1); got a = {a!r}, L = {L!r}")
    return a, b, L


def _smoothness(beta: Number) -> Number:
    return _checked("beta", beta, lambda v: (v > 0) & (v <= 0.5), "in (0, 1/2]")


def _l1_smoothness(beta: Number) -> Number:
    return _checked("beta", beta, lambda v: (v > 0) & (v <= 1), "in (0, 1]")


def _rounds(T: Number) -> Number:
    return _checked("T", T, lambda v: (v >= 1) & (v < inf), "finite and at least 1")


def _positive(name: str, value: Number) -> Number:
    return _checked(name, value, lambda v: (v > 0) & (v < inf), "finite and above 0")


def _at_least_0(name: str, value: Number) -> Number:
    return _checked(name, value, lambda v: (v >= 0) & (v < inf), "finite and at least 0")


def _finite(name: str, value: Number) -> Number:
    return _checked(name, value, np.isfinite, "finite")


def _checked(name: str, value: Number, holds: Callable[[Any], Any], expected: str) -> Number:
    """The value as float64, if all of it is as expected."""
    try:
        numbers = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, {expected}; got {value!r}") from None
    if not np.all(holds(numbers)):
        raise ValueError(f"{name} must be {expected}; got {value!r}")
    return _plain(numbers)


def _plain(value: Number) -> Number:
    return float(value) if np.ndim(value) == 0 else value


def _log(value: Number) -> Number:
    with np.errstate(divide="ignore"):  # log 0 = -inf is meant
        return np.log(value)


def _exp(value: Number) -> Number:
    with np.errstate(over="ignore"):  # inf is meant
        return _plain(np.exp(value))
