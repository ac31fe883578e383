"""Results on paper: what is kept of one, a page with tables, two pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from ..computer import computer
from ..store import Store
from .results import Line, Result, Size

BLUE, ORANGE, GREY = "#1f6fb4", "#d9762b", "#888888"
COLOURS = {"ours": BLUE, "boosting": ORANGE, "lightgbm": "#4c9a6a", "svc": GREY}
HEADER = [
    "benchmark",
    "rows",
    "features",
    "ours",
    "peer",
    "ratio",
    "target",
    "met",
    "our error",
    "peer error",
]
TOY = "Toy sizes: these figures show that the benchmarks run, and nothing else."
PREFIX = "bench/"  # of the names of jobs
INTRODUCTION = """\
Written by `pistol bench`. A ratio is the peer's time over ours, in one process, warm, best of
several; every target is a least ratio."""


def job_name(benchmark: str) -> str:
    """The name of the job that runs a benchmark."""
    return f"{PREFIX}{benchmark}"


def entry(result: Result, size: Size) -> dict[str, Any]:
    """What is kept of a benchmark: the result, and what its figures belong to."""
    date = datetime.now(UTC).date().isoformat()
    return {"result": result.to_json(), "size": asdict(size), "machine": computer(), "date": date}


def read(store: Store, benchmark: str) -> Result:
    """The result that was kept of a benchmark."""
    return Result.from_json(store.found[job_name(benchmark)]["result"])


def seconds(x: float | None) -> str:
    """A time in a unit that suits it."""
    if x is None:
        return "–"
    for limit, unit, scale in ((1e-3, "µs", 1e6), (1.0, "ms", 1e3), (3600.0, "s", 1.0)):
        if x < limit:
            return f"{x * scale:.3g} {unit}" if x * scale < 1000 else f"{x * scale:.0f} {unit}"
    return f"{x / 3600:.3g} h"


def share(x: float | None) -> str:
    """An error rate as a percentage."""
    return "–" if x is None else f"{x:.1%}"


def error(line: Line) -> str:
    """An error rate as a percentage, or a mean absolute error in the units of the targets."""
    return f"{line.error:.4g}" if line.absolute else share(line.error)


def number(x: float | None) -> str:
    """A ratio with three digits."""
    return "–" if x is None else f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def verdict(result: Result) -> str:
    """One word for whether the target was met."""
    return {True: "yes", False: "no", None: "–"}[result.met]


def cells(result: Result) -> list[str]:
    """A result as a row of the table."""
    if result.skipped:
        return [result.name, *["–"] * (len(HEADER) - 1)]
    return [
        result.name,
        f"{result.rows:,}",
        f"{result.features:,}",
        seconds(result.our_seconds),
        seconds(result.peer_seconds),
        number(result.ratio),
        number(result.target),
        verdict(result),
        share(result.our_error),
        share(result.peer_error),
    ]


def console_table(results: Sequence[Result]) -> Table:
    """The table for a terminal."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in HEADER:
        title = name.replace(" ", "\n").replace("features", "d")
        table.add_column(title, no_wrap=True, justify="left" if name == HEADER[0] else "right")
    for result in results:
        table.add_row(*cells(result))
    return table


def page(store: Store, order: Sequence[str], skipped: Mapping[str, str] | None = None) -> Path:
    """Write README.md and the pictures from all results in a store; returns the page.

    `skipped` has the reasons for benchmarks that could not run. An earlier result of one stays.
    """
    out, reasons = store.path.parent, skipped or {}
    out.mkdir(parents=True, exist_ok=True)
    ours = {name.removeprefix(PREFIX): file for name, file in store.found.items()
            if name.startswith(PREFIX)}  # fmt: skip
    names = [*order, *sorted(ours.keys() - set(order))]
    files = [ours[name] for name in names if name in ours]
    results = [Result.from_json(file["result"]) for file in files]
    where = [_where(file) for file in files]
    text = ["# Benchmarks", "", INTRODUCTION, ""]
    if any(file["size"]["name"] == "toy" for file in files):
        text += [f"**{TOY}**", ""]
    if len(set(where)) == 1:  # said once
        text, where = [*text, where[0], ""], [""] * len(where)
    text += [*_table(results), ""]
    if ratios := [result for result in results if result.met is not None]:
        draw_ratios(ratios, out / "ratios.png")
        text += ["![Ratios over their targets](ratios.png)", ""]
    for result, made in zip(results, where, strict=True):
        text += _section(result) + ([made, ""] if made else [])
        if curves := result.extra.get("curves"):
            draw_growth(curves, out / f"{result.name}.png")
            text += [f"![Growth of time and memory]({result.name}.png)", ""]
        if learning := result.extra.get("learning"):
            draw_learning(learning, out / f"{result.name}.png")
            text += [f"![Errors against rows]({result.name}.png)", ""]
    for name in (name for name in names if name in reasons and name not in ours):
        text += [f"## {name}", "", f"Skipped: {reasons[name]}", ""]
    path = out / "README.md"
    path.write_text("\n".join(text), encoding="utf-8")
    return path


def _table(results: Sequence[Result]) -> list[str]:
    rows = [HEADER, ["---"] * len(HEADER), *map(cells, results)]
    return [f"| {' | '.join(row)} |" for row in rows]


def _section(result: Result) -> list[str]:
    text = [f"## {result.name}", "", result.what, ""]
    if result.peer:
        text += [f"*{result.ours}* against *{result.peer}*. Goal: {result.goal or 'none'}.", ""]
    if result.note:
        text += [result.note, ""]
    if result.lines:
        text += ["| also measured | time | times ours | error |", "|---|---|---|---|"]
        for line in result.lines:
            times = (
                line.seconds / result.our_seconds if line.seconds and result.our_seconds else None
            )
            what = [line.what, seconds(line.seconds), number(times), error(line)]
            text += [f"| {' | '.join(what)} |"]
        text += [""]
    plain = {k: v for k, v in result.extra.items() if isinstance(v, int | float)}
    if plain:
        values = [f"{k.replace('_', ' ')} {_figure(v)}" for k, v in plain.items()]
        text += [f"Figures: {'; '.join(values)}.", ""]
    return text


def _figure(x: float) -> str:
    return f"{x:,}" if isinstance(x, int) else f"{x:.4g}" if x < 1e5 else f"{x:,.0f}"


def _where(file: dict[str, Any]) -> str:
    made, versions = file["machine"], file["machine"]["versions"]
    names = ", ".join(f"{name} {number}" for name, number in versions.items())
    best = f"best of {file['size']['repeats']}"
    where = f"{made['processor']}, {made['cores']} cores, {made['blas']}"
    return f"*{file['date']}, {best}, {where}; {names}.*"


def draw_ratios(results: Sequence[Result], path: Path) -> None:
    """Each ratio as a multiple of its target, on a log axis; blue where the goal is met."""
    figure = Figure(figsize=(8, 0.45 * len(results) + 1.4), layout="constrained")
    axes = figure.subplots()
    values = [max((r.ratio or 0.0) / (r.target or 1.0), 1e-3) for r in results]
    colours = [BLUE if result.met else ORANGE for result in results]
    places = np.arange(len(results))[::-1]
    axes.hlines(places, 1, values, color=colours, linewidth=3)
    axes.scatter(values, places, color=colours, zorder=3)
    for place, value, r in zip(places, values, results, strict=True):
        text = f"{number(r.ratio)} (target {number(r.target)})"
        axes.annotate(text, (max(value, 1), place), (8, 0), textcoords="offset points", va="center")
    axes.axvline(1, color=GREY, linewidth=1)
    axes.set(xscale="log", xlabel="ratio / target, log scale (blue: all of the goal is met)")
    axes.set_yticks(places, [result.name for result in results])
    axes.set_xlim(min([*values, 0.5]) / 1.5, max([*values, 2]) * 8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def draw_growth(curves: Sequence[dict[str, Any]], path: Path) -> None:
    """Time above, memory below, against rows, features and classes."""
    grown = list(dict.fromkeys(curve["grows"] for curve in curves))
    figure = Figure(figsize=(3.4 * len(grown), 6), layout="constrained")
    grid = figure.subplots(2, len(grown), squeeze=False)
    for column, grows in enumerate(grown):
        time, memory = grid[0, column], grid[1, column]
        for curve in (curve for curve in curves if curve["grows"] == grows):
            colour = BLUE if curve["machine"] == "kernel" else ORANGE
            shown = [(time, "seconds", 1, "time"), (memory, "bytes", 2**20, "memory")]
            for axes, key, unit, name in shown:
                label = f"{curve['machine']}, exponent {curve[f'{name}_exponent']:.2f}"
                axes.loglog(
                    curve["x"], np.divide(curve[key], unit), "o-", color=colour, label=label
                )
        memory.set(xlabel=grows)
        for axes in (time, memory):
            axes.legend(frameon=False, fontsize=8)
            axes.spines[["top", "right"]].set_visible(False)
    grid[0, 0].set(ylabel="seconds to fit")
    grid[1, 0].set(ylabel="arrays of the learner, MiB")
    figure.savefig(path, dpi=150)


def draw_learning(found: Sequence[dict[str, Any]], path: Path) -> None:
    """Errors against rows, a picture per task; below it the time to fit."""
    names = list(dict.fromkeys(one["task"] for one in found))
    columns = min(len(names), 4)
    groups = [names[lo : lo + columns] for lo in range(0, len(names), columns)]
    figure = Figure(figsize=(3.2 * columns, 4.6 * len(groups)), layout="constrained")
    grid = figure.subplots(
        2 * len(groups), columns, squeeze=False, height_ratios=[2, 1] * len(groups)
    )
    for axes in grid.flat:
        axes.set_visible(False)
    for row, group in enumerate(groups):
        for column, name in enumerate(group):
            error, time = grid[2 * row, column], grid[2 * row + 1, column]
            own = [one for one in found if one["task"] == name]
            for method, colour in COLOURS.items():
                there = [one for one in own if method in one]
                rows = [one["rows"] for one in there]
                error.plot(rows, [one[method] for one in there], "o-", color=colour, label=method)
                time.plot(rows, [one[f"{method}_seconds"] for one in there], "o-", color=colour)
            error.set(title=name, xscale="log", yscale="log")
            time.set(xscale="log", yscale="log", xlabel="rows")
            for axes in (error, time):
                axes.set_visible(True)
                axes.spines[["top", "right"]].set_visible(False)
            if column == 0:
                error.set(ylabel="error")
                time.set(ylabel="seconds to fit")
                error.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
