"""Section 7 of the paper: its experiments, as a section of the report."""

from __future__ import annotations

from ..protocol import Found, Picture, Section
from .claims import claims
from .figure3 import caption, draw, errors, how, panel, times
from .trials import PANELS, jobs

__all__ = ["jobs", "section"]


def section(found: Found, quick: bool) -> Section:
    """Figure 3, its numbers, the times, and the claims."""
    panels = [panel(name, found, quick) for name in PANELS]
    alt = "Test error against training rows, a panel a data set: " + "; ".join(
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
