"""The page: verdicts, ranks, a table of all tasks in each half, times, probabilities, pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from ...computer import computer
from ..report import TOY, seconds
from ..results import Size
from . import plots
from .cells import Cell
from .compare import (
    critical_difference,
    geometric,
    mean_ranks,
    paired,
    ranked,
    ratios,
    select,
    totals,
    values,
)
from .goals import EXPLAINED, Verdict, verdicts
from .peers import METHODS
from .run import Run
from .search import FOLDS
from .tasks import HALVES, RULE, SOURCES, TASKS

PAGE = "quality.md"
SHORT = {"binary": "2", "multiclass": "many"}
NAMED = 12  # of the tasks that speak against a goal
INTRODUCTION = """\
Written by `pistol bench quality`: our defaults beside the peers. Rows are in their own units; words
became columns of zeros and ones, and rows with missing values were left out. A split draws rows to
learn from and at most 5,000 other rows to test on; shares of classes are kept; all methods see the
same splits. Peers that need it have a scaler before them: mean 0 and variance 1 of each column, or
for sparse rows the largest value 1. Peers run on one core, ours on those they find. Choices are made
on the development half of the tasks; no choice was made by looking at the reported half, and the
verdicts are about it. Comparisons use the splits that all methods in question have."""
VARIANTS = {name for name, method in METHODS.items() if method.ours and not method.ranked}
KINDS = {"classes": (False, "error, %"), "targets": (True, "mean absolute error")}


def write(out: Path, run: Run, size: Size) -> Path:
    """Write the page and its pictures from the cells of a folder; returns the page."""
    cells = list(run.cells.values())
    text = ["# Quality", "", INTRODUCTION, "", _limits(size), "", RULE, ""]
    if size.toy:
        text += [f"**{TOY}**", ""]
    text += [_where(size), "", *_verdicts(cells), *_methods(cells), *_sources(cells)]
    text += _left_out(run)
    for half in reversed(HALVES):
        text += [f"## The {half} half", ""]
        for name, (regression, unit) in KINDS.items():
            part = select(cells, half, regression, linear=True)
            if part:
                text += _part(out, half, name, unit, part)
    for name, (regression, _) in KINDS.items():
        part = [c for half in HALVES for c in select(cells, half, regression)]
        if plots.draw_times(part, out / f"quality-{name}-times.png"):
            text += [f"![Time to fit against rows, {name}](quality-{name}-times.png)", ""]
    path = out / PAGE
    path.write_text("\n".join(text), encoding="utf-8")
    return path


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]


def _limits(size: Size) -> str:
    return (
        f"Where there are more than {size.quality_search:,} rows, grids are searched on so many of "
        'them, drawn at random, and the best is fitted to all (column "searched on"). A method that '
        f"takes more than {size.quality_seconds:g} s on a split is not run on the task's further "
        "splits, and has no standard deviation then."
    )


def _where(size: Size) -> str:
    made = computer()
    names = ", ".join(f"{name} {number}" for name, number in made["versions"].items())
    date = datetime.now(UTC).date().isoformat()
    where = f"{made['processor']}, {made['cores']} cores, {made['blas']}"
    return (
        f"*{date}, {size.quality_splits} splits, {FOLDS} folds in every search, {where}; {names}.*"
    )


def _verdicts(cells: Sequence[Cell]) -> list[str]:
    words = {True: "yes", False: "**no**", None: "–"}
    both = [verdicts(cells, half) for half in reversed(HALVES)]
    rows, against = [], list[str]()
    for reported, development in zip(*both, strict=True):
        rows += [[reported.goal, reported.found, words[reported.met], development.found]]
        against += _against(reported)
    header = ["goal", "found on the reported half", "met", "on the development half"]
    return ["## Goals", "", EXPLAINED, "", *markdown(header, rows), *against]


def console_verdicts(cells: Sequence[Cell]) -> Table:
    """The goals for a terminal."""
    table = Table("goal", "reported half", "met", "development half", box=None)
    both = [verdicts(cells, half) for half in reversed(HALVES)]
    for reported, development in zip(*both, strict=True):
        met = {True: "yes", False: "no", None: "–"}[reported.met]
        table.add_row(reported.goal.replace("`", ""), reported.found, met, development.found)
    return table


def _against(verdict: Verdict) -> list[str]:
    if not verdict.tasks:
        return []
    named, more = verdict.tasks[:NAMED], len(verdict.tasks) - NAMED
    rest = f", and {more} more" if more > 0 else ""
    return [f"Against “{verdict.goal}” speak: {', '.join(named)}{rest}.", ""]


def _methods(cells: Sequence[Cell]) -> list[str]:
    there = {cell.method for cell in cells}
    lines = [f"- `{name}`: {m.about}." for name, m in METHODS.items() if name in there]
    return ["## Methods", "", *lines, ""]


def _sources(cells: Sequence[Cell]) -> list[str]:
    """Which tasks came from where; those that were seen before are in italics."""
    there, lines = {cell.task for cell in cells}, []
    for source, half in product(SOURCES, reversed(HALVES)):
        tasks = [t for t in TASKS.values() if t.source == source and t.half == half]
        names = [f"*{t.name}*" if t.seen else t.name for t in tasks if t.name in there]
        lines += [f"- {source}, {half}: {', '.join(names)}."] if names else []
    return ["## Tasks", "", *lines, ""]


def _left_out(run: Run) -> list[str]:
    lines = [f"- {name}: {reason}." for name, reason in run.skipped.items()]
    failed = [cell for cell in run.cells.values() if cell.failed]
    lines += [f"- {c.method} failed on {c.task}, split {c.split}: {c.failed}" for c in failed]
    if beside := sum(cell.contended for cell in run.cells.values()):
        lines += [f"- The times of {beside:,} cells, which ran beside others (`--jobs`)."]
    return ["## Left out", "", *lines, ""] if lines else []


def _part(out: Path, half: str, name: str, unit: str, cells: list[Cell]) -> list[str]:
    """Ranks, all tasks, times and probabilities of one half and one kind of targets."""
    stem, kernel = f"quality-{half}-{name}", [c for c in cells if not TASKS[c.task].linear]
    scores = values(kernel)
    methods = ranked(scores)
    text = [f"### {name.capitalize()}, {half}", ""]
    ranks, n = mean_ranks(scores, methods)
    if len(ranks) > 1:
        cd = critical_difference(len(ranks), n)
        plots.draw_ranks(ranks, n, cd, out / f"{stem}-ranks.png")
        text += [
            f"Mean ranks over {n} tasks, 1 is best; methods joined by a bar differ by less than the "
            f"critical difference {cd:.2f} (Nemenyi, 5 %).",
            "",
            f"![Mean ranks]({stem}-ranks.png)",
            "",
        ]
    peer = "svc-grid" if name == "classes" else "svr-grid"
    if means := paired(scores, ["pistol", peer]):
        draw = plots.draw_errors if name == "classes" else plots.draw_ratios
        draw(means, peer, out / f"{stem}-pairs.png")
        text += [f"![pistol against {peer}, one point per task]({stem}-pairs.png)", ""]
    text += [f"Mean ± standard deviation over splits, {unit}; the best mean in bold.", ""]
    there = {cell.method for cell in cells}
    shown = [name for name, method in METHODS.items() if method.ranked and name in there]
    text += _tasks(cells, shown, percent=name == "classes")
    text += _times(kernel, methods)
    text += _probabilities(kernel) if name == "classes" else []
    return text + _variants(kernel, percent=name == "classes")


def _variants(cells: Sequence[Cell], percent: bool) -> list[str]:
    """Our defaults with a part switched off, or on columns in other units."""
    there = {cell.method for cell in cells}
    names = [name for name in METHODS if name in VARIANTS and name in there]
    rows = [row for name in names if (row := _variant(cells, name))]
    if not rows:
        return []
    header = [
        "method", "tasks", "its error over that of `pistol`, geometric mean",
        "tasks with larger, smaller error", "its time to fit over that of `pistol`, sums",
    ]  # fmt: skip
    text = ["`pistol` with a part of the defaults switched off, and in other units:", ""]
    found, methods = values(cells), ["pistol", *names]
    tasks = [
        [task, *_scores(found[task], methods, percent)]
        for task in _sorted(cells)
        if set(names) & found.get(task, {}).keys()
    ]
    return [*text, *markdown(header, rows), *markdown(["task", *methods], tasks)]


def _variant(cells: Sequence[Cell], name: str) -> list[str]:
    found = ratios(cells, name, "pistol")
    if not found:
        return []
    larger, smaller = (sum(sign * r > sign for r in found.values()) for sign in (1, -1))
    times = totals(cells, [name, "pistol"])
    price = f"{times[name][0] / times['pistol'][0]:.2f}" if times else "–"
    return [
        name,
        str(len(found)),
        f"{geometric(found.values()):.3f}",
        f"{larger}, {smaller}",
        price,
    ]


def _tasks(cells: Sequence[Cell], methods: Sequence[str], percent: bool) -> list[str]:
    """One row per task, the smallest first."""
    found, rows = values(cells), []
    for task, cell in _sorted(cells).items():
        kind = [SHORT[TASKS[task].kind]] if percent else []
        size = [f"{cell.rows:,} × {cell.features:,}", _searched(cells, task)]
        rows += [[task, *kind, *size, *_scores(found.get(task, {}), methods, percent)]]
    kind = ["classes"] if percent else []
    return markdown(["task", *kind, "rows × features", "searched on", *methods], rows)


def _sorted(cells: Sequence[Cell]) -> dict[str, Cell]:
    """Task → one of its cells, the smallest task first."""
    return {c.task: c for c in sorted(cells, key=lambda c: (c.rows, c.task))}


def _scores(
    found: Mapping[str, Mapping[int, float]], methods: Sequence[str], percent: bool
) -> list[str]:
    """The scores of a task, the best mean in bold."""
    scores = {m: list(found.get(m, {}).values()) for m in methods}
    means = {m: np.mean(v) for m, v in scores.items() if v}
    texts = {m: _cell(v, percent) for m, v in scores.items()}
    best = {m for m in means if means[m] == min(means.values())}
    return [f"**{text}**" if m in best else text for m, text in texts.items()]


def _searched(cells: Sequence[Cell], task: str) -> str:
    """How many rows the grids were searched on, where it was not all of them."""
    part = {c.searched for c in cells if c.task == task and c.searched and c.searched < c.rows}
    return ", ".join(f"{n:,} rows" for n in sorted(part)) or "all"


def _cell(scores: Sequence[float], percent: bool) -> str:
    if not scores:
        return "–"
    mean, sd = float(np.mean(scores)), float(np.std(scores, ddof=1)) if len(scores) > 1 else None
    if percent:
        text = f"{100 * mean:.1f}" + ("" if sd is None else f" ± {100 * sd:.1f}")
    else:
        text = f"{mean:.4g}" + ("" if sd is None else f" ± {sd:.2g}")
    return text


def _times(cells: Sequence[Cell], methods: Sequence[str]) -> list[str]:
    found = totals(cells, methods)
    if not found:
        return []
    base = found.get("pistol", (0.0, 0.0))[0]
    rows = [
        [name, seconds(fit), f"{fit / base:,.3g}" if base else "–", seconds(predict)]
        for name, (fit, predict) in found.items()
    ]
    header = ["method", "fit, sum over tasks", "times `pistol`", "predict, sum over tasks"]
    return markdown(header, rows)


def _probabilities(cells: Sequence[Cell]) -> list[str]:
    losses, errors = values(cells, "log_loss"), values(cells, "ece")
    there = {method for by_method in losses.values() for method in by_method}
    methods = [name for name in METHODS if name in there and name not in VARIANTS]
    means = [paired(found, methods) for found in (losses, errors)]
    if not means[0]:
        return []
    columns: list[Any] = [np.mean(list(found.values()), axis=0) for found in means]
    ranks, n = mean_ranks(losses, methods)
    rows = [
        [name, f"{a:.4f}", f"{ranks[name]:.2f}", f"{b:.4f}"]
        for name, a, b in zip(methods, *columns)
    ]
    header = [
        "method", f"log-loss, mean over {n} tasks", "its mean rank", "expected calibration error",
    ]  # fmt: skip
    return markdown(header, rows)
