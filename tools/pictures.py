"""Make the pictures of documentation pages: run their examples, with the lines that save figures.

    python tools/pictures.py docs/inspection.md docs/gallery.md

Figures are saved in docs/_static. Where chromium is installed, the diagram of a fitted estimator named
`model` is drawn as well.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib

STATIC = Path(__file__).parents[1] / "docs" / "_static"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(page: Path) -> dict[str, object]:
    """Run all examples of a page; the names they have left behind."""
    names: dict[str, object] = {}
    for block in FENCE.findall(page.read_text(encoding="utf-8")):
        for example in doctest.DocTestParser().get_examples(block):
            exec(compile(example.source, str(page), "exec"), names)
    return names


def draw_diagram(estimator: object, to: Path) -> None:
    """A picture of what a notebook shows of an estimator, if there is a browser to draw it."""
    browser = shutil.which("chromium")
    if browser is None or not hasattr(estimator, "_repr_html_"):
        return
    Path("diagram.html").write_text(estimator._repr_html_(), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=345,375"]
    page = Path("diagram.html").resolve().as_uri()
    subprocess.run([browser, *options, f"--screenshot={to}", page], check=True, capture_output=True)


def main() -> None:
    """Run the pages that are named."""
    matplotlib.use("Agg")
    matplotlib.rcParams["savefig.dpi"] = 100
    pages = [Path(name).resolve() for name in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for page in pages:
            names = run(page)
            if page.stem == "inspection":
                draw_diagram(names["model"], Path("inspection-notebook.png").resolve())
        for picture in sorted(Path().glob("*.png")):
            shutil.copy(picture, STATIC)
            print(STATIC / picture.name)
        os.chdir(STATIC)


if __name__ == "__main__":
    main()
