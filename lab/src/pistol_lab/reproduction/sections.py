"""What a report is made of: sections with claims, pictures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from matplotlib.figure import Figure as Drawing

from ..protocol import Found, Job

Verdict = Literal["holds", "holds with a caveat", "does not hold"]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper beside what was measured."""

    where: str  # "Section 4, Theorem 1"
    claim: str  # in our words
    measured: str  # with a number
    verdict: Verdict


@dataclass(frozen=True)
class Picture:
    """A figure, and a caption that says what the paper claims and what was measured."""

    name: str  # of the files, without ending
    title: str
    caption: str
    drawing: Drawing
    alt: str  # what is seen, for those who do not see it


@dataclass(frozen=True)
class Table:
    """Rows of text beneath a head."""

    title: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """A part of the report: paragraphs, pictures and tables in order, and the claims they settle."""

    key: str  # its anchor
    title: str
    parts: Sequence[str | Picture | Table]  # a str is a paragraph
    claims: Sequence[Claim] = ()


class Part(Protocol):
    """A module of this package that contributes a section."""

    def jobs(self, quick: bool) -> list[Job]:
        """What has to be done, in the order in which it should be."""

    def section(self, found: Found, quick: bool) -> Section:
        """What is read, from what the jobs found."""
