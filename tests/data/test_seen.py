"""Very wide sparse rows are restricted to the features seen, which changes no model."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol import LinearPistolClassifier, LinearPistolRegressor
from pistol._data.seen import WIDE, seen_in

few = settings(max_examples=8, deadline=None)
seeds = st.integers(0, 10**6)
WIDTH = 10 * WIDE
both = pytest.mark.parametrize("make", [LinearPistolClassifier, LinearPistolRegressor])
forms = pytest.mark.parametrize("per_coordinate", [True, False])


def rows(seed, n=60, used=20, width=WIDTH):
    """Sparse rows that use a few of many features, and the same rows with these features alone."""
    rng = np.random.default_rng(seed)
    features = np.sort(rng.choice(width, used, replace=False))
    narrow = rng.normal(size=(n, used)) * (rng.random((n, used)) < 0.2)
    where, which = np.nonzero(narrow)
    data = narrow[where, which], (where, features[which])
    return sp.csr_array(sp.coo_array(data, shape=(n, width))), narrow, features


@few
@given(seed=seeds, cut=st.integers(1, 59))
def test_values_are_kept_and_later_features_do_not_move_earlier_ones(seed, cut):
    X, narrow, _ = rows(seed)
    first = seen_in(X[:cut])
    Z = first.transform(X[:cut])
    assert Z.shape == (cut, first.features)
    assert_allclose(
        np.sort(np.abs(Z.toarray()).sum(axis=1)), np.sort(abs(narrow[:cut]).sum(axis=1))
    )
    second = first.grown(X[cut:])
    assert_array_equal(second.transform(X[:cut]).toarray()[:, : first.features], Z.toarray())
    assert first.transform(X).shape == (60, first.features)  # what it does not know is left out
    assert second.grown(X) is second


@few
@given(seed=seeds)
def test_raw_weights_are_the_same_function(seed):
    X, _, _ = rows(seed)
    scaler = seen_in(X)
    weights = np.random.default_rng(seed).normal(size=(2, scaler.features + 1))
    raw = scaler.to_raw(weights)
    assert raw.shape == (2, WIDTH + 1)
    f = scaler.transform(X) @ weights[:, :-1].T + weights[:, -1]
    assert_allclose(X @ raw[:, :-1].T + raw[:, -1], f, rtol=1e-12, atol=1e-12)


def scores(model, X):
    return getattr(model, "decision_function", model.predict)(X)


def targets(make, narrow):
    f = narrow @ np.linspace(-1, 1, narrow.shape[1])
    return (f > np.median(f)).astype(int) if make is LinearPistolClassifier else f


@both
@forms
def test_a_model_of_wide_rows_is_that_of_the_features_in_use(make, per_coordinate):
    X, narrow, features = rows(0)
    y = targets(make, narrow)
    settings = {"per_coordinate": per_coordinate, "orders": None, "passes": 2, "scaling": False}
    wide, plain = make(**settings).fit(X, y), make(**settings).fit(sp.csr_array(narrow), y)
    assert_allclose(scores(wide, X), scores(plain, narrow), rtol=1e-9, atol=1e-12)
    coef = np.atleast_2d(wide.coef_)
    assert_allclose(coef[:, features], np.atleast_2d(plain.coef_), rtol=1e-9, atol=1e-12)
    assert np.count_nonzero(coef) <= len(features)


@both
@forms
@pytest.mark.parametrize("drift", [False, True])
def test_features_may_appear_later_in_a_stream(make, per_coordinate, drift):
    X, narrow, _ = rows(1, n=300, used=200)
    y = targets(make, narrow)
    more = {"classes": [0, 1]} if make is LinearPistolClassifier else {}
    settings = {"per_coordinate": per_coordinate, "drift": drift, "scaling": False}
    wide, plain = make(**settings), make(**settings)
    for lo in range(0, 300, 7):
        part = slice(lo, lo + 7)
        wide.partial_fit(X[part], y[part], **more)
        plain.partial_fit(sp.csr_array(narrow[part]), y[part], **more)
    assert_allclose(scores(wide, X), scores(plain, narrow), rtol=1e-8, atol=1e-10)
    other = copy.deepcopy(wide).partial_fit(X[:5], y[:5])
    assert_allclose(scores(wide, X), scores(plain, narrow), rtol=1e-8, atol=1e-10)
    assert other.t_ == wide.t_ + 5 or drift


@both
def test_an_error_in_a_chunk_with_new_features_changes_no_prediction(make):
    X, narrow, _ = rows(2, n=200, used=100)
    y = targets(make, narrow)
    model = make().partial_fit(X[:50], y[:50])
    before = scores(model, X)

    class Fail:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def on_fit_task_end(self, estimator, context):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(Fail()).partial_fit(X[50:], y[50:])
    assert_array_equal(scores(model, X), before)
    whole = make().partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    model.set_callbacks().partial_fit(X[50:], y[50:])
    assert_array_equal(scores(model, X), scores(whole, X))


@both
def test_a_feature_never_seen_counts_for_nothing(make):
    X, narrow, features = rows(3)
    model = make(random_state=0).fit(X, targets(make, narrow))
    unseen = next(j for j in range(WIDTH) if j not in set(features))
    Z = sp.lil_array(X)
    Z[:, unseen] = 100.0
    assert_array_equal(scores(model, sp.csr_array(Z)), scores(model, X))
