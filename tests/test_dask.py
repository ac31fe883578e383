"""Clusters of real worker processes: the result of one machine, whatever happens to workers."""

import os
import signal
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

import dask  # noqa: E402
import pandas as pd  # noqa: E402
from dask import delayed  # noqa: E402

import pistol  # noqa: E402
from pistol._dask import memory, steps  # noqa: E402
from pistol._dask.bars import bar  # noqa: E402
from pistol._dask.running import Run, shared_out  # noqa: E402
from pistol._data import blocks as _blocks  # noqa: E402
from pistol._data.files.basics import Chunk  # noqa: E402
from pistol._learners import Cells  # noqa: E402
from pistol._learners.trees import grafted, grow_tree  # noqa: E402
from pistol._training.kernel_family import KernelFamily  # noqa: E402
from pistol._training.linear_family import LinearFamily  # noqa: E402
from pistol._training.plan import Limits  # noqa: E402
from pistol.dask import (  # noqa: E402
    DaskLinearPistolClassifier,
    DaskLinearPistolRegressor,
    DaskPistolClassifier,
    DaskPistolRegressor,
    blocks,
)

CELLS, ROUNDS = (
    Limits(few=150, sample=80, cell=60, base=150),
    Limits(few=150, wide=100_000, wide_passes=8),
)
LOOPS = int(os.environ.get("PISTOL_KILLS", "0"))  # how often workers are killed; 0: once


@pytest.fixture(scope="module", autouse=True)
def limits():
    """Let a few hundred rows be many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KernelFamily, "limits", CELLS)
        patch.setattr(LinearFamily, "limits", ROUNDS)
        yield


@pytest.fixture(scope="module")
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    # A worker that is killed twice in this time would be given up instead of started again.
    patient = {"distributed.deploy.lost-worker-timeout": "1h"}
    with (
        dask.config.set(patient),
        distributed.LocalCluster(**options, dashboard_address=None) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module", autouse=True)
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1, 10, 100, 1]
    return X, np.sin(2 * X[:, 0]) + 0.1 * X[:, 1] * X[:, 3] + 0.1 * rng.normal(size=n)


def labelled(n=400, seed=0):
    X, y = table(n, seed)
    return X, np.array(["low", "middle", "high"])[np.digitize(y, [-0.4, 0.4])]


def lazy(X, y, rows=100):
    return da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=rows)


MODELS = {
    "kernel-classes": (DaskPistolClassifier(random_state=0, metric=False), labelled),
    "kernel-targets": (DaskPistolRegressor(random_state=0, metric=False), table),
    "linear-classes": (DaskLinearPistolClassifier(random_state=0), labelled),
    "linear-targets": (DaskLinearPistolRegressor(random_state=0), table),
}
KERNEL, LINEAR = "kernel-targets", "linear-classes"
every = pytest.mark.parametrize("name", MODELS)
two = pytest.mark.parametrize("name", [KERNEL, LINEAR])


@pytest.fixture(scope="module")
def fitted(client):
    """Each model, learned once by two workers."""
    return {name: clone(model).fit(*lazy(*rows())) for name, (model, rows) in MODELS.items()}


def assert_same(answer, expected):
    """Equal labels, and numbers but for rounding in float32, which depends on the size of a block."""
    if expected.dtype.kind == "f":
        assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)
    else:
        assert_array_equal(answer, expected)


@every
def test_lazy_answers_are_those_of_the_plain_estimator(fitted, name):
    model, (X, y) = fitted[name], MODELS[name][1](150, seed=1)
    plain, (dX, dy) = model.to_local(), lazy(X, y, 40)
    assert type(plain).__name__ == type(model).__name__.removeprefix("Dask")
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(plain, method):
            answer = getattr(model, method)(dX)
            assert isinstance(answer, da.Array)
            expected = getattr(plain, method)(X)
            assert answer.shape == expected.shape
            assert_same(answer.compute(), expected)
    assert model.score(dX, dy) == pytest.approx(plain.score(X, y))
    frame = pd.DataFrame(X)
    by_frame = model.predict(dd.from_pandas(frame, npartitions=3, sort=False))
    assert_same(by_frame.compute(), plain.predict(X))


@every
def test_rows_are_learned_about_as_well_as_on_one_machine(fitted, name):
    model, rows = MODELS[name]
    X, y = rows(1000, seed=1)
    plain = model._unfitted().fit(*rows())
    assert fitted[name].to_local().score(X, y) > plain.score(X, y) - 0.1
    if name.startswith("kernel"):
        learners = fitted[name].fitted_.learners
        assert all(isinstance(learner, Cells) for learner in learners)
        assert all(learner.t == 400 * fitted[name].passes_ for learner in learners)


@two
def test_the_number_of_workers_does_not_matter(cluster, client, fitted, name):
    (model, rows), X = MODELS[name], table(100, seed=1)[0]
    one = next(iter(client.scheduler_info()["workers"]))
    dX, dy = lazy(*rows())
    with dask.annotate(workers=[one]):
        again = clone(model).fit(dX, dy)
    predict = "decision_function" if name == LINEAR else "predict"
    expected = getattr(fitted[name].to_local(), predict)(X)
    assert_array_equal(getattr(again.to_local(), predict)(X), expected)


@two
def test_attributes_and_parameters_are_those_of_the_plain_estimator(fitted, name):
    model = fitted[name]
    plain = model.to_local()
    assert set(model.get_params()) == {*plain.get_params(), "client"}
    assert model.n_features_in_ == 4
    assert model.t_ == plain.t_
    assert model.traffic_.tasks > 0
    assert model.traffic_.client_bytes > 0
    with pytest.raises(AttributeError, match="not fitted"):
        _ = clone(model).passes_
    with pytest.raises(TypeError, match="no parameter 'kernle'"):
        type(model)(kernle="rbf")


def test_few_rows_are_learned_exactly_as_on_one_machine():
    X, y = labelled(120)
    ours = DaskPistolClassifier(random_state=0).fit(*lazy(X, y, 50)).to_local()
    plain = pistol.PistolClassifier(random_state=0).fit(X, y)
    assert_array_equal(ours.decision_function(X), plain.decision_function(X))


def mixed(n=400, seed=0):
    X, y = table(n, seed)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 3]})
    frame["c"] = np.random.default_rng(seed).choice(["x", "y", "z"], n)
    frame.loc[::7, "b"] = np.nan
    return frame, y + (frame["c"] == "x")


@pytest.mark.parametrize(
    "model", [MODELS[KERNEL][0], MODELS["linear-targets"][0]], ids=["kernel", "linear"]
)
def test_tables_with_words_and_gaps(model):
    frame, y = mixed()
    X = dd.from_pandas(frame, npartitions=3, sort=False)
    ours = clone(model).fit(X, dd.from_pandas(y, npartitions=3, sort=False))
    plain = model._unfitted().fit(frame, y)
    more, expected = mixed(200, seed=1)
    assert ours.to_local().score(more, expected) > plain.score(more, expected) - 0.1
    assert list(ours.feature_names_in_) == ["a", "b", "c"]


def test_files_sparse_rows_weights_and_delayed_blocks(tmp_path):
    X, y = labelled()
    for i in range(3):
        part = pd.DataFrame(X[i::3], columns=list("abcd")).assign(kind=y[i::3], w=1.0)
        part.to_parquet(tmp_path / f"{i}.parquet")
    files = blocks(tmp_path, target="kind", weight="w")
    model = DaskLinearPistolClassifier(random_state=0).fit(files)
    answers = [part.compute() for part in model.predict(files)]
    assert_array_equal(
        answers[1], model.to_local().predict(pd.DataFrame(X[1::3], columns=list("abcd")))
    )
    assert model.score(files) > 0.5
    heavy = sp.csr_array(X * (np.abs(X) > 0.5))
    rows = [delayed((heavy[i::3], y[i::3], np.full(len(y[i::3]), 2.0))) for i in range(3)]
    model = DaskLinearPistolClassifier(random_state=0, class_weight="balanced").fit(rows)
    assert model.to_local().score(heavy, y) > 0.4
    assert model.fitted_.settings["class_weight"] == "balanced"


@pytest.mark.parametrize(
    ("X", "y", "problem"),
    [
        (np.ones((9, 2)), np.ones(9), "use the plain estimator"),
        (da.ones((9, 2), chunks=3), np.ones(9), "y must be a Dask collection"),
        (da.ones((9, 2), chunks=3), da.ones(8, chunks=3), "9 rows and y has 8"),
        (da.ones((9, 2), chunks=3), da.zeros(9, chunks=3), "at least 2 classes"),
    ],
)
def test_bad_input_is_named(X, y, problem):
    with pytest.raises((TypeError, ValueError), match=problem):
        DaskPistolClassifier().fit(X, y)


def test_values_that_are_no_numbers_are_named_by_the_worker():
    X, y = table()
    X[5, 2] = np.inf
    with pytest.raises(ValueError, match="X contains infinity"):
        DaskLinearPistolRegressor().fit(*lazy(X, y))
    with pytest.raises(ValueError, match="kernel='rbf'"):
        DaskPistolRegressor(kernel="rbf").fit(*lazy(*table()))


@two
def test_blocks_that_memory_does_not_hold_are_read_again(fitted, name, monkeypatch):
    monkeypatch.setattr(Run, "fits", lambda self, size: False)
    (model, rows), X = MODELS[name], table(100, seed=1)[0]
    again = clone(model).fit(*lazy(*rows()))
    assert_array_equal(again.to_local().predict(X), fitted[name].to_local().predict(X))


# Faults


def slowly(X, seconds=0.15):
    """X, with blocks that take their time. Workers do not have this module: they get the function."""

    def wait(block):
        time.sleep(seconds)
        return block

    return X.map_blocks(wait, dtype=float)


def _watched(nanny):
    process = nanny.process
    return nanny.status.name == "running" and process and process.status.name == "running"


def kill_one(cluster, after):
    """Kill one of our workers some time from now, once both are up and watched by their nannies."""
    deadline = time.time() + 60
    while not all(_watched(nanny) for nanny in cluster.workers.values()):
        assert time.time() < deadline, "a worker was not started again"
        time.sleep(0.05)
    victim = next(iter(cluster.workers.values())).pid

    def later():
        time.sleep(after)
        os.kill(victim, signal.SIGKILL)

    thread = threading.Thread(target=later)
    thread.start()
    return thread


@two
def test_killing_a_worker_loses_nothing(cluster, fitted, name):
    """In mid-fit and in mid-predict; where time is short, one of them for each model."""
    (model, rows), X = MODELS[name], table(100, seed=1)[0]
    predict = "decision_function" if name == LINEAR else "predict"
    again, expected = fitted[name], getattr(fitted[name].to_local(), predict)(X)
    for loop in range(max(LOOPS, 1)):
        if LOOPS or name == KERNEL:
            dX, dy = lazy(*rows())
            thread = kill_one(cluster, 0.1 + 0.3 * (loop % 5))
            again = clone(model).fit(slowly(dX), dy)
            thread.join()
            assert_array_equal(getattr(again.to_local(), predict)(X), expected)
        if LOOPS or name == LINEAR:
            thread = kill_one(cluster, 0.1)
            lazily = getattr(again, predict)(slowly(da.from_array(X, chunks=(25, -1))))
            assert_same(lazily.compute(), expected)
            thread.join()


def test_a_slow_worker_has_fewer_blocks_and_changes_nothing(fitted, tmp_path):
    """Others take over what it has not begun."""
    place = str(tmp_path)

    def wait(block):
        import os
        import time
        import uuid

        from distributed import get_worker

        name = get_worker().name
        open(os.path.join(place, f"{name}-{uuid.uuid4()}"), "w").close()
        time.sleep(0.5 if name == 0 else 0.05)
        return block

    model, rows = MODELS[KERNEL]
    X, y = rows()
    dX, dy = lazy(X, y)
    dX = dX.rechunk((25, -1)).map_blocks(wait, dtype=float).rechunk((100, -1))
    again = clone(model).fit(dX, dy)
    began = [file.name.split("-")[0] for file in tmp_path.iterdir()]
    assert began.count("0") < began.count("1")
    assert_same(again.to_local().predict(X), fitted[KERNEL].to_local().predict(X))


def test_blocks_that_cannot_be_held_are_read_again_for_every_step(tmp_path, monkeypatch):
    """A block that waited from one step for the next would be in memory with all others."""
    place = str(tmp_path)

    def noted(block):
        import os
        import uuid

        if len(block):
            open(os.path.join(place, uuid.uuid4().hex), "w").close()
        return block

    model, rows = MODELS[LINEAR]
    X, y = rows()
    dX, dy = lazy(X, y)
    model = clone(model).set_params(passes=1)
    held = clone(model).fit(dX, dy).to_local()
    monkeypatch.setattr(Run, "fits", lambda self, size: False)
    read = clone(model).fit(dX.map_blocks(noted, dtype=float), dy).to_local()
    # for counts, for statistics, for held-out rows and the one round
    assert len(list(tmp_path.iterdir())) >= 3 * dX.numblocks[0]
    assert_same(read.predict(X), held.predict(X))


@pytest.mark.skipif(not LOOPS, reason="set PISTOL_KILLS: workers are killed again and again")
def test_too_little_memory_is_said():
    """A worker that takes more than its limit is killed by its nanny, and so is the next."""

    def hungry(block):
        import time

        held = np.ones(10**8)
        time.sleep(20)
        return block + 0 * held[0]

    options = {"n_workers": 1, "threads_per_worker": 1, "memory_limit": "600MB"}
    X, y = lazy(*table())
    with (
        distributed.LocalCluster(**options, dashboard_address=None) as small,
        distributed.Client(small),
        pytest.raises(RuntimeError, match=r"(?s)workers died 4 times.*limit.*smaller blocks"),
    ):
        DaskPistolRegressor(random_state=0).fit(X.map_blocks(hungry, dtype=float), y)


@pytest.mark.parametrize(
    ("name", "step"),
    [
        (KERNEL, "counting rows"),
        (KERNEL, "choosing"),
        (KERNEL, "learning cells"),
        (LINEAR, "round 1"),
    ],
)
def test_an_interrupt_cancels_what_was_submitted(client, monkeypatch, name, step):
    """Whatever the fit was waiting for; and the cluster can be used as before."""
    model, rows = clone(MODELS[name][0]), MODELS[name][1]

    def interrupted(wait):
        def begin(self, futures, name):
            if name == step:
                raise KeyboardInterrupt
            return wait(self, futures, name)

        return begin

    for wait in (Run.finished, Run.gathered):
        monkeypatch.setattr(Run, wait.__name__, interrupted(wait))
    X, y = lazy(*rows())
    with pytest.raises(KeyboardInterrupt):
        model.fit(slowly(X, 0.05), y)
    assert not hasattr(model, "fitted_")
    deadline = time.time() + 20
    while any(client.processing().values()) and time.time() < deadline:
        time.sleep(0.05)
    assert not any(client.processing().values())
    assert client.submit(sum, (1, 2), pure=False).result(timeout=20) == 3


# Steps


@every
@pytest.mark.every_case_counts_lines  # workers count none, and each model takes steps of its own
def test_threads_of_one_process_give_the_same(fitted, name):
    """Where lines of the steps can be counted, too."""
    model, rows = MODELS[name]
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with (
        distributed.LocalCluster(**options, dashboard_address=None) as inside,
        distributed.Client(inside, set_as_default=False) as own,
    ):
        again = clone(model).set_params(client=own).fit(*lazy(*rows()))
        score = again.score(*lazy(*rows()))
    X, y = rows()
    assert_same(again.to_local().predict(X), fitted[name].to_local().predict(X))
    assert score == pytest.approx(again.to_local().score(X, y))


@pytest.mark.parametrize("seed", [None, np.random.RandomState(7)], ids=["none", "state"])
def test_tasks_that_are_computed_again_draw_the_same(seed):
    """The client draws one seed for all of them; the user's own parameter stays as it is."""
    model = DaskPistolRegressor(random_state=seed, metric=False).fit(*lazy(*table()))
    assert model.fitted_.settings["random_state"] is seed
    drawn = steps.seeded(pistol.PistolRegressor(random_state=seed)).random_state
    assert isinstance(drawn, int)
    assert steps.seeded(pistol.PistolRegressor(random_state=drawn)).random_state == drawn


def test_a_bar_names_the_steps_with_or_without_rich(capsys, monkeypatch):
    for there in (True, False):
        if not there:
            monkeypatch.setitem(sys.modules, "rich.progress", None)
        with bar(True) as tell:
            for done in range(3):
                tell("counting rows", done, 2)
        assert "counting rows" in capsys.readouterr().out
    with bar(False) as tell:
        tell("counting rows", 0, 2)
    assert capsys.readouterr().out == ""


def test_a_part_stays_with_who_has_it_up_to_a_share():
    threads = {"a": 1, "b": 1}
    assert shared_out([["b"], ["a"], ["a"], ["b"]], threads) == ["b", "a", "a", "b"]
    assert sorted(shared_out([["a"]] * 4, threads)) == ["a", "a", "b", "b"]
    assert sorted(shared_out([["a"]] * 6, {"a": 2, "b": 1})) == ["a"] * 4 + ["b"] * 2
    assert shared_out([["gone"], ["b"]], threads) == ["a", "b"]


def test_freed_memory_is_kept_until_the_last_task_ends(monkeypatch):
    calls = []
    library = SimpleNamespace(
        mallopt=lambda what, size: calls.append((what, size)), malloc_trim=lambda pad: calls.clear()
    )
    monkeypatch.setenv(memory.NAME, "65536")
    monkeypatch.setattr(memory, "_library", lambda: library)
    with memory.kept():
        assert memory.keeping(lambda: dict(calls)) == dict(calls)
        assert dict(calls) == {memory.TRIM: memory.KEPT, memory.MAP: memory.MAPPED}
    assert not calls


def test_a_sample_of_blocks_has_the_smallest_keys(monkeypatch):
    monkeypatch.setattr(_blocks, "SAMPLE", 64)
    monkeypatch.setattr(_blocks, "LEAST", 8)
    X, y = table(1000)
    cut = np.array_split(np.arange(1000), [10, 400, 900])
    parts = [_blocks.sample(Chunk(X[at], y[at], None), i, len(cut)) for i, at in enumerate(cut)]
    whole = _blocks.samples(parts)
    in_two_steps = _blocks.samples([_blocks.samples(parts[:2]), _blocks.samples(parts[2:])])
    assert_array_equal(whole.keys, in_two_steps.keys)
    assert 8 <= len(whole.keys) <= 64
    assert (whole.keys < whole.reach).all()
    for row, (block, number) in zip(whole.rows.X, whole.places, strict=True):
        assert_array_equal(row, X[cut[block][number]])


def test_surveys_add_up():
    X, y = labelled(100)
    weight = np.linspace(0, 2, 100)
    halves = [
        _blocks.survey(Chunk(X[at], y[at], weight[at]), True) for at in (slice(60), slice(60, None))
    ]
    together, once = _blocks.surveys(halves), _blocks.survey(Chunk(X, y, weight), True)
    assert together.counts == (60, 40)
    assert_array_equal(together.labels, once.labels)
    assert_allclose(together.shares, once.shares)
    assert together.counted == once.counted == 99
    assert together.starts() == [0, 60]


def test_a_grafted_tree_sends_rows_where_its_parts_do():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(600, 3))
    top = grow_tree(Z, 200, rng)
    at = top.cell_of(Z)
    branches = [grow_tree(Z[at == cell], 40, rng) for cell in range(top.cells)]
    tree = grafted(top, branches)
    assert tree.cells == sum(branch.cells for branch in branches)
    found, first = tree.cell_of(Z), 0
    for cell, branch in enumerate(branches):
        assert_array_equal(found[at == cell], first + branch.cell_of(Z[at == cell]))
        first += branch.cells
