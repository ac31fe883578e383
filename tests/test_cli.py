"""The command: what a new user runs first must work and must not lie."""

import sys

import pytest
from typer.testing import CliRunner

from pistol import __version__
from pistol.__main__ import main
from pistol.cli import app


def test_demo_trains_both_and_writes_a_picture(tmp_path):
    picture = tmp_path / "demo.png"
    result = CliRunner().invoke(app, ["demo", "--picture", str(picture)])
    assert result.exit_code == 0, result.output
    assert "online error" in result.output
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
