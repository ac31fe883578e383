"""The documentation says what is true: its examples run, its snippets exist, and it builds."""

from __future__ import annotations

import doctest
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.no_cover  # tests of single parts count these lines

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BUILT = {"_build", "generated"}
PAGES = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if not BUILT.intersection(path.relative_to(DOCS).parts)
]
PAGES += [ROOT / "CONTRIBUTING.md"]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def examples(page: Path) -> doctest.DocTest:
    """All Python blocks of a page as one test: later blocks see the names of earlier ones."""
    text = page.read_text(encoding="utf-8")
    parser, found = doctest.DocTestParser(), []
    for block in FENCE.finditer(text):
        for example in parser.get_examples(block[1]):
            example.lineno += text.count("\n", 0, block.start(1))
            found.append(example)
    return doctest.DocTest(found, {}, page_id(page), str(page), 0, text)


@pytest.mark.parametrize("page", [p for p in PAGES if examples(p).examples], ids=page_id)
def test_examples_run(page):
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(examples(page), out=report.append)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_python_block_is_an_example(page):
    for block in FENCE.findall(page.read_text(encoding="utf-8")):
        assert block.startswith(">>> "), f"this block is not run:\n{block}"


def test_the_tables_of_the_algorithm_quote_the_source():
    columns = {
        f"in `{name}`": (ROOT / "src" / "pistol" / name).read_text(encoding="utf-8")
        for name in ("reference.py", "_compiled/loops.py", "_compiled/coordinates.py")
    }
    quotes = 0
    for table in re.findall(r"(?:^\|.*\n)+", (DOCS / "algorithm.md").read_text("utf-8"), re.M):
        header, _, *rows = ([cell.strip() for cell in row.split("|")] for row in table.splitlines())
        for at, source in ((header.index(c), columns[c]) for c in columns if c in header):
            for quote in re.findall(r"`([^`]+)`", " ".join(row[at] for row in rows)):
                assert quote in source, f"{header[at]}: no line has {quote!r}"
                quotes += 1
    assert quotes > 40


def test_the_walks_name_functions_that_are_there():
    page = (DOCS / "architecture.md").read_text("utf-8")
    tables = page.split("| step | function | in |\n")[1:]
    assert len(tables) == 4
    for table in tables:
        for row in table.split("\n\n")[0].splitlines()[1:]:
            _, step, functions, files, _ = row.split("|")
            sources = [
                (ROOT / "src" / "pistol" / name).read_text("utf-8")
                for name in re.findall(r"`([\w/]+\.py)`", files)
            ]
            for name in re.findall(r"`([\w.]+)`", functions):
                own = re.compile(rf"^ *(def|class) {name.split('.')[-1]}\b", re.M)
                assert any(own.search(source) for source in sources), f"{step}: no {name}"


def test_the_site_builds_without_warnings(tmp_path):
    for needed in ("sphinx", "furo", "myst_parser", "numpydoc"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed; pip install 'pistol[docs]'")
    options = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(tmp_path / "doctrees")]
    options += ["-D", "html_theme=basic"]  # furo draws a tree of all pages into each of them
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "html" / "algorithm.html").exists()


def test_the_code_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are threads of this process; tests/test_dask.py has processes."""
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "n_workers": 1, "dashboard_address": None}

    class Inside(distributed.Client):  # a class: Dask asks it for the current one
        def __init__(self, **given: object) -> None:
            super().__init__(**options, **given)

    monkeypatch.setattr(distributed, "Client", Inside)
    blocks = FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert blocks
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
