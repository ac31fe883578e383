"""Section 7 of the paper: its experiments, as a section of the report."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TransferSpeedColumn,
)

from ...protocol import Found
from ..sections import Picture, Section
from .claims import claims
from .datasets import gather
from .figure3 import caption, draw, errors, how, panel, times
from .trials import PANELS, jobs

__all__ = ["jobs", "prepare", "section"]


def prepare(console: Console) -> None:
    """Download the data sets that are not at hand, and say which could not be."""
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=console, transient=True) as bars:
        for name in PANELS:
            bar = bars.add_task(name, total=None, visible=False)

            def show(done: int, total: int | None, bar: TaskID = bar) -> None:
                bars.update(bar, completed=done, total=total, visible=True)

            try:
                gather(name, show)
            except OSError as problem:
                console.print(f"{name}: {problem}. Other data stand in, and are labelled.")


def section(found: Found, quick: bool) -> Section:
    """Figure 3, its numbers, the times, and the claims."""
    panels = [panel(name, found, quick) for name in PANELS]
    alt = "Test error against training rows, one panel per data set: " + "; ".join(
        p.label for p in panels
    )
    return Section(
        key="experiments",
        title="The experiments",
        parts=[
            how(panels, quick),
            *(p.problem.stand_in for p in panels if p.problem.stand_in),
            Picture("figure3", "Figure 3", caption(panels, quick), draw(panels), alt),
            times(panels),
            *(errors(p, quick) for p in panels),
        ],
        claims=claims(*panels),
    )
