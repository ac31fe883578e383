"""Section 5: from the ℓ-risk to the misclassification risk."""

from __future__ import annotations

from math import inf

import numpy as np

from pistol import theory

from ...protocol import Array
from ..sections import Claim
from .slopes import BETAS, judged, tiny

NOISE = np.array([0.0, 0.5, 1.0, 3.0, inf])  # Tsybakov's q
BEND, MARGIN = 1e-3, 0.5  # of a loss that Lemma 1 allows, and the |f_ρ| that it fails for


def misclassification() -> list[Claim]:
    """Section 5: from the ℓ-risk to mistakes."""
    c, alpha = np.logspace(-4, 4, 161)[:, None], np.linspace(0.01, 0.99, 99)
    # where equation (7) is an equality
    forward = float(np.max(c ** (1 - alpha) * alpha**-alpha / (c + 1)))
    factors = {name: _factor(name) for name in ("square", "logistic", "smooth hinge")}
    bent = _bent_excess()
    allowed = theory.misclassification_bound(bent, 1.0, q=0.0, c_q=1.0, factor=32.0)
    exponents = theory.misclassification_exponent(0.5, NOISE)
    both = [
        np.max(np.abs(theory.misclassification_exponent(BETAS[:, None], NOISE, noisy) - by_text))
        for noisy, by_text in (
            (True, 2 * BETAS[:, None] / (2 * BETAS[:, None] + 1) * _sharper()),
            (False, 2 * BETAS[:, None] / (BETAS[:, None] + 1) * _sharper()),
        )
    ]
    return [
        Claim(
            "Section 5, equations (7) and (8)",
            "Tsybakov's two noise conditions are equivalent, with α = q/(q+1) and c_α = c_q + 1.",
            f"(7) gives (8): where (7) is an equality, (8) uses {forward:.2f} of its constant at "
            "most. Back it goes with the same q but c_q becomes (c_q + 1)^(q+1), as 4 for c_q = "
            "q = 1.",
            judged(forward <= 1 + 1e-9, caveat=True),
        ),
        Claim(
            "Section 5, Lemma 1: the factor",
            "Excess mistakes are at most (32 (c_α/C) · excess ℓ-risk)^(1/(2−α)).",
            "The proof ends with 4 in place of 32, and "
            f"{', '.join(f'{f:.2f} for the {n} loss' for n, f in factors.items())} would do. The "
            "lemma as stated is not for the last two: the logistic loss is nowhere zero, and the "
            "smooth hinge loss, which the experiments use, has no second derivative at 0.",
            judged(max(factors.values()) <= 4, caveat=max(factors.values()) < 32),
        ),
        Claim(
            "Section 5, Lemma 1: the condition",
            "That needs no more of a convex loss with its zero in 1 than ℓ′(0) < 0 and ℓ″(0) > 0.",
            f"A loss that bends sharply at ±{BEND:g} meets this with C = 1. Where |f_ρ| = "
            f"{MARGIN:g}, a predictor just beside 0 has an excess ℓ-risk of {bent:.5f} and excess "
            f"mistakes of {MARGIN:g}, but the lemma allows {allowed:.2f}.",
            judged(bool(allowed >= MARGIN)),
        ),
        Claim(
            "Section 5, after Corollary 2",
            "If the best predictor is in the RKHS, excess mistakes fall as T^(−1/(2(2−α))).",
            "Theorem 2 at β = ½ by way of Lemma 1 has the exponents "
            f"{', '.join(f'{r:.3f}' for r in exponents)} for q = "
            f"{', '.join(f'{q:g}' for q in NOISE).replace('inf', '∞')}. The factor of Lemma 1 may "
            "have to be larger than 32 for a loss, the exponent stays.",
            judged(bool(np.allclose(exponents, 0.5 * _sharper()))),
        ),
        Claim(
            "Section 5, after Theorem 2",
            "Excess mistakes fall as T^(−2β/((2β+1)(2−α))), and T^(−2β/((β+1)(2−α))) if the best "
            "risk is 0.",
            f"Theorem 2 by way of Lemma 1 has these exponents, to {tiny(max(both))}. The second "
            "contradicts the rate for the ℓ-risk in the same paragraph, not the theorem.",
            judged(max(both) < 1e-12),
        ),
    ]


def _sharper() -> Array:
    """1/(2 − α) for each noise exponent."""
    return 1 / (2 - np.array([1.0 if q == inf else q / (q + 1) for q in NOISE]))


def _factor(name: str) -> float:
    """The least factor with which Lemma 1 holds: the most of C f² over what f = 0 has too much."""
    value, C = {
        "square": (lambda x: (1 - x) ** 2, theory.comparison_constant(-2.0, 2.0)),
        "logistic": (lambda x: np.logaddexp(0.0, -x), theory.comparison_constant(-0.5, 0.25)),
        "smooth hinge": (
            lambda x: np.where(x > 0, np.maximum(1 - x, 0) ** 2, 1 - 2 * x),
            theory.comparison_constant(-2.0, 2.0),  # with the second derivative from the right
        ),
    }[name]
    x, f = np.linspace(-8, 8, 16_001), np.linspace(0.02, 0.99, 98)[:, None]
    best = ((1 + f) / 2 * value(x) + (1 - f) / 2 * value(-x)).min(axis=1)
    return float(np.max(C * f[:, 0] ** 2 / (value(np.zeros(1)) - best)))


def bent(x: Array) -> Array:
    """A loss that Lemma 1 allows and that it fails for.

    It is c − x + x²/2 between ±BEND, falls with slope −½ to its zero in 1 on the right, and with slope
    −4 on the left: convex, with ℓ'(0) = −1 and ℓ''(0) = 1, so that C = 1.
    """
    c = (1 - BEND) / 2 + BEND - BEND**2 / 2
    middle = np.clip(x, -BEND, BEND)
    left, right = np.minimum(x + BEND, 0), np.clip(x, BEND, 1.0) - BEND
    return c - middle + middle**2 / 2 - 4 * left - right / 2


def _bent_excess() -> float:
    """The ℓ-risk above the best of a predictor just on the wrong side of zero, for that loss."""
    p = (1 + MARGIN) / 2
    x = np.concatenate([np.linspace(-1, 1, 2_001), np.linspace(-2 * BEND, 2 * BEND, 2_001)])
    return float(bent(np.zeros(1))[0] - np.min(p * bent(x) + (1 - p) * bent(-x)))
