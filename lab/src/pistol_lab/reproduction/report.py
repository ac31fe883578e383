"""The report on disk: one page that needs nothing else, and each figure as PNG and SVG."""

from __future__ import annotations

import os
import platform
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Drawing

from ..computer import computer
from .page import About, page
from .sections import Picture, Section

TITLE = "Parameter-free stochastic learning, reproduced"
VERSIONS = ("pistol", "python", "numpy", "scipy", "scikit-learn", "numba", "matplotlib")
DPI = 100  # of a picture on the page; its PNG has twice as many
WIDE = 800  # pixels beyond which a picture scrolls on a phone
LARGE = 150_000  # bytes of SVG beyond which the page holds a PNG instead
EDGE: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.06}


def about(
    quick: bool,
    seconds: float,
    command: str,
    seeds: str,
    notes: Sequence[str] = (),
    title: str = TITLE,
) -> About:
    """What a run was, with today's date, the versions that are installed and the machine.

    Parameters
    ----------
    quick : bool
        Whether the sizes were reduced.
    seconds : float
        How long the run took.
    command : str
        What was typed to start it.
    seeds : str
        Which seeds it used, in words.
    notes : sequence of str, default=()
        What a reader must know: data sets that stand in for others, runs that were cut short.
    title : str
        Of the page.

    Returns
    -------
    about : About
    """
    found = computer()
    versions = found["versions"] | {"matplotlib": mpl.__version__}
    hardware = {
        "Processor": found["processor"],
        "Cores": str(found["cores"]),
        "Memory": _memory(),
        "System": f"{platform.system()}, {platform.machine()}",
        "BLAS": found["blas"],
    }
    return About(
        title=title,
        quick=quick,
        date=datetime.now(UTC).date().isoformat(),
        seeds=seeds,
        versions={name: versions[name] for name in VERSIONS if name in versions},
        hardware={name: value for name, value in hardware.items() if value},
        seconds=seconds,
        command=command,
        notes=tuple(notes),
    )


def write(sections: Sequence[Section], out: Path, about: About) -> Path:
    """Write `out/report.html` and all figures below `out/figures`.

    Parameters
    ----------
    sections : sequence of Section
        In the order in which they are read.
    out : Path
        The folder; it is made if need be.
    about : About
        What the run was.

    Returns
    -------
    path : Path
        Of the page, one file that asks for nothing from anywhere.
    """
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    images = {}
    for picture in (part for s in sections for part in s.parts if isinstance(part, Picture)):
        if picture.name in images:
            raise ValueError(f"two pictures are named {picture.name!r}")
        svg, png = drawn(picture)
        (folder / f"{picture.name}.svg").write_bytes(svg)
        (folder / f"{picture.name}.png").write_bytes(png)
        images[picture.name] = inline(picture, svg, png)
    path = out / "report.html"
    draft = path.with_suffix(".tmp")  # an interrupt must not leave half a page
    draft.write_text(page(sections, images, about), encoding="utf-8")
    draft.replace(path)
    return path


def drawn(picture: Picture) -> tuple[bytes, bytes]:
    """The picture as SVG and as PNG, the same bytes each time."""
    with mpl.rc_context({"svg.hashsalt": picture.name, "svg.fonttype": "path"}):
        svg = _saved(picture.drawing, "svg", DPI, {"Date": None, "Creator": None})
    picture.drawing.set_layout_engine("none")  # its parts are where they belong
    return svg, _saved(picture.drawing, "png", 2 * DPI, {"Software": None})


def inline(picture: Picture, svg: bytes, png: bytes) -> str:
    """The picture as an element of the page, with names that no other picture uses."""
    width, alt = _width(svg), escape(picture.alt, quote=True)
    look = f'style="width:{width}px"' + (' class="wide"' if width > WIDE else "")
    if len(svg) > LARGE:
        data = b64encode(png).decode()
        return f'<img {look} alt="{alt}" src="data:image/png;base64,{data}">'
    text = svg.decode("utf-8")
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    opening = re.search(r"<svg\b[^>]*>", text)
    view = re.search(r'viewBox="[^"]*"', text)
    assert opening is not None  # it is Matplotlib's
    assert view is not None
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{picture.name}-", text[opening.end() :])
    head = f'role="img" aria-label="{alt}" {look} {view[0]}'
    links = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return re.sub(r"\n\s*", "\n", f"<svg {head} {links}>{body}").strip()


def _saved(drawing: Drawing, kind: str, dpi: int, metadata: Mapping[str, None]) -> bytes:
    file = BytesIO()
    drawing.savefig(file, format=kind, dpi=dpi, metadata=dict(metadata), facecolor="white", **EDGE)
    return file.getvalue()


def _width(svg: bytes) -> int:
    """How wide a picture wants to be, in CSS pixels."""
    points = re.search(rb'<svg\b[^>]*\bwidth="([\d.]+)pt"', svg)
    assert points
    return round(float(points[1]) * DPI / 72)


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on this system
        return ""
    return f"{size / 2**30:.1f} GiB"
