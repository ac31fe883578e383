"""Which cells there are to run, and running them one after the other, or several tasks at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console

from ...protocol import Job, SkipError
from ...store import Store, progress
from ..results import Session, Size
from .cells import Cell, Key, compute, fresh, job_name, read
from .peers import METHODS
from .tasks import HALVES, TASKS, Task, split


@dataclass
class Run:
    """All cells of a folder after a run, and what was left out, with the reasons."""

    cells: dict[Key, Cell]
    skipped: dict[str, str] = field(default_factory=dict)  # tasks and methods
    slow: set[tuple[str, str]] = field(default_factory=set)  # tasks with methods, after a split


def check(half: str, methods: Sequence[str], tasks: Sequence[str]) -> None:
    """Refuse halves, methods and tasks that do not exist."""
    for kind, known, named in (
        ("half", ["all", *HALVES], [half]),
        ("method", list(METHODS), methods),
        ("task", list(TASKS), tasks),
    ):
        for name in named:
            if name not in known:
                raise ValueError(f"no {kind} {name!r}; choose from {', '.join(known)}")


def chosen(size: Size, session: Session) -> list[Task]:
    """The tasks of a session, the smallest first."""
    tasks = [TASKS[name].at(size) for name in session.tasks or TASKS]
    if not session.tasks and size.toy:
        tasks = [task for task in tasks if task.toy]
    if session.half != "all":
        tasks = [task for task in tasks if task.half == session.half]
    return sorted(tasks, key=lambda task: task.rows)


def plan(size: Size, session: Session) -> Iterator[tuple[Task, int, str]]:
    """The cells of a session, in the order in which they are run."""
    for task in chosen(size, session):
        for k in range(size.quality_splits):
            for name, method in METHODS.items():
                if method.suits(task) and name in (session.methods or METHODS):
                    yield task, k, name


def run_cells(size: Size, session: Session) -> Run:
    """Run the cells of a session; each is kept as soon as it is finished.

    With `resume`, finished cells of this size are not run again. Without it the cells of this
    session are, and replace older ones. Cells that are not of this session stay as they are.
    """
    return _at_once(size, session) if session.jobs > 1 else _in_turn(size, session)


def _at_once(size: Size, session: Session) -> Run:
    """Several tasks at once, in processes that append to the same file; the largest tasks first."""
    part = session.out, session.resume, session.methods
    names, skipped = [task.name for task in chosen(size, session)], dict[str, str]()
    with progress(session.console) as bar:
        shown = bar.add_task("tasks", total=len(names))
        work = Parallel(session.jobs, return_as="generator_unordered")
        for done in work(delayed(_beside)(size, name, *part) for name in reversed(names)):
            skipped |= done
            bar.advance(shown)
    kept = Store(session.out)
    session.store.found, session.store.seconds = kept.found, kept.seconds
    return Run(read(kept), skipped)


def _beside(
    size: Size, task: str, folder: Path, resume: bool, methods: tuple[str, ...]
) -> dict[str, str]:
    """Run one task beside others; returns what was left out."""
    quiet = Console(quiet=True)
    session = Session(Store(folder), quiet, resume, methods=methods, tasks=(task,))
    return _in_turn(size, session, contended=True).skipped


def _in_turn(size: Size, session: Session, contended: bool = False) -> Run:
    """One cell after the other."""
    steps, state = list(plan(size, session)), Run(read(session.store))
    with progress(session.console) as bar:
        shown = bar.add_task("", total=len(steps))
        for task, k, name in steps:
            bar.update(shown, description=f"{task.name}, split {k}, {name}")
            cell = state.cells.get((task.name, k, name))
            if not (session.resume and cell and fresh(cell, task, size)):
                cell = _step(task, k, name, size, session, state, contended)
            if cell and cell.seconds > size.quality_seconds:
                state.slow.add((task.name, name))
            bar.advance(shown)
    return state


def _step(
    task: Task, k: int, name: str, size: Size, session: Session, state: Run, contended: bool
) -> Cell | None:
    """Run a cell and keep it; None where it is left out."""
    if {task.name, name} & state.skipped.keys() or (task.name, name) in state.slow:
        return None
    found = {}
    if first := METHODS[name].after:
        base = state.cells.get((task.name, k, first))
        if not (base and fresh(base, task, size)):
            base = _step(task, k, first, size, session, state, contended)
        if base is None or base.failed or base.seconds > size.quality_seconds:
            return None  # nothing to build on, or it would take several times as long
        found = base.params
    try:
        data = split(task, k)
    except SkipError as reason:
        state.skipped[task.name] = str(reason)
        return None
    args = contended, task, k, name, data, size, found
    job = Job(job_name(task.name, k, name), _work, args, alone=True)
    try:
        cell = Cell(**session.store.do(job))
    except SkipError as reason:
        state.skipped[name] = str(reason)
        return None
    state.cells[cell.key] = cell
    return cell


def _work(contended: bool, *args: Any) -> dict[str, Any]:
    return asdict(replace(compute(*args), contended=contended))
