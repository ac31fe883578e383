"""Pictures of the bounds at work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing

from pistol import theory
from pistol.plot import PISTOL, THEORY, RegretDisplay

from .batches import BINS
from .growth import NORM

OTHER = "#d95f02"
LINES = (("o-", PISTOL, 4), ("o:", "none", 9))  # style, filling and size of the marks
SMOOTH = {"a": 6.0, "b": 1.0, "L": 2.0, "H": 2.0}  # of `growth.stream`


def over_time(panels: Mapping[str, Mapping[str, Any]]) -> Drawing:
    """Regret and bound after each round, one panel per sequence."""
    drawing = Drawing(figsize=(9, 6.4), layout="constrained")
    for ax, (title, cell) in zip(drawing.subplots(2, 2).ravel(), panels.items()):
        RegretDisplay(cell["t"], cell["regret"], cell["bound"]).plot(ax)
        ax.set_title(title, fontsize=11)
    return drawing


def ratios(learners: Mapping[str, Mapping[str, Sequence[int]]]) -> Drawing:
    """Where regret / bound lies for each opponent, one panel per learner, from counts in bins."""
    opponents = sorted({name for split in learners.values() for name in split})
    drawing = Drawing(figsize=(9, 5.2), layout="constrained")
    axes = drawing.subplots(1, len(learners), sharey=True)
    for ax, (learner, split) in zip(axes, learners.items()):
        for row, opponent in enumerate(reversed(opponents)):
            if sum(split.get(opponent, ())):
                low, middle, high, most = _quantiles(split[opponent], (0.05, 0.5, 0.95, 1.0))
                ax.plot(
                    [low, high], [row, row], color=PISTOL, lw=6, alpha=0.45, solid_capstyle="butt"
                )
                ax.plot(middle, row, "o", color=PISTOL, ms=5)
                ax.plot(most, row, "|", color=OTHER, ms=12, mew=2)
        ax.axvline(1.0, color=THEORY, ls="--")
        ax.set(xlim=(-0.03, 1.07), title=learner)
        ax.set_yticks(range(len(opponents)), list(reversed(opponents)))
        ax.grid(axis="x", color="0.9")
        ax.set_axisbelow(True)
    drawing.supxlabel("share of the bound: 5 % to 95 %, median (dot), largest (upright)", size=10)
    return drawing


def growth(
    streams: Mapping[str, Mapping[str, Any]],
    norms: Sequence[float],
    pistol: Sequence[float],
    adagrad: Sequence[float],
) -> Drawing:
    """Regret over rounds where some h suffers nothing, and over the norm of h."""
    drawing = Drawing(figsize=(9, 4), layout="constrained")
    left, right = drawing.subplots(1, 2)
    for (title, cell), (style, fill, size) in zip(streams.items(), LINES):
        T = np.array(cell["t"])
        left.loglog(T, cell["loss"], style, color=PISTOL, mfc=fill, ms=size, label=title)
    left.loglog(T, theory.smooth_regret_bound(NORM, 0.0, T, **SMOOTH), "--", color=THEORY,
                label="Corollary 1")  # fmt: skip
    left.loglog(T, 10.0 * np.cbrt(T / 10), color="0.75", lw=1, label="slope 1/3")
    left.set(xlabel="rounds T", ylabel="regret", title="An h of no loss")
    right.loglog(norms, pistol, "o-", color=PISTOL, ms=4, label="PiSTOL per coordinate")
    right.loglog(norms, adagrad, "s-", color=OTHER, ms=4, label="AdaGrad, fixed step")
    right.set(xlabel="largest weight of u", ylabel="regret", title="The norm of the comparator")
    for ax in (left, right):
        ax.legend(frameon=False, fontsize=9)
    return drawing


def _quantiles(counts: Sequence[int], levels: Sequence[float]) -> list[float]:
    """Upper ends of the bins in which these quantiles lie."""
    share = np.cumsum(counts) / sum(counts)
    return [float((np.searchsorted(share, level - 1e-12) + 1) / BINS) for level in levels]
