"""The command: what a new user runs first must work and must not lie."""

import os
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pistol import __version__, _demo, cli
from pistol.__main__ import main
from pistol.cli import app


def test_demo_trains_all_methods_and_writes_a_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(_demo, "C_GRID", [1, 10])  # with all points the search takes half a minute
    monkeypatch.setattr(_demo, "ALPHAS", [1e-4])
    X, y = _demo.load_digits(return_X_y=True)
    monkeypatch.setattr(_demo, "load_digits", lambda **_: (X[:400], y[:400]))
    picture = tmp_path / "demo.png"
    result = CliRunner().invoke(app, ["demo", "--picture", str(picture)])
    assert result.exit_code == 0, result.output
    assert "HistGradientBoosting" in result.output
    assert "test error" in result.output
    assert "times faster" in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output.strip()) == (0, f"pistol {__version__}")


def test_no_arguments_show_the_help():
    assert "demo" in CliRunner().invoke(app, []).output


def test_main_runs_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pistol", "--version"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 0
    assert __version__ in capsys.readouterr().out


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "pistol.cli")
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match=r"pip install 'pistol\[cli\]'"):
        main()


def greet(name: str) -> None:
    """Say hello."""
    print(f"hello {name}")


group = typer.Typer(help="Several commands.")
group.command()(greet)
group.callback()(lambda: None)


@pytest.fixture
def hooked(monkeypatch):
    """The command as it is with these entry points and no others."""

    def make(**points):
        monkeypatch.setattr(EntryPoint, "load", lambda point: points[point.name])
        known = [EntryPoint(name, "some.module:thing", cli.GROUP) for name in points]
        monkeypatch.setattr(cli, "entry_points", EntryPoints(known).select)
        made = typer.Typer()
        made.callback()(lambda: None)
        cli.add_commands(made)
        return made

    return make


@pytest.mark.parametrize("name", cli.LAB)
@pytest.mark.parametrize("more", [[], ["--quick", "--out", "x"], ["engine", "--toy"], ["--help"]])
def test_without_the_lab_its_commands_say_where_they_are(hooked, name, more):
    result = CliRunner().invoke(hooked(), [name, *more])
    assert result.exit_code == 2
    (line,) = result.output.splitlines()
    assert line.startswith(f"pistol {name} comes with pistol-lab")
    assert "pip install ./lab" in line
    assert name not in CliRunner().invoke(hooked(), ["--help"]).output


def test_entry_points_add_functions_and_apps(hooked):
    app = hooked(bench=greet, more=group)
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "bench" in shown
    assert "Say hello." in shown
    assert "reproduce" not in shown
    assert CliRunner().invoke(app, ["bench", "you"]).output == "hello you\n"
    assert CliRunner().invoke(app, ["more", "greet", "all"]).output == "hello all\n"


def test_the_library_never_names_the_lab():
    sources = [path.read_text(encoding="utf-8") for path in Path(cli.__file__).parent.rglob("*.py")]
    assert sources
    assert not [source for source in sources if "pistol_lab" in source]


def unusable(folder):
    """Paths of files that cannot be written, and why."""
    (folder / "file").write_text("")
    (folder / "folder.png").mkdir()
    yield folder / "file" / "x.png", f"{folder / 'file'} is a file"
    yield folder / "file" / "deeper" / "x.png", "Not a directory"
    yield folder / "folder.png", "Is a directory"
    yield Path("/proc/nowhere/x.png"), "No such file"
    if os.geteuid():
        (folder / "closed").mkdir(mode=0o500)
        yield folder / "closed" / "x.png", "Permission denied"
        (folder / "fixed.png").touch(mode=0o400)
        yield folder / "fixed.png", "Permission denied"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems word it differently")
def test_a_picture_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("pistol._demo.run", None)  # calling it would be a TypeError
    for path, reason in unusable(tmp_path):
        result = CliRunner().invoke(app, ["demo", "--picture", str(path)])
        (line,) = result.output.splitlines()
        assert result.exit_code == 2
        assert line.startswith(f"--picture: {path} cannot be written: {reason}")


@pytest.mark.parametrize("name", ["demo.xyz", "demo"])
def test_a_picture_of_an_unknown_kind_is_refused_before_the_work(tmp_path, monkeypatch, name):
    monkeypatch.setattr("pistol._demo.run", None)
    result = CliRunner().invoke(app, ["demo", "--picture", str(tmp_path / name)])
    (line,) = result.output.splitlines()
    assert result.exit_code == 2
    assert ".png" in line
    assert not list(tmp_path.iterdir())


def test_a_file_that_can_be_written_is_left_as_it_is(tmp_path):
    old = tmp_path / "old"
    old.write_text("kept")
    assert cli.writable(old, "--out").read_text() == "kept"
    new = cli.writable(tmp_path / "a" / "b" / "new", "--out")
    assert not new.exists()
    assert not list(new.parent.iterdir())
