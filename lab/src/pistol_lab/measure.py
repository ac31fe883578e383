"""Clocks, peaks of memory, exponents."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
STATUS = Path("/proc/self/status")


def race(runs: Mapping[str, Callable[[], T]], repeats: int) -> dict[str, tuple[float, T]]:
    """The best time of each, with what that run returned; they take turns, so that all share the
    machine's good and bad moments."""
    best: dict[str, tuple[float, T]] = {}
    for _ in range(repeats):
        for name, run in runs.items():
            start = perf_counter()
            value = run()
            seconds = perf_counter() - start
            if name not in best or seconds < best[name][0]:
                best[name] = seconds, value
    return best


def best_of(run: Callable[[], T], repeats: int) -> tuple[float, T]:
    """The best time of several runs, and what that run returned."""
    return race({"": run}, repeats)[""]


def processor_time(run: Callable[[], Any], repeats: int) -> float:
    """The least processor time of several runs, of all threads: other work on the cores adds little."""
    best = float("inf")
    for _ in range(repeats):
        start = process_time()
        run()
        best = min(best, process_time() - start)
    return best


def error(model: Any, X: Any, y: Any) -> float:
    """Share of rows with a wrong label."""
    return float(1.0 - model.score(X, y))


def exponent(x: Any, y: Any) -> float:
    """The slope e of log y against log x, by least squares: y grows like x^e."""
    return float(np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)[0])


@contextmanager
def peak_memory() -> Iterator[dict[str, int]]:
    """Fills in "bytes": how far the process's resident memory rose above where it was.

    Where the kernel cannot forget earlier peaks, only what rises above them is counted.
    """
    found: dict[str, int] = {}
    try:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far (Linux)
        before, key = _status("VmRSS"), "VmHWM"
    except OSError:
        before, key = _status(""), ""
    yield found
    found["bytes"] = max(_status(key) - before, 0)


def peak_of_process() -> int:
    """The most bytes of memory that this process has had; 0 where the system does not tell."""
    return _status("")


def _status(key: str) -> int:
    if not key:
        try:
            import resource
        except ImportError:  # not on this system
            return 0
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    lines = STATUS.read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(key + ":"))
