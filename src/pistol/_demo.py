"""The first thing a new user runs: learn the handwritten digits that ship with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC

from . import PistolClassifier

FORMATS = sorted(f".{name}" for name in FigureCanvasBase.get_supported_filetypes())
C_GRID = [0.1, 1, 10, 100, 1000]
WIDTHS = [1 / 16, 1 / 4, 1, 4, 16]  # of γ, times 1/(features × variance)


class Watch:
    """A scikit-learn callback: a progress bar that shows the online error while learning."""

    def __init__(self, console: Console, rounds: int) -> None:
        self.rounds, self.curve = rounds, [(0, 1.0)]
        self.bar = Progress(
            TextColumn("learning"),
            BarColumn(),
            TextColumn(
                "{task.completed:.0f}/{task.total:.0f} rows, online error {task.fields[error]}"
            ),
            TimeElapsedColumn(),
            console=console,
        )

    def setup(self, estimator: Any, context: Any) -> None:
        """Show the bar."""
        self.task = self.bar.add_task("", total=self.rounds, error="-")
        self.bar.start()

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing: the bar moves when rows are done."""

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, fitted_estimator: Any = None
    ) -> None:
        """Move the bar to the rounds learned so far and note the error."""
        rounds, error = fitted_estimator.t_, fitted_estimator.online_error_
        self.curve.append((int(rounds), error))
        self.bar.update(self.task, completed=rounds, error=f"{error:.3f}")

    def teardown(self, estimator: Any, context: Any) -> None:
        """Leave the bar where it ended."""
        self.bar.stop()


def run(picture: Path, console: Console) -> dict[str, float]:
    """Train both, print a table, write the picture; returns the figures that were printed."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    console.print(f"Handwritten digits: {len(X)} rows to learn from, {len(X_test)} to test on.")

    start = perf_counter()
    PistolClassifier().fit(X[:20], y[:20])
    warm_up = perf_counter() - start
    console.print(f"Loading the compiled loops (compiled on the first run): {warm_up:.1f} s")

    watch = Watch(console, len(X))
    PistolClassifier(orders=None).set_callbacks(watch).fit(X, y)  # as a stream, to look on
    model = PistolClassifier(random_state=0)
    seconds, error = _timed(model, X, y, X_test, y_test)
    with console.status("An SVM with 5-fold cross-validation over 25 points of C and gamma …"):
        gammas = [width / (X.shape[1] * X.var()) for width in WIDTHS]
        svm = GridSearchCV(SVC(), {"C": C_GRID, "gamma": gammas}, cv=5)
        svm_seconds, svm_error = _timed(svm, X, y, X_test, y_test)

    table = Table("", "nothing set: PistolClassifier()", "SVC, C and gamma by search")
    table.add_row("training time", f"{seconds:.3f} s", f"{svm_seconds:.3f} s")
    table.add_row("test error", f"{error:.1%}", f"{svm_error:.1%}")
    console.print(table)
    ratio = svm_seconds / seconds
    console.print(f"No search, no scaling: {ratio:.0f} times faster than the tuned SVM.")
    _draw(picture, watch.curve, error, svm_error, seconds, svm_seconds)
    console.print(f"Picture: {picture}")
    return {"error": error, "svm_error": svm_error, "ratio": ratio}


def _timed(model: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[float, float]:
    start = perf_counter()
    model.fit(X, y)
    return perf_counter() - start, 1.0 - model.score(X_test, y_test)


def _draw(
    picture: Path,
    curve: list[tuple[int, float]],
    error: float,
    svm_error: float,
    seconds: float,
    svm_seconds: float,
) -> None:
    """Left: the online error falls while learning. Right: what the two took."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    blue, orange = "#1f6fb4", "#d9762b"

    rounds, online = np.array(curve[1:]).T
    left.plot(
        rounds, online, "o-", color=blue, label="online error (each row before it is learned)"
    )
    left.axhline(error, color=blue, linestyle="--", label=f"test error of pistol, {error:.1%}")
    left.axhline(svm_error, color=orange, linestyle=":", label=f"of the tuned SVM, {svm_error:.1%}")
    left.set(xlabel="rows learned", ylabel="error", title="Digits as a stream, nothing set")
    left.set_ylim(0, None)
    left.legend(frameon=False, fontsize=9)

    bars = right.barh(["tuned SVM", "pistol"], [svm_seconds, seconds], color=[orange, blue])
    right.bar_label(bars, [f" {svm_seconds:.2g} s", f" {seconds:.2g} s"])
    right.set(xscale="log", xlabel="seconds to train", title="Training time")
    right.margins(x=0.25)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, dpi=150)
