"""The lab's commands: how they reach `pistol`, and what they refuse before the work starts."""

import ast
import sys
from importlib.metadata import PackageNotFoundError, distribution, entry_points
from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

import pistol_lab
from pistol.cli import GROUP, LAB
from pistol.cli import app as whole
from pistol_lab import benchmarks, cli, reproduction
from pistol_lab.store import FILE

SOURCES = sorted(Path(pistol_lab.__file__).parent.rglob("*.py"))
COMMANDS = {"bench": (benchmarks, "run", "README.md"),
            "reproduce": (reproduction, "reproduce", "report.html")}  # fmt: skip


def imported(path):
    """Modules and names that a file imports, as pistol.module.name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def private(name):
    first, *rest = name.split(".")
    return first == "pistol" and any(part.startswith("_") for part in rest)


def test_one_module_uses_private_names_of_the_library():
    users = {path.name for path in SOURCES if any(map(private, imported(path)))}
    assert users == {"learners.py"}


def test_the_entry_points_are_the_commands():
    try:
        distribution("pistol-lab")
    except PackageNotFoundError:
        pytest.skip("pistol-lab is on the path but not installed: pip install ./lab")
    found = {point.name: point.load() for point in entry_points(group=GROUP)}
    assert {name: found[name] for name in LAB} == {name: getattr(cli, name) for name in LAB}
    shown = CliRunner().invoke(whole, ["--help"]).output
    assert all(name in shown for name in LAB)


@pytest.fixture(params=COMMANDS)
def command(request, monkeypatch):
    """A command whose work is not to be reached; and the page that it would write."""
    module, work, page = COMMANDS[request.param]
    monkeypatch.setattr(module, work, None)  # calling it would be a TypeError
    app = Typer()
    app.command()(getattr(cli, request.param))
    return lambda out: CliRunner().invoke(app, ["--out", str(out)]), page


@pytest.mark.skipif(sys.platform != "linux", reason="other systems word it differently")
def test_a_folder_that_cannot_be_written_is_refused_before_the_work(command, tmp_path):
    run, page = command
    (tmp_path / "file").write_text("")
    for file in (FILE, page):
        (tmp_path / f"taken-{file}" / file).mkdir(parents=True)
    cases = {
        tmp_path / "file": f"{tmp_path / 'file'} is a file",
        tmp_path / "file" / "deeper": "Not a directory",
        Path("/proc/nowhere"): "No such file",
        tmp_path / f"taken-{FILE}": "Is a directory",
        tmp_path / f"taken-{page}": "Is a directory",
    }
    for out, reason in cases.items():
        result = run(out)
        (line,) = result.output.splitlines()
        assert result.exit_code == 2
        assert line.startswith(f"--out: {out}")
        assert line.split(" cannot be written: ")[1].startswith(reason)
