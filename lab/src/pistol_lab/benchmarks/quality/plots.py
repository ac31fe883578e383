"""Pictures: mean ranks with their critical difference, ours against a peer, time against rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from ..report import BLUE, GREY, ORANGE
from .cells import Cell
from .compare import values
from .goals import ALLOWED, TARGETS
from .peers import METHODS
from .tasks import TASKS

STYLES = {  # colour and mark; a method of classes shares them with its fellow of targets
    "pistol": (BLUE, "o"),
    "pistol-linear": ("#63b2e8", "s"),
    "svc-grid": (ORANGE, "D"),
    "svr-grid": (ORANGE, "D"),
    "svc": ("#a33c1f", "^"),
    "svr": ("#a33c1f", "^"),
    "sgd-grid": ("#9467bd", "v"),
    "logistic-grid": ("#4f9d52", "P"),
    "ridge-grid": ("#4f9d52", "P"),
    "vw": (GREY, "X"),
    "hgb": ("#c9a227", "h"),
    "lightgbm": ("#2a8c82", "<"),
    "catboost": ("#d1589b", ">"),
    "xgboost": ("#5b4a3f", "*"),
}
KIND_MARKS = {"binary": "o", "multiclass": "D"}
FLOOR = 0.1  # percent; the least error that the picture tells from none
TICKS = [0.1, 0.3, 1, 3, 10, 30]
STEPS = [1, 2, 5, 20, 50]
ROWS = [100, 300, 1_000, 3_000, 10_000, 30_000]


def cliques(ranks: Sequence[float], cd: float) -> list[tuple[int, int]]:
    """First and last of each longest run of sorted mean ranks that lie within cd."""
    found: list[tuple[int, int]] = []
    for i, low in enumerate(ranks):
        j = max(k for k, rank in enumerate(ranks) if rank - low <= cd)
        if j > i and (not found or j > found[-1][1]):
            found.append((i, j))
    return found


def draw_ranks(ranks: Mapping[str, float], tasks: int, cd: float, path: Path) -> None:
    """Methods on the axis of mean ranks, the best on the left; bars join those within cd."""
    names = sorted(ranks, key=lambda name: ranks[name])
    places, n = [ranks[name] for name in names], len(names)
    bars, half = cliques(places, cd), (n + 1) // 2
    first = 0.7 + 0.3 * len(bars)  # where the names begin, below the bars
    figure = Figure(figsize=(6, 1.1 + 0.16 * len(bars) + 0.26 * half))
    axes = figure.subplots()
    for i, (name, place) in enumerate(zip(names, places, strict=True)):
        left, colour = i < half, STYLES[name][0] if METHODS[name].ours else "black"
        row, end = first + 0.6 * (i if left else n - 1 - i), 0.9 if left else n + 0.1
        axes.plot([place, place, end], [0, row, row], color=colour, linewidth=1, clip_on=False)
        axes.plot(place, 0, "o", color=colour, markersize=4, clip_on=False)
        text = f"{name}  {place:.2f}" if left else f"{place:.2f}  {name}"
        side = "right" if left else "left"
        style = {"va": "center", "color": colour, "annotation_clip": False}
        _note(axes, text, (end, row), -4 if left else 4, ha=side, **style)
    for level, (i, j) in enumerate(bars):
        y, ends = 0.4 + 0.3 * level, [places[i] - 0.04, places[j] + 0.04]
        axes.plot(ends, [y, y], color=GREY, linewidth=3.5, clip_on=False)
    end = min(1 + cd, n)
    axes.plot([1, end], [-1.3, -1.3], color=ORANGE, linewidth=2, clip_on=False)
    text = f"critical difference {cd:.2f} over {tasks} tasks"
    _note(axes, text, (end, -1.3), 6, va="center", color=ORANGE, annotation_clip=False)
    axes.set(xlim=(1, n), ylim=(first + 0.6 * half - 0.3, -1.6), xticks=range(1, n + 1), yticks=[])
    axes.xaxis.tick_top()
    axes.spines["top"].set_position(("data", 0))
    axes.spines[["left", "right", "bottom"]].set_visible(False)
    figure.savefig(path, dpi=150, bbox_inches="tight")


def draw_errors(means: Mapping[str, Sequence[float]], peer: str, path: Path) -> None:
    """Our errors against a peer's, and how far they are apart; one point per task."""
    tasks = sorted(means, key=lambda task: means[task][0] - means[task][1])
    ours, theirs = 100 * np.array([means[task] for task in tasks]).T
    figure = Figure(figsize=(10, max(0.17 * len(tasks) + 1.2, 4.5)), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    for at, task in enumerate(tasks):
        kind, gap = TASKS[task].kind, ours[at] - theirs[at]
        style = {"color": ORANGE if gap > ALLOWED[kind] else BLUE, "marker": KIND_MARKS[kind]}
        left.scatter(max(theirs[at], FLOOR), max(ours[at], FLOOR), s=26, **style, zorder=3)
        right.hlines(at, 0, gap, color=style["color"], linewidth=1)
        right.scatter(gap, at, s=22, **style, zorder=3)
    _frame_errors(left, max(ours.max(), theirs.max(), 1.0))
    left.set(xlabel=f"error of {peer}, %", ylabel="error of pistol, %")
    _frame_gaps(right, ours - theirs)
    right.set_yticks(range(len(tasks)), tasks, fontsize=7)
    right.set(xlabel=f"error of pistol − error of {peer}, points")
    figure.savefig(path, dpi=150)


def _frame_errors(axes: Any, most: float) -> None:
    """Logarithmic axes, the line of equal errors, and what the marks mean."""
    axes.loglog()
    axes.plot([FLOOR, 100], [FLOOR, 100], color=GREY, linewidth=1)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(TICKS, [f"≤ {FLOOR:g}", *(f"{tick:g}" for tick in TICKS[1:])])
        axis.set_minor_locator(NullLocator())
    limits = FLOOR / 1.2, 1.3 * most
    axes.set(xlim=limits, ylim=limits, aspect="equal", anchor="N")
    for kind, mark in KIND_MARKS.items():
        label = f"{kind}, {ALLOWED[kind]:.1f} points allowed"
        axes.scatter([], [], color=BLUE, marker=mark, label=label)
    axes.scatter([], [], color=ORANGE, label="further behind than allowed")
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)


def _frame_gaps(axes: Any, gaps: Any) -> None:
    """An axis that is linear for small gaps and logarithmic for large ones."""
    low, high = min(gaps.min(), -1.0), max(gaps.max(), 1.0)
    axes.axvline(0, color=GREY, linewidth=1)
    axes.set_xscale("symlog", linthresh=2, linscale=1)
    axes.set_xticks([*(-t for t in STEPS if -t >= low), 0, *(t for t in STEPS if t <= high)])
    axes.xaxis.set_major_formatter("{x:+g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(xlim=(1.25 * low, 1.25 * high), ylim=(-1, len(gaps)))
    axes.spines[["top", "right"]].set_visible(False)


def draw_ratios(means: Mapping[str, Sequence[float]], peer: str, path: Path) -> None:
    """Our mean absolute error as a multiple of a peer's, task by task."""
    ratios = {task: ours / theirs for task, (ours, theirs) in means.items() if theirs > 0}
    tasks = sorted(ratios, key=lambda task: ratios[task])
    figure = Figure(figsize=(7, 0.22 * len(tasks) + 1.2), layout="constrained")
    axes = figure.subplots()
    for at, task in enumerate(tasks):
        colour = ORANGE if ratios[task] > 1 else BLUE
        axes.hlines(at, 1, ratios[task], color=colour, linewidth=1)
        axes.scatter(ratios[task], at, color=colour, s=22, zorder=3)
    axes.axvline(1, color=GREY, linewidth=1)
    axes.axvline(TARGETS[peer], color=GREY, linewidth=1, linestyle=":")
    axes.set_yticks(range(len(tasks)), tasks, fontsize=8)
    goal = f"dotted: goal of the geometric mean, {TARGETS[peer]}"
    axes.set(xlabel=f"MAE of pistol / MAE of {peer}; {goal}", ylim=(-1, len(tasks)))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def _note(axes: Any, text: str, at: tuple[float, float], shift: float, **style: Any) -> None:
    axes.annotate(text, at, (shift, 0), textcoords="offset points", fontsize=9, **style)


def draw_times(cells: Sequence[Cell], path: Path) -> bool:
    """Seconds to fit against rows, one point per task, with the power law that fits best.

    Returns whether there was anything to draw.
    """
    found = values(cells, "fit_seconds")
    if not found:
        return False
    rows = {cell.task: cell.rows for cell in cells}
    there = {method for by_method in found.values() for method in by_method}
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    for name in (name for name in STYLES if name in there):
        colour, mark = STYLES[name]
        points = sorted(
            (rows[task], np.mean(list(by[name].values())))
            for task, by in found.items()
            if name in by
        )
        x, y = np.array(points).T
        axes.scatter(x, y, s=22, color=colour, marker=mark, alpha=0.5, linewidths=0, label=name)
        if len(set(x)) > 2:
            line = np.polyfit(np.log(x), np.log(y), 1)
            ends = np.array([x.min(), x.max()])
            axes.plot(ends, np.exp(np.polyval(line, np.log(ends))), color=colour, linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="rows learned from", ylabel="seconds to fit")
    axes.set_xticks(ROWS, [f"{n:,}" for n in ROWS])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(min(rows.values()) / 1.2, max(rows.values()) * 1.2)
    legend = axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    for handle in filter(None, legend.legend_handles):
        handle.set_alpha(1)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    return True
