"""Rates at work: Theorem 2 and Section 3 on a problem where every risk is known exactly."""

from __future__ import annotations

from ...protocol import Found
from ..sections import Picture, Section, Table, Verdict
from .circle import DECAY, HEIGHT
from .claims import claims
from .curves import ETA, FIT, LEARNERS, ORACLE, PAPER, PISTOL, exponent, local_exponents
from .pictures import draw_curves, draw_regimes, fraction
from .plan import NOISES, ORDER_BETA, ORDERED, REGIMES_BETA, Results, jobs
from .predictions import bound_exponent, judged, predicted

__all__ = ["jobs", "section"]

QUICK = (
    "This is a quick run. Its samples end before PiSTOL with b = 1 has settled, so what the paper says "
    "of exponents is left to the full run."
)


def section(found: Found, quick: bool) -> Section:
    """Curves, exponents, the two regimes, deviations, and the claims."""
    results = Results(found, quick)
    return Section(
        key="rates",
        title="The rates at work",
        parts=[
            *_how(results, quick),
            _curves(results, "labels ±1"),
            _curves(results, "no noise"),
            _exponents(results),
            _octaves(results),
            _regimes(results),
            _deviations(results),
            _finer(results),
        ],
        claims=claims(results, quick),
    )


def _how(results: Results, quick: bool) -> list[str]:
    p = results.plan
    return [
        "Theorem 2 is about a best predictor f* in the range of L_K^β. Here is one: x is uniform on "
        "the circle, the kernel has the eigenfunctions √2 cos 2πjx and √2 sin 2πjx with eigenvalues "
        f"λ_j ∝ j^(-{DECAY:g}) and k(x, x) = 1, and f* has the Fourier coefficients |z_j|² ∝ "
        "λ_j^(2β)/j. So, were there no end to the frequencies, f* would be in the range of L_K^β′ for "
        "every β′ < β and for no other. Its phases, j log j, keep it bounded, and it is scaled to "
        f"sup |f*| = {HEIGHT:g}. The paper's capacity-independent case is eigenvalues "
        "j^(-1), at the edge of a finite sum; these are near it. Frequencies go up to "
        f"{p.J}, and from there on one stands for each octave and has all that f* has in it; the decay "
        "and these octaves were chosen when a first try with j^(-1.1) and a plain end had shown that "
        "end in the curves. The learners are the library's, on the features √λ_j φ_j(x), where φ_j are "
        "the eigenfunctions.",
        "The loss is Huber's, (y − p)²/4 as long as |y − p| ≤ 2, and linear beyond: convex, Lipschitz "
        "with L = 1, smooth with H = 1/2. **No risk is estimated**: the excess risk is "
        "¼ Σ|z̄_j − z_j|² by Parseval, where z̄_j are the coefficients of what was learned, and a sum "
        "over a fine grid where the linear part matters. "
        "With noise, y is a label ±1 with the mean f*(x). There ℓ(y − p) = ℓ(1 − y p), the form in "
        "which the theorem is stated. Without noise y = f*(x), and for Figure 2 y = f*(x) ± σ. These "
        "are not of that form, but the proof needs no more than a loss that is convex, Lipschitz, "
        "smooth and never negative, and an excess risk of at most (H/2) ‖f − f*‖², which every "
        "smooth loss has whose expectation is least at f*(x).",
        "**PiSTOL** has a = 3L and b = 1: the theorem covers it. It covers b = √(2aLT) as well, but "
        "then adds T^(-1/2) log T to the bound. The setting of Section 7 is a = L/8 and b = √(2aLT), "
        "which is a = 0.25 at the paper's L = 2; the theorem does not cover it. **ASGD** is Algorithm "
        f"1 with the square loss and η = {ETA:g} T^(-r), where {ETA:g} is the most that equation (3) "
        "allows whatever T; r is 2β/(2β+1), for which β has to be known, or 1/2. One pass, uniform "
        f"averages, {p.seeds} samples.",
        QUICK if quick else _rule(results),
    ]


def _rule(results: Results) -> str:
    """How exponents are judged, and what other windows would change."""
    others = [octaves for octaves in range(FIT - 1, FIT + 3) if octaves != FIT]
    ours = _verdicts(results, FIT)
    changed = [sum(a != b for a, b in zip(ours, _verdicts(results, n))) for n in others]
    return (
        "**An exponent holds** if the fitted one is as large, or within two standard errors of it. It "
        "holds with a caveat if the fitted one is smaller, but not smaller than that of the bound "
        "itself over the same T, logarithms included. Both are about these T: no finite curve settles "
        f"a limit. Fits are to the last {FIT} octaves. That was decided after first curves had been "
        "seen, as PiSTOL with b = 1 starts late; with "
        f"{', '.join(map(str, others[:-1]))} or {others[-1]} octaves, "
        f"{', '.join(map(str, changed[:-1]))} or {changed[-1]} of the {len(ours)} verdicts on "
        "PiSTOL's exponents would be others."
    )


def _verdicts(results: Results, octaves: int) -> list[Verdict]:
    """On PiSTOL's exponents in Theorem 2, all β and noises."""
    found = []
    for beta in results.plan.betas:
        for sigma in NOISES.values():
            curves, problem = results.curves(beta, sigma, PISTOL), results.plan.problem(beta, sigma)
            logs = bound_exponent(problem, PISTOL, curves.T, octaves)
            said = predicted(PISTOL, beta, sigma is None)
            found.append(judged(exponent(curves, octaves), said, logs))
    return found


def _curves(results: Results, noise: str) -> Picture:
    sigma = NOISES[noise]
    key = "labels" if sigma is None else "clean"
    texts = []
    for beta in results.plan.betas:
        fit = exponent(results.curves(beta, sigma, PISTOL))
        said = predicted(PISTOL, beta, sigma is None)
        texts.append(f"{fit} at β = {fraction(beta)} (theory {said:.3f})")
    r = "2β/(2β+1)" if sigma is None else "2β/(β+1)"
    return Picture(
        f"rates-{key}",
        f"Learning curves, {noise}",
        f"Theorem 2 promises PiSTOL the exponent {r}; the dashed line beside its curve has it. "
        f"Measured: {', '.join(texts)}. The other dashed line, T^(-β), is what equation (3) gives "
        "for η ∝ T^(-1/2). Bands are two standard errors of the mean.",
        draw_curves(results, sigma),
        f"Excess risk against examples, both on logarithmic axes, a panel for each β, {noise}: five "
        "falling curves, and dashed lines of the theory's slopes beside two of them.",
    )


def _exponents(results: Results) -> Table:
    rows = []
    for beta in results.plan.betas:
        for noise, sigma in NOISES.items():
            fits = {name: exponent(results.curves(beta, sigma, name)) for name in LEARNERS}
            cells = [
                str(fit)
                if name == PAPER  # nothing is promised
                else f"{fit} ({predicted(name, beta, sigma is None):.3f})"
                for name, fit in fits.items()
            ]
            rows.append([fraction(beta), noise, *cells])
    T = results.curves(results.plan.betas[0], None, PISTOL).T
    return Table(
        "Fitted exponents",
        f"r of T^(-r), fitted to the means of T = {T[-FIT - 1]}, …, {T[-1]}, weighted by their "
        "precision, ± a standard error from a jackknife over samples, which says nothing of bends in "
        "a curve; in brackets what theory promises. A larger r falls faster. What is promised of "
        "b = √(2aLT) leaves out the term that this b adds; so large a b leaves little to the "
        "exponential of Algorithm 3, and at small β the curve goes much as that of SGD with "
        "η ∝ T^(-1/2). Nothing is promised of Section 7's setting, which begins far above the others "
        "and so has far to fall.",
        ["β", "noise", *LEARNERS],
        rows,
    )


def _octaves(results: Results) -> Table:
    T = results.curves(results.plan.betas[0], None, PISTOL).T
    show = slice(-7, None)
    rows = []
    for beta in results.plan.betas:
        for noise, sigma in NOISES.items():
            local = local_exponents(results.curves(beta, sigma, PISTOL))[show]
            said = predicted(PISTOL, beta, sigma is None)
            rows.append([fraction(beta), noise, *(f"{r:.2f}" for r in local), f"{said:.3f}"])
    return Table(
        "PiSTOL's exponent, octave by octave",
        "From T/2 to T, beside the theory's. With b = 1 PiSTOL stays near zero until its gradients "
        "agree on something; then the exponent settles.",
        ["β", "noise", *(f"T = {size}" for size in T[1:][show]), "theory"],
        rows,
    )


def _regimes(results: Results) -> Picture:
    sigmas = (0.0, *results.plan.sigmas)
    fits = [f"{exponent(results.regime(sigma))} at σ = {sigma:g}" for sigma in sigmas]
    return Picture(
        "rates-regimes",
        "Two regimes",
        "Figure 2 of the paper draws a bound that falls as T^(-2β/(β+1)) as long as T is small for "
        "the noise, and as T^(-2β/(2β+1)) from there on. These are measured curves of PiSTOL, "
        f"y = f*(x) ± σ. Exponents at the upper end: {', '.join(fits)}.",
        draw_regimes(results),
        f"Left: excess risk against examples at β = {fraction(REGIMES_BETA)} for growing noise. "
        "Right: its exponent octave by octave, between two dashed lines; the more noise, the "
        "earlier it goes from the upper to the lower.",
    )


def _deviations(results: Results) -> Table:
    rows = []
    at = {name: results.curves(ORDER_BETA, None, name) for name in ORDERED}
    T = at[PISTOL].T[-2]
    for problem in results.plan.others():
        ratios = [
            f"{results.other(problem, name).mean[-1] / at[name].mean[-2]:.2f}" for name in ORDERED
        ]
        if problem.hold > 1:
            fewer = at[PISTOL].mean[list(at[PISTOL].T).index(T // problem.hold)]
            what = f"each x is held for {problem.hold} rounds in the mean"
            rows.append([what, *ratios, f"{fewer / at[PISTOL].mean[-2]:.2f}"])
        else:
            rows.append([f"{problem.wrong:.0%} of the labels are set to −sign f*(x)", *ratios, "–"])
    return Table(
        "Examples that are not independent",
        f"Excess risk divided by that with T = {T} independent examples, β = {fraction(ORDER_BETA)}, "
        "labels ±1. A held x still gets a fresh label each round. The last column is PiSTOL with as "
        "many independent examples as there are different x.",
        ["deviation", *ORDERED, "T / hold examples"],
        rows,
    )


def _finer(results: Results) -> Table:
    beta, J, rows = min(results.plan.betas), results.plan.J, []
    for noise, sigma in NOISES.items():
        for name in (PISTOL, ORACLE):
            pair = results.curves(beta, sigma, name), results.finer(sigma, name)
            rows.append([noise, name, *(str(exponent(curves)) for curves in pair)])
    return Table(
        "Where frequencies end",
        f"Fitted exponents at the least β, {fraction(beta)}, with all frequencies up to J and twice "
        "as many.",
        ["noise", "learner", f"J = {J}", f"J = {2 * J}"],
        rows,
    )
