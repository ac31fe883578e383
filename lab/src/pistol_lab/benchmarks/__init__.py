"""Benchmarks: us beside the peers, in one process, warm, best of several. `pistol bench` runs them.

A benchmark is a function of a `Size` that returns a `Result`; its docstring says what it compares.
Those of `LONG` have parts that they keep themselves, and are told of the `Session` they run in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from ..protocol import Job, SkipError
from ..store import Store
from . import quality, report
from .budget import budget
from .cluster import dask_kernel, dask_linear
from .cluster_memory import dask_memory
from .defaults import defaults, svm_letter
from .encoding import encoding
from .files import files, reading
from .growth import growth
from .kernels import classes, engine, million, svm_a9a, svm_wisdm
from .linear import asgd, online, sgd
from .many import many
from .quality import check
from .results import FULL, TOY, Result, Session, Size
from .shares import shares
from .tables import tables
from .vowpal import news, vw

__all__ = [
    "BENCHMARKS",
    "FULL",
    "LONG",
    "TOY",
    "Result",
    "Session",
    "Size",
    "SkipError",
    "about",
    "check",
    "measure",
    "resized",
    "run",
]

BENCHMARKS: dict[str, Callable[..., Result]] = {
    "svm-wisdm": svm_wisdm,
    "svm-a9a": svm_a9a,
    "svm-letter": svm_letter,
    "engine": engine,
    "shares": shares,
    "classes": classes,
    "million": million,
    "defaults": defaults,
    "vw": vw,
    "news20": news,
    "sgd": sgd,
    "online": online,
    "asgd": asgd,
    "growth": growth,
    "budget": budget,
    "many": many,
    "tables": tables,
    "encoding": encoding,
    "reading": reading,
    "files": files,
    "dask-linear": dask_linear,
    "dask-kernel": dask_kernel,
    "dask-memory": dask_memory,
    "quality": quality.benchmark,
}
LONG = {"quality"}


def about(name: str) -> str:
    """What a benchmark compares, in a sentence."""
    return (BENCHMARKS[name].__doc__ or "").splitlines()[0]


def resized(size: Size, changes: Sequence[str]) -> Size:
    """A size with some numbers changed, each given as "name=number"."""
    known = {f.name: type(getattr(size, f.name)) for f in fields(size) if f.name != "name"}
    for change in changes:
        name, _, value = change.partition("=")
        if name not in known:
            raise ValueError(f"no size {name!r}; choose from {', '.join(known)}")
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if number <= 0:
            raise ValueError(f"{name} must be a positive number; got {value!r}")
        size = replace(size, **{name: known[name](number)})
    return size


def measure(name: str, size: Size, session: Session | None = None) -> Result:
    """Run one benchmark; raises `SkipError` where something it needs is missing."""
    result = BENCHMARKS[name](size, *([session] if name in LONG else []))
    return replace(result, name=name, what=about(name))


def _work(name: str, size: Size, session: Session) -> dict[str, Any]:
    return report.entry(measure(name, size, session), size)


def run(
    names: Sequence[str],
    size: Size,
    out: Path,
    console: Console,
    resume: bool = False,
    half: str = "all",
    methods: Sequence[str] = (),
    tasks: Sequence[str] = (),
    jobs: int = 1,
) -> list[Result]:
    """Run benchmarks one after the other and keep each result as soon as it is there.

    Parameters
    ----------
    names : sequence of str
        Which, of `BENCHMARKS`.
    size : Size
        How much each does.
    out : Path
        Folder for the results and the page that is made of all results in it.
    console : Console
        Where progress and the table are shown.
    resume : bool, default=False
        Do not measure again what this folder has at this size.
    half : {"all", "development", "reported"}, default="all"
        Which tasks of `quality`.
    methods, tasks : sequence of str, default=()
        Which methods and which tasks of `quality`, if not all.
    jobs : int, default=1
        How many tasks of `quality` at once. The times of what runs beside others do not count.

    Returns
    -------
    results : list of Result
        In the order of the names.
    """
    store, names_of_all = Store(out), list(BENCHMARKS)
    session = Session(store, console, resume, half, tuple(methods), tuple(tasks), jobs)
    results, skipped = [], dict[str, str]()
    try:
        for number, name in enumerate(names, 1):
            long = name in LONG  # it shows its own progress and knows what is finished
            job = Job(report.job_name(name), _work, (name, size, session), True, _of_size(size))
            found = store.kept(job) if resume and not long else None
            state, title = "kept" if found else "done", f"[{number}/{len(names)}] {name}"
            try:
                with nullcontext() if long or found else console.status(f"{title}: {about(name)}"):
                    result = Result.from_json((found or store.do(job))["result"])
            except SkipError as reason:
                skipped[name] = str(reason)
                result = Result(name=name, what=about(name), skipped=str(reason))
            results.append(result)
            console.print(f"{title}: {_line(result, state)}", markup=False)
    finally:  # what was finished before an interrupt or an error has its place on the page, too
        page = report.page(store, names_of_all, skipped)
    console.print(report.console_table(results))
    if size.toy:
        console.print(report.TOY)
    console.print(f"Page: {page}", markup=False, soft_wrap=True)
    return results


def _of_size(size: Size) -> Callable[[dict[str, Any]], bool]:
    """Whether a kept result was measured at this size."""
    return lambda found: found["size"] == asdict(size)


def _line(result: Result, state: str) -> str:
    if result.skipped:
        return f"skipped, {result.skipped}"
    text = f"{state}, ours {report.seconds(result.our_seconds)}"
    if result.ratio is not None:
        text += f", peer {report.seconds(result.peer_seconds)}, ratio {report.number(result.ratio)}"
    return f"{text}; {result.goal}: {report.verdict(result)}" if result.goal else text
