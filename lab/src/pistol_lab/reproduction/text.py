"""Words for the page: plain text as HTML, times, and which columns are numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

NUMBER = re.compile(  # a figure with its sign, error, power or unit
    r"[<>≤≥≈~∼±+−-]?\s?[\d∞][\d\s.,%()/+^eE·×±−–⁻⁰¹²³⁴⁵⁶⁷⁸⁹∞-]*(µs|ms|s|min|h|kB|MB|GB|×)?"
)
GROUP = r"\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)"  # in parentheses, which may hold others
EMPTY = ("", "–", "—")


def marked(text: str) -> str:
    """Plain text as HTML: **bold**, `code`, and outside of code powers and indices as T^(1/3), s_t."""
    pieces = re.split(r"`([^`]+)`", text)
    for i, piece in enumerate(pieces):
        safe = escape(piece, quote=False)
        pieces[i] = f"<code>{safe}</code>" if i % 2 else _typeset(safe)
    return "".join(pieces)


def _typeset(text: str) -> str:
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(rf"\^(?:{GROUP}|([−-]?(?:[\d.]*\d|[A-Za-zα-ω∞])))", _raised, text)
    return re.sub(
        rf"(?<![A-Za-z\d_]{{2}})(?<=\S)_(?:{GROUP}|([A-Za-z\dα-ω∞])(?![A-Za-z\d_]))", _lowered, text
    )


def _raised(match: re.Match[str]) -> str:
    power = (match[1] or match[2]).replace("-", "−")
    return f"<sup>{power}</sup>"


def _lowered(match: re.Match[str]) -> str:
    return f"<sub>{match[1] or match[2]}</sub>"


def duration(seconds: float) -> str:
    """A time in the two units that suit it."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def numeric(column: Sequence[str]) -> bool:
    """Whether all that a column has is numbers."""
    cells = [cell.strip("*` ") for cell in column if cell.strip() not in EMPTY]
    return bool(cells) and all(NUMBER.fullmatch(cell) for cell in cells)
