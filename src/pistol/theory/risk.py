"""Sections 5 and 6 and Appendix B: the risk where examples are drawn independently."""

from __future__ import annotations

from math import inf

import numpy as np

from ._checks import Number, at_least_0, checked, exp, log, parameters, plain, positive, rounds
from .regret import log_phi, price, smooth_regret_bound


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
    h_risk, T = at_least_0("h_risk", h_risk), rounds(T)
    return plain(h_risk + smooth_regret_bound(h_norm, T * h_risk, T, a, b, L, H) / T)


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
    return plain(2 * beta / (2 * beta + 1) if noise else 2 * beta / (beta + 1))


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
    The third term never matters: all three are equal at R = T^(-2β/(β+1)), and on either side one
    of the others is the largest. So both ranges of β have the same rate. The constants, which the
    theorem leaves out, depend on the norm of L_K^(-β) of the best predictor.
    """
    T, beta, best_risk = rounds(T), _smoothness(beta), at_least_0("best_risk", best_risk)
    log_T, log_R = np.log(T), np.log(best_risk + 1 / T)
    noisy = beta * (log_R - 2 * log_T) / (2 * beta + 1)
    clean = -2 * beta * log_T / (beta + 1)
    third = np.where(beta > 1 / 3, (3 * beta - 1) / (4 * beta) * log_R - log_T / 2, -inf)
    return exp(np.maximum(np.maximum(noisy, clean), third))


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
    g_norm, best_risk = at_least_0("g_norm", g_norm), at_least_0("best_risk", best_risk)
    T, beta = rounds(T), _smoothness(beta)
    given = np.broadcast_arrays(g_norm, best_risk, T, beta, a, b, L, H)
    g_norm, best_risk, T, beta, a, b, L, H = (np.asarray(v)[..., None] for v in given)
    log_gamma = 20 - np.linspace(0, 1, 500) * (40 + 3 * np.log(T))  # any γ gives a bound
    h_norm = g_norm * np.exp((beta - 0.5) * log_gamma)
    h_excess = positive("H", H) / 2 * g_norm * g_norm * np.exp(2 * beta * log_gamma)
    regret = smooth_regret_bound(h_norm, T * (best_risk + h_excess), T, a, b, L, H)
    return plain((h_excess + regret / T).min(axis=-1))


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
    beta, best_risk = _smoothness(beta), at_least_0("best_risk", best_risk)
    return exp(-(beta + 1) / (2 * beta) * log(best_risk))


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
    return plain(beta / (beta + 1))


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
    T, beta, C = rounds(T), _l1_smoothness(beta), positive("C", C)
    loss_at_0 = at_least_0("loss_at_0", loss_at_0)
    a, b, L = parameters(a, b, L)
    log_phi_T = log_phi(L / a) + np.log(np.log1p(T))
    log_inside = np.logaddexp(np.log(loss_at_0 * T / (np.sqrt(2) * b) + 2), log_phi_T)
    D_sq = 2 * a * L * (1 + 1 / T) * log_inside
    slow = C ** (1 / (1 + beta)) * (2 * L) ** ((1 - beta) / (1 + beta))
    return plain(slow * (D_sq / T) ** (beta / (beta + 1)) + price(np.log1p(T), a, b, L, per=T))


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
    T, beta = rounds(T), _smoothness(beta)
    q = checked("q", q, lambda v: (v >= 1) & (v < inf), "finite and at least 1")
    decay = checked(
        "eigenvalue_decay", eigenvalue_decay, lambda v: (v >= 1) & (v < inf), "finite, at least 1"
    )
    return exp(-(4 * beta + q * (1 - 2 * beta)) / (4 * beta + 2 / decay) * np.log(T))


def _smoothness(beta: Number) -> Number:
    return checked("beta", beta, lambda v: (v > 0) & (v <= 0.5), "in (0, 1/2]")


def _l1_smoothness(beta: Number) -> Number:
    return checked("beta", beta, lambda v: (v > 0) & (v <= 1), "in (0, 1]")
