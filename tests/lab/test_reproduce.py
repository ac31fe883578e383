"""`pistol reproduce`: the whole of it at reduced size, without any data set at hand."""

from __future__ import annotations

import re

import pytest
from rich.console import Console
from typer import Typer
from typer.testing import CliRunner

from pistol_lab import cli, reproduction
from pistol_lab.reproduction import bounds, rates
from pistol_lab.reproduction.section7 import trials
from pistol_lab.store import FILE, Store

app = Typer()
app.command()(cli.reproduce)


SAVED = reproduction.report._saved


def saved_once(drawing, kind, dpi, metadata):
    """Pictures as SVG alone, with all in its first place: other tests see to PNG and to layout."""
    if kind != "svg":
        return b"\x89PNG"
    drawing.set_layout_engine("none")  # which would draw everything several times
    return SAVED(drawing, kind, dpi, metadata)


def smaller(patch):
    """Every job of a quick run, each with less to do: what comes of it is no matter here."""
    patch.setattr(bounds, "QUICK", dict.fromkeys(bounds.QUICK, (30, 30)))
    patch.setitem(bounds.MISTAKES, True, (30, 30))
    patch.setitem(bounds.ROUNDS, True, (200, 2000, 500))
    for name, (_, *more) in bounds.TIMED.items():
        patch.setitem(bounds.TIMED, name, (800, *more))
    patch.setattr(rates.plan, "QUICK", rates.plan.QUICK._replace(J=32, octaves=11, seeds=2))
    patch.setattr(trials, "QUICK_ROWS", (60, 100))
    patch.setattr(trials, "WARM", 30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A quick run; scikit-learn's data stand in for all three, in all tests here."""
    folder = tmp_path_factory.mktemp("reproduction")
    with pytest.MonkeyPatch.context() as patch:
        smaller(patch)
        patch.delenv("PISTOL_DATA", raising=False)
        patch.setenv("PISTOL_CACHE", str(folder / "cache"))
        patch.setattr(reproduction.report, "_saved", saved_once)
        patch.setattr(reproduction.report, "EDGE", {})  # so it is drawn once
        result = CliRunner().invoke(app, ["--quick", "--out", str(folder)])
        assert result.exit_code == 0, result.output
        assert "report.html" in result.output
        kept = (folder / FILE).read_text()
        patch.setattr(reproduction.report, "write", lambda sections, out, about: out)
        reproduction.reproduce(folder, True, Console(quiet=True))  # nothing is left to do
        assert (folder / FILE).read_text() == kept
        yield folder


@pytest.fixture(scope="module")
def page(folder):
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_report_is_one_file_that_asks_for_nothing(page):
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert links
    assert not re.search(r"<(?:script|iframe)\b", page)
    assert all(link.startswith(("#", "data:", "https://")) for link in links)
    outside = re.findall(r'<(?!a\b)[a-z]+[^>]*(?:src|href)="https?:', page)
    assert not outside  # only a reader who follows a reference goes there


def test_every_part_is_there_with_claims_and_verdicts(page, folder):
    for title in (
        "What formulas settle",
        "The bounds at work",
        "The rates at work",
        "The experiments",
    ):
        assert title in page
    for figure in ("Figure 1", "Figure 2", "Figure 3"):
        assert figure in page
    found = Store(folder).found
    for part in reproduction.PARTS:
        claims = part.section(found, True).claims
        assert claims
        assert all(re.search(r"\d", claim.measured) for claim in claims)
    names = {path.stem for path in (folder / "figures").glob("*.png")}
    assert names == {path.stem for path in (folder / "figures").glob("*.svg")}
    assert len(names) >= 6


def test_what_stands_in_is_said(page):
    assert "A quick run" in page
    for name in ("a9a", "SensIT Vehicle", "news20.binary"):
        assert re.search(rf"scikit-learn [\w \(\)–,-]+ stands in for {re.escape(name)}", page)


def test_no_bound_is_broken_and_all_are_judged(folder):
    batches = [cell for name, cell in Store(folder).found.items() if name.startswith("bounds/")]
    broken = [cell for cell in batches if cell.get("violations")]
    assert len(batches) > 10
    assert not broken


def test_an_interruption_is_said_and_keeps_what_is_done(monkeypatch, tmp_path):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduction, "reproduce", interrupted)
    result = CliRunner().invoke(app, ["--quick", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert "run it again to go on" in " ".join(result.output.split())
