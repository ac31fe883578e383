"""From constructor parameters to the rule that learners follow.

A round of size R multiplies the gradient by R. So that f is that of rounds of size 1, L is multiplied
by R and a with it (the theorem asks for a ≥ 2.25 L): then α grows like R² and ‖g‖²/2α does not grow.
In the same way a is in units of a typical gradient, where the loss says what that is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt
from numbers import Real

from .._data.validation import check_choice, check_number
from .._learners import AVERAGES, Rule
from ..losses import Loss
from ..potentials import pistol_choice, sgd_choice

RuleOf = Callable[[Loss, float | None, float], Rule]  # of a loss, rounds to come, size of a round


def pistol_rule(
    a: float, b: str | float, average: str | None, anytime: float, shared: bool = False
) -> RuleOf:
    """PiSTOL: c_t = (b/α) exp(‖g‖²/2α).

    Where b is "anytime", b_t is `anytime` √(2α); shared by the k entries of a row, `anytime` √(2α/k).

    Rounds of size r have gradients r times as large. With r L for L and r a for a, α has the units of
    ‖g‖² again, and with a b to match f_t is what rounds of size 1 would make it.
    """
    a = check_number("a", a)
    check_choice("average", average, AVERAGES)
    pistol_choice(b, a, 1.0, 1.0, anytime)  # refuses what is no b

    def rule(loss: Loss, T: float | None, size: float) -> Rule:
        loss, unit = _sized(loss, size), size * loss.unit
        potential, number = pistol_choice(b, a * unit, loss.L, _rounds(T, size), anytime)
        if isinstance(b, Real):  # others grow with α, G or T
            number *= unit
        elif potential == "pistol_vowpal":
            number *= sqrt(unit)
        elif shared and potential == "pistol_anytime":
            potential = "pistol_shared"
        return Rule(loss, potential, a * unit, number, average)

    return rule


def sgd_rule(eta: str | float, average: str | None) -> RuleOf:
    """Averaged SGD: c_t = η."""
    check_choice("average", average, AVERAGES)
    sgd_choice(eta, 1.0)  # refuses what is no η

    def rule(loss: Loss, T: float | None, size: float) -> Rule:
        potential, number = sgd_choice(eta, _rounds(T, size))
        number /= sqrt(size) if potential == "decaying" else size  # 1/√t falls with t itself
        return Rule(_sized(loss, size), potential, 1.0, number, average)

    return rule


def perceptron_rule(average: str | None) -> RuleOf:
    """The Perceptron: c_t = 1."""
    check_choice("average", average, AVERAGES)
    return lambda loss, T, size: Rule(_sized(loss, size), "constant", 1.0, 1.0 / size, average)


def _rounds(T: float | None, size: float) -> float | None:
    """How many rounds of this size have T in all."""
    return None if T is None else T / size


def _sized(loss: Loss, size: float) -> Loss:
    """The loss of rounds of this size: L bounds the gradient of one round."""
    return loss if size == 1.0 else replace(loss, L=loss.L * size)
