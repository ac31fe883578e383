"""What a benchmark is told and what it returns: sizes, sessions, results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from ..store import Store


@dataclass(frozen=True)
class Size:
    """How much each benchmark does."""

    name: str = "full"
    repeats: int = 3  # a time is the best of this many
    wisdm_rows: int = 58_000
    a9a_rows: int = 32_561
    news20_rows: int = 19_996
    test_rows: int = 20_000
    svc_rows: int = 20_000  # of the largest SVC fit in svm-wisdm; larger ones are extrapolated
    svc_cap: float = 1_200.0  # seconds that one SVC fit may be expected to take
    engine_rows: int = 50_000
    share_rows: int = 20_000  # that are learned, predicted, and learned by a sum of kernels
    share_asked: int = 5_000
    share_few: int = 2_000
    sgemm: int = 4_096  # side of the matrices that measure the machine
    classes_rows: int = 20_000
    million_rows: int = 1_000_000
    defaults_rows: int = 1_000_000
    letter_rows: int = 3_000
    vw_passes: int = 40
    online_events: int = 20_000
    budget_rows: int = 20_000  # of each stream
    budget_most: int = 5_000  # support rows
    asgd_rows: int = 200_000  # of the linear learner
    asgd_kernel_rows: int = 10_000
    growth_rows: int = 100_000  # the most rows, features and classes
    growth_features: int = 1_000
    growth_classes: int = 100
    growth_base: int = 5_000  # rows while features or classes grow
    quality_splits: int = 5  # of each task
    quality_rows: int = 30_000  # the most rows to learn from
    quality_search: int = 2_000  # the most rows that a grid is searched on
    many_rows: int = 300_000  # the most rows to learn from
    dask_rows: int = 1_000_000  # of the linear estimator on a cluster …
    dask_kernel_rows: int = 200_000  # … and of the kernel estimator
    tables_splits: int = 3  # of each raw table
    tables_rows: int = 2_000  # the most rows to learn from
    encoding_rows: int = 1_000_000
    files_rows: int = 300_000  # of each data file
    files_support: int = 100_000  # rows of the model that is loaded
    dask_gb: float = 10.0  # of a table in Parquet files
    memory_mb: int = 250  # text through a pipe; then four times as much
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
    news20_rows=500,
    test_rows=200,
    svc_rows=200,
    svc_cap=1.0,
    engine_rows=1_500,
    share_rows=600,
    share_asked=200,
    share_few=80,
    sgemm=256,
    classes_rows=600,
    million_rows=2_000,
    defaults_rows=200,
    letter_rows=80,
    vw_passes=100,
    online_events=300,
    budget_rows=520,
    budget_most=100,
    asgd_rows=2_000,
    asgd_kernel_rows=400,
    growth_rows=2_000,
    growth_features=50,
    growth_classes=5,
    growth_base=100,
    quality_splits=2,
    quality_rows=60,
    quality_search=50,
    many_rows=100,
    dask_rows=300,
    dask_kernel_rows=300,
    tables_splits=1,
    tables_rows=60,
    encoding_rows=300,
    files_rows=300,
    files_support=500,
    dask_gb=0.0002,
    memory_mb=1,
)


@dataclass(frozen=True)
class Session:
    """Where a run keeps its results, and which part of a long benchmark it does."""

    store: Store
    console: Console
    resume: bool = False  # what is finished is not run again
    half: str = "all"
    methods: tuple[str, ...] = ()  # all if none is named
    tasks: tuple[str, ...] = ()
    jobs: int = 1  # tasks of a long benchmark at once

    @property
    def out(self) -> Path:
        """The folder of the store, for pages and pictures."""
        return self.store.path.parent


@dataclass(frozen=True)
class Line:
    """One more measurement beside the two of the ratio."""

    what: str
    seconds: float | None = None
    error: float | None = None  # a share of the rows
    absolute: bool = False  # or, if so, a mean absolute error


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
