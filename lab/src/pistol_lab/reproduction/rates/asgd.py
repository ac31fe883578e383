"""What Section 3 says of averaged SGD, beside what the curves on the circle say."""

from __future__ import annotations

from math import hypot

import numpy as np

from ..sections import Claim
from .circle import source_norm
from .curves import AGNOSTIC, ORACLE, PISTOL, Exponent, exponent
from .pictures import fraction
from .plan import NOISES, Results
from .predictions import approximation, asgd_bounds, judged, predicted, simply, slope, worst


def asgd_claims(results: Results) -> list[Claim]:
    """All of Section 3 that the curves settle."""
    return [_equation_2(results), _approximation(results), _tuned(results), _agnostic(results)]


def _fit(results: Results, beta: float, sigma: float | None, name: str) -> Exponent:
    return exponent(results.curves(beta, sigma, name))


def _equation_2(results: Results) -> Claim:
    ratios = []
    for beta in results.plan.betas:
        for sigma in NOISES.values():
            for name in (ORACLE, AGNOSTIC):
                curves = results.curves(beta, sigma, name, "distance")
                bound = asgd_bounds(results.plan.problem(beta, sigma), name, curves.T)
                ratios.append(curves.mean / bound)
    most = float(np.max(ratios))
    return Claim(
        "Section 3, equation (3)",
        "The expected risk of averaged SGD is at most inf_h risk(h) + ‖h‖²/(ηT) + 4η (square loss).",
        f"The mean excess risk is at most {most:.2f} of the bound at its best h, over all "
        f"{np.size(ratios)} combinations of β, noise, step size and T.",
        simply(most <= 1),
    )


def _approximation(results: Results) -> Claim:
    most, slopes = 0.0, []
    for beta in results.plan.betas:
        problem = results.plan.problem(beta, None)
        T = results.curves(beta, None, PISTOL).T
        error = approximation(problem, T)
        most = max(most, float(np.max(error * T ** (2.0 * beta))) / source_norm(problem) ** 2)
        slopes.append(f"{slope(T, error):.2f} at β = {fraction(beta)}")
    return Claim(
        "Section 3, and Lemma 10 in Appendix D",
        "If f* = L_K^β g, then min_h ‖h − f*‖² + γ‖h‖² = O(γ^(2β)); the lemma has γ^(2β) ‖g‖².",
        f"In closed form, at most {most:.2f} of γ^(2β) ‖g‖² for all γ = 1/T. The exponents in γ, at "
        f"the lower end, are {', '.join(slopes)}: below 2β near β = 1/2, where f* is at the edge of "
        "the RKHS and a logarithm comes in.",
        simply(most <= 1),
    )


def _tuned(results: Results) -> Claim:
    verdicts, texts = [], []
    for beta in results.plan.betas:
        r = predicted(ORACLE, beta, True)
        for sigma in NOISES.values():
            curves = results.curves(beta, sigma, ORACLE)
            bound = slope(
                curves.T, asgd_bounds(results.plan.problem(beta, sigma), ORACLE, curves.T)
            )
            verdicts.append(judged(exponent(curves), r, bound))
        pair = " and ".join(str(_fit(results, beta, sigma, ORACLE)) for sigma in NOISES.values())
        texts.append(f"{pair} (theory {r:.3f}) at β = {fraction(beta)}")
    return Claim(
        "Section 3",
        "Averaged SGD with η ∝ T^(-2β/(2β+1)) has an excess risk O(T^(-2β/(2β+1))).",
        f"The fitted exponents with labels ±1 and without noise are {'; '.join(texts)}. To fall "
        "more slowly than the theory has it, but no more slowly than equation (3) itself at these "
        "T, counts as a caveat.",
        worst(verdicts),
    )


def _agnostic(results: Results) -> Claim:
    texts, slower = [], []
    for beta in (beta for beta in results.plan.betas if beta < 0.5):
        tuned, fixed = (_fit(results, beta, None, name) for name in (ORACLE, AGNOSTIC))
        gap = tuned.r - fixed.r
        slower.append(gap > 2 * hypot(tuned.error, fixed.error))
        texts.append(f"{fixed} against {tuned} at β = {fraction(beta)}")
    return Claim(
        "Section 3",
        "η ∝ T^(-1/2) is optimal only for β = 1/2; for smaller β its rate is worse than that of the "
        "η tuned to β.",
        f"Exponents with labels ±1, η ∝ T^(-1/2) against tuned: {'; '.join(texts)}. At β = 1/2 the "
        "two are the same. Slower is: by more than two standard errors.",
        simply(all(slower)),
    )
