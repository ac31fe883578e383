"""What all claims on formulas share: exponents without logarithms, and verdicts."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np
from scipy.optimize import brentq

from pistol import theory

from ...protocol import Array
from ..sections import Verdict

CLOSE = 0.01  # exponents that differ by less agree
FAR = np.array([1e60, 1e140])  # the T between which logarithms no longer matter
BETAS = np.array([0.1, 0.2, 1 / 3, 0.4, 0.5])
A, L = 4.0, 1.0  # a = 4 L wherever only the form of a bound matters
T = 1e6


def judged(right: bool, caveat: bool = False) -> Verdict:
    """The verdict on what is right, maybe with a caveat, or wrong."""
    if not right:
        return "does not hold"
    return "holds with a caveat" if caveat else "holds"


def slope(f: Callable[[Array], Array], at: Array = FAR) -> float:
    """The power of its argument with which f grows."""
    low, high = np.log(f(at))
    return float((high - low) / np.log(at[1] / at[0]))


def listed(values: Array) -> str:
    """Numbers as they stand in a sentence."""
    return ", ".join(f"{v:.2f}" for v in values).replace("-", "−")


def power(exponent: float) -> str:
    """An exponent with a minus that is one."""
    return f"{exponent:.3f}".replace("-", "−")


def tiny(value: float) -> str:
    """A small number as a power of ten."""
    digit, exponent = f"{value:.0e}".split("e")
    return f"{digit}·10^{int(exponent)}".replace("-", "−") if value else "0"


def printed_from() -> float:
    """The a/L from which on the printed φ is at least what is proved."""

    def gap(ratio: float) -> float:
        return theory.log_phi(1 / ratio) - log(theory.phi_printed(1 / ratio))

    return float(brentq(gap, 2.3, 4.0))


def asgd_excess(n: Array, eta: Array, beta: float) -> Array:
    """Equation (3) above the best risk, for f* = L_K^β g with ‖g‖ = 1."""
    return (eta * n) ** (-2 * beta) + 4 * eta
