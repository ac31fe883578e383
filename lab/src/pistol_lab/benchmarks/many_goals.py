"""What is asked of us as rows get more, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ..measure import exponent
from .tables import geometric

FROM = 10_000  # rows from which the goals count
SLOWEST = 5.0  # times boosting's time, in the median
MEAN, WORST = 0.95, 1.10  # of our error over boosting's
GROWTH = 1.15  # the exponent of time, in the median
FEWER = 4  # times as few rows should have a larger error

Run = dict[str, Any]  # of all methods on some rows of a task


class Verdict(NamedTuple):
    """A goal in words, what was found, and whether that meets it."""

    goal: str
    found: str
    met: bool

    def __str__(self) -> str:
        return f"{self.goal}: {self.found} ({'met' if self.met else 'missed'})."


def goals(found: Sequence[Run], counted: Sequence[Run]) -> list[Verdict]:
    """All goals, given all runs, and those runs that errors and times are judged by."""
    ratios = {_name(one): one["ours"] / max(one["boosting"], 1e-9) for one in counted}
    slower = [one["ours_seconds"] / one["boosting_seconds"] for one in counted]
    mean, middle = geometric(list(ratios.values())), float(np.median(slower))
    bad = sorted((name for name in ratios if ratios[name] > WORST), key=lambda name: -ratios[name])
    return [
        Verdict(
            f"Error over boosting's, geometric mean, at most {MEAN}", f"{mean:.3f}", mean <= MEAN
        ),
        Verdict(
            f"None above {WORST:.2f}",
            ", ".join(f"{name} {ratios[name]:.2f}" for name in bad)
            or f"largest {max(ratios.values()):.2f}",
            not bad,
        ),
        Verdict(
            f"Time over boosting's, median, at most {SLOWEST:.0f}",
            f"{middle:.1f}",
            middle <= SLOWEST,
        ),
        *_grown(found),
        *_learned_more(found),
    ]


def _name(one: Run) -> str:
    return f"{one['task']} with {one['rows']:,} rows"


def _by_task(found: Sequence[Run]) -> dict[str, list[Run]]:
    return {task: list(runs) for task, runs in groupby(found, lambda one: one["task"])}


def _grown(found: Sequence[Run]) -> list[Verdict]:
    """The exponent of our time over rows that are many."""
    many = _by_task([one for one in found if one["rows"] >= FROM])
    slopes = [
        exponent([one["rows"] for one in runs], [one["ours_seconds"] for one in runs])
        for runs in many.values()
        if len(runs) > 1
    ]
    if not slopes:
        return []
    middle = float(np.median(slopes))
    goal = f"Time grows like rows to the power of at most {GROWTH} (median of the tasks)"
    return [Verdict(goal, f"{middle:.2f}", middle <= GROWTH)]


def _learned_more(found: Sequence[Run]) -> list[Verdict]:
    """Where all rows of a task did not bring a smaller error than a quarter of them, or fewer."""
    pairs = []
    for runs in _by_task(found).values():
        fewer = [one for one in runs if FEWER * one["rows"] <= runs[-1]["rows"]]
        pairs += [(fewer[-1], runs[-1])] if fewer else []
    if not pairs:
        return []
    text = "{} ({:,} rows: {:.4g}, {:,} rows: {:.4g})"
    bad = [
        text.format(b["task"], a["rows"], a["ours"], b["rows"], b["ours"])
        for a, b in pairs
        if b["ours"] >= a["ours"]
    ]
    goal = "The error with all rows is below that with at most a quarter of them on every task"
    within = ", ".join(bad) or f"on all {len(pairs)}"
    return [Verdict(goal, f"not on {within}" if bad else within, not bad)]
