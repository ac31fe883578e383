"""How a benchmark is run: sizes, clocks, peaks of memory, results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from rich.console import Console

from .._compiled.types import Array

T = TypeVar("T")
STATUS = Path("/proc/self/status")


class SkipError(Exception):
    """A benchmark cannot run here; the text says what is missing."""


@dataclass(frozen=True)
class Size:
    """How much each benchmark does."""

    name: str = "full"
    repeats: int = 3  # a time is the best of this many
    wisdm_rows: int = 58_000
    a9a_rows: int = 32_561
    test_rows: int = 20_000
    svc_rows: int = 20_000  # of the largest SVC fit in svm-wisdm; larger ones are extrapolated
    svc_cap: float = 1_200.0  # seconds that one SVC fit may be expected to take
    engine_rows: int = 50_000
    sgemm: int = 4_096  # side of the matrices that measure the machine
    classes_rows: int = 20_000
    million_rows: int = 1_000_000
    vw_passes: int = 40
    online_events: int = 20_000
    asgd_rows: int = 200_000  # of the linear learner
    asgd_kernel_rows: int = 10_000
    growth_rows: int = 100_000  # the most rows, features and classes
    growth_features: int = 1_000
    growth_classes: int = 100
    growth_base: int = 5_000  # rows while features or classes grow
    quality_splits: int = 5  # of each task
    quality_rows: int = 30_000  # the most rows to learn from
    quality_search: int = 2_000  # the most rows that a grid is searched on
    quality_seconds: float = 120.0  # a slower method is not run on a task's further splits

    @property
    def toy(self) -> bool:
        """Whether the figures mean nothing beyond "it runs"."""
        return self.name == "toy"


FULL = Size()
TOY = Size(
    name="toy",
    repeats=2,
    wisdm_rows=400,
    a9a_rows=1_000,
    test_rows=200,
    svc_rows=200,
    svc_cap=1.0,
    engine_rows=1_500,
    sgemm=256,
    classes_rows=600,
    million_rows=2_000,
    vw_passes=100,
    online_events=300,
    asgd_rows=2_000,
    asgd_kernel_rows=400,
    growth_rows=3_000,
    growth_features=50,
    growth_classes=5,
    growth_base=300,
    quality_splits=2,
    quality_rows=60,
    quality_search=50,
)


@dataclass(frozen=True)
class Session:
    """Where a run keeps its results, and which part of a long benchmark it does."""

    out: Path
    console: Console
    resume: bool = False  # what is finished is not run again
    half: str = "all"
    methods: tuple[str, ...] = ()  # all if none is named
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Line:
    """One more measurement beside the two of the ratio."""

    what: str
    seconds: float | None = None
    error: float | None = None


@dataclass(frozen=True)
class Result:
    """What a benchmark found: our time beside a peer's. Every target is a least ratio."""

    ours: str = ""  # what was timed on our side
    peer: str = ""  # and on the other
    rows: int = 0
    features: int = 0
    our_seconds: float | None = None
    peer_seconds: float | None = None
    our_error: float | None = None
    peer_error: float | None = None
    target: float | None = None
    goal: str = ""  # the target in words
    also: bool = True  # whether what the goal asks for beside the ratio is given
    note: str = ""
    lines: tuple[Line, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    skipped: str = ""  # the reason
    name: str = ""  # the runner fills these two in
    what: str = ""

    @property
    def ratio(self) -> float | None:
        """The peer's time over ours: how many times faster we are."""
        if not self.our_seconds or self.peer_seconds is None:
            return None
        return self.peer_seconds / self.our_seconds

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none, or no ratio."""
        if self.target is None or self.ratio is None:
            return None
        return self.also and self.ratio >= self.target

    def to_json(self) -> dict[str, Any]:
        """A dictionary of plain values, ratio and verdict included for those who read along."""
        return asdict(self) | {"ratio": self.ratio, "met": self.met}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Result:
        """The result that `to_json` was asked for."""
        known = {k: v for k, v in values.items() if k not in ("ratio", "met")}
        return cls(**known | {"lines": tuple(Line(**line) for line in known["lines"])})


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


def peer(module: str, extra: str = "bench") -> Any:
    """The module of a peer, or a reason to skip that names the extra."""
    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise SkipError(f"{name} is not installed: pip install 'pistol[{extra}]'") from None


def error(model: Any, X: Any, y: Any) -> float:
    """Share of rows with a wrong label."""
    return float(1.0 - model.score(X, y))


def exponent(x: Any, y: Any) -> float:
    """The slope e of log y against log x, by least squares: y grows like x^e."""
    return float(np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)[0])


def array_bytes(thing: Any) -> int:
    """Bytes of all arrays that an object of ours holds, spare room included."""
    if isinstance(thing, np.ndarray):
        return (thing.base if isinstance(thing.base, np.ndarray) else thing).nbytes
    if isinstance(thing, tuple | list):
        return sum(map(array_bytes, thing))
    if type(thing).__module__.startswith("pistol."):
        return sum(map(array_bytes, vars(thing).values()))
    return 0


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


def rounds(n: int) -> tuple[Array, Array]:
    """Each of n rows once, as they come: what a learner's `play` asks for."""
    return np.arange(n), np.ones(n)
