"""What the cells say: means over splits, ranks and ratios over tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata, studentized_range

from .cells import Cell
from .peers import METHODS
from .tasks import TASKS

Values = dict[str, dict[str, dict[int, float]]]  # task → method → split → value


def values(cells: Iterable[Cell], what: str = "score") -> Values:
    """One value of each cell that has it, by task, method and split.

    A time that was taken while other cells ran beside it is no value.
    """
    found: Values = {}
    for cell in cells:
        value = getattr(cell, what)
        if cell.contended and what.endswith("seconds"):
            continue
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


def paired(
    found: Values, methods: Sequence[str], over: Callable[[list[float]], Any] = np.mean
) -> dict[str, list[float]]:
    """Task → the means of these methods, or what `over` makes of the splits that all of them have."""
    means = {}
    for task, by_method in found.items():
        splits = [set(by_method.get(method, ())) for method in methods]
        if common := sorted(set.intersection(*splits) if splits else ()):
            means[task] = [float(over([by_method[m][k] for k in common])) for m in methods]
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


def ratios(cells: Sequence[Cell], method: str, peer: str) -> dict[str, float]:
    """Task → the error of a method over a peer's, from their means over the splits.

    Error rates get half an error more per test set, so that a ratio to no error at all is finite.
    """
    more = {c.task: 0.0 if TASKS[c.task].kind == "regression" else 0.5 / c.tested for c in cells}
    means = paired(values(cells), [method, peer])
    found = {task: (a + more[task], b + more[task]) for task, (a, b) in means.items()}
    return {task: a / b for task, (a, b) in found.items() if a > 0 and b > 0}


def least(cells: Sequence[Cell], peer: str) -> dict[str, float]:
    """Task → the least of all methods' errors over a peer's: nobody can know beforehand which it is."""
    found = [ratios(cells, method, peer) for method in {cell.method for cell in cells}]
    tasks = {task for each in found for task in each}
    return {task: min(each[task] for each in found if task in each) for task in sorted(tasks)}


def geometric(found: Iterable[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(list(found)))))


def totals(
    cells: Sequence[Cell], methods: Sequence[str], over: Callable[[list[float]], Any] = np.mean
) -> Mapping[str, tuple[float, float]]:
    """Method → seconds to fit and to predict, summed over tasks that all methods have."""
    fit, predict = (
        paired(values(cells, what), methods, over) for what in ("fit_seconds", "predict_seconds")
    )
    if not fit:
        return {}
    sums = np.sum(list(fit.values()), axis=0), np.sum(list(predict.values()), axis=0)
    return {m: (float(a), float(b)) for m, a, b in zip(methods, *sums, strict=True)}
