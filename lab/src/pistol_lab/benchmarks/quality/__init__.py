"""Our defaults beside the peers over many tasks: errors, times, probabilities, ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..results import Line, Result, Session, Size
from . import table
from .cells import Cell
from .compare import mean_ranks, paired, ranked, select, totals, values
from .goals import verdicts
from .run import check, run_cells

__all__ = ["benchmark", "check"]

PAIR = ["pistol", "svc-grid"]


def benchmark(size: Size, session: Session) -> Result:
    """Our defaults, against SVC with a grid over C × γ and other peers, on many tasks."""
    check(session.half, session.methods, session.tasks)
    found = run_cells(size, session)
    page = table.write(session.out, found, size)
    cells = list(found.cells.values())
    session.console.print(table.console_verdicts(cells))
    return _summary(cells, page.name)


def _summary(cells: Sequence[Cell], page: str) -> Result:
    """The classes of the reported half, in short; the page has the rest."""
    labels = select(cells, "reported", regression=False)
    errors, seconds = values(labels), totals(labels, PAIR, min)
    if not seconds:
        return Result(
            note=f"No errors and times to compare in the reported half. All others: [{page}]({page})."
        )
    both, judged = paired(errors, PAIR), verdicts(cells, "reported")
    ours, theirs = np.mean(list(both.values()), axis=0)
    ranks, n = mean_ranks(errors, ranked(errors))
    met = sum(verdict.met is True for verdict in judged)
    text = ", ".join(
        f"{name} {rank:.2f}" for name, rank in sorted(ranks.items(), key=lambda r: r[1])
    )
    return Result(
        ours="PistolClassifier()",
        peer="SVC, a grid of 5 C × 5 γ, 5 folds",
        rows=max(cell.rows for cell in labels),
        features=max(cell.features for cell in labels),
        our_seconds=seconds["pistol"][0],
        peer_seconds=seconds["svc-grid"][0],
        our_error=float(ours),
        peer_error=float(theirs),
        target=50.0,
        goal="at least 50 times faster, and all goals of the page",
        also=all(verdict.met is not False for verdict in judged),
        note="Classes, the reported half of the tasks: seconds to fit, the least over the splits of "
        f"each task, are summed, and errors are averaged over {len(both)} tasks; rows and features "
        f"are those of the largest. Goals met: {met} of {len(judged)}. Mean ranks over {n} tasks: "
        f"{text}. All of it: [{page}]({page}).",
        lines=tuple(
            Line(name, fit, float(np.mean(list(paired(errors, [name]).values()))))
            for name, (fit, _) in totals(labels, ranked(errors), min).items()
            if name not in PAIR
        ),
    )
