"""From files to models and back: readers, training on text, memory, model files, the shell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from pistol import LinearPistolClassifier, PistolClassifier, load
from pistol.files import chunks, read

from ..learners import of_support
from ..measure import best_of, processor_time, race
from ..protocol import SkipError, peer
from .results import Line, Result, Size
from .rows import events
from .vowpal import write

FEATURES = 30
MEGABYTE = 1e6
BLOCK, TOY_BLOCK = 20_000, 500  # rows at a time through a pipe
SOURCES = {
    "svm": "from svmlight text", "csv": "from CSV", "parquet": "from Parquet",
    "vw": "from Vowpal Wabbit's text", "theirs": "for Vowpal Wabbit",
}  # fmt: skip
SHELL = [sys.executable, "-m", "pistol"]


def reading(size: Size) -> Result:
    """Reading svmlight text of real numbers, against scikit-learn's reader."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.svm"
        X, y = rows(size.files_rows)
        write_svmlight(path, X, y)
        read(path, n_features=FEATURES)  # warm
        found = race(
            {
                "ours": lambda: read(path, n_features=FEATURES),
                "sizes": lambda: read(path),
                "theirs": lambda: load_svmlight_file(str(path), n_features=FEATURES),
            },
            size.repeats,
        )
        megabytes = path.stat().st_size / MEGABYTE
    ours, theirs = found["ours"][0], found["theirs"][0]
    assert (found["theirs"][1][0] != found["ours"][1].X).nnz == 0
    speed = megabytes / ours
    return Result(
        ours="pistol.files.read",
        peer="sklearn.datasets.load_svmlight_file",
        rows=len(y),
        features=FEATURES,
        our_seconds=ours,
        peer_seconds=theirs,
        target=20.0,
        goal="at least 20 times as fast, and 300 MB/s",
        also=size.toy or speed >= 300,
        note=f"{megabytes:,.0f} MB of text, {speed:,.0f} MB/s with the number of features given, on "
        f"{os.cpu_count()} cores; the rows are the same, bit for bit.",
        lines=(Line("the number of features has to be found, too", found["sizes"][0]),),
        extra={"megabytes": megabytes, "megabytes_per_second": speed},
    )


def files(size: Size) -> Result:
    """From text to a trained linear model, against `vw --pistol` on its own text."""
    workspace = peer("vowpalwabbit").Workspace
    X, y = rows(size.files_rows)
    with TemporaryDirectory() as name:
        folder = Path(name)
        paths = {kind: folder / f"rows.{kind}" for kind in ("svm", "vw", "csv", "parquet")}
        write_svmlight(paths["svm"], X, y)
        write(paths["vw"], sp.csr_array(X), y)
        write_tables(paths, X, y)

        def theirs() -> None:
            options = ["-d", str(paths["vw"]), "--loss_function", "logistic", "--quiet"]
            workspace(arg_list=[*options, "--pistol"]).finish()

        runs: dict[str, Callable[[], Any]] = {
            kind: partial(learn, path) for kind, path in paths.items()
        }
        for run in runs.values():  # warm
            run()
        runs["theirs"] = theirs
        found = race(runs, size.repeats)
        spent = {name: processor_time(run, size.repeats) for name, run in runs.items()}
        lines = [
            Line("LinearPistolClassifier from CSV", found["csv"][0]),
            Line("LinearPistolClassifier from Parquet", found["parquet"][0]),
            Line("LinearPistolClassifier from Vowpal Wabbit's text", found["vw"][0]),
        ]
        block = TOY_BLOCK if size.toy else BLOCK
        sizes = (size.memory_mb, 4 * size.memory_mb)[: 1 if size.toy else 2]
        peaks = {mb: memory(mb, block) for mb in sizes}
        loading, seconds = model_files(folder, size)
    seen = "; ".join(f"{peak:,.0f} MB for {mb:,} MB of text" for mb, peak in peaks.items())
    used = ", ".join(f"{spent[name]:.2f} s {what}" for name, what in SOURCES.items())
    ours, other = found["svm"][0], found["theirs"][0]
    tables = max(found["csv"][0], found["parquet"][0])
    small = max(peaks.values()) < 500
    return Result(
        ours="LinearPistolClassifier from svmlight text",
        peer="vw --pistol from its own text",
        rows=len(y),
        features=FEATURES,
        our_seconds=ours,
        peer_seconds=other,
        target=1.5,
        goal="at least 1.5 times the rows a second, CSV and Parquet not slower, below 500 MB",
        also=size.toy or (tables <= other and small),
        note=f"Dense rows of {FEATURES} real numbers of five digits, one pass. Peak memory of `pistol "
        f"train -` fed through a pipe: {seen}. Processor time: {used}.",
        lines=(*lines, Line(*loading), Line("pistol predict of one row, in all", seconds)),
        extra={
            "peak_megabytes": {str(mb): peak for mb, peak in peaks.items()},
            "processor_seconds": spent,
        },
    )


def rows(n: int) -> tuple[Any, Any]:
    """Rows of numbers with five digits."""
    X, y = events(n, FEATURES)
    return np.round(X, 4), y


def learn(path: Path) -> Any:
    """One pass over a file, chunk by chunk."""
    model = LinearPistolClassifier()
    for X, y, weight in chunks(path, n_features=FEATURES):
        model.partial_fit(X, y, classes=[-1, 1], sample_weight=weight)
    return model


def write_svmlight(path: Path, X: Any, y: Any) -> None:
    """Rows as svmlight text, features counted from 1."""
    with path.open("w") as file:
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            file.write(f"{label:g} {' '.join(f'{i}:{v:g}' for i, v in enumerate(row, 1))}\n")


def write_tables(paths: dict[str, Path], X: Any, y: Any) -> None:
    """Rows as CSV and as Parquet."""
    try:
        import pyarrow as pa
        from pyarrow import csv, parquet
    except ImportError:
        raise SkipError("pyarrow is not installed: pip install 'pistol[files]'") from None
    table = pa.table({f"x{i}": X[:, i] for i in range(X.shape[1])} | {"y": y.astype(np.int64)})
    csv.write_csv(table, paths["csv"])
    parquet.write_table(table, paths["parquet"])


def memory(megabytes: int, at_once: int) -> float:
    """Megabytes that `pistol train` needs at its peak for so many megabytes through a pipe."""
    X, y = rows(at_once)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "block"
        write_svmlight(path, X, y)
        block = path.read_bytes()
        options = ["--classes=-1,1", "--features", str(FEATURES), "-o", f"{folder}/model"]
        process = subprocess.Popen(
            [*SHELL, "train", "-", *options], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert process.stdin is not None
        peak = 0
        for _ in range(max(1, round(megabytes * MEGABYTE / len(block)))):
            process.stdin.write(block)
            peak = max(peak, peak_of(process.pid))
        process.stdin.close()
        while process.poll() is None:
            peak = max(peak, peak_of(process.pid))
            sleep(0.01)
    if process.returncode:
        raise SkipError("pistol train has failed")
    return peak / MEGABYTE


def peak_of(pid: int) -> int:
    """The most bytes that a process has held in memory so far; 0 where nobody tells."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def model_files(folder: Path, size: Size) -> tuple[tuple[str, float], float]:
    """Seconds to load a model of many support rows, and to predict a row with it in the shell."""
    n, d = size.files_support, 100
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, d)), rng.integers(2, size=200)
    model = PistolClassifier(kernel="rbf", passes=1, orders=None).fit(X, y)
    of_support(model, rng.normal(size=(n, d)), rng.normal(size=n))
    path, one = folder / "many.pistol", folder / "one.svm"
    model.save(path, predict_only=True)
    write_svmlight(one, X[:1], y[:1].astype(float))
    seconds, _ = best_of(lambda: load(path), size.repeats)
    whole, _ = best_of(
        lambda: subprocess.run(
            [*SHELL, "predict", path, one], check=True, stdout=subprocess.DEVNULL
        ),
        size.repeats,
    )
    return (f"load a model of {n:,} support rows of {d}", seconds), whole
