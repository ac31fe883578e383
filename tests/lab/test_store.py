"""Jobs and what they found: none is done twice, none is lost, and old files can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pistol_lab.benchmarks import BENCHMARKS, report
from pistol_lab.benchmarks.quality import cells
from pistol_lab.protocol import Job
from pistol_lab.store import FILE, Store, run

ROOT = Path(__file__).parents[2]
COMMITTED = [ROOT / "lab" / "results", ROOT / "docs" / "extra" / "reproduction"]


def double(x):
    return {"twice": 2 * x}


def interrupt():
    raise KeyboardInterrupt


def never():
    raise AssertionError("this job was done before")


def quiet():
    return Console(quiet=True)


def test_what_a_job_found_is_there_for_the_next_run(tmp_path):
    run([Job("a", double, (1,)), Job("b", double, (2,), alone=True)], Store(tmp_path), quiet())
    again = Store(tmp_path)
    assert again.found == {"a": {"twice": 2}, "b": {"twice": 4}}
    run([Job("a", never), Job("b", never, alone=True), Job("c", double, (3,))], again, quiet())
    assert again.found["c"] == {"twice": 6}


def test_an_interruption_loses_only_the_job_under_way(tmp_path):
    jobs = [Job("a", double, (1,), alone=True), Job("b", interrupt, alone=True)]
    with pytest.raises(KeyboardInterrupt):
        run(jobs, Store(tmp_path), quiet())
    assert Store(tmp_path).found == {"a": {"twice": 2}}


@given(cut=st.integers(1, 60))
def test_half_a_line_of_a_killed_run_costs_that_line_only(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp("store")
    store = Store(folder)
    store.keep("a", {"x": 1}, 0.5)
    whole = (folder / FILE).read_text()
    store.keep("b", {"x": 2.0, "longer": "…" * 60}, 0.5)
    text = (folder / FILE).read_text()
    (folder / FILE).write_text(text[: max(len(text) - cut, len(whole) + 1)])
    torn = Store(folder)
    torn.keep("c", {"x": 3}, 0.5)
    read = Store(folder).found
    assert read["a"] == {"x": 1}
    assert read["c"] == {"x": 3}
    assert "b" not in read or cut == 1  # without its line break the line is whole


def test_a_number_that_is_no_number_is_not_kept(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        Store(tmp_path).keep("a", {"x": float("nan")}, 0.5)
    assert Store(tmp_path).found == {}


def test_a_result_that_is_no_longer_asked_for_is_computed_anew(tmp_path):
    store = Store(tmp_path)
    for x in (1, 1, 2):
        jobs = [
            Job("a", double, (x,), alone=True, fresh=lambda found, x=x: found["twice"] == 2 * x)
        ]
        run(jobs, store, quiet())
    assert store.found == Store(tmp_path).found == {"a": {"twice": 4}}
    assert len((tmp_path / FILE).read_text().splitlines()) == 2


@pytest.mark.parametrize("folder", COMMITTED, ids=lambda folder: folder.name)
def test_results_of_the_repository_are_read_to_the_last_line(folder):
    lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
    names = {json.loads(line)["name"] for line in lines}
    assert names == Store(folder).found.keys()
    assert len(names) == len(lines)


def test_results_of_the_repository_are_results_and_cells():
    store = Store(COMMITTED[0])
    measured = [name for name in BENCHMARKS if report.job_name(name) in store.found]
    results = [report.read(store, name) for name in measured]
    assert [result.name for result in results] == measured
    assert {"quality", "growth", "svm-a9a"} <= set(measured)
    found = cells.read(store)
    assert len(found) + len(results) == len(store.found)
    assert {cells.job_name(*key) for key in found} < store.found.keys()
