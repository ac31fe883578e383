"""Kernel estimators with nothing set: up to a million rows, and many classes beside a grid search."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pistol import PistolClassifier

from ..measure import best_of, error, exponent, peak_memory
from .quality.peers import CACHE
from .quality.search import FOLDS, GAMMA, C, scale
from .quality.sources import keel
from .results import Line, Result, Size
from .rows import Split, blobs, quadratic_split

MINUTES, EXPONENT, MEMORY = 10.0, 1.15, 3.0  # the goals for a million rows
ASKED, SECONDS = 10_000, 6.5 / 20  # rows to predict after 100,000 × 54 were learned
FASTER = 15.0  # than a grid search, with 26 classes


def defaults(size: Size) -> Result:
    """The defaults on up to a million rows × 28: time, memory, and predictions."""
    n = size.defaults_rows
    data = quadratic_split(n, 28, size, flipped=0.2)
    _fitted(data, min(n, 5_000))  # warm
    lines, rows, times = [], [n // 50, n // 10, n // 2, n], []
    for some in rows:
        with peak_memory() as peak:
            seconds, model = best_of(partial(_fitted, data, some), 1)
        share = peak["bytes"] / data.X[:some].nbytes
        times.append(seconds)
        wrong = error(model, data.X_test, data.y_test)
        lines.append(Line(f"{some:,} rows: peak memory {share:.1f} × the rows", seconds, wrong))
    grows, (asked, predicted) = exponent(rows[:-1], times[:-1]), _predicted(n // 10, size)
    lines.append(Line(f"{asked:,} predictions after {n // 10:,} rows × 54", predicted))
    return Result(
        ours="PistolClassifier()",
        peer=f"{MINUTES:.0f} minutes",
        rows=n,
        features=28,
        our_seconds=times[-1],
        peer_seconds=60.0 * MINUTES,
        our_error=wrong,
        target=1.0,
        goal=f"{MINUTES:.0f} minutes; time grows like rows to the power of at most {EXPONENT}; peak "
        f"memory below {MEMORY:.0f} times the rows; {ASKED:,} predictions in {SECONDS:.2f} s",
        also=grows <= EXPONENT and share < MEMORY and predicted <= SECONDS,
        note="Synthetic float32 rows; a fifth of the labels flipped, in the test set too. Run once. "
        f"From {rows[0]:,} to {rows[-2]:,} rows the time grows like rows to the power {grows:.2f}.",
        lines=tuple(lines),
        extra={"rows": rows, "seconds": times, "exponent": grows},
    )


def _fitted(data: Split, n: int) -> Any:
    return PistolClassifier(random_state=0).fit(data.X[:n], data.y[:n])


def _predicted(n: int, size: Size) -> tuple[int, float]:
    """How many predictions, and their seconds, after so many rows × 54."""
    data = quadratic_split(n, 54, size, flipped=0.2)
    model, asked = _fitted(data, n), data.X_test[:ASKED]
    seconds, _ = best_of(partial(model.predict, asked), size.repeats)
    return len(asked), seconds


def svm_letter(size: Size) -> Result:
    """Letters in 26 classes, against SVC with a grid over C × gamma on all cores."""
    data = _letters(size)
    ours, each = PistolClassifier(random_state=0), 4 if size.toy else 1
    ours.fit(data.X[:100], data.y[:100])
    our_seconds, _ = best_of(partial(ours.fit, data.X, data.y), size.repeats)
    grid = {
        "svc__C": C[::each],
        "svc__gamma": [factor * scale(data.X) for factor in GAMMA][::each],
    }
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    model = make_pipeline(StandardScaler(), SVC(cache_size=CACHE))
    theirs = GridSearchCV(model, grid, cv=folds, n_jobs=-1)
    their_seconds, _ = best_of(partial(theirs.fit, data.X, data.y), 1)
    return Result(
        ours="PistolClassifier()",
        peer=f"SVC, {len(C)} C × {len(GAMMA)} gamma, {FOLDS} folds",
        rows=len(data.y),
        features=data.X.shape[1],
        our_seconds=our_seconds,
        peer_seconds=their_seconds,
        our_error=error(ours, data.X_test, data.y_test),
        peer_error=error(theirs, data.X_test, data.y_test),
        target=FASTER,
        goal=f"at least {FASTER:.0f} times faster",
        note=f"The letter table of KEEL. {data.note}".strip(),
    )


def _letters(size: Size) -> Split:
    n = size.letter_rows
    if size.toy:
        X, y = blobs(n + size.test_rows, 16, 4)
        return Split(X[:n], y[:n], X[n:], y[n:], "Synthetic rows in place of it.")
    X, y, *_ = keel("letter")()
    order = np.random.default_rng(0).permutation(len(y))
    return Split(X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]])
