"""A weight counts as copies, at every threshold, and costs nothing by its size."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import is_classifier

from pistol import LinearPistolClassifier, LinearPistolRegressor, PistolClassifier, PistolRegressor
from pistol._data.ordering import FREE, as_given, round_size
from pistol._training.kernel_family import KernelFamily
from pistol._training.plan import Limits

pytestmark = pytest.mark.no_cover  # tests of single parts count these lines

FOUR = [PistolClassifier, LinearPistolClassifier, PistolRegressor, LinearPistolRegressor]
four = pytest.mark.parametrize("make", FOUR)
kernels = pytest.mark.parametrize("make", [PistolClassifier, PistolRegressor])


def problem(make, n, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-64, 65, (n, d)) / 32
    f = X[:, 0] - X[:, 1] + rng.integers(-16, 17, n) / 32
    return X, (f > 0).astype(int) if is_classifier(make()) else f


def scores(model, X):
    return getattr(model, "decision_function", model.predict)(X)


def assert_alike(model, other, X):
    ours, theirs = scores(model, X), scores(other, X)
    assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3 * np.abs(theirs).max())
    assert model.t_ == other.t_
    assert model.passes_ == other.passes_
    assert len(model.fitted_.learners) == len(other.fitted_.learners)


def weighted_and_copied(make, n, k):
    """One model of n rows of weight k, and one of k copies of every row, in any order; the rows."""
    X, y = problem(make, n)
    many = np.random.default_rng(1).permutation(np.repeat(np.arange(n), k))
    more = cheaper(make, n * k)
    model = make(random_state=0, **more).fit(X, y, np.full(n, float(k)))
    return model, make(random_state=0, **more).fit(X[many], y[many]), X[:500]


def assert_copies(make, n, k):
    """Weight k on every row is k copies of every row."""
    assert_alike(*weighted_and_copied(make, n, k))


def cheaper(make, rounds):
    """Parameters with which many rounds are learned in less time; thresholds are the same."""
    slow = rounds > 700 and make in (PistolClassifier, PistolRegressor)
    return {"metric": False} if slow else {}


@four
@pytest.mark.parametrize(("n", "k"), [(250, 2), (350, 2), (130, 5)])
def test_so_it_is_around_600_rounds(make, n, k):
    assert_copies(make, n, k)


@pytest.fixture
def few_are_many(monkeypatch):
    """Cells from 800 rounds on, not from 5,000."""
    monkeypatch.setattr(KernelFamily, "limits", Limits(few=800, sample=400, cell=400))


@kernels
def test_so_it_is_where_cells_begin(make, few_are_many):
    """Last bits may choose other kernels in one table or the other, so most of them tell."""
    gaps = []
    for n in (401, 413, 421, 429, 437):
        model, other, X = weighted_and_copied(make, n, 2)
        ours, theirs = scores(model, X), scores(other, X)
        gaps.append(np.abs(ours - theirs).max() / np.abs(theirs).max())
        assert model.t_ / model.passes_ == other.t_ / other.passes_ == 2 * n
    assert np.median(gaps) < 0.01


@pytest.mark.parametrize("make", [LinearPistolClassifier, LinearPistolRegressor])
@pytest.mark.parametrize(("n", "k"), [(7500, 4), (7501, 4)])
def test_so_it_is_around_30000_rounds(make, n, k):
    X, y = problem(make, n, d=2)
    many = np.repeat(np.arange(n), k)
    model, other = (make(random_state=0) for _ in range(2))
    if n * k <= 30_000:  # the race takes up to 64 passes; two orders show as much
        for each in (model, other):
            each.set_params(orders=2, passes=1)
    assert_alike(model.fit(X, y, np.full(n, float(k))), other.fit(X[many], y[many]), X[:500])


@four
@pytest.mark.parametrize("n", [590, 790])
def test_rows_of_weight_zero_are_as_good_as_removed(make, n, few_are_many):
    """Also where they would take the number of rows beyond a threshold."""
    X, y = problem(make, n + 40)
    weight = np.ones(n + 40)
    gone = np.random.default_rng(0).permutation(n + 40)[:40]
    X[gone] *= 100
    weight[gone] = 0.0
    keep = weight > 0
    more = cheaper(make, n)
    model = make(random_state=0, **more).fit(X, y, weight)
    assert_alike(model, make(random_state=0, **more).fit(X[keep], y[keep]), X[keep][:500])


@four
@pytest.mark.parametrize("weight", [3.0, "copies"])
def test_what_cannot_be_predicted_is_not_predicted_on_held_out_rows(make, weight):
    """Copies of a held-out row are held out, too; nothing could be learned about it otherwise."""
    rng = np.random.default_rng(0)
    X, coin = rng.normal(size=(150, 3)), rng.integers(2, size=150)
    if weight == "copies":
        X, coin, weight = np.repeat(X, 3, axis=0), np.repeat(coin, 3), 1.0
    model = make(random_state=0).fit(X, coin, np.full(len(X), weight))
    assert model.held_out_error_ > 0.4


@four
def test_a_heavy_weight_costs_no_more_than_a_light_one(make):
    X, y = problem(make, 60)
    for weight in (1e2, 1e4, 1e12):
        w = np.where(np.arange(60) % 2, weight, 1.0)
        model = make(random_state=0, passes=1, orders=1).fit(X, y, w)
        rounds = as_given(w, round_size(w))
        assert model.fitted_.counts.rounds == len(rounds.rows) <= FREE
        assert_allclose(model.t_, w.sum(), rtol=1e-9)
        assert np.isfinite(scores(model, X)).all()


@four
def test_large_weights_are_learned_about_as_well_as_small_ones(make):
    X, y = problem(make, 200)
    Z, t = problem(make, 500, seed=1)
    light, heavy = (
        make(random_state=0, passes=2, orders=2).fit(X, y, np.full(200, w)).score(Z, t)
        for w in (20.0, 1e4)
    )
    assert abs(light - heavy) < 0.05


@four
def test_a_stream_takes_large_weights_too(make):
    X, y = problem(make, 300)
    more = {"classes": [0, 1]} if is_classifier(make()) else {}
    model = make()
    for lo in range(0, 300, 100):
        part = slice(lo, lo + 100)
        model.partial_fit(X[part], y[part], sample_weight=np.full(100, 1e4), **more)
    assert_allclose(model.t_, 3e6, rtol=1e-9)
    assert model.fitted_.counts.rounds <= 3 * FREE
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("make", [PistolClassifier, LinearPistolClassifier])
def test_class_weights_count_like_sample_weights(make):
    X, y = problem(make, 310)
    weight = np.where(y == 1, 3.0, 1.0)
    model = make(class_weight={0: 1.0, 1: 3.0}, random_state=0).fit(X, y)
    assert_alike(model, make(random_state=0).fit(X, y, weight), X)


@pytest.mark.parametrize("b", ["anytime", "horizon", 0.5])
def test_beyond_the_limit_only_ratios_of_weights_matter(machine, rows, assert_same, b):
    """A round of size R is learned like a round of size 1."""
    known = machine().get_params()
    own = {name: b for name in ("b", "eta") if name in known}
    X, y = rows(machine(), n=50)
    weight = 1e4 * np.random.default_rng(0).integers(1, 4, 50)
    ours, theirs = (
        machine(orders=2, random_state=0, **own).fit(X, y, factor * weight)
        for factor in (2.0**20, 1.0)
    )
    scale = 2.0**20 if "eta" not in known and "b" not in known else 1.0  # the Perceptron's f
    if scale == 1.0:
        assert_same(ours, theirs, X, near=1e-4)  # "anytime" of SGD counts from 1
    else:
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
