"""What the paper guarantees on the circle, with constants, for the curves that were measured."""

from __future__ import annotations

from math import sqrt

import numpy as np

from pistol import theory

from ...protocol import Array
from ..sections import Verdict
from .circle import H, L, Problem, best_risk, compromise, source_norm
from .curves import AGNOSTIC, FIT, HORIZON, PISTOL_A, Exponent, step_size

GAMMAS = np.geomspace(1e-7, 1.0, 120)


def predicted(name: str, beta: float, noise: bool) -> float:
    """The exponent that theory promises a learner.

    With η ∝ T^(-1/2), equation (3) is an approximation error (ηT)^(-2β) = T^(-β), and 4η, which is
    smaller for β < 1/2.
    """
    if name == AGNOSTIC:
        return beta
    clean_pistol = not noise and name.startswith("PiSTOL")
    return float(theory.rate_exponent(beta, noise=not clean_pistol))


def asgd_bounds(problem: Problem, name: str, T: Array) -> Array:
    """Equation (3) less the risk of f*, at the h that makes it least: that of γ = 1/(ηT)."""
    bounds = []
    for size in T.tolist():
        eta = step_size(name, size, problem.beta)
        h = compromise(problem, 1 / (eta * size))
        bounds.append(h.distance + h.norm_sq / (eta * size) + 4 * eta)
    return np.array(bounds)


def theorem_2(problem: Problem, name: str, T: Array) -> Array:
    """Theorem 2 with its constants and logarithms."""
    g_norm, best = source_norm(problem), best_risk(problem)
    values = theory.excess_risk_bound(g_norm, best, T, problem.beta, PISTOL_A, _b(name, T), L, H)
    return np.asarray(values)


def corollary_2(problem: Problem, name: str, T: Array) -> Array:
    """Corollary 2 less the risk of f*, at the best h of the regularised ones."""
    best = best_risk(problem)
    family = [compromise(problem, gamma) for gamma in GAMMAS]
    norms = np.array([sqrt(h.norm_sq) for h in family])
    risks = best + H / 2 * np.array([h.distance for h in family])
    b = np.broadcast_to(_b(name, T), T.shape)[:, None]
    return np.asarray(
        theory.risk_bound(norms, risks, T[:, None], PISTOL_A, b, L, H).min(axis=1) - best
    )


def bound_exponent(problem: Problem, name: str, T: Array, octaves: int = FIT) -> float:
    """The exponent that Theorem 2 has where curves are fitted, its logarithms included."""
    return slope(T, theorem_2(problem, name, T), octaves)


def slope(T: Array, values: Array, octaves: int = FIT) -> float:
    """r of T^-r, where curves are fitted, of values without noise."""
    at = slice(-octaves - 1, None)
    return -float(np.polyfit(np.log(T[at]), np.log(values[at]), 1)[0])


def approximation(problem: Problem, T: Array) -> Array:
    """min_h ‖h - f*‖² + γ ‖h‖²_K at γ = 1/T."""
    found = [compromise(problem, 1 / size) for size in T.tolist()]
    return np.array([h.distance + h.norm_sq / size for h, size in zip(found, T, strict=True)])


def judged(fit: Exponent, r: float, bound: float) -> Verdict:
    """An upper bound T^-r holds if the curve falls as fast, within two standard errors.

    It holds with a caveat if it falls only as fast as `bound`: the exponent of the bound itself at
    these T, logarithms included.
    """
    if fit.reach >= r:
        return "holds"
    return "holds with a caveat" if fit.reach >= bound else "does not hold"


def worst(verdicts: list[Verdict]) -> Verdict:
    """The least of several."""
    order: list[Verdict] = ["does not hold", "holds with a caveat", "holds"]
    return min(verdicts, key=order.index)


def simply(holds: bool) -> Verdict:
    """A verdict without half-tones."""
    return "holds" if holds else "does not hold"


def _b(name: str, T: Array) -> Array:
    return np.sqrt(2 * PISTOL_A * L * T) if name == HORIZON else np.ones(T.shape)
