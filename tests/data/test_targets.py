"""Targets are scaled around their centre, in units of half their typical deviation."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol._data.targets import (
    NEWEST,
    RECENT,
    LogScaler,
    Recent,
    TargetScaler,
    robust,
    typical,
    unscaled,
    weighted_quantile,
)

pytestmark = pytest.mark.every_case_counts_lines  # each goes its own way

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)
both = pytest.mark.parametrize("scaler_of", [typical, robust])


@few
@given(seed=seeds, size=st.integers(-280, 280), centred=st.booleans())
def test_targets_are_scaled_by_half_their_mean_deviation(seed, size, centred):
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, 31)
    Y = rng.normal(size=(31, 2)) * 10.0**size
    scaler = typical(Y, weight.astype(float), centred)
    V = scaler.transform(Y)
    assert_allclose(weight @ np.abs(V) / weight.sum(), 2.0, rtol=1e-8)
    assert_allclose(scaler.inverse_transform(V), Y, rtol=1e-9, atol=1e-9 * 10.0**size)
    copies = typical(np.repeat(Y, weight, axis=0), np.ones(weight.sum()), centred)
    assert_array_equal(scaler.center, copies.center)
    assert_array_equal(scaler.scale, copies.scale)
    assert centred or not scaler.center.any()


@few
@given(seed=seeds, centred=st.booleans())
def test_the_robust_scaler_counts_weights_as_copies(seed, centred):
    rng = np.random.default_rng(seed)
    Y, weight = rng.normal(size=(31, 2)), rng.integers(1, 4, 31)
    scaler = robust(Y, weight.astype(float), centred)
    copies = robust(np.repeat(Y, weight, axis=0), np.ones(weight.sum()), centred)
    assert_array_equal(scaler.center, copies.center)
    assert_allclose(scaler.scale, copies.scale, rtol=1e-9)


@few
@given(seed=seeds, far=st.sampled_from([1e3, 1e6, 1e100]), share=st.floats(0, 0.09))
def test_a_few_targets_far_out_change_the_robust_scaler_little(seed, far, share):
    rng = np.random.default_rng(seed)
    Y, weight = rng.normal(size=(200, 1)), np.ones(200)
    plain = robust(Y, weight)
    Y[: int(share * 200)] = far
    other = robust(Y, weight)
    assert 0.5 < (other.scale / plain.scale).item() < 2.0
    assert abs(other.center - plain.center) < 0.5


@both
@few
@given(seed=seeds, factor=st.floats(1e-6, 1e6), shift=st.floats(-1e3, 1e3))
def test_units_and_origin_of_the_targets_do_not_matter(scaler_of, seed, factor, shift):
    Y = np.random.default_rng(seed).normal(size=(50, 1))
    ours, theirs = (
        scaler_of(Z, np.ones(50)).transform(Z) for Z in (Y, factor * Y + factor * shift)
    )
    assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@both
@pytest.mark.parametrize("value", [0.0, 3.0, -1e300, 1e-310])
def test_constant_targets_have_a_scale_too(scaler_of, value):
    scaler = scaler_of(np.full((5, 1), value), np.ones(5))
    assert np.isfinite(scaler.scale).all()
    assert (scaler.scale > 0).all()
    assert_allclose(scaler.center, value)


@few
@given(seed=seeds, q=st.floats(0.01, 1.0))
def test_a_quantile_has_its_share_of_the_weight_below(seed, q):
    rng = np.random.default_rng(seed)
    Y, weight = rng.normal(size=(20, 2)), rng.integers(0, 4, 20) + 1e-3
    found = weighted_quantile(Y, weight, q)
    total = weight.sum()
    for j in range(2):
        assert weight[Y[:, j] <= found[j]].sum() >= q * total * (1 - 1e-12)
        assert weight[Y[:, j] < found[j]].sum() < q * total * (1 + 1e-12)


@few
@given(seed=seeds, q=st.sampled_from([0.25, 0.5, 0.75]), infinite=st.booleans())
def test_a_quantile_with_weights_is_the_one_of_so_many_copies(seed, q, infinite):
    """Whatever the weights, it is what the definition says of finite values."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    Y, weight = rng.integers(-3, 4, (n, 3)).astype(float), rng.integers(1, 4, n)
    Y[rng.random(Y.shape) < 0.3 * infinite] = np.inf
    found = weighted_quantile(Y, weight.astype(float), q)
    copies = np.repeat(Y, weight, axis=0)
    assert_array_equal(found, weighted_quantile(copies, np.full(len(copies), 0.25), q))
    for column, value in zip(copies.T, found, strict=True):
        column = np.sort(column[np.isfinite(column)])
        assert value == (column[int(np.ceil(q * len(column))) - 1] if len(column) else np.inf)


def test_a_scaler_that_differs_is_taken_per_output():
    old, new = (
        TargetScaler(np.zeros(3), np.ones(3)),
        TargetScaler(np.array([0.0, 1.0, 0.1]), np.array([2.0, 1.0, 1.1])),
    )
    changed = old.differs(new)
    assert_array_equal(changed, [True, True, False])
    mixed = old.replaced(new, changed)
    assert_array_equal(mixed.center, [0.0, 1.0, 0.0])
    assert_array_equal(mixed.scale, [2.0, 1.0, 1.0])
    assert not unscaled(3).differs(unscaled(3)).any()


@few
@given(
    mean=st.floats(-300, 60),
    other=st.floats(-300, 60),
    most=st.floats(0.5, 100),
    changed=st.booleans(),
)
def test_counts_never_forget_the_largest_one(mean, other, most, changed):
    """Not even where the mean of the latest is so small that multiples of it are cut off."""
    old, new = (
        LogScaler(np.array([10.0**mean]), np.array([10.0**each]), np.ones(1))
        for mean, each in ((mean, most), (other, 100.0))
    )
    mixed = old.replaced(new, np.array([changed]))
    assert mixed.most[0] >= 2.0
    largest = min(old.most[0] * (old.mean[0] / mixed.mean[0]), 1e100)
    assert mixed.most[0] >= largest * (1 - 1e-12)
    assert np.isfinite(mixed.most).all()


@few
@given(
    cuts=st.lists(st.integers(0, 3000), max_size=4),
    layout=st.sampled_from([np.asarray, sp.csr_array]),
)
def test_recent_rounds_are_the_last_ones_whatever_the_chunks(cuts, layout):
    rng = np.random.default_rng(0)
    X, Y, r = rng.normal(size=(3000, 3)), rng.normal(size=(3000, 2)), rng.random(3000)
    recent = Recent.none(2)
    for lo, hi in zip(sorted([0, *cuts]), sorted([*cuts, 3000]), strict=True):
        recent = recent.then(layout(X[lo:hi]), Y[lo:hi], r[lo:hi])
    assert_array_equal(recent.Y, Y[-RECENT:])
    assert_array_equal(recent.r, r[-RECENT:])
    newest = recent.X if layout is np.asarray else recent.X.toarray()
    assert_array_equal(newest, X[-NEWEST:])


def test_a_centre_that_predicts_better_shows():
    Y = np.tile([[10.0], [11.0]], (50, 1))
    recent = Recent.none(1).then(np.zeros((100, 1)), Y, np.ones(100))
    newest = Y[-NEWEST:]
    for P, better in ((np.full_like(newest, 500.0), True), (newest + 0.01, False)):
        assert recent.better_without(P, np.array([10.5])) == better
    assert not recent.better_without(np.full_like(newest, 10.5 + 1e-12), np.array([10.5]))
