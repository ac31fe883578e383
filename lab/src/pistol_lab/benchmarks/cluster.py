"""Rows on a Dask cluster of one and two workers, beside plain estimators and other libraries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.linear_model import SGDClassifier

from pistol import LinearPistolClassifier, PistolClassifier

from ..measure import best_of
from ..protocol import SkipError, peer
from .results import Line, Result, Size

BLOCKS = 16
FASTER, OVERHEAD, APART = 1.7, 1.3, 0.002  # the goals


def dask_linear(size: Size) -> Result:
    """Linear models on a Dask cluster of one and two workers beside one machine, and dask-ml's."""
    spread = peer("pistol.dask", "dask").DaskLinearPistolClassifier
    found = _measured(LinearPistolClassifier, {}, spread, size.dask_rows, 31_000, size)
    return _result(found, "dask-ml Incremental(SGDClassifier())", _incremental, size)


def dask_kernel(size: Size) -> Result:
    """Kernels on a Dask cluster of one and two workers beside one machine, and LightGBM's estimator."""
    spread = peer("pistol.dask", "dask").DaskPistolClassifier
    found = _measured(PistolClassifier, {"n_jobs": 1}, spread, size.dask_kernel_rows, 5_000, size)
    return _result(found, "LightGBM for Dask", _boosting, size)


def _result(found: dict[str, Any], name: str, other: Any, size: Size) -> Result:
    """What was found, with another library on the same rows."""
    lines, n = found.pop("lines"), found["rows"]
    try:
        lines += [] if size.toy else _other(name, other(), n, size)
    except SkipError as reason:
        lines.append(Line(f"{name} left out: {reason}"))
    one, two = found["seconds"][1], found["seconds"][2]
    return Result(
        ours=f"{found['name']}, two workers",
        peer=f"{found['name']}, one worker",
        rows=n,
        features=20,
        our_seconds=two,
        peer_seconds=one,
        our_error=found["error"],
        peer_error=found["plain_error"],
        target=FASTER,
        goal=f"two workers {FASTER} times as fast as one, an error at most {100 * APART} points above "
        f"that of one machine; one worker at most {OVERHEAD} times the time of the plain estimator",
        also=found["error"] <= found["plain_error"] + APART and found["overhead"] <= OVERHEAD,
        note=f"One worker takes {found['overhead']:.2f} times the time of the plain estimator with one "
        f"thread. Chosen: {found['chosen']} on the cluster, {found['plain_chosen']} there.",
        lines=tuple(lines),
        extra=found,
    )


def rows(n: int, tested: int) -> tuple[Any, Any, Any, Any]:
    """Rows to learn from and to test on."""
    X, y = datasets.make_classification(
        n + tested,
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


def _measured(
    plain: Any, options: dict[str, Any], spread: Any, n: int, some: int, size: Size
) -> dict[str, Any]:
    """Times and errors of one estimator: plain, on one worker and on two; `some` rows warm it up."""
    X, y, X_test, y_test = rows(n, size.test_rows)

    def timed(fit: Any) -> tuple[float, float, Sequence[Any]]:
        """The mean time, the mean error, and the models, of fits with several seeds.

        Other seeds choose other kernels, so the least time would be that of the simplest choice.
        """
        found = [best_of(partial(fit, seed), 1) for seed in range(size.repeats)]
        errors = [1.0 - local(model).score(X_test, y_test) for _, model in found]
        seconds, models = zip(*found)
        return float(np.mean(seconds)), float(np.mean(errors)), models

    _warm(plain, X[:some], y[:some])
    plain_seconds, plain_error, models = timed(
        lambda seed: plain(random_state=seed, **options).fit(X, y)
    )
    plain_chosen = _chosen(models)
    lines = [Line("plain, one thread", plain_seconds, plain_error)]
    seconds, traffic = {}, {}
    for workers in (1, 2):
        with cluster(workers, size) as client:
            dX, dy = _blocks(X, y)
            client.run(_warm, plain, X[:some], y[:some])
            seconds[workers], error, models = timed(
                lambda seed, dX=dX, dy=dy: spread(random_state=seed).fit(dX, dy)
            )
        traffic[workers] = models[-1].traffic_._asdict()
        lines.append(Line(f"workers: {workers}", seconds[workers], error))
    return {
        "name": spread.__name__,
        "rows": n,
        "lines": lines,
        "seconds": seconds,
        "error": error,
        "plain_error": plain_error,
        "speedup": seconds[1] / seconds[2],
        "overhead": seconds[1] / plain_seconds,
        "traffic": traffic,
        "rounds": models[-1].passes_,
        "chosen": _chosen(models),
        "plain_chosen": plain_chosen,
    }


def local(model: Any) -> Any:
    """A model that needs no cluster."""
    return model.to_local() if hasattr(model, "to_local") else model


def _chosen(models: Sequence[Any]) -> str:
    """How many kernels and passes each fit has chosen."""
    return ", ".join(map(_choice, models))


def _choice(model: Any) -> str:
    learner, passes = model.fitted_.learners[0], f"{model.passes_} pass(es)"
    learner = getattr(learner, "learners", [learner])[0]
    kernels = getattr(learner, "kernels", ())
    return f"{len(kernels)} kernels and {passes}" if kernels else passes


def _warm(plain: Any, X: Any, y: Any) -> None:
    """Compile what a worker needs."""
    plain(random_state=0).fit(X, y).predict(X[:100])


def _other(name: str, fit: Any, n: int, size: Size) -> list[Line]:
    """Another library's estimator on one worker and on two; `fit` returns what predicts."""
    X, y, X_test, y_test = rows(n, size.test_rows)
    found = []
    for workers in (1, 2):
        with cluster(workers, size):
            seconds, predict = best_of(partial(fit, *_blocks(X, y)), size.repeats)
        error = float(np.mean(predict(X_test) != y_test))
        found.append(Line(f"{name}, workers: {workers}", seconds, error))
    return found


def _incremental() -> Any:
    """A fit of dask-ml's Incremental around SGDClassifier."""
    wrapper = peer("dask_ml.wrappers", "dask").Incremental
    model = wrapper(SGDClassifier(random_state=0), assume_equal_chunks=True)
    return lambda X, y: model.fit(X, y, classes=[0, 1]).estimator_.predict


def _boosting() -> Any:
    """A fit of LightGBM's estimator for Dask."""
    model = peer("lightgbm", "boosting").DaskLGBMClassifier(verbose=-1)
    return lambda X, y: model.fit(X, y).to_local().predict
