"""Cells: one method on one split of one task, and how each is computed and kept."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from ...protocol import Array, SkipError
from ...store import Store
from ..results import Size
from ..rows import Split
from .peers import METHODS, Case
from .tasks import Task

BINS = 15
PREFIX = "quality/"  # of the names of jobs
DRAWS = 50  # of labels from probabilities
WARM = 500  # rows that a method of ours learns before its first time is taken
Key = tuple[str, int, str]
NOT_FINITE = "its error, or its log-loss, is not a finite number"
_warm: set[tuple[str, str, type]] = set()


@dataclass(frozen=True)
class Cell:
    """What one method reached on one split of one task."""

    task: str
    split: int
    method: str
    rows: int  # learned from
    tested: int
    features: int
    score: float | None = None  # error rate, or mean absolute error
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    log_loss: float | None = None
    ece: float | None = None
    ece_drawn: float | None = None  # the same for labels drawn from the probabilities
    searched: int | None = None  # rows that a grid was searched on
    params: dict[str, Any] = field(default_factory=dict)  # what a grid found
    failed: str = ""  # what went wrong
    contended: bool = False  # other cells ran beside it, so its times are no measurement

    @property
    def key(self) -> Key:
        """What a cell is known by."""
        return self.task, self.split, self.method

    @property
    def seconds(self) -> float:
        """To learn and to predict."""
        return (self.fit_seconds or 0.0) + (self.predict_seconds or 0.0)


def job_name(task: str, split: int, method: str) -> str:
    """The name of the job that computes a cell."""
    return f"{PREFIX}{task}/split {split}/{method}"


def calibration_error(y: Array, P: Array, classes: Array) -> float:
    """Expected calibration error: how far confidence and accuracy are apart, weighted over bins.

    The confidence is the probability of the likeliest class; 15 bins are equally wide.
    """
    return _gap(P.max(axis=1), classes[P.argmax(axis=1)] == y)


def drawn_calibration_error(P: Array) -> float:
    """The mean calibration error of labels that are drawn from the probabilities themselves.

    It is above zero, and the more so the fewer rows there are.
    """
    confidence, rng = P.max(axis=1), np.random.default_rng(0)
    return float(np.mean([_gap(confidence, rng.random(len(P)) < confidence) for _ in range(DRAWS)]))


def _gap(confidence: Array, right: Array) -> float:
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, confidence - right, BINS)
    return float(np.abs(gaps).sum() / len(right))


def read(store: Store) -> dict[Key, Cell]:
    """The cells of a store."""
    cells = [Cell(**found) for name, found in store.found.items() if name.startswith(PREFIX)]
    return {cell.key: cell for cell in cells}


def fresh(cell: Cell, task: Task, size: Size) -> bool:
    """Whether a cell did not fail and belongs to this size."""
    if cell.failed or cell.rows != task.rows:
        return False
    return cell.searched in (None, min(task.rows, size.quality_search))


def compute(
    task: Task, k: int, name: str, data: Split, size: Size, found: Mapping[str, Any]
) -> Cell:
    """Run one cell; a method that fails leaves a cell that says so."""
    cell = Cell(task.name, k, name, task.rows, len(data.y_test), data.X.shape[1])
    build = METHODS[name].build(task.kind)
    assert build is not None, f"{name} is not for {task.kind}"
    case = Case(task, data.X, k, size.quality_search, found, size.toy)
    ours = METHODS[name].ours
    with warnings.catch_warnings(), nullcontext() if ours else threadpool_limits(1):
        warnings.simplefilter("ignore")  # a solver that did not converge is one more result
        try:
            mark = (name, task.kind, type(data.X))
            if ours and mark not in _warm:  # compilation is not counted
                _warm.add(mark)
                build(case).fit(data.X[:WARM], data.y[:WARM]).predict(data.X_test[:WARM])
            done = replace(cell, **_measured(build(case), data, task.kind == "regression"))
            numbers = [x for x in (done.score, done.log_loss, done.ece) if x is not None]
            return done if np.isfinite(numbers).all() else replace(cell, failed=NOT_FINITE)
        except SkipError:
            raise
        except Exception as problem:
            return replace(cell, failed=f"{type(problem).__name__}: {problem}"[:300])


def _measured(model: Any, data: Split, regression: bool) -> dict[str, Any]:
    """Learn, predict, and what came out of it."""
    start = perf_counter()
    model.fit(data.X, data.y)
    fitted = perf_counter()
    predicted = model.predict(data.X_test)
    done = perf_counter()
    wrong = predicted - data.y_test if regression else predicted != data.y_test
    measured = {
        "score": float(np.abs(wrong).mean()),
        "fit_seconds": getattr(model, "fit_seconds_", fitted - start),
        "predict_seconds": getattr(model, "predict_seconds_", done - fitted),
        "searched": getattr(model, "searched_", None),
        "params": getattr(model, "best_params_", {}),
    }
    if not regression and hasattr(model, "predict_proba"):
        P = model.predict_proba(data.X_test)
        measured["log_loss"] = float(log_loss(data.y_test, P, labels=model.classes_))
        measured["ece"] = calibration_error(data.y_test, P, model.classes_)
        measured["ece_drawn"] = drawn_calibration_error(P)
    return measured
