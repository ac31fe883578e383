"""Pictures of learning curves on the circle."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from pistol import theory

from .circle import best_risk
from .curves import AGNOSTIC, HORIZON, ORACLE, PAPER, PISTOL, Curves, local_exponents
from .plan import REGIMES_BETA, Results
from .predictions import predicted

BLUE, LIGHT, ORANGE, SAND, GREY = "#1b6ca8", "#6fb1dc", "#d95f02", "#f0a35e", "#555555"
STYLES = {
    PISTOL: {"color": BLUE, "marker": "o"},
    HORIZON: {"color": LIGHT, "marker": "s"},
    PAPER: {"color": BLUE, "marker": "v", "linestyle": ":"},
    ORACLE: {"color": ORANGE, "marker": "D"},
    AGNOSTIC: {"color": SAND, "marker": "^"},
}
SHADES = ("#0b3c5d", "#1b6ca8", "#5aa0d0", "#d9a441", "#d95f02")
GUIDE = 5  # octaves that a line of the theory's slope is long


def fraction(beta: float) -> str:
    """β as it is spoken of."""
    return str(Fraction(beta).limit_denominator(12))


def draw_curves(results: Results, sigma: float | None) -> Figure:
    """Excess risk against examples, one panel per β; dashed lines have the slopes of the theory."""
    betas = results.plan.betas
    rows = -(-len(betas) // 2)
    figure = Figure(figsize=(8.6, 0.9 + 3.3 * rows), layout="constrained")
    panels = np.ravel(figure.subplots(rows, 2, sharex=True))
    for axes, beta in zip(panels, betas, strict=False):
        for name, style in STYLES.items():
            _line(axes, results.curves(beta, sigma, name), label=name, **style)
        pair = {name: results.curves(beta, sigma, name) for name in (PISTOL, AGNOSTIC)}
        top = max(pair, key=lambda name: pair[name].mean[-1])
        for name, curves in pair.items():
            _guide(axes, curves, predicted(name, beta, sigma is None), above=name == top)
        _decorate(axes, f"β = {fraction(beta)}")
        T, start = pair[PISTOL].T, pair[PISTOL].mean[0]
        axes.set(xlim=(T[0] / 1.5, T[-1] * 8), ylim=(None, 3 * start))
    for axes in panels[::2]:
        axes.set_ylabel("excess risk")
    for axes in panels[-2:]:
        axes.set_xlabel("examples T")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=10)
    return figure


def draw_regimes(results: Results) -> Figure:
    """Excess risk for more and more noise, and beside it the exponent of every octave."""
    figure = Figure(figsize=(8.6, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for sigma, colour in zip((0.0, *results.plan.sigmas), SHADES, strict=False):
        curves = results.regime(sigma)
        _line(left, curves, color=colour, marker="o", label=f"σ = {sigma:g}")
        middle = np.sqrt(curves.T[1:] * curves.T[:-1])
        right.plot(middle, local_exponents(curves), color=colour, marker="o", markersize=4)
        turn = theory.crossover(REGIMES_BETA, best_risk(results.plan.problem(REGIMES_BETA, sigma)))
        if curves.T[0] <= turn <= curves.T[-1]:
            at = np.exp(np.interp(np.log(turn), np.log(curves.T), np.log(curves.mean)))
            left.plot(turn, at, "D", color="white", markeredgecolor=colour, markersize=9, zorder=5)
    for noise, text in ((False, "2β/(β+1)"), (True, "2β/(2β+1)")):
        r = theory.rate_exponent(REGIMES_BETA, noise)
        right.axhline(r, color=GREY, linestyle="--", linewidth=1)
        right.annotate(
            text, (0.02, r), (0, 3), xycoords=("axes fraction", "data"),
            textcoords="offset points", color=GREY, fontsize=10,
        )  # fmt: skip
    left.legend(frameon=False, fontsize=10)
    _decorate(left, f"β = {fraction(REGIMES_BETA)}, ◇ where theory turns")
    left.set(xlabel="examples T", ylabel="excess risk")
    right.set_xscale("log", base=2)
    right.set(xlabel="examples T", ylabel="exponent r of an octave", ylim=(0, None))
    right.set_title("from the fast to the slow regime", fontsize=11)
    right.grid(alpha=0.25)
    return figure


def _line(axes: Any, curves: Curves, **style: Any) -> None:
    """A mean curve, in a band of two standard errors."""
    axes.plot(curves.T, curves.mean, markersize=4, linewidth=1.5, **style)
    low = np.maximum(curves.mean - 2 * curves.error, curves.mean / 10)
    axes.fill_between(
        curves.T, low, curves.mean + 2 * curves.error, color=style["color"], alpha=0.15, linewidth=0
    )


def _guide(axes: Any, curves: Curves, r: float, above: bool) -> None:
    """A dashed line of slope -r beside the end of the curve."""
    T = curves.T[-GUIDE - 1 :]
    line = (1.2 if above else 0.8) * curves.mean[-1] * (T / T[-1]) ** -r
    axes.plot(T, line, color=GREY, linestyle="--", linewidth=1)
    axes.annotate(
        f"$T^{{-{r:.3g}}}$", (T[-1], line[-1]), (5, 0), textcoords="offset points", color=GREY,
        fontsize=10, va="center",
    )  # fmt: skip


def _decorate(axes: Any, title: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_title(title, fontsize=11)
    axes.grid(alpha=0.25)
