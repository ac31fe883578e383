"""What the cells say: means over splits, ranks over tasks, and the verdicts on our goals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata, studentized_range

from .cells import Cell
from .peers import METHODS
from .tasks import TASKS

ALLOWED = {"binary": 1.0, "multiclass": 1.5}  # points that we may be behind svc-grid on a task
RATIO = 1.03  # of our mean absolute error to that of svr-grid, in the mean over tasks
Values = dict[str, dict[str, dict[int, float]]]  # task → method → split → value


def values(cells: Iterable[Cell], what: str = "score") -> Values:
    """One value of each cell that has it, by task, method and split."""
    found: Values = {}
    for cell in cells:
        value = getattr(cell, what)
        if value is not None and not cell.failed:
            found.setdefault(cell.task, {}).setdefault(cell.method, {})[cell.split] = value
    return found


def select(cells: Iterable[Cell], half: str, regression: bool, linear: bool = False) -> list[Cell]:
    """The cells of one half, of classes or of targets; linear tasks only if asked for."""
    return [
        cell
        for cell in cells
        if (task := TASKS.get(cell.task))
        and task.half == half
        and (task.kind == "regression") == regression
        and (linear or not task.linear)
    ]


def paired(found: Values, methods: Sequence[str]) -> dict[str, list[float]]:
    """Task → the means of these methods over the splits that all of them have."""
    means = {}
    for task, by_method in found.items():
        splits = [set(by_method.get(method, ())) for method in methods]
        if common := sorted(set.intersection(*splits) if splits else ()):
            means[task] = [float(np.mean([by_method[m][k] for k in common])) for m in methods]
    return means


def ranked(found: Values) -> list[str]:
    """The methods that take part in the ranks and have a value somewhere."""
    there = {method for by_method in found.values() for method in by_method}
    return [name for name, method in METHODS.items() if method.ranked and name in there]


def mean_ranks(found: Values, methods: Sequence[str]) -> tuple[dict[str, float], int]:
    """The mean rank of each method, 1 is best, over the tasks that all have; and how many.

    Methods that are equal on a task share the mean of their ranks.
    """
    means = paired(found, methods)
    if not means:
        return {}, 0
    ranks = rankdata(list(means.values()), axis=1).mean(axis=0)
    return dict(zip(methods, map(float, ranks), strict=True)), len(means)


def critical_difference(methods: int, tasks: int, alpha: float = 0.05) -> float:
    """Nemenyi: mean ranks that differ by less are not told apart by so many tasks."""
    q = studentized_range.ppf(1 - alpha, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * tasks)))


@dataclass(frozen=True)
class Verdict:
    """A goal, what was found, and whether that meets it; None where there is nothing to judge."""

    goal: str
    found: str = "–"
    met: bool | None = None
    tasks: tuple[str, ...] = ()  # those that speak against it


def verdicts(cells: Sequence[Cell], half: str) -> list[Verdict]:
    """Our goals, judged on one half of the tasks."""
    labels, targets = (select(cells, half, regression) for regression in (False, True))
    errors = values(labels)
    return [
        _rank(
            "mean rank of `pistol` better than that of `svc-grid`, these two alone",
            errors,
            two=True,
        ),
        _rank("the same among all ranked methods", errors),
        *(_worse(kind, points, errors) for kind, points in ALLOWED.items()),
        _time(labels),
        *_regression(values(targets)),
        _not_worse("log-loss", values(labels, "log_loss")),
        _not_worse("calibration error", values(labels, "ece")),
        _units(errors),
    ]


def _rank(goal: str, errors: Values, two: bool = False) -> Verdict:
    ranks, n = mean_ranks(errors, ["pistol", "svc-grid"] if two else ranked(errors))
    if not {"pistol", "svc-grid"} <= ranks.keys():
        return Verdict(goal)
    ours, theirs = ranks["pistol"], ranks["svc-grid"]
    return Verdict(goal, f"{ours:.2f} against {theirs:.2f}, {n} tasks", ours < theirs)


def _worse(kind: str, points: float, errors: Values) -> Verdict:
    goal = f"never more than {points:.1f} points behind `svc-grid`, {kind} tasks"
    means = paired(errors, ["pistol", "svc-grid"])
    gaps = {task: 100 * (a - b) for task, (a, b) in means.items() if TASKS[task].kind == kind}
    if not gaps:
        return Verdict(goal)
    bad = sorted((t for t in gaps if gaps[t] > points + 1e-9), key=lambda t: -gaps[t])
    shown = tuple(f"{task} {gaps[task]:+.1f}" for task in bad)
    found = f"at worst {max(gaps.values()):+.1f}; {len(bad)} of {len(gaps)} tasks"
    return Verdict(goal, found, not bad, shown)


def _time(labels: Sequence[Cell]) -> Verdict:
    goal = "at most a fiftieth of `svc-grid`'s time to fit, all tasks together"
    means = paired(values(labels, "fit_seconds"), ["pistol", "svc-grid"])
    if not means:
        return Verdict(goal)
    ours, theirs = np.sum(list(means.values()), axis=0)
    return Verdict(goal, f"1/{theirs / ours:,.0f}", bool(50 * ours <= theirs))


def _regression(found: Values) -> list[Verdict]:
    goals = (
        f"mean over tasks of our MAE over that of `svr-grid` at most {RATIO}",
        "our MAE not above that of `svr-grid` on at least half of the tasks",
    )
    means = paired(found, ["pistol", "svr-grid"])
    ratios = {task: a / b for task, (a, b) in means.items() if b > 0}
    if not ratios:
        return [Verdict(goal) for goal in goals]
    mean, better = float(np.mean(list(ratios.values()))), sum(r <= 1 for r in ratios.values())
    bad = sorted((t for t in ratios if ratios[t] > RATIO), key=lambda t: -ratios[t])
    shown = tuple(f"{task} {ratios[task]:.2f}" for task in bad)
    return [
        Verdict(goals[0], f"{mean:.3f}", mean <= RATIO, shown),
        Verdict(goals[1], f"{better} of {len(ratios)}", 2 * better >= len(ratios)),
    ]


def _not_worse(name: str, found: Values) -> Verdict:
    goal = f"mean {name} not above that of `svc-calibrated`"
    means = paired(found, ["pistol", "svc-calibrated"])
    if not means:
        return Verdict(goal)
    ours, theirs = np.mean(list(means.values()), axis=0)
    return Verdict(
        goal, f"{ours:.4f} against {theirs:.4f}, {len(means)} tasks", bool(ours <= theirs)
    )


def _units(errors: Values) -> Verdict:
    goal = "error changes by at most 0.1 points with the units of the columns, on every task"
    means = paired(errors, ["pistol", "pistol-units"])
    changes = {task: abs(a - b) for task, (a, b) in means.items()}
    if not changes:
        return Verdict(goal)
    most, mean = max(changes.values()), float(np.mean(list(changes.values())))
    bad = sorted((t for t in changes if changes[t] > 0.001 + 1e-12), key=lambda t: -changes[t])
    shown = tuple(f"{task} {100 * changes[task]:.1f}" for task in bad)
    found = f"at most {100 * most:.2f}, mean {100 * mean:.2f}"
    return Verdict(goal, found, not bad, shown)


def totals(cells: Sequence[Cell], methods: Sequence[str]) -> Mapping[str, tuple[float, float]]:
    """Method → seconds to fit and to predict, summed over tasks that all methods have."""
    fit, predict = (
        paired(values(cells, what), methods) for what in ("fit_seconds", "predict_seconds")
    )
    if not fit:
        return {}
    sums = np.sum(list(fit.values()), axis=0), np.sum(list(predict.values()), axis=0)
    return {m: (float(a), float(b)) for m, a, b in zip(methods, *sums, strict=True)}
