"""What formulas alone settle: Figures 1 and 2, constants, exponents, and the claims they decide."""

from __future__ import annotations

from math import log

from pistol import theory

from ...protocol import Found, Job
from ..sections import Picture, Section, Table
from .figures import constants, excess_bound, nested_spaces
from .mistakes import misclassification
from .outlook import closing
from .rates import convergence
from .regret import adversarial, opening, step_sizes
from .slopes import printed_from


def jobs(quick: bool) -> list[Job]:
    """None: formulas are evaluated while the section is written."""
    return []


def section(found: Found, quick: bool) -> Section:
    """Figures 1 and 2, the constant of Theorem 1, all results beside what we found, the claims."""
    fair = printed_from()
    claims = [
        *opening(),
        *step_sizes(),
        *adversarial(),
        *misclassification(),
        *convergence(),
        *closing(),
    ]
    parts: list[str | Picture | Table] = [
        "Every result of the paper is a function of `pistol.theory`. Here they are evaluated: "
        "nothing is learned and nothing is random. A claim marked **formula** is one whose form "
        "can be checked this way; whether algorithms behave accordingly is measured in the "
        "sections that follow.",
        "An exponent **without logarithms** is the slope of a bound, constants and logarithms "
        "included, between T = 10^60 and T = 10^140, where logarithms no longer matter (and in ‖h‖ "
        "over 20 decades at least). It agrees with a claimed one if they differ by less than 0.01. "
        "A claim that rests on a lower bound, which the paper cites and we did not check, holds "
        "with a caveat at best.",
        _spaces(),
        "The learner is told neither how smooth its target is nor how small the best risk: both "
        "decide how fast the bound of Theorem 2 falls.",
        _bound(),
        "Theorem 1 has a second term, b φ(L/a) log(1 + T), the price of not knowing ‖h‖. Its "
        "constant is not the one that the proof arrives at.",
        _phi(fair),
        _results(fair),
    ]
    return Section("formulas", "What formulas settle", parts, claims)


def _spaces() -> Picture:
    return Picture(
        "figure-1-spaces",
        "Figure 1 of the paper: nested spaces of functions",
        "The paper: the smaller β, the larger the range of L_K^β, from L² at β = 0 by way of the "
        "RKHS at β = ½ (left). Computed (right): for eigenvalues λ_j = j^−2 a function belongs "
        "to the space as long as its sum stays finite. Thin to thick lines are the sums of 100, "
        "3,000 and 100,000 terms; where they part, the sum is infinite. A step wave belongs for "
        "β < ¼ and so is not in the RKHS; a triangle wave belongs for β < ¾ and is.",
        nested_spaces(),
        "Left: four nested ellipses, the largest L², then the range of L_K to the β₁, the RKHS, "
        "and the range of L_K to the β₂. Right: partial sums against β for three functions; "
        "those of the step part at 0.25, of the triangle at 0.75, of the smoother function at "
        "1.25.",
    )


def _bound() -> Picture:
    return Picture(
        "figure-2-bound",
        "Figure 2 of the paper: the bound on the excess ℓ-risk for β = ½",
        "The paper: a fast regime, T^(−2/3), that saturates to T^(−1/2) when T exceeds a power "
        "of the best risk. Computed: the rates of Theorem 2 on the left, with a dot at that "
        "power; on the right the same with all constants and logarithms, for the smooth hinge "
        "loss, ‖g‖ = 1, a = 4 L and b = 1. There the fast regime lasts longer, and below a few "
        "hundred examples the bound is above the risk of f = 0, so that it says nothing.",
        excess_bound(),
        "Two log-log plots of excess risk against the number of examples, one line per best risk. "
        "All start on a common line of slope −2/3; the larger the best risk, the sooner a line "
        "leaves it for slope −1/2.",
    )


def _phi(fair: float) -> Picture:
    return Picture(
        "phi",
        "The constant φ of Theorem 1",
        "The paper prints φ without the exponential that its proof ends with. From a = "
        f"{fair:.3f} L on the printed φ is the larger, so the theorem holds as printed; between "
        "2.25 L and there the proof gives more, without limit as a falls to 2.249 L.",
        constants(fair),
        "φ against a/L on logarithmic axes. The proved curve is far above the printed one near "
        f"2.25, crosses it at {fair:.2f}, and lies below it from there on.",
    )


def _results(fair: float) -> Table:
    x = 1 / theory.MIN_A
    rows = (
        ("Theorem 1, φ", "phi", f"{theory.phi_printed(x):,.0f} at a = 2.25 L",
         f"10^{theory.log_phi(x) / log(10):.0f}; printed is valid from a = {fair:.3f} L on"),
        ("Theorem 1", "regret_bound", "gradients of T − 1 rounds", "all T: the proof needs α_T"),
        ("Corollary 1", "smooth_regret_bound", "without constants",
         "constants from the proof, T + 1 for T"),
        ("Equation (3)", "asgd_bound", "‖h‖²/(ηT) + 4η", "holds; the proof even has ‖h‖²/(2ηT)"),
        ("Equation (4)", "asgd_bound_tuned", "4‖h‖/√T", "from T = 4‖h‖² on, as η ≤ ¼"),
        ("Equation (5)", "perceptron_mistake_bound", "any sequence", "needs ‖k(x, ·)‖ ≤ 1"),
        ("Corollary 2", "risk_bound", "without constants",
         "holds; the expectation is to be taken before solving for the loss"),
        ("Theorem 2", "rates", "three terms for β > ⅓", "the third never decides"),
        ("Theorem 2, best risk 0", "rate_exponent", "3β/(2β+1) in the text",
         "2β/(β+1), as in the theorem"),
        ("Theorem 2", "excess_risk_bound", "each branch with its own h and γ",
         "one choice for all: same rates, shorter proof"),
        ("Saturation", "crossover", "best risk^(−(β+1)/2β)", "the same"),
        ("Lemma 1", "misclassification_bound", "factor 32",
         "4, and 2 for the usual losses; a condition beside zero is missing"),
        ("Theorem 3", "l1_excess_bound", "T^(−β/(β+1))", "the same, with constants"),
        ("Appendix A", "per_coordinate_bound", "the largest |u_i| for all", "each its own: smaller"),
        ("Section 6, weight", "optimal_regularisation", "(2β + q(1−β))/(2β + 2/b)",
         "(4β + q(1−2β))/(4β + 2/b) in the paper's β; equal for q = b = 1"),
    )  # fmt: skip
    return Table(
        "The paper's results as functions",
        "What is printed, and what we found when we derived it again.",
        ("Result", "pistol.theory", "The paper prints", "We found"),
        [(result, f"`{name}`", printed, ours) for result, name, printed, ours in rows],
    )
