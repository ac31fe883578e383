"""With nothing set: units do not matter, streams may be cut anywhere, every size of data works."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier

from pistol import LinearPistolClassifier, LinearPistolRegressor, PistolClassifier, PistolRegressor
from pistol._learners import Cells
from pistol._learners.models import mean_model
from pistol._training import kernel_family, linear_family
from pistol._training.plan import Limits

pytestmark = pytest.mark.no_cover  # tests of single parts count these lines

CLASSIFIERS = [PistolClassifier, LinearPistolClassifier]
REGRESSORS = [PistolRegressor, LinearPistolRegressor]
classifiers = pytest.mark.parametrize("make", CLASSIFIERS)
regressors = pytest.mark.parametrize("make", REGRESSORS)
machines = pytest.mark.parametrize("make", CLASSIFIERS + REGRESSORS)
kernel_machines = pytest.mark.parametrize("make", [PistolClassifier, PistolRegressor])


def data(n=120, d=4, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + 0.5 * X[:, 1] + noise * rng.normal(size=n)


def for_task(make, y, classes=2):
    if not is_classifier(make()):
        return y
    return np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))


def scores(model, X):
    return getattr(model, "decision_function", model.predict)(X)


# Units


@machines
@pytest.mark.parametrize("seed", range(3))
def test_units_of_features_do_not_matter(make, seed):
    X, y = data(seed=seed)
    y = for_task(make, y, 3)
    unit = 10.0 ** np.random.default_rng(seed).integers(-6, 7, X.shape[1])
    ours = make(random_state=0).fit(X * unit, y).predict(X * unit)
    theirs = make(random_state=0).fit(X, y).predict(X)
    if is_classifier(make()):
        assert_array_equal(ours, theirs)
    else:
        assert_allclose(ours, theirs, atol=1e-3 * y.std())


@kernel_machines
@pytest.mark.parametrize("orders", ["auto", None])
@pytest.mark.parametrize("value", [0.0, 7.0, -1e6])
def test_a_constant_feature_changes_nothing(make, orders, value):
    X, y = data()
    y = for_task(make, y)
    wide = np.column_stack([X, np.full(len(X), value)])
    settings = {"orders": orders, "passes": 1, "random_state": 0}
    # a shuffled order depends on the content of the rows: only streams can be compared
    ours, theirs = make(**settings).fit(wide, y), make(**settings).fit(X, y)
    if orders is None:
        assert_allclose(scores(ours, wide), scores(theirs, X), rtol=1e-9, atol=1e-9)
    else:
        assert np.isfinite(scores(ours, wide)).all()
        other = wide + np.array([0, 0, 0, 0, 5.0])
        assert_array_equal(ours.predict(wide), ours.predict(other))


@regressors
@pytest.mark.parametrize("passes", [1, "auto"])
def test_units_of_targets_do_not_matter(make, passes):
    X, y = data()
    y = np.round(y * 2**20) / 2**20
    model, other = (make(random_state=0, passes=passes, orders=2) for _ in range(2))
    a, b = model.fit(X, y * 1e6 + 1e9).predict(X), other.fit(X, y).predict(X)
    assert_allclose(a, b * 1e6 + 1e9, rtol=1e-6)
    assert_allclose((a - 1e9) / 1e6, b, atol=0.05 * y.std())


# Streams


def feed(model, X, y, size):
    more = {"classes": np.unique(y)} if is_classifier(model) else {}
    for lo in range(0, len(y), size):
        model.partial_fit(X[lo : lo + size], y[lo : lo + size], **more)
    return model


@machines
@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("jump", [1.0, 1000.0])
def test_a_stream_may_be_cut_anywhere(make, size, jump):
    X, y = data(200)
    X[100:, 1] *= jump  # the scale of a feature jumps in mid-stream
    y = for_task(make, y)
    whole = feed(make(), X, y, len(y))
    assert_allclose(scores(feed(make(), X, y, size), X), scores(whole, X), rtol=1e-7, atol=1e-7)
    assert_allclose(scores(make(orders=None).fit(X, y), X), scores(whole, X), rtol=1e-9, atol=1e-9)
    assert whole.t_ == 200


@kernel_machines
def test_learning_goes_on_after_a_jump_of_scale(make):
    found = []
    for seed in range(3):  # one stream alone may be lucky or unlucky
        X, y = data(1500, seed=seed)
        y = for_task(make, y)
        X[500:, 2] *= 1000.0  # a useless feature becomes large
        model = feed(make(), X, y, 100)
        assert np.isfinite(scores(model, X)).all()
        found.append(model.score(X[1000:], y[1000:]))
    assert np.median(found) > (0.85 if is_classifier(model) else 0.4)


@machines
@pytest.mark.parametrize("copies", [1, 3])
def test_drift_or_not_a_stream_may_be_cut_anywhere(make, copies):
    X, y = data(150)
    y = for_task(make, y)
    X, y = np.repeat(X, copies, axis=0), np.repeat(y, copies)
    models = [feed(make(drift=True), X, y, size) for size in (7, 64)]
    assert_allclose(*(scores(model, X) for model in models), rtol=1e-6, atol=1e-6)


@machines
def test_fit_then_partial_fit_goes_on(make):
    X, y = data(300)
    y = for_task(make, y)
    model = make(random_state=0).fit(X[:200], y[:200])
    before = model.t_
    model.partial_fit(X[200:], y[200:])
    assert model.t_ == pytest.approx(before + 100)
    assert model.score(X, y) > 0.8


# Probabilities


@classifiers
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("loss", ["smooth_hinge", "logistic"])
@pytest.mark.parametrize("orders", ["auto", None])
def test_probabilities_follow_the_scores(make, classes, loss, orders):
    X, y = data(noise=0.5)
    y = for_task(make, y, classes)
    model = make(loss=loss, orders=orders, random_state=0).fit(X, y)
    P = model.predict_proba(X)
    assert P.shape == (len(X), classes)
    assert_allclose(P.sum(axis=1), 1.0)
    assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))


# Sizes


@machines
@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_rows(make, n):
    X, y = data(n)
    y = np.arange(n) % 2 if is_classifier(make()) else y
    if is_classifier(make()) and n == 1:
        with pytest.raises(ValueError, match="at least 2 classes"):
            make().fit(X, y)
        model = make().partial_fit(X, y, classes=[0, 1])
    else:
        model = make(random_state=0).fit(X, y)
    assert np.isfinite(scores(model, X)).all()


@machines
def test_copies_of_one_row(make):
    X, y = np.tile([[1.0, -2.0, 0.0]], (30, 1)), np.arange(30) % 3 == 0
    model = make(random_state=0).fit(X, y if is_classifier(make()) else y.astype(float))
    assert np.isfinite(scores(model, X)).all()
    assert len(np.unique(model.predict(X))) == 1


@regressors
@pytest.mark.parametrize("value", [0.0, -3.0, 1e9])
def test_constant_targets_are_learned(make, value):
    X, _ = data(50)
    model = make(random_state=0).fit(X, np.full(50, value))
    assert_allclose(model.predict(X), value, rtol=1e-6, atol=1e-9)


@kernel_machines
def test_more_rows_than_a_race_takes(make):
    X, y = data(5100, d=2)
    y = for_task(make, y)
    model = make(random_state=0).fit(X, y)
    assert {type(learner) for learner in model.fitted_.learners} == {Cells}
    assert model.score(X, y) > 0.9
    if is_classifier(model):
        P = model.predict_proba(X[:50])
        assert_allclose(P.sum(axis=1), 1.0)


@machines
def test_where_a_race_is_on_a_sample_or_not_at_all_there_is_one_order(make, monkeypatch):
    X, y = data(300)
    y = for_task(make, y, 3)
    few = Limits(few=200, sample=150, most_repeats=10, repeated=50_000)
    monkeypatch.setattr(kernel_family.KernelFamily, "limits", few)
    monkeypatch.setattr(linear_family.LinearFamily, "limits", Limits(few=200))
    many = make(random_state=0).fit(X, y)
    assert len(many.fitted_.learners) == 1
    assert many.score(X, y) > 0.75
    assert len(make(random_state=0, orders=2).fit(X, y).fitted_.learners) == 2


def test_sparse_text_of_many_features():
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 20_000), density=1e-3, format="lil", rng=rng)
    y = rng.integers(2, size=300)
    X[y == 1, 7] = 1.0
    X = sp.csr_array(X)
    for make in CLASSIFIERS:
        model = make(random_state=0).fit(X, y)
        assert model.score(X, y) > 0.9
        model.partial_fit(X[:20], y[:20])
        assert np.isfinite(scores(model, X)).all()


# Classes


@classifiers
def test_a_rare_class_is_found(make):
    X, _ = data(400)
    y = (np.arange(400) % 40 == 0).astype(int)
    X[y == 1, 0] += 4.0
    for class_weight in (None, "balanced", {0: 1.0, 1: 10.0}):
        model = make(random_state=0, class_weight=class_weight).fit(X, y)
        found = model.predict(X)
        assert (found[y == 1] == 1).mean() > 0.5
        assert (found[y == 0] == 0).mean() > 0.95


@classifiers
def test_a_class_of_one_row(make):
    X, _ = data(60)
    y = np.r_[np.zeros(59, int), 1]
    model = make(random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (60, 2)
    assert np.isfinite(model.predict_proba(X)).all()


@kernel_machines
def test_predictions_in_float32_are_those_in_float64_but_for_rounding(make, monkeypatch):
    monkeypatch.setattr(kernel_family, "PRECISE", 20)  # support rows
    X, y = data(n=150)
    model = make(random_state=0).fit(X, np.sign(y) if make is PistolClassifier else y)
    exact = mean_model([learner.model() for learner in model.fitted_.learners])
    Z = model.fitted_.scaler.transform(X)
    small, large = model.fitted_.model().decide(Z), exact.decide(Z)
    assert model.fitted_.model().rows.dtype == np.float32
    assert_allclose(small, large, atol=1e-5 * np.abs(large).max())
