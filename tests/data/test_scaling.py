"""Features are centred and scaled, by statistics known chunk by chunk, whatever the units are."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol._data.scaling import (
    DENSE,
    ENTRIES,
    FAR,
    Moments,
    Scaler,
    Unscaled,
    moments_of,
    scaler_of,
    stays_sparse,
    typical_square,
)

pytestmark = pytest.mark.interpreted

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)


def table(seed, n=40):
    """A continuous feature, one far from zero, a flag, a rare flag, a sparse and a constant one."""
    rng = np.random.default_rng(seed)
    rare = np.zeros(n)
    rare[rng.integers(n)] = 5.0
    return np.column_stack(
        [
            rng.normal(size=n),
            rng.normal(size=n) + 1e4,
            rng.permutation(np.arange(n) % 3 == 0) * 2.0,
            rare,
            rng.normal(size=n) * (rng.random(n) < 0.5),
            np.full(n, 7.0),
        ]
    )


def moments(X, weight=None, cuts=()):
    found = Moments(X.shape[1])
    weight = np.ones(X.shape[0]) if weight is None else weight
    for lo, hi in zip(sorted([0, *cuts]), sorted([*cuts, X.shape[0]]), strict=True):
        found.add(X[lo:hi], weight[lo:hi])
    return found


def scaled(X, weight):
    """The rows, scaled by their own statistics."""
    return scaler_of(X, weight).transform(X)


def assert_alike(ours, theirs):
    for name in ("weight", "mean", "deviation", "usual", "votes", "low", "high"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-9)


@few
@given(seed=seeds, cuts=st.lists(st.integers(0, 40), max_size=4))
def test_moments_in_any_chunks_are_those_of_all_rows(seed, cuts):
    X = table(seed)
    found = moments(X, cuts=cuts)
    assert_alike(found, moments(X))
    assert_allclose(found.mean, X.mean(axis=0), atol=1e-9)
    assert_allclose(found.deviation, np.sqrt(len(X)) * X.std(axis=0), rtol=1e-9, atol=1e-9)


@few
@given(seed=seeds, cuts=st.lists(st.integers(0, 40), max_size=3))
def test_sparse_rows_have_the_moments_of_dense_ones(seed, cuts):
    X = table(seed)
    weight = np.random.default_rng(seed).integers(0, 3, 40).astype(float)
    assert_alike(moments(sp.csr_array(X), weight, cuts), moments(X, weight))


@few
@given(seed=seeds)
def test_a_weight_is_so_many_copies(seed):
    X = table(seed)
    weight = np.random.default_rng(seed).integers(0, 4, 40)
    assert_alike(moments(X, weight.astype(float)), moments(np.repeat(X, weight, axis=0)))


def test_rows_of_weight_zero_change_no_statistics():
    X = np.vstack([table(0), np.full((3, 6), 1e60)])
    assert_alike(moments(X, np.r_[np.ones(40), np.zeros(3)]), moments(table(0)))
    nothing = moments(X, np.zeros(43))
    assert nothing.weight == 0
    assert_array_equal(nothing.scaler().scale, 0.0)
    assert nothing.typical_square(1.0) == 1.0
    assert_alike(moments(sp.csr_array(X), np.zeros(43)), nothing)


def test_every_kind_of_feature_has_its_scale():
    X = table(1)
    scaler = scaler_of(X, np.ones(40))
    Z = scaler.transform(X)
    assert_allclose(Z[:, [0, 1, 4]].mean(axis=0), 0.0, atol=1e-7)
    assert_allclose(Z[:, [0, 1, 4]].std(axis=0), 1.0, rtol=1e-7)
    assert_allclose(np.ptp(Z[:, 2]), 2.0)  # a flag: half the distance of its two values
    assert_array_equal(np.unique(Z[:, 3]), [0.0, 2.0])  # nearly always zero, and it stays zero
    assert_array_equal(Z[:, 5], 0.0)
    assert scaler.scale[5] == 0.0


def test_rounding_makes_no_constant_feature_vary():
    for value in (0.1, 1e9 / 3, -1e-200, 1e60 / 7):
        X = np.full((1000, 2), value)
        assert_array_equal(scaler_of(X, np.full(1000, 0.3)).scale, 0.0)
        assert_array_equal(scaler_of(sp.csr_array(X), np.full(1000, 0.3)).scale, 0.0)


@few
@given(seed=seeds, powers=st.lists(st.integers(-60, 60), min_size=6, max_size=6))
def test_powers_of_two_change_no_bit(seed, powers):
    X, unit, weight = table(seed), 2.0 ** np.array(powers), np.ones(40)
    assert_array_equal(scaled(X * unit, weight), scaled(X, weight))


@few
@given(seed=seeds, powers=st.lists(st.integers(-60, 50), min_size=6, max_size=6))
def test_powers_of_ten_change_next_to_nothing(seed, powers):
    X, unit, weight = table(seed)[:, [0, 2, 3, 4, 5]], 10.0 ** np.array(powers[:5]), np.ones(40)
    assert_allclose(scaled(X * unit, weight), scaled(X, weight), rtol=1e-9, atol=1e-9)


@few
@given(seed=seeds, shift=st.lists(st.integers(-(2**20), 2**20), min_size=6, max_size=6))
def test_the_origin_changes_next_to_nothing(seed, shift):
    X, weight = table(seed), np.ones(40)
    ours, theirs = scaled(X + shift, weight), scaled(X, weight)
    assert_allclose(ours, theirs, atol=1e-8)
    assert_array_equal(ours[:, [3, 5]], theirs[:, [3, 5]])  # a rare flag, and a constant


@few
@given(seed=seeds)
def test_votes_count_those_that_have_the_usual_value_less_the_others(seed):
    X = np.random.default_rng(seed).integers(0, 3, size=(41, 5)).astype(float)
    X[:25, :2] = [2.0, 0.0]
    for rows in (X, sp.csr_array(X), X[::-1]):
        found = moments_of(rows, np.ones(41))
        assert_array_equal(found.usual[:2], [2.0, 0.0])
        assert_array_equal(found.votes, 2 * (found.usual == X).sum(axis=0) - 41)


@few
@given(seed=seeds)
def test_the_order_of_the_rows_changes_no_scaling(seed):
    """But for values at the border of two steps, and a feature far from zero, which has fewer bits."""
    X = table(seed)
    ours, theirs = (scaler_of(rows, np.ones(40)).transform(X) for rows in (X, X[::-1]))
    assert np.delete(ours != theirs, 1, axis=1).mean() < 0.02
    assert_allclose(ours, theirs, rtol=0, atol=2**-35)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_scaling_can_be_inverted(dtype, layout):
    X = table(2).astype(dtype)
    X[:, 1] -= 1e4
    scaler = scaler_of(layout(X), np.ones(40))
    Z = scaler.transform(layout(X))
    assert Z.dtype == dtype
    assert_allclose(scaler.inverse_transform(Z), X, atol=1e-5 if dtype == np.float32 else 1e-9)


def test_a_feature_that_does_not_vary_yet_is_not_lost():
    """In a stream: its values count for nothing, and are there when it has a scale."""
    X = table(4)
    scaler = scaler_of(np.full_like(X, 3.0), np.ones(40)).faintly()
    assert not scaler.varies.any()
    assert np.abs(scaler.transform(1e60 * X)).max() < 1e-20
    assert_allclose(scaler.inverse_transform(scaler.transform(X)), X, rtol=1e-12, atol=1e-12)
    assert scaler.near(scaler_of(np.full_like(X, 3.0), np.ones(40)))


def test_sparse_rows_of_many_features_stay_sparse():
    X = sp.random_array((30, DENSE + 1), density=1e-3, format="csr", rng=np.random.default_rng(0))
    scaler = scaler_of(X, np.ones(30))
    Z = scaler.transform(X)
    assert sp.issparse(Z)
    assert Z.nnz == X.nnz
    assert_array_equal(scaler.center, 0.0)
    assert_allclose(scaler.transform(X.toarray()), Z.toarray())
    dropped = scaler.scale == 0
    back = scaler.inverse_transform(Z).toarray()
    assert_allclose(back[:, ~dropped], X.toarray()[:, ~dropped])


@pytest.mark.parametrize("scale", [1e-290, 1e-200, 1.0, 1e60])
def test_no_magnitude_is_too_large_or_too_small(scale):
    X = scale * table(3)[:, [0, 2, 3, 4]]
    scaler = scaler_of(X, np.ones(40))
    assert_allclose(scaler.transform(X), scaled(X / scale, np.ones(40)), atol=1e-8)
    assert np.abs(scaler.transform(np.full((1, 4), 1e70))).max() <= FAR["d"]
    assert np.abs(scaler.transform(np.full((1, 4), 1e38, np.float32))).max() <= FAR["f"]


def test_near_scalers_are_those_that_change_little():
    scaler = Scaler(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    assert scaler.near(Scaler(np.array([1.1, 5.0]), np.array([2.2, 0.0])))
    for other in (
        [[1.0, 0], [2.6, 0]],
        [[1.0, 0], [1.5, 0]],
        [[2.0, 0], [2, 0]],
        [[1.0, 0], [2, 1]],
    ):
        assert not scaler.near(Scaler(*np.array(other, float)))
    assert not Scaler(np.zeros(1), np.full(1, 1e-70)).near(Scaler(np.ones(1), np.full(1, 1e300)))


@few
@given(seed=seeds)
def test_the_typical_square_is_the_mean_squared_distance(seed):
    Z = np.random.default_rng(seed).normal(size=(12, 3))
    square = ((Z[:, None] - Z[None]) ** 2).sum(axis=2).mean()
    assert_allclose(typical_square(Z, np.ones(12)), square, rtol=1e-9)
    assert typical_square(np.ones((5, 2)), np.ones(5)) == 1.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_rows_of_any_width_are_centred(dtype):
    X = np.random.default_rng(0).normal(size=(20, DENSE + 1)).astype(dtype) + 10
    scaler = scaler_of(X, np.ones(20))
    assert scaler.centred
    assert_allclose(scaler.transform(X).mean(axis=0), 0.0, atol=1e-5)


def test_sparse_rows_stay_sparse_where_they_are_wide_or_many():
    def rows(n, d):
        return sp.csr_array((n, d))

    assert not stays_sparse(rows(10, DENSE), whole=True)
    assert stays_sparse(rows(10, DENSE + 1), whole=True)
    assert stays_sparse(rows(ENTRIES // DENSE + 1, DENSE), whole=True)
    assert not stays_sparse(rows(ENTRIES // DENSE + 1, DENSE), whole=False)
    assert not stays_sparse(np.empty((1, DENSE + 1)), whole=True)


# Weights of linear models


@few
@given(seed=seeds, outputs=st.integers(1, 3))
def test_weights_of_raw_rows_are_the_same_function(seed, outputs):
    X, rng = table(seed), np.random.default_rng(seed)
    scaler = scaler_of(X, np.ones(40))
    weights = rng.normal(size=(outputs, 7))
    raw = scaler.to_raw(weights.copy())
    f = scaler.transform(X) @ weights[:, :-1].T + weights[:, -1]
    assert_allclose(X @ raw[:, :-1].T + raw[:, -1], f, rtol=1e-6, atol=1e-6)


@few
@given(seed=seeds, faint=st.booleans())
def test_from_raw_inverts_to_raw(seed, faint):
    X, rng = table(seed), np.random.default_rng(seed)
    scaler = scaler_of(X, np.ones(40))
    scaler = scaler.faintly() if faint else scaler
    weights = rng.normal(size=(2, 7))
    weights[:, :-1] *= scaler.varies  # what is dropped has no weight
    again = scaler.from_raw(scaler.to_raw(weights.copy()))
    assert_allclose(again, weights, rtol=1e-9, atol=1e-8)


def test_no_scaling_changes_nothing():
    X, weights = table(0), np.arange(14.0).reshape(2, 7)
    scaler = Unscaled(6)
    assert scaler.transform(X) is X
    assert scaler.inverse_transform(X) is X
    assert scaler.to_raw(weights) is weights
