"""Rows on a Dask cluster of one and two workers, beside plain estimators and other libraries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.linear_model import SGDClassifier

from pistol import LinearPistolClassifier, PistolClassifier

from ..measure import best_of
from ..protocol import SkipError, peer
from .results import Line, Result, Size

BLOCKS, TEST = 16, 20_000
FASTER, OVERHEAD, APART = 1.7, 1.3, 0.002  # the goals


def dask(size: Size) -> Result:
    """A Dask cluster of one and two workers beside one machine: time, error, bytes moved."""
    ours = peer("pistol.dask", "dask")
    makers = {
        "linear": (LinearPistolClassifier, ours.DaskLinearPistolClassifier, size.dask_rows),
        "kernel": (PistolClassifier, ours.DaskPistolClassifier, size.dask_kernel_rows),
    }
    found = {name: _measured(name, *maker, size) for name, maker in makers.items()}
    lines = [line for one in found.values() for line in one["lines"]]
    for name, run in {"LightGBM": _boosting, "dask-ml": _incremental}.items():
        try:
            lines += [] if size.toy else run(size)
        except SkipError as reason:
            lines.append(Line(f"{name} left out: {reason}"))
    kernel = found["kernel"]
    notes = [
        f"{name}: two workers {one['speedup']:.2f} times as fast as one; one worker "
        f"{one['overhead']:.2f} times the time of the plain estimator with one thread; error "
        f"{100 * one['error']:.2f} % against {100 * one['plain_error']:.2f} %"
        for name, one in found.items()
    ]
    good = all(one["error"] <= one["plain_error"] + APART for one in found.values())
    return Result(
        ours="DaskPistolClassifier, two workers",
        peer="DaskPistolClassifier, one worker",
        rows=size.dask_kernel_rows,
        features=20,
        our_seconds=kernel["seconds"][2],
        peer_seconds=kernel["seconds"][1],
        our_error=kernel["error"],
        peer_error=kernel["plain_error"],
        target=FASTER,
        goal=f"errors at most {100 * APART} points above those of one machine",
        also=good,
        note=". ".join(notes) + ".",
        lines=tuple(lines),
        extra={name: {k: v for k, v in one.items() if k != "lines"} for name, one in found.items()},
    )


def rows(n: int) -> tuple[Any, Any, Any, Any]:
    """Rows to learn from and to test on."""
    X, y = datasets.make_classification(
        n + TEST,
        n_features=20,
        n_informative=8,
        n_clusters_per_class=8,
        flip_y=0.02,
        random_state=0,
    )
    return X[:n], y[:n], X[n:], y[n:]


@contextmanager
def cluster(workers: int, size: Size, memory: str | None = "auto") -> Iterator[Any]:
    """A client of so many workers with one thread each; processes but in toys."""
    distributed = peer("distributed", "dask")
    options = {
        "n_workers": workers,
        "threads_per_worker": 1,
        "processes": not size.toy,
        "memory_limit": None if size.toy else memory,
    }
    with (
        distributed.LocalCluster(dashboard_address=None, **options) as here,
        distributed.Client(here) as client,
    ):
        yield client


def _blocks(X: Any, y: Any) -> tuple[Any, Any]:
    """X and y in the memory of the workers."""
    arrays, distributed = peer("dask.array", "dask"), peer("distributed", "dask")
    step = -(-len(y) // BLOCKS)
    found = arrays.from_array(X, chunks=(step, -1)), arrays.from_array(y, chunks=step)
    kept = [part.persist() for part in found]
    distributed.wait(kept)
    return kept[0], kept[1]


def _measured(name: str, plain: Any, spread: Any, n: int, size: Size) -> dict[str, Any]:
    """Times and errors of one estimator: plain, on one worker and on two."""
    X, y, X_test, y_test = rows(n)
    few = {} if name == "linear" else {"n_jobs": 1}

    def timed(fit: Any) -> tuple[float, float, Any]:
        """The least time, the mean error, and a model, of fits with several seeds."""
        found = [best_of(partial(fit, seed), 1) for seed in range(size.repeats)]
        errors = [1.0 - model.score(X_test, y_test) for _, model in found]
        return min(seconds for seconds, _ in found), float(np.mean(errors)), found[-1][1]

    plain_seconds, plain_error, _ = timed(lambda seed: plain(random_state=seed, **few).fit(X, y))
    lines = [Line(f"{name}, {n:,} rows, plain, one thread", plain_seconds, plain_error)]
    seconds, traffic = {}, {}
    for workers in (1, 2):
        with cluster(workers, size) as client:
            dX, dy = _blocks(X, y)
            some = slice(0, min(n, 5_000 if name == "kernel" else 31_000))
            client.run(_warm, plain, X[some], y[some])
            seconds[workers], error, model = timed(partial(fit_spread, spread, dX, dy))
        traffic[workers] = model.traffic
        lines.append(Line(f"{name}, {n:,} rows, workers: {workers}", seconds[workers], error))
    return {
        "lines": lines,
        "seconds": seconds,
        "error": error,
        "plain_error": plain_error,
        "speedup": seconds[1] / seconds[2],
        "overhead": seconds[1] / plain_seconds,
        "traffic": traffic,
        "rounds": model.passes_,
    }


class Local(NamedTuple):
    """A model brought to this process, and what its fit has moved."""

    score: Any
    traffic: dict[str, Any]
    passes_: int


def fit_spread(spread: Any, X: Any, y: Any, seed: int) -> Local:
    """Learn on the cluster."""
    model = spread(random_state=seed).fit(X, y)
    return Local(model.to_local().score, model.traffic_._asdict(), model.passes_)


def _warm(plain: Any, X: Any, y: Any) -> None:
    """Compile what a worker needs."""
    plain(random_state=0).fit(X, y).predict(X[:100])


def _incremental(size: Size) -> list[Line]:
    """dask-ml's Incremental around SGDClassifier on the rows of the linear estimator."""
    wrappers = peer("dask_ml.wrappers", "dask")
    X, y, X_test, y_test = rows(size.dask_rows)
    found = []
    for workers in (1, 2):
        with cluster(workers, size):
            dX, dy = _blocks(X, y)
            model = wrappers.Incremental(SGDClassifier(random_state=0), assume_equal_chunks=True)
            seconds, model = best_of(partial(model.fit, dX, dy, classes=[0, 1]), size.repeats)
        error = float(np.mean(model.estimator_.predict(X_test) != y_test))
        what = f"dask-ml Incremental(SGDClassifier()), {len(y):,} rows, workers: {workers}"
        found.append(Line(what, seconds, error))
    return found


def _boosting(size: Size) -> list[Line]:
    """LightGBM's estimator for Dask on the rows of the kernel estimator."""
    lightgbm = peer("lightgbm", "boosting")
    X, y, X_test, y_test = rows(size.dask_kernel_rows)
    found = []
    for workers in (1, 2):
        with cluster(workers, size):
            dX, dy = _blocks(X, y)
            seconds, model = best_of(
                partial(lightgbm.DaskLGBMClassifier(verbose=-1).fit, dX, dy), size.repeats
            )
        error = float(np.mean(model.to_local().predict(X_test) != y_test))
        found.append(
            Line(f"LightGBM for Dask, {len(y):,} rows, workers: {workers}", seconds, error)
        )
    return found
