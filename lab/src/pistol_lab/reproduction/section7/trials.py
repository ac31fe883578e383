"""The experiments of section 7 and Appendix C: PiSTOL beside a cross-validated SVM on growing rows.

Cross-validation is what takes the time. Above `SEARCHED` rows an SVM's C is searched in the first
shuffle, whose times are compared, and taken from there in the others; above `FOLDED` rows only the
first of the folds is run, and counts five times. The points in question are marked.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from pistol import LinearPistolClassifier, PistolClassifier

from ...protocol import Found, Job
from .datasets import Problem, load, shuffled

PANELS = ("a9a", "SensIT Vehicle", "news20.binary")
FOLDS = 5
SEARCHED, FOLDED = 1_000, 5_000
SHUFFLES = 5
ROWS = {
    "a9a": (100, 300, 1_000, 3_000, 10_000, 32_561),
    "SensIT Vehicle": (100, 300, 1_000, 3_000, 10_000, 30_000, 58_000),
    "news20.binary": (100, 300, 1_000, 3_000, 9_996),
}
QUICK_ROWS, QUICK_SHUFFLES = (100, 300, 900), 2
CACHE = 1_000  # MB of kernel values that an SVM may keep
WARM = 1_000  # rows that are learned before a time is taken

PAPER: dict[str, Any] = {
    "loss": "smooth_hinge", "a": 0.25, "b": "horizon", "average": "uniform", "passes": 1,
    "orders": None,
}  # fmt: skip
PISTOL, DEFAULTS, COORDINATES = "PiSTOL", "our defaults", "one learner a coordinate"
WEIGHTED, LAST = "PiSTOL, weight t", "PiSTOL, last f_t"
READINGS = {PISTOL: "uniform", WEIGHTED: "linear", LAST: None}  # of the same f_1, …, f_T
Method = Callable[[float, int], Any]  # of γ and a seed


def _kernel(average: str | None) -> Method:
    return lambda gamma, seed: PistolClassifier(
        kernel="rbf", gamma=gamma, **PAPER | {"average": average}
    )


def _vector(average: str | None) -> Method:
    return lambda gamma, seed: LinearPistolClassifier(
        per_coordinate=False, fit_intercept=False, **PAPER | {"average": average}
    )


GAUSSIAN: dict[str, Method] = {
    **{name: _kernel(average) for name, average in READINGS.items()},
    DEFAULTS: lambda gamma, seed: PistolClassifier(random_state=seed),
}
LINEAR: dict[str, Method] = {
    **{name: _vector(average) for name, average in READINGS.items()},
    DEFAULTS: lambda gamma, seed: LinearPistolClassifier(random_state=seed),
    COORDINATES: lambda gamma, seed: LinearPistolClassifier(
        fit_intercept=False, **PAPER | {"b": "anytime", "a": 1.0}
    ),
}


def methods(problem: Problem) -> dict[str, Method]:
    """Our learners for a problem, by name."""
    return LINEAR if problem.gamma is None else GAUSSIAN


def rows_of(problem: Problem, quick: bool) -> tuple[int, ...]:
    """Numbers of training rows; the last is all there are, or the paper's limit."""
    most = shuffled(problem, 0).X.shape[0]
    return tuple(n for n in (QUICK_ROWS if quick else ROWS[problem.name]) if n <= most)


def shuffles(quick: bool) -> range:
    """The shuffles of a run."""
    return range(QUICK_SHUFFLES if quick else SHUFFLES)


def searched(rows: int, shuffle: int) -> int:
    """The shuffle in which C is searched for this one."""
    return shuffle if rows <= SEARCHED else 0


def folds(rows: int) -> int:
    """How many of the folds are run with so many rows."""
    return FOLDS if rows <= FOLDED else 1


def trial_name(problem: Problem, method: str, rows: int, shuffle: int) -> str:
    """The name of a trial of ours, and of the SVM's last fit."""
    return f"figure 3/{problem.source}/{method}/rows {rows}/shuffle {shuffle}"


def search_name(problem: Problem, rows: int, shuffle: int, C: float) -> str:
    """The name of the cross-validation of one C."""
    part = "" if folds(rows) == FOLDS else f"/fold 1 of {FOLDS}"
    return f"{trial_name(problem, 'SVM search', rows, shuffle)}/C {C:g}{part}"


def jobs(quick: bool) -> list[Job]:
    """All trials of ours, and the searches for C, the longest first."""
    ours: list[Job] = []
    searches: dict[str, Job] = {}
    for name in PANELS:
        problem = load(name)
        for rows in rows_of(problem, quick):
            for shuffle in shuffles(quick):
                for method in methods(problem):
                    label = trial_name(problem, method, rows, shuffle)
                    ours.append(Job(label, trial, (name, method, rows, shuffle), alone=True))
                there = searched(rows, shuffle)
                for C in problem.C:
                    label = search_name(problem, rows, there, C)
                    searches[label] = Job(label, search, (name, rows, there, C))
    return ours + sorted(searches.values(), key=lambda job: -job.args[1])


def fits(found: Found, quick: bool) -> list[Job]:
    """The SVM with the C that each search has found, on all rows; the longest first."""
    last = []
    for name in PANELS:
        problem = load(name)
        for rows in rows_of(problem, quick):
            for shuffle in shuffles(quick):
                C = best(found, problem, rows, searched(rows, shuffle))
                label = trial_name(problem, "SVM", rows, shuffle)
                last.append(Job(label, fit, (name, rows, shuffle, C)))
    return sorted(last, key=lambda job: -job.args[1])


def notes(quick: bool) -> list[str]:
    """What a reader has to know of the data and of the searches."""
    stand_ins = [problem.stand_in for problem in (load(name) for name in PANELS)]
    capped = (
        f"Above {SEARCHED:,} rows the SVM's C was searched in the first shuffle only, and taken from "
        f"there in the others. Above {FOLDED:,} rows one of {FOLDS} folds was run for every C; the "
        f"time of a search is {FOLDS} times that."
    )
    return [*filter(None, stand_ins), *([] if quick else [capped])]


def best(found: Found, problem: Problem, rows: int, shuffle: int) -> float:
    """The C with the least error over the folds; the smallest of several."""
    errors = {C: found[search_name(problem, rows, shuffle, C)]["error"] for C in problem.C}
    return min(errors, key=lambda C: (errors[C], C))


def trial(name: str, method: str, rows: int, shuffle: int) -> dict[str, Any]:
    """Train one of our learners and test it."""
    problem = shuffled(load(name), shuffle)
    X, y = problem.X[:rows], problem.y[:rows]
    model = methods(problem)[method](problem.gamma or 1.0, shuffle)
    clone(model).fit(X[:WARM], y[:WARM])
    seconds, cpu = _timed(lambda: model.fit(X, y))
    return {"error": _error(model, problem.X_test, problem.y_test), "seconds": seconds, "cpu": cpu}


def search(name: str, rows: int, shuffle: int, C: float) -> dict[str, Any]:
    """Cross-validate one C of an SVM; the time is that of all folds."""
    problem = shuffled(load(name), shuffle)
    X, y = problem.X[:rows], problem.y[:rows]
    errors, cpu = [], 0.0
    for train, test in islice(StratifiedKFold(FOLDS).split(X, y), folds(rows)):
        start = process_time()
        model = _svm(problem, C).fit(X[train], y[train])
        errors.append(_error(model, X[test], y[test]))
        cpu += process_time() - start
    return {"error": float(np.mean(errors)), "cpu": cpu * FOLDS / folds(rows)}


def fit(name: str, rows: int, shuffle: int, C: float) -> dict[str, Any]:
    """Train an SVM with this C and test it."""
    problem = shuffled(load(name), shuffle)
    model = _svm(problem, C)
    cpu = _timed(lambda: model.fit(problem.X[:rows], problem.y[:rows]))[1]
    return {"error": _error(model, problem.X_test, problem.y_test), "cpu": cpu, "C": C}


def _svm(problem: Problem, C: float) -> SVC:
    if problem.gamma is None:
        return SVC(C=C, kernel="linear", cache_size=CACHE)
    return SVC(C=C, gamma=problem.gamma, cache_size=CACHE)


def _error(model: Any, X: Any, y: Any) -> float:
    return float(np.mean(model.predict(X) != y))


def _timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds on the clock, and of all cores together."""
    start, cpu = perf_counter(), process_time()
    work()
    return perf_counter() - start, process_time() - cpu
