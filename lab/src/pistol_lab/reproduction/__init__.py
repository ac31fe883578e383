"""The paper, reproduced: `pistol reproduce` runs every part and writes one report.

A part is a module with `jobs`, which say what has to be done, and a `section`, which says what came
of it. Jobs are kept when done, so that a run goes on where it was interrupted.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from ..store import FILE, Store, run
from . import bounds, formulas, rates, report, section7
from .section7 import trials
from .sections import Part

__all__ = ["PARTS", "reproduce"]

PARTS: tuple[Part, ...] = (formulas, bounds, rates, section7)
SEEDS = (
    f"Shuffles have the seeds 0 to {trials.SHUFFLES - 1}; a job in {FILE} has its seed in its name."
)


def reproduce(out: Path, quick: bool, console: Console) -> Path:
    """Do what is not done yet, and write the report.

    Parameters
    ----------
    out : Path
        Folder for the report, its figures, and the finished jobs.
    quick : bool
        Reduced sizes, and no data set is downloaded.
    console : Console
        Where progress is shown.

    Returns
    -------
    page : Path
        The report, one HTML file.
    """
    if not quick:
        section7.prepare(console)
    store = Store(out)
    jobs = [job for part in PARTS for job in part.jobs(quick)]
    run(jobs, store, console)
    last = trials.fits(store.found, quick)  # the searches say with which C
    run(last, store, console)
    sections = [part.section(store.found, quick) for part in PARTS]
    worked = sum(store.seconds[job.name] for job in [*jobs, *last])
    command = "pistol reproduce" + (" --quick" if quick else "")
    about = report.about(quick, worked, command, SEEDS, trials.notes(quick))
    return report.write(sections, out, about)
