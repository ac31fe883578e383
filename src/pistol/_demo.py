"""The first thing a new user runs: digits, learned with nothing set, beside methods of scikit-learn."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from . import PistolClassifier

FORMATS = sorted(f".{name}" for name in FigureCanvasBase.get_supported_filetypes())
C_GRID = [0.1, 1, 10, 100, 1000]
WIDTHS = [1 / 16, 1 / 4, 1, 4, 16]  # of γ, times 1/(features × variance)
ALPHAS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
OURS, THEIRS = "#1f6fb4", "#5b616b"


class Result(NamedTuple):
    """How a method did."""

    name: str
    chosen: str  # what was set or searched
    seconds: float
    wrong: int
    rows: int

    @property
    def error(self) -> float:
        """The share of test rows with the wrong label."""
        return self.wrong / self.rows


def methods(X: Any) -> list[tuple[str, str, Any]]:
    """Name, what is set or searched, and the estimator of each method, all on one core."""
    gammas = [width / (X.shape[1] * X.var()) for width in WIDTHS]
    scaled_sgd = make_pipeline(StandardScaler(), SGDClassifier(random_state=0))
    return [
        ("PistolClassifier", "nothing set", PistolClassifier(random_state=0, n_jobs=1)),
        ("HistGradientBoosting", "nothing set", HistGradientBoostingClassifier(random_state=0)),
        (
            "SGDClassifier",
            "scaler, grid of 6",
            GridSearchCV(scaled_sgd, {"sgdclassifier__alpha": ALPHAS}, cv=5),
        ),
        (
            "SVC",
            "grid of 5 × 5",
            GridSearchCV(SVC(), {"C": C_GRID, "gamma": gammas}, cv=5),
        ),
    ]


def run(picture: Path, console: Console) -> list[Result]:
    """Train all methods, print a table, write the picture; returns the figures that were printed."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    console.print(f"Handwritten digits: {len(X)} rows to learn from, {len(X_test)} to test on.")

    start = perf_counter()
    with console.status("Loading compiled code; the first run compiles it …"):
        PistolClassifier(n_jobs=1).fit(X, y).predict(X_test)  # the very code that is timed below
    console.print(
        f"Loading compiled code (the first run compiles it): {perf_counter() - start:.1f} s"
    )

    results = []
    with threadpool_limits(1):
        for name, chosen, model in methods(X):
            with console.status(f"{name} …"):
                start = perf_counter()
                model.fit(X, y)
                seconds = perf_counter() - start
            wrong = int((model.predict(X_test) != y_test).sum())
            results.append(Result(name, chosen, seconds, wrong, len(y_test)))

    console.print(_table(results))
    ratio = results[-1].seconds / results[0].seconds
    console.print(f"Nothing to search: {ratio:.0f} times faster than the SVM's grid search.")
    _draw(picture, results)
    console.print(f"Picture: {picture}")
    return results


def _table(results: list[Result]) -> Table:
    table = Table("method", "", "training time", "test error")
    for name, chosen, seconds, wrong, rows in results:
        share = f"{wrong / rows:.1%} ({wrong} of {rows})"
        table.add_row(name, chosen, f"{seconds:.2f} s", share)
    return table


def _draw(picture: Path, results: list[Result]) -> None:
    """Test error against training time, one labelled point per method."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    longest = max(result.seconds for result in results)
    for number, result in enumerate(results):
        color, weight = (THEIRS, "normal") if number else (OURS, "bold")
        at = result.seconds, 100 * result.error
        right = result.seconds > 0.6 * longest  # room for the label is on the left
        axes.plot(*at, "o", color=color, markersize=11)
        axes.annotate(
            f"{result.name}, {result.chosen}\n{result.error:.1%} in {result.seconds:.1f} s",
            at,
            (8 if right else -4, 10),
            textcoords="offset points",
            horizontalalignment="right" if right else "left",
            color=color,
            fontweight=weight,
        )
    axes.set(xlabel="seconds to train, on one core", ylabel="test error, %")
    axes.set_title("Handwritten digits: the nearer to the corner, the better", loc="left")
    axes.set_xlim(0, 1.1 * longest)
    axes.set_ylim(0, 130 * max(result.error for result in results))
    axes.grid(color="#e6e8eb")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, dpi=150)
