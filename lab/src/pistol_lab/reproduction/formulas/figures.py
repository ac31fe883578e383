"""Figures 1 and 2 of the paper, and the constant of its Theorem 1, drawn from formulas."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from pistol import theory

from ...protocol import Array

BLUE, ORANGE, GREY, GREEN = "#1b6ca8", "#d95f02", "#555555", "#2a7f62"
DECAY = 2.0  # eigenvalues λ_j = j^-DECAY
FUNCTIONS = {"step": 1, "triangle": 2, "smoother": 3}  # coefficients a_j ∝ j^-p for odd j
COLOURS = {"step": ORANGE, "triangle": BLUE, "smoother": GREEN}
TERMS = (100, 3_000, 100_000)
BETAS = np.linspace(0.0, 1.5, 61)
RISKS = (1e-1, 1e-2, 1e-3, 1e-4, 0.0)
SETTING = {"a": 8.0, "b": 1.0, "L": 2.0, "H": 2.0}  # the smooth hinge loss with a = 4 L


def sums(name: str, betas: Array = BETAS, terms: tuple[int, ...] = TERMS) -> Array:
    """Σ a_j² λ_j^(-2β) over the first terms, for a function with Σ a_j² = 1; rows are terms."""
    j = np.arange(1.0, max(terms), 2.0)
    a_sq = j ** (-2.0 * FUNCTIONS[name])
    a_sq /= a_sq.sum()
    ends = [np.searchsorted(j, n) - 1 for n in terms]
    return np.array([np.cumsum(a_sq * j ** (2 * DECAY * beta))[ends] for beta in betas]).T


def edge(name: str) -> float:
    """The β from which on the sums grow with their terms without end.

    Far beyond it they grow as a power of their terms, linear in β: where that power is zero.
    """
    betas = np.array([2.0, 2.5])
    few, many = sums(name, betas, (10_000, 100_000))
    power = np.log(many / few) / np.log(10.0)
    return float(betas[0] - power[0] * (betas[1] - betas[0]) / (power[1] - power[0]))


def nested_spaces() -> Figure:
    """Figure 1, and beside it three functions that belong to some of the spaces only."""
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.15))
    _ellipses(left)
    for name, p in FUNCTIONS.items():
        for values, width in zip(sums(name), (0.8, 1.4, 2.0)):
            label = f"{name}, β < {(p - 0.5) / DECAY:g}" if width == 2.0 else None
            right.semilogy(BETAS, values, color=COLOURS[name], linewidth=width, label=label)
        right.axvline((p - 0.5) / DECAY, color=COLOURS[name], linewidth=0.8, linestyle=":")
    right.axvline(0.5, color=GREY, linewidth=1.0, linestyle="--")
    right.text(0.47, 1.45, "RKHS", color=GREY, fontsize=9, rotation=90, ha="right", va="bottom")
    right.set(xlim=(0, 1.5), ylim=(0.8, 2e4), xlabel="β")
    right.set_ylabel("$\\sum_j a_j^2 \\lambda_j^{-2\\beta}$, partial sums")
    right.legend(
        fontsize=8, loc="lower center", bbox_to_anchor=(0.46, 1.0), ncols=3, frameon=False,
        handlelength=1.2, columnspacing=0.9, handletextpad=0.4,
    )  # fmt: skip
    return figure


def _ellipses(axes: Axes) -> None:
    """The spaces, largest first; all touch at the bottom so that each has room for its name."""
    spaces = (
        ("$L^2_\\rho = L_K^{0}(L^2_\\rho)$", 1.00, "#eef1f4"),
        ("$L_K^{\\beta_1}(L^2_\\rho)$", 0.77, "#d5e4f0"),
        ("$\\mathcal{H}_K = L_K^{1/2}(L^2_\\rho)$", 0.54, "#a9cbe4"),
        ("$L_K^{\\beta_2}(L^2_\\rho)$", 0.29, "#6fa8d0"),
    )
    for name, size, colour in spaces:
        axes.add_patch(
            Ellipse(
                (0, size), 2.4 * size, 2 * size, facecolor=colour, edgecolor=BLUE, linewidth=1.2
            )
        )
        drop = 0.21 if size > 0.3 else 0.29
        axes.text(0, 2 * size - drop, name, ha="center", va="center", fontsize=10)
    axes.set(xlim=(-1.25, 1.25), ylim=(-0.05, 2.05), aspect="equal")
    axes.set_title("0 < β₁ < ½ < β₂", fontsize=10)
    axes.set_axis_off()


def excess_bound() -> Figure:
    """Figure 2: the bound for β = ½, without constants and with all of them."""
    figure = Figure(figsize=(7.0, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    T = np.logspace(1, 12, 200)
    shades = [BLUE, "#4f94c4", "#8ab8d8", "#b98b4e", ORANGE]
    for risk, colour in zip(RISKS, shades):
        label = f"{risk:g}" if risk else "0"
        left.loglog(T, theory.rates(T, 0.5, risk), color=colour, linewidth=1.8)
        bound = theory.excess_risk_bound(1.0, risk, T, 0.5, **SETTING)
        right.loglog(T, bound, color=colour, linewidth=1.8, label=label)
        if risk:
            T_0 = theory.crossover(0.5, risk)
            left.plot(T_0, theory.rates(T_0, 0.5, risk), "o", color=colour, markersize=6)
    left.text(3e9, 3e-8, "slope −2/3", fontsize=9, color=ORANGE, ha="right", va="top")
    left.text(2e8, 2e-4, "slope −1/2", fontsize=9, color=BLUE)
    right.axhline(1.0, color=GREY, linestyle="--", linewidth=1.0)
    right.text(6e11, 1.15, "risk of f = 0", fontsize=8, color=GREY, ha="right", va="bottom")
    left.set_title("Rates (dots: where they cross)", fontsize=10)
    left.set_ylabel("excess ℓ-risk")
    right.set_title("With constants and logarithms", fontsize=10)
    right.legend(title="best ℓ-risk", fontsize=8, title_fontsize=8, loc="lower left")
    for axes in (left, right):
        axes.set_xlabel("examples T")
        axes.set_xlim(T[0], T[-1])
        axes.grid(color="#e5e5e5", linewidth=0.6)
    return figure


def constants(from_here: float) -> Figure:
    """φ as it is proved and as it is printed; `from_here` is the a/L where they are equal."""
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    axes = figure.subplots()
    ratio = np.geomspace(1.0001 / theory.MAX_X, 30.0, 2_000)
    proved = np.exp(np.minimum(theory.log_phi(1 / ratio), 300.0))
    axes.loglog(ratio, proved, color=BLUE, linewidth=2.0, label="as proved")
    printed = theory.phi_printed(1 / ratio)
    axes.loglog(ratio, printed, color=GREY, linewidth=2.0, linestyle="--", label="as printed")
    axes.axvspan(ratio[0], from_here, color=ORANGE, alpha=0.12, linewidth=0)
    axes.text(
        from_here * 1.03, 3e4, f"← printed is less than proved\n    below a = {from_here:.2f} L",
        fontsize=9, color="#9a4300", va="center",
    )  # fmt: skip
    axes.plot(from_here, theory.phi(1 / from_here), "o", color=ORANGE, markersize=6)
    axes.set(xlim=(2.2, 30.0), ylim=(3e-2, 1e6), xlabel="a / L", ylabel="φ(L/a)")
    ticks = [2.25, 3, 4, 6, 10, 20]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(color="#e5e5e5", linewidth=0.6)
    axes.legend(fontsize=9)
    return figure
