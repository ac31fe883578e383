"""Robust scaling: what is far out neither sets the scale nor counts much."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol._data.bends import Bent, bend, bent_scaler, in_steps, unbend
from pistol._data.fences import fences_of
from pistol._data.scaling import scaler_of

few = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 10**6)
N = 400


def rows(seed, n=N, d=3):
    return np.random.default_rng(seed).normal(size=(n, d))


def scaled(X, weight=None):
    weight = np.ones(len(X)) if weight is None else weight
    return bent_scaler(X, weight, np.arange(len(X)), weight)


@given(z=st.floats(-1e12, 1e12), more=st.floats(1e-3, 1e6))
def test_bending_is_odd_monotone_and_bounded(z, more):
    small, large = bend(np.array([z, z + more]))
    assert small <= large
    assert abs(small) <= 4.0
    assert bend(np.array([-z]))[0] == -small
    assert abs(z) > 2 or small == z


@given(z=st.floats(-1e3, 1e3))
def test_unbending_inverts_bending(z):
    assert_allclose(unbend(bend(np.array([z]))), [z], rtol=1e-9, atol=1e-12)


def test_values_without_tails_are_scaled_as_usual():
    X = np.random.default_rng(0).uniform(-1, 1, (N, 3))
    assert_array_equal(scaled(X).transform(X), scaler_of(X, np.ones(N)).transform(X))


@few
@given(seed=seeds, dtype=st.sampled_from(["f", "d"]), sparse=st.booleans())
def test_every_value_is_bent_and_rounded_though_few_are_touched(seed, dtype, sparse):
    X = np.exp(rows(seed)).astype(dtype)
    scaler = scaler_of(X, np.ones(N))
    plain = in_steps(bend(scaler.transform(X)))
    assert (plain > 2).any()
    X = sp.csr_array(X) if sparse else X
    ours = Bent(scaler).transform(X)
    assert_array_equal(ours, plain, strict=True)


@few
@given(seed=seeds, far=st.sampled_from([1e2, 1e6, 1e200]))
def test_a_single_cell_changes_next_to_nothing(seed, far):
    X = rows(seed)
    Y = X.copy()
    Y[0, 0] = far
    assert_allclose(scaled(Y).transform(Y)[1:], scaled(X).transform(X)[1:], atol=0.25)
    assert np.abs(scaled(Y).transform(Y)).max() <= 4.0


@few
@given(seed=seeds)
def test_heavy_tails_are_ranked_so_that_monotone_changes_do_not_matter(seed):
    z = rows(seed, 2000)
    X = np.exp(3 * z)
    scaler = scaled(X)
    assert set(scaler.ranked) == {0, 1, 2}
    Z = scaler.transform(X)
    assert np.abs(Z).max() <= 3.0
    assert_allclose(Z[np.argsort(X[:, 0]), 0], np.sort(Z[:, 0]))
    assert np.abs(np.sort(Z[:, 0]) - np.sort(z[:, 0]))[20:-20].max() < 0.5


@few
@given(seed=seeds, powers=st.lists(st.integers(-30, 30), min_size=3, max_size=3))
def test_powers_of_two_change_no_bit(seed, powers):
    X, unit = np.exp(2 * rows(seed)), 2.0 ** np.array(powers)
    assert_array_equal(scaled(X * unit).transform(X * unit), scaled(X).transform(X))


@few
@given(seed=seeds)
def test_shifts_change_next_to_nothing(seed):
    X = np.column_stack([rows(seed), np.exp(2 * rows(seed))])
    shift = np.random.default_rng(seed).uniform(-100, 100, 6)
    assert_allclose(scaled(X + shift).transform(X + shift), scaled(X).transform(X), atol=1e-8)


@few
@given(seed=seeds)
def test_a_weight_is_so_many_copies(seed):
    X = np.exp(2 * rows(seed, 60))
    weight = np.random.default_rng(seed).integers(1, 4, len(X))
    many = np.repeat(np.arange(len(X)), weight)
    assert_allclose(
        scaled(X, weight.astype(float)).transform(X), scaled(X[many]).transform(X), atol=1e-9
    )


@few
@given(seed=seeds)
def test_scaling_can_be_inverted(seed):
    X = np.column_stack([rows(seed), np.exp(2 * rows(seed))])
    scaler = scaled(X)
    inside = fences_of(X, np.ones(N), 6.0).within(X)
    back = scaler.inverse_transform(scaler.transform(inside))
    straight = [i for i in range(6) if i not in scaler.ranked]
    assert_allclose(back[:, straight], inside[:, straight], rtol=1e-6, atol=1e-6)
    again = scaler.transform(scaler.inverse_transform(scaler.transform(X)))
    assert_allclose(again, scaler.transform(X), atol=1e-6)


def test_a_feature_with_one_frequent_value_is_not_ranked():
    X = np.where(rows(0) > 0.8, np.exp(4 * rows(1)), 0.0)
    assert not scaled(X).ranked


def test_sparse_rows_are_bent_too():
    X = sp.random_array((50, 5000), density=0.01, format="csr", rng=np.random.default_rng(0))
    X.data[0] = 1e9
    scaler = bent_scaler(X, np.ones(50), np.arange(50), np.ones(50))
    Z = scaler.transform(X)
    assert sp.issparse(Z)
    assert np.abs(Z.data).max() <= 4.0
    assert scaler.inverse_transform(Z).shape == X.shape


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_keep_their_precision(dtype):
    X = np.exp(2 * rows(0)).astype(dtype)
    assert scaled(X).transform(X).dtype == dtype


def test_scalers_are_near_others_of_their_kind_only():
    scaler = scaled(rows(0))
    assert scaler.near(Bent(scaler.scaler))
    assert not scaler.near(scaler.scaler)
    assert not scaler.scaler.near(scaler)
