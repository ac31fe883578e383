"""Jobs and what they found: each on disk as soon as it is done, none done twice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from joblib import Parallel, cpu_count, delayed
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from threadpoolctl import threadpool_limits

from .protocol import Job

FILE = "jobs.jsonl"


class Store:
    """What finished jobs found, in a file with one line per job.

    The last line counts where a job was done twice. Half a last line does no harm.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.found: dict[str, dict[str, Any]] = {}
        self.seconds: dict[str, float] = {}
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        for line in text.splitlines():
            try:
                job = json.loads(line)
                self.found[job["name"]] = job["found"]
                self.seconds[job["name"]] = job["seconds"]
            except (ValueError, KeyError, TypeError):  # of a run that was killed while it wrote
                continue
        self._torn = bool(text) and not text.endswith("\n")

    def keep(self, name: str, found: dict[str, Any], seconds: float) -> None:
        """Write what a job found."""
        line = json.dumps(
            {"name": name, "found": found, "seconds": round(seconds, 3)},
            ensure_ascii=False,
            allow_nan=False,
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(("\n" if self._torn else "") + line + "\n")
        self._torn = False
        self.found[name], self.seconds[name] = found, seconds

    def kept(self, job: Job) -> dict[str, Any] | None:
        """What a job found earlier, if that is still what is asked for."""
        found = self.found.get(job.name)
        return found if found is not None and job.fresh(found) else None

    def do(self, job: Job) -> dict[str, Any]:
        """Do a job now, and keep what it found."""
        found, seconds = _timed(job)
        self.keep(job.name, found, seconds)
        return found


def run(jobs: Sequence[Job], store: Store, console: Console) -> None:
    """Do the jobs that are not done: those that are to be alone first, then as many as cores at once.

    An interruption loses only the jobs under way.
    """
    todo = [job for job in jobs if store.kept(job) is None]
    with progress(console) as shown:
        bar = shown.add_task("", total=len(jobs), completed=len(jobs) - len(todo))
        for job in (job for job in todo if job.alone):
            shown.update(bar, description=job.name)
            store.do(job)
            shown.advance(bar)
        for job, found, seconds in _together([job for job in todo if not job.alone]):
            shown.update(bar, description=job.name)
            store.keep(job.name, found, seconds)
            shown.advance(bar)


def progress(console: Console) -> Progress:
    """A bar that counts jobs and is gone when they are done."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    return Progress(*columns, console=console, transient=True)


def _together(jobs: Sequence[Job]) -> Iterator[tuple[Job, dict[str, Any], float]]:
    """Jobs as they end, one per core."""
    if not jobs:
        return
    parallel = Parallel(n_jobs=min(cpu_count(), len(jobs)), return_as="generator_unordered")
    yield from parallel(delayed(_single)(job) for job in jobs)


def _single(job: Job) -> tuple[Job, dict[str, Any], float]:
    with threadpool_limits(1):
        return job, *_timed(job)


def _timed(job: Job) -> tuple[dict[str, Any], float]:
    start = perf_counter()
    return job.work(*job.args), perf_counter() - start
