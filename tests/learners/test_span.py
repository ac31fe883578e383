"""At most so many support rows: what is learned from others is projected on the span of these."""

import pickle
from math import exp

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import pistol
from pistol import PistolClassifier, PistolRegressor, reference
from pistol._compiled.types import read_only
from pistol._learners import Dual, Rule
from pistol.kernels import get_kernel
from pistol.losses import LOSSES
from pistol.online import Learner

few = settings(max_examples=3, deadline=None)
seeds = st.integers(0, 10**6)
GAMMAS = (0.5, 2.0)


def rows(seed, n=20, d=2):
    """Some rows come twice."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    X[n // 2] = X[1]
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)


def rbf(gamma):
    return lambda x, z: exp(-gamma * float(np.square(x - z).sum()))


def d_hinge(y, p):
    return -y if y * p < 1 else 0.0


def rule(average="linear", loss="hinge"):
    return Rule(LOSSES[loss], "pistol", 1.0, 1.0, average)


def play(learner, X, Y, first=0):
    n = X.shape[0]
    order, r = read_only(np.arange(n)), read_only(np.ones(n))
    Y = read_only(np.ascontiguousarray(Y))
    return np.concatenate(
        [chunk.P for chunk in learner.play(X, Y, order, r, np.arange(first, first + n))]
    )


@few
@given(seeds, st.integers(1, 6))
def test_single_events_follow_the_reference(seed, most):
    X, y = rows(seed)
    learner = Learner(
        "hinge", kernel="rbf", gamma=0.5, a=1.0, b=1.0, average="uniform", max_support=most
    )
    fs = []
    for t, (p, f) in enumerate(
        reference.pistol_within(zip(X, y, strict=True), d_hinge, rbf(0.5), 1.0, 1.0, 1.0, most)
    ):
        fs.append(f)
        assert_allclose(learner.predict(X[t]), p, rtol=1e-6, atol=1e-9)
        learner.learn(X[t], y[t])
    mean = reference.average(fs, [1.0] * len(fs))
    expected = [reference.inner(mean, [(1.0, x)], rbf(0.5)) for x in X]
    assert_allclose(learner.decide(X), expected, rtol=1e-6, atol=1e-9)


@few
@given(seeds, st.integers(1, 6))
def test_sums_of_kernels_follow_the_reference(seed, most):
    """Each kernel has a span of its own; all learn from the gradient at the sum."""
    X, y = rows(seed)
    scores = [0.0, 0.0]

    def at_sum(y, p):
        return d_hinge(y, sum(scores))

    players = [
        reference.pistol_within(zip(X, y, strict=True), at_sum, rbf(gamma), 1.0, 1.0, 1.0, most)
        for gamma in GAMMAS
    ]
    expected = []
    for both in zip(*players, strict=True):
        scores[:] = [p for p, _ in both]
        expected.append(sum(scores))
    learner = Dual(rule(), tuple(get_kernel("rbf", g, 1, 0) for g in GAMMAS), 1, 1, most)
    assert_allclose(play(learner, X, y[:, None])[:, 0], expected, rtol=1e-6, atol=1e-9)
    assert learner.support.ids.n <= most


@few
@given(
    seeds, st.sampled_from(["linear", "uniform", None]), st.sampled_from([np.asarray, sp.csr_array])
)
def test_all_rounds_are_those_of_the_projected_kernel(seed, average, layout):
    """So the theorem holds for them, against every function in the span."""
    X, y = rows(seed, n=500, d=3)
    Y = np.column_stack([y, X[:, 2]])
    within = Dual(rule(average, "huber"), (get_kernel("rbf", 0.5, 1, 0),), 2, 1, 12)
    P = np.vstack(
        [play(within, layout(X[:450]), Y[:450]), play(within, layout(X[450:]), Y[450:], 450)]
    )
    kept = X[within.support.ids.values]
    assert len(kept) == 12

    def k(A, B):
        return np.exp(-0.5 * np.square(A[:, None] - B).sum(axis=2))

    whitened = np.linalg.pinv(np.linalg.cholesky(k(kept, kept) + 1e-13 * np.eye(12)))

    def projected(A, B):
        return (whitened @ k(kept, A)).T @ (whitened @ k(kept, B))

    exact = Dual(rule(average, "huber"), (get_kernel(projected, 1.0, 1, 0),), 2, 1)
    assert_allclose(P, play(exact, X, Y), rtol=1e-5, atol=1e-7)
    new = np.random.default_rng(seed + 1).normal(size=(5, 3))
    assert_allclose(
        within.model().decide(layout(new)), exact.model().decide(new), rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("make", [PistolClassifier, PistolRegressor])
@pytest.mark.parametrize("drift", [False, True])
def test_with_room_for_all_rows_nothing_changes(make, drift):
    X, y = rows(0, n=300, d=4)
    exact = make(drift=drift)
    for lo in range(0, 300, 80):
        exact.partial_fit(X[lo : lo + 80], y[lo : lo + 80])
    most = 300 if drift else exact.fitted_.learners[0].support.ids.n
    roomy = make(drift=drift, max_support=most)
    for lo in range(0, 300, 80):
        roomy.partial_fit(X[lo : lo + 80], y[lo : lo + 80])
    assert roomy.dual_coef_.tolist() == exact.dual_coef_.tolist()
    assert roomy.predict(X).tolist() == exact.predict(X).tolist()
    assert roomy.online_loss_ == exact.online_loss_


@pytest.mark.parametrize("make", [PistolClassifier, PistolRegressor])
def test_a_stream_in_little_memory_goes_on_after_files_pickles_and_interrupts(
    make, tmp_path, monkeypatch
):
    """Rows in ever new units: the scaling changes on the way, and the kernels with it."""
    X, y = rows(1, n=800, d=4)
    X *= np.geomspace(1, 50, 800)[:, None]
    model, path = make(max_support=20), tmp_path / "model"
    for lo in range(0, 400, 100):
        model.partial_fit(X[lo : lo + 100], y[lo : lo + 100])
    assert model.n_support_ == 20
    model.save(path)
    before, original = path.read_bytes(), Dual.project

    def interrupted(self, *args):
        original(self, *args)
        raise KeyboardInterrupt

    monkeypatch.setattr(Dual, "project", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[400:], y[400:])
    monkeypatch.setattr(Dual, "project", original)
    model.save(path)
    assert path.read_bytes() == before
    found = []
    for one in (model, pistol.load(path), pickle.loads(pickle.dumps(model))):
        one.partial_fit(X[400:], y[400:])
        one.save(path)
        found.append(path.read_bytes())
    assert found[0] == found[1] == found[2]
    assert model.n_support_ == 20
    assert np.isfinite(model.predict(X)).all()


def test_equal_rows_and_rows_of_zeros_are_no_harm():
    for kernel in ("auto", "linear", "rbf", "poly"):
        X = np.zeros((200, 2))
        X[100:] = [1.0, 1.0]
        y = np.arange(200) % 2
        model = PistolClassifier(kernel=kernel, gamma=1.0, max_support=10, orders=None)
        model.fit(X, y)
        assert model.n_support_ <= 10
        assert np.isfinite(model.decision_function([[0.0, 0.0], [1.0, 1.0], [5.0, -3.0]])).all()


def test_fit_with_passes_keeps_to_it_and_after_a_race_no_rows_are_added():
    X, y = rows(2, n=24)
    given = PistolClassifier(max_support=5, passes=2, orders=1, random_state=0).fit(X, y)
    assert given.n_support_ <= 5
    model = PistolClassifier(max_support=5, orders=2, random_state=0).fit(X, y)
    n = model.n_support_
    assert n > 5  # the rows bound it
    assert model.partial_fit(X + 0.01, y).n_support_ <= n


def test_what_cannot_be_is_refused():
    X, y = rows(3)
    for wrong in (0, -1, 1.5, "many"):
        with pytest.raises(ValueError, match="max_support must be a whole number"):
            PistolClassifier(max_support=wrong).fit(X, y)
        with pytest.raises(ValueError, match="max_support must be a whole number"):
            Learner(kernel="rbf", max_support=wrong)
    with pytest.raises(ValueError, match="precomputed"):
        PistolClassifier(kernel="precomputed", max_support=3).fit(X @ X.T, y)
    learner = Learner.theorem("hinge", kernel="rbf", record=True)
    learner.max_support = 2
    for x, target in zip(X, y, strict=True):
        learner.learn(x, target)
    with pytest.raises(ValueError, match="projected"):
        learner.bound(([1.0], X[:1]))
