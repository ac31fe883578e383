"""A metric multiplies scaled features; weights are free of rounding."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol._data.metric import Weighted, mean_weights, metric_weights, weighted
from pistol._data.scaling import Unscaled, scaler_of

few = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 10**6)


def some(seed, n=30, d=4):
    return np.random.default_rng(seed).normal(size=(n, d))


@few
@given(seed=seeds)
def test_weights_are_proportional_to_derivatives(seed):
    squares = np.random.default_rng(seed).uniform(0.01, 1, 5)
    weight = metric_weights(np.ones(5), squares)
    assert_allclose(weight / weight[0], np.sqrt(squares / squares[0]), rtol=1e-3)
    assert_allclose(np.square(weight).mean(), 1.0, rtol=1e-3)


@few
@given(seed=seeds)
def test_the_chain_rule_holds(seed):
    rng = np.random.default_rng(seed)
    squares, before = rng.uniform(0.01, 1, 5), rng.uniform(0.5, 2, 5)
    direct = metric_weights(np.ones(5), squares * before**2)
    assert_allclose(metric_weights(before, squares), direct, rtol=1e-3)


@few
@given(seed=seeds)
def test_rounding_changes_no_weight(seed):
    squares = np.random.default_rng(seed).uniform(0.01, 1, 5)
    off = squares * (1 + 1e-13)
    assert_array_equal(metric_weights(np.ones(5), squares), metric_weights(np.ones(5), off))


def test_where_nothing_was_learned_the_weights_stay():
    for squares in (np.zeros(3), np.array([np.nan, 1, 1]), np.array([np.inf, 1, 1])):
        assert_array_equal(metric_weights(np.ones(3), squares), 1.0)


@few
@given(seed=seeds)
def test_a_metric_can_be_inverted(seed):
    X, weight = some(seed), np.random.default_rng(seed).uniform(0.1, 2, 4)
    for scaler in (scaler_of(X, np.ones(len(X))), Unscaled(4)):
        metric = Weighted(scaler, weight)
        Z = metric.transform(X)
        assert_allclose(Z, scaler.transform(X) * weight)
        assert_allclose(metric.inverse_transform(Z), X, atol=1e-6)
        assert_array_equal(metric.varies, scaler.varies)


def test_sparse_rows_are_weighted_like_dense_ones():
    X, weight = sp.random_array((9, 6), density=0.5, format="csr"), np.arange(1.0, 7)
    assert_allclose(weighted(X, weight).toarray(), X.toarray() * weight)


def test_features_that_do_not_count_are_not_counted():
    X = some(0)
    scaler = scaler_of(X, np.ones(len(X)))
    assert_allclose(Weighted(scaler, np.ones(4)).effective, 4)
    assert_allclose(Weighted(scaler, np.array([1, 1, 1e-9, 0])).effective, 2)


def test_near_metrics_are_those_that_change_little():
    scaler = scaler_of(some(0), np.ones(30))
    one = Weighted(scaler, np.array([1, 1, 1, 0.01]))
    assert one.near(Weighted(scaler, np.array([1.1, 1, 1, 0.001])))
    assert not one.near(Weighted(scaler, np.array([1.4, 1, 1, 0.01])))
    assert not one.near(scaler)


def test_the_mean_metric_of_several_folds():
    assert_allclose(mean_weights(np.array([[1.0, 1.0], [1.0, 1.0]])), 1.0)
    first, second = mean_weights(np.array([[1.0, 0.0], [1.0, 1.0]]))
    assert_allclose(first / second, np.sqrt(2), rtol=1e-3)
