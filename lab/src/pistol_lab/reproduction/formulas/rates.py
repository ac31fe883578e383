"""Section 5: the rates of Corollary 2 and Theorem 2."""

from __future__ import annotations

from functools import partial
from math import exp, log

import numpy as np
from scipy.optimize import brentq

from pistol import theory

from ...protocol import Array
from ..sections import Claim
from .figures import SETTING
from .slopes import BETAS, CLOSE, T, asgd_excess, judged, listed, power, slope, tiny


def convergence() -> list[Claim]:
    """Section 5: Corollary 2 and Theorem 2."""
    clean, noisy = (slope(partial(_above, h_norm=1.0, h_risk=r)) for r in (0.0, 0.1))
    norms = np.array([1e20, 1e40])
    in_h = [slope(partial(_above, 1e200, h_risk=r), norms) for r in (0.0, 0.1)]
    found = {
        noise: np.array([-slope(partial(_excess, beta=b, risk=risk)) for b in BETAS])
        for noise, risk in ((True, 0.1), (False, 0.0))
    }
    off = max(float(np.max(np.abs(found[n] - theory.rate_exponent(BETAS, noise=n)))) for n in found)
    third, places = _third_term()
    text = 3 * BETAS / (2 * BETAS + 1)
    crossings = [slope(partial(_leaves, beta=b), np.array([1e-12, 1e-9])) for b in BETAS]
    expected = -(BETAS + 1) / (2 * BETAS)
    gap = float(np.max(np.abs(np.array(crossings) / expected - 1)))
    early = [
        slope(lambda n: theory.rates(n, 0.5, 1e-6), np.array(at))
        for at in ([1e2, 1e3], [1e20, 1e21])
    ]
    consistent = _excess(np.array([1e4, 1e12, 1e100]), 0.1, 0.1)
    better, ahead = _against_sgd()
    trace = _trace_share()
    return [
        Claim(
            "Section 5, Corollary 2 (formula)",
            "The rate to the best predictor in the RKHS is T^(−2/3) if its risk is 0, else "
            "T^(−1/2).",
            f"The bound with constants has T^{power(clean)} and T^{power(noisy)} without "
            "logarithms.",
            judged(abs(clean + 2 / 3) < CLOSE and abs(noisy + 1 / 2) < CLOSE),
        ),
        Claim(
            "Section 5, after Corollary 2 (formula)",
            "The bound depends on ‖h‖ rather than on ‖h‖².",
            f"It grows as ‖h‖^{in_h[1]:.2f} if the risk of h is 0.1, but as ‖h‖^{in_h[0]:.2f} if "
            "it is 0.",
            judged(abs(in_h[1] - 1) < CLOSE and in_h[0] < 2, caveat=in_h[0] > 1 + CLOSE),
        ),
        Claim(
            "Section 5, Theorem 2 (formula)",
            "The excess ℓ-risk falls as the theorem says, for β ≤ ⅓ and for ⅓ < β ≤ ½.",
            f"A shorter proof with constants has the exponents {listed(found[True])} with noise "
            f"and {listed(found[False])} without, for β = {listed(BETAS)}: within {off:.3f} of "
            "the theorem's.",
            judged(off < CLOSE),
        ),
        Claim(
            "Section 5, Theorem 2 (formula)",
            "For β > ⅓ there is a third term, (best risk + 1/T)^((3β−1)/4β) T^(−1/2).",
            f"It never decides: on a grid of {places:,} values of β, risk and T it is at most "
            f"{third:.6f} times the larger of the others. So both ranges of β have the same rate.",
            judged(True, caveat=third <= 1 + 1e-9),
        ),
        Claim(
            "Section 5, after Theorem 2",
            "The ℓ-risk is consistent.",
            f"For β = 0.1 and a best risk of 0.1 the bound is {consistent[0]:.2g} at T = 10⁴, "
            f"{consistent[1]:.2g} at 10¹² and {tiny(consistent[2])} at 10¹⁰⁰: it goes to zero, "
            "slowly.",
            judged(bool(np.all(np.diff(consistent) < 0)) and consistent[-1] < 1e-6),
        ),
        Claim(
            "Section 5, after Theorem 2",
            "If the best risk is 0, the rate is T^(−3β/(2β+1)).",
            "That is the theorem's first term; the last, T^(−2β/(β+1)), is larger. The exponents "
            f"are {listed(found[False])} instead of {listed(text)} for β = {listed(BETAS)}.",
            judged(bool(np.all(np.abs(found[False] - text) < CLOSE))),
        ),
        Claim(
            "Section 5, after Theorem 2, and Figure 2",
            "The rate is T^(−2β/(β+1)) up to T = O(best risk^(−(β+1)/2β)): a fast regime, and "
            "then it saturates.",
            "The T where the first term overtakes the last is the best risk to the power "
            f"{listed(np.array(crossings))} for β = {listed(BETAS)}, within {100 * gap:.1f} % of "
            f"the paper's. At β = ½ and a best risk of 10⁻⁶ the exponent is {power(early[0])} "
            f"before and {power(early[1])} after.",
            judged(gap < CLOSE and abs(early[0] + 2 / 3) < CLOSE and abs(early[1] + 1 / 2) < CLOSE),
        ),
        Claim(
            "Section 5, after Theorem 2 (formula)",
            "In theory PiSTOL is always better than SGD, tuned with the knowledge of β or with η "
            "= T^(−1/2).",
            "Its exponent is that of the tuned SGD with noise, a larger one without, and never "
            "smaller than that of η = T^(−1/2). But constants and logarithms matter: at β = ¼, T = "
            f"10⁶ and a best risk of 0.1 its bound is {better:.0f} times the tuned one, and it is "
            f"below that of η = T^(−1/2) from T = 10^{ahead:.0f} on.",
            judged(bool(np.all(theory.rate_exponent(BETAS) >= BETAS - 1e-12)), caveat=better > 1),
        ),
        Claim(
            "Section 5, equation (9)",
            "That eigenvalues fall as i^−b always holds with b = 1.",
            "As an upper bound, since i λ_i ≤ λ_1 + … + λ_i ≤ sup k(x, x): i λ_i is at most "
            f"{trace:.3f} in six spectra with a sum of 1. They may fall faster.",
            judged(trace <= 1),
        ),
        Claim(
            "Section 5 and abstract (formula)",
            "The rate is optimal: the lower bound has T^(−2β/(2β+1)) too, up to logarithms.",
            "The largest difference of exponents is "
            f"{np.max(np.abs(found[True] - 2 * BETAS / (2 * BETAS + 1))):.3f}, fitted from the "
            "bound with its constants. The lower bound is cited for the square loss.",
            judged(off < CLOSE, caveat=True),
        ),
        Claim(
            "Sections 5 and 6 (formula)",
            "If the best risk is 0, the rates are even better.",
            f"The exponents are {listed(found[False] / found[True])} times those with noise.",
            judged(bool(np.all(found[False] > found[True]))),
        ),
    ]


def _above(n: float | Array, h_norm: float | Array, h_risk: float) -> Array:
    """What Corollary 2 adds to the risk of h."""
    return theory.smooth_regret_bound(h_norm, n * h_risk, n, **SETTING) / n


def _excess(n: Array, beta: float, risk: float) -> Array:
    return theory.excess_risk_bound(1.0, risk, n, beta, **SETTING)


def _third_term() -> tuple[float, int]:
    """The most that Theorem 2's third term has of the larger of the others, on how many points."""
    beta = np.linspace(1 / 3, 0.5, 60)[1:, None, None]
    risk, n = np.logspace(-12, 0, 60)[:, None], np.logspace(0, 12, 60)
    R = np.log(risk + 1 / n)
    third = (3 * beta - 1) / (4 * beta) * R - np.log(n) / 2
    others = np.maximum(
        beta * (R - 2 * np.log(n)) / (2 * beta + 1), -2 * beta * np.log(n) / (beta + 1)
    )
    return exp(float(np.max(third - others))), third.size


def _leaves(risks: Array, beta: float) -> Array:
    """The T where Theorem 2's first term overtakes its last: risk + 1/T = T^(−2β/(β+1))."""

    def root(risk: float) -> float:
        start = log(theory.crossover(beta, risk))
        return exp(
            brentq(lambda u: log(risk + exp(-u)) + 2 * beta * u / (beta + 1), start / 2, 2 * start)
        )

    return np.array([root(risk) for risk in risks])


def _against_sgd() -> tuple[float, float]:
    """At β = ¼: our bound over that of SGD with the best step size at T, and the T, as log₁₀, from
    which on ours is below that of the step size T^(−1/2)."""
    beta, risk = 0.25, 0.1

    def gap(log_n: float, log_eta: float) -> float:
        n = np.array(exp(log_n))
        sgd = asgd_excess(n, np.array(exp(log_eta)), beta)
        return float(np.log(_excess(n, beta, risk)) - np.log(sgd))

    steps = np.linspace(log(1e-6), log(0.25), 200)
    ahead = brentq(lambda u: gap(u, -u / 2), log(1e2), log(1e100))
    return exp(max(gap(log(T), u) for u in steps)), float(ahead / log(10))


def _trace_share() -> float:
    """The largest i λ_i of spectra whose sum is 1."""
    i = np.arange(1.0, 100_001.0)
    spectra = [i**-s for s in (1.0, 1.5, 2.0, 4.0)] + [np.exp(-i), (i <= 50).astype(float)]
    return float(max(np.max(i * v / v.sum()) for v in spectra))
