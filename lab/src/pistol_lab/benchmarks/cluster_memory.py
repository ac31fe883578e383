"""A table of Parquet files that is larger than the memory of all workers of a Dask cluster."""

from __future__ import annotations

from functools import partial
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from ..measure import peak_of_process
from ..protocol import peer
from .cluster import cluster
from .results import Line, Result, Size

WIDTH, BLOCK = 128, 64  # features, and MB per file
WORKERS, LIMIT = 2, 2  # GB of memory for each worker


def dask_memory(size: Size) -> Result:
    """A table of Parquet files beyond the memory of two workers: time, peak memory, spilled bytes."""
    ours = peer("pistol.dask", "dask")
    peer("pyarrow.parquet", "dask")
    files = max(2, round(1000 * size.dask_gb / BLOCK))
    rows = max(50, int(min(BLOCK, 1000 * size.dask_gb / files) * 1e6 / (8 * WIDTH)))
    with TemporaryDirectory() as folder, cluster(WORKERS, size, f"{LIMIT} GB") as client:
        client.gather(client.map(partial(write, folder, rows), range(files), pure=False))
        test, y = made(rows, files)
        client.run(_warm)
        before = _spilled(client)
        start = perf_counter()
        model = ours.DaskLinearPistolClassifier(random_state=0)
        model.fit(ours.blocks(f"{folder}/*.parquet", target="y"))
        seconds = perf_counter() - start
        spilled = _spilled(client) - before
        peaks = [n / 1e9 for n in client.run(peak_of_process).values()]
    error = 1.0 - model.to_local().score(_frame(test), y)
    least = float(np.mean(y != (test @ _direction() > 0)))
    total = rows * files * WIDTH * 8 / 1e9
    return Result(
        ours="DaskLinearPistolClassifier, two workers",
        rows=rows * files,
        features=WIDTH,
        our_seconds=seconds,
        our_error=error,
        goal=f"the peak of every worker below {LIMIT} GB, nothing spilled",
        also=max(peaks) < LIMIT and spilled == 0,
        target=0.0,
        peer="",
        note=f"{total:.2f} GB in {files} files, {model.passes_} rounds. Peak memory of the workers: "
        f"{max(peaks):.2f} GB; spilled to disk: {spilled / 1e6:.0f} MB. The direction that made the "
        f"labels has an error of {least:.1%}.",
        lines=(Line("fit from Parquet files", seconds, error),),
        extra={"peaks": peaks, "spilled": spilled, "traffic": model.traffic_._asdict()},
    )


def _direction() -> Any:
    return np.random.default_rng(0).normal(size=WIDTH)


def made(n: int, seed: int) -> tuple[Any, Any]:
    """Rows in units of their own, and noisy labels."""
    rng = np.random.default_rng((1, seed))
    X = rng.normal(size=(n, WIDTH))
    return X, X @ _direction() + 5 * rng.normal(size=n) > 0


def _frame(X: Any) -> Any:
    arrow = peer("pyarrow", "dask")
    return arrow.table({f"x{j}": np.ascontiguousarray(column) for j, column in enumerate(X.T)})


def write(folder: str, rows: int, number: int) -> None:
    """One file."""
    X, y = made(rows, number)
    table = _frame(X).append_column("y", [y.astype(np.int8)])
    peer("pyarrow.parquet", "dask").write_table(table, f"{folder}/{number:05d}.parquet")


def _warm() -> None:
    """Compile what a worker needs."""
    from pistol import LinearPistolClassifier

    X, y = made(400, 0)
    LinearPistolClassifier().fit(X, y)


def _spilled(client: Any) -> float:
    def written(dask_worker: Any) -> float:
        metrics = getattr(dask_worker.data, "cumulative_metrics", {})
        return sum(
            n for (what, unit), n in metrics.items() if (what, unit) == ("disk-write", "bytes")
        )

    return sum(client.run(written).values())
