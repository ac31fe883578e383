"""The kernel peer: what SVC with a cross-validated grid over C would take and reach."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from joblib import effective_n_jobs
from sklearn.svm import SVC

from ..measure import error, exponent
from .rows import Split

FOLDS = 5


@dataclass(frozen=True)
class Search:
    """A grid search that was timed by single fits."""

    seconds: float
    parallel: float  # seconds with the fits shared out to all cores without loss
    error: float
    timed: dict[int, float]  # rows → seconds of one fit
    exponent: float  # fitted to the last of these
    note: str


def svc_search(data: Split, gamma: float, C: float, points: int, most: int, cap: float) -> Search:
    """Time fits at one C in the middle of a grid, and from these the search over all its points.

    Fits grow until one takes all rows of a fold and one takes all rows. Where that would be more
    than `most` rows or is expected to take longer than `cap`, the rest is extrapolated.
    """
    n = data.X.shape[0]
    fold = n * (FOLDS - 1) // FOLDS
    model, timed = SVC(C=C, gamma=gamma, cache_size=1000), dict[int, float]()
    whole = (fold // 8, fold // 4, fold // 2, fold, n)
    ladder = whole if most >= n else (most // 4, most // 2, most)
    model.fit(data.X[:50], data.y[:50])  # warm
    for rows in ladder:
        if len(timed) > 1 and expected(timed, rows) > cap:
            break
        start = perf_counter()
        model.fit(data.X[:rows], data.y[:rows])
        timed[rows] = perf_counter() - start
    last, fits = max(timed), points * FOLDS
    one, refit = expected(timed, fold), expected(timed, n)
    note = f"SVC: one fit at C = {C:g}, times {fits}, plus a refit; scoring the folds not counted."
    if last < n:
        note += f" Extrapolated from {last:,} rows with fitted exponent {fitted(timed):.2f}."
    return Search(
        seconds=fits * one + refit,
        parallel=fits * one / effective_n_jobs(-1) + refit,
        error=error(model, data.X_test, data.y_test),
        timed=timed,
        exponent=fitted(timed),
        note=f"{note} Its test error is that of the fit on {last:,} rows at this C.",
    )


def fitted(timed: dict[int, float]) -> float:
    """The exponent with which seconds grew with rows over the last three fits."""
    return exponent(list(timed)[-3:], list(timed.values())[-3:])


def expected(timed: dict[int, float], rows: int) -> float:
    """Seconds of a fit on so many rows: measured, or by the fitted exponent."""
    last = max(timed)
    return timed.get(rows) or timed[last] * (rows / last) ** fitted(timed)
