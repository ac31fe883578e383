"""`pistol bench` and `pistol reproduce`: flags to calls."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Which; all if none is named.")] = None,
    toy: Annotated[bool, typer.Option("--toy", help="Seconds, not hours: does it run?")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for results: lab/results, or lab/toy with --toy."),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="A time is the best of this many.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what is measured.")] = False,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=NUMBER", help="Change a size, as svc_rows=5000."),
    ] = None,
    half: Annotated[
        str, typer.Option(help="Which tasks of quality: development, reported or all.")
    ] = "all",
    method: Annotated[
        list[str] | None, typer.Option(help="A method of quality; all if none is named.")
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(help="A task of quality; all if none is named.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Tasks of quality at once; their times do not count.")
    ] = 1,
    show: Annotated[bool, typer.Option("--list", help="Name the benchmarks and sizes.")] = False,
) -> None:
    """Measure us beside the peers and write tables and pictures."""
    from pistol.cli import writable

    from . import benchmarks
    from .store import FILE

    console = Console()
    size = benchmarks.TOY if toy else benchmarks.FULL
    if show:
        for name in benchmarks.BENCHMARKS:
            console.print(f"{name:10} {benchmarks.about(name)}", markup=False)
        console.print("Sizes: " + ", ".join(f"{k}={v}" for k, v in asdict(size).items()))
        return
    unknown = [name for name in names or [] if name not in benchmarks.BENCHMARKS]
    if unknown:
        known = ", ".join(benchmarks.BENCHMARKS)
        raise typer.BadParameter(f"no benchmark {unknown[0]!r}; choose from {known}")
    changes = [*(change or []), *([f"repeats={repeats}"] if repeats else [])]
    part = half, method or [], task or []
    try:
        size = benchmarks.resized(size, changes)
        benchmarks.check(*part)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    folder = out or Path("lab", "toy" if toy else "results")
    for file in (FILE, "README.md"):
        writable(folder / file, "--out")
    benchmarks.run(names or list(benchmarks.BENCHMARKS), size, folder, console, resume, *part, jobs)


def reproduce(
    quick: Annotated[
        bool, typer.Option("--quick", help="Minutes, not hours: reduced sizes, nothing downloaded.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the report: reproduction, or reproduction-quick."),
    ] = None,
) -> None:
    """Reproduce the PiSTOL paper: its bounds, rates, experiments and figures, as one report.

    Each finished piece is kept in the folder. The same command goes on where it was interrupted.
    """
    from pistol.cli import writable

    from . import reproduction
    from .store import FILE

    console = Console()
    folder = out or Path("reproduction-quick" if quick else "reproduction")
    for file in (FILE, "report.html"):
        writable(folder / file, "--out")
    try:
        page = reproduction.reproduce(folder, quick, console)
    except KeyboardInterrupt:
        console.print(f"Interrupted. What is finished is kept in {folder}: run it again to go on.")
        raise typer.Exit(130) from None
    console.print(f"Report: {page}", markup=False, soft_wrap=True)
