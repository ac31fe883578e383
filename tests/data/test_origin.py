"""Centring for linear models without an intercept: what is learned stays linear, f(0) = 0."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol import LinearPistolClassifier, LinearPistolRegressor
from pistol._data.origin import OriginScaler, origin_scaler
from pistol._data.scaling import moments_of

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)
offsets = st.lists(st.sampled_from([0.0, 1.0, -30.0, 1e3]), min_size=4, max_size=4)


def rows(seed, offset, n=30):
    """Four features around these means in scales of their own, and a constant one."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, 4)) + offset) * [1.0, 1e-3, 50.0, 1.0]
    return np.column_stack([X, np.full(n, 3.0)])


def found(X):
    return origin_scaler(moments_of(X, np.ones(len(X))))


@few
@given(seed=seeds, offset=offsets)
def test_scaled_rows_are_linear_in_the_rows(seed, offset):
    X = rows(seed, offset)
    scaler, rng = found(X), np.random.default_rng(seed)
    a, b = rng.normal(size=2)
    A, B = X[:15], X[15:]
    together = scaler.transform(a * A + b * B)
    apart = a * scaler.transform(A) + b * scaler.transform(B)
    assert_allclose(together, apart, rtol=1e-6, atol=1e-6 * np.abs(apart).max())
    assert_array_equal(scaler.transform(np.zeros((1, 5))), 0.0)


@few
@given(seed=seeds, offset=offsets)
def test_rows_are_centred_and_the_mean_is_one_feature_more(seed, offset):
    X = rows(seed, offset)
    scaler = found(X)
    Z = scaler.transform(X)
    assert Z.shape == (len(X), scaler.features) == (len(X), 6)
    if scaler.mu.any():
        assert_allclose(Z.mean(axis=0)[:-1], 0.0, atol=1e-6 * np.abs(scaler.mu).max())
        assert_allclose(Z[:, -1].mean(), 1.0, rtol=1e-6)


@few
@given(seed=seeds, offset=offsets)
def test_weights_of_raw_rows_are_the_same_function(seed, offset):
    X, rng = rows(seed, offset), np.random.default_rng(seed)
    scaler, weights = found(X), rng.normal(size=(2, 7))
    weights[:, -1] = 0.0  # there is no intercept
    raw = scaler.to_raw(weights)
    f = scaler.transform(X) @ weights[:, :-1].T
    assert_allclose(X @ raw[:, :-1].T, f, rtol=1e-6, atol=1e-6 * max(np.abs(f).max(), 1.0))
    assert_array_equal(raw[:, -1], 0.0)


@few
@given(seed=seeds, offset=offsets, other=offsets)
def test_from_raw_keeps_the_function(seed, offset, other):
    """A stream that is scaled anew goes on with the same function of the user's rows."""
    X, rng = rows(seed, offset), np.random.default_rng(seed)
    raw = np.column_stack([rng.normal(size=(2, 5)), np.zeros(2)])
    for scaler in (found(X), found(rows(seed + 1, other)), OriginScaler(np.zeros(5), np.ones(5))):
        again = scaler.to_raw(scaler.from_raw(raw))
        assert_allclose(X @ again[:, :-1].T, X @ raw[:, :-1].T, rtol=1e-6, atol=1e-5)


@few
@given(seed=seeds)
def test_rows_around_the_origin_are_scaled_and_no_more(seed):
    X = np.random.default_rng(seed).normal(size=(200, 3)) * [1.0, 10.0, 1e-4]
    scaler = found(X)
    assert not scaler.mu.any()
    Z = scaler.transform(X)
    assert_array_equal(Z[:, -1], 0.0)
    assert_allclose(Z[:, :-1], X / X.std(axis=0), rtol=1e-6, atol=1e-6)


def test_sparse_rows_are_taken_too():
    X = rows(0, [0.0, 1.0, -30.0, 1e3])
    scaler = found(X)
    assert_allclose(scaler.transform(sp.csr_array(X)), scaler.transform(X))


@pytest.mark.parametrize("how", ["fit", "orders=None", "partial_fit"])
@pytest.mark.parametrize("per_coordinate", [True, False])
@pytest.mark.parametrize("make", [LinearPistolClassifier, LinearPistolRegressor])
def test_a_model_without_intercept_is_zero_at_zero(make, per_coordinate, how):
    X = rows(1, [0.0, 1.0, -30.0, 1e3], n=200)
    y = X[:, 0] + 0.1 * X[:, 1] > np.median(X[:, 0])
    model = make(fit_intercept=False, per_coordinate=per_coordinate, random_state=0)
    if how == "orders=None":
        model.set_params(orders=None)
    y = y if make is LinearPistolClassifier else y.astype(float)
    model = model.partial_fit(X, y) if how == "partial_fit" else model.fit(X, y)
    read = getattr(model, "decision_function", model.predict)
    assert_array_equal(model.intercept_, 0.0)
    assert_array_equal(read(np.zeros((1, 5))), 0.0)
    f = X @ np.ravel(model.coef_)
    assert_allclose(read(X), f, rtol=1e-5, atol=1e-5 * np.abs(f).max())
