"""Columns are measured in units of their own, known chunk by chunk, whatever the user's are."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol._data.scaling import (
    DENSE,
    FAR,
    Moments,
    Units,
    as_it_is,
    measure,
    typical,
    typical_square,
)

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)


def table(seed, n=40):
    """A continuous column, one far from zero, a flag, a rare flag, a sparse and a constant one."""
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


def assert_alike(ours, theirs):
    for name in ("weight", "mean", "deviation", "nonzero", "low", "high"):
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


def test_rows_of_weight_zero_have_no_say():
    X = np.vstack([table(0), np.full((3, 6), 1e60)])
    assert_alike(moments(X, np.r_[np.ones(40), np.zeros(3)]), moments(table(0)))
    nothing = moments(X, np.zeros(43))
    assert nothing.weight == 0
    assert_array_equal(nothing.units().scale, 0.0)
    assert nothing.typical_square(as_it_is(6)) == 1.0
    assert_alike(moments(sp.csr_array(X), np.zeros(43)), nothing)


def test_every_kind_of_column_has_its_unit():
    X = table(1)
    units = measure(X, np.ones(40))
    Z = units.measure(X)
    assert_allclose(Z[:, [0, 1, 4]].mean(axis=0), 0.0, atol=1e-7)
    assert_allclose(Z[:, [0, 1, 4]].std(axis=0), 1.0, rtol=1e-7)
    assert_allclose(np.ptp(Z[:, 2]), 2.0)  # a flag: half the distance of its two values
    assert_array_equal(np.unique(Z[:, 3]), [0.0, 2.0])  # nearly always zero, and it stays zero
    assert_array_equal(Z[:, 5], 0.0)
    assert units.scale[5] == 0.0


def test_rounding_makes_no_constant_column_vary():
    for value in (0.1, 1e9 / 3, -1e-200, 1e60 / 7):
        X = np.full((1000, 2), value)
        assert_array_equal(measure(X, np.full(1000, 0.3)).scale, 0.0)
        assert_array_equal(measure(sp.csr_array(X), np.full(1000, 0.3)).scale, 0.0)


@few
@given(seed=seeds, powers=st.lists(st.integers(-60, 60), min_size=6, max_size=6))
def test_powers_of_two_change_no_bit(seed, powers):
    X, unit, weight = table(seed), 2.0 ** np.array(powers), np.ones(40)
    assert_array_equal(measure(X * unit, weight).measure(X * unit), measure(X, weight).measure(X))


@few
@given(seed=seeds, powers=st.lists(st.integers(-60, 50), min_size=6, max_size=6))
def test_powers_of_ten_change_next_to_nothing(seed, powers):
    X, unit, weight = table(seed)[:, [0, 2, 3, 4, 5]], 10.0 ** np.array(powers[:5]), np.ones(40)
    ours, theirs = measure(X * unit, weight).measure(X * unit), measure(X, weight).measure(X)
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@few
@given(seed=seeds)
def test_the_order_of_the_rows_changes_no_measure(seed):
    """But for the column far from zero, whose mean has fewer bits to spare."""
    X = table(seed)
    ours, theirs = (measure(rows, np.ones(40)).measure(X) for rows in (X, X[::-1]))
    assert_array_equal(np.delete(ours, 1, axis=1), np.delete(theirs, 1, axis=1))
    assert_allclose(ours, theirs, atol=2e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_what_was_measured_can_be_recovered(dtype, layout):
    X = table(2).astype(dtype)
    X[:, 1] -= 1e4
    units = measure(layout(X), np.ones(40))
    Z = units.measure(layout(X))
    assert Z.dtype == dtype
    assert_allclose(units.recover(Z), X, atol=1e-5 if dtype == np.float32 else 1e-9)


def test_a_column_that_does_not_vary_yet_is_not_lost():
    """In a stream: its values count for nothing, and are there when it has a unit."""
    X = table(4)
    units = measure(np.full_like(X, 3.0), np.ones(40)).faintly()
    assert not units.varies.any()
    assert np.abs(units.measure(1e60 * X)).max() < 1e-20
    assert_allclose(units.recover(units.measure(X)), X, rtol=1e-12, atol=1e-12)
    assert units.near(measure(np.full_like(X, 3.0), np.ones(40)))


def test_sparse_rows_of_many_features_stay_sparse():
    X = sp.random_array((30, DENSE + 1), density=1e-3, format="csr", rng=np.random.default_rng(0))
    units = measure(X, np.ones(30))
    Z = units.measure(X)
    assert sp.issparse(Z)
    assert Z.nnz == X.nnz
    assert_array_equal(units.measured()[0], 0.0)
    assert_allclose(units.measure(X.toarray()), Z.toarray())
    dropped = units.scale == 0
    back = units.recover(Z).toarray()
    assert_allclose(back[:, ~dropped], X.toarray()[:, ~dropped])


@pytest.mark.parametrize("scale", [1e-290, 1e-200, 1.0, 1e60])
def test_no_magnitude_is_too_large_or_too_small(scale):
    X = scale * table(3)[:, [0, 2, 3, 4]]
    units = measure(X, np.ones(40))
    assert_allclose(units.measure(X), measure(X / scale, np.ones(40)).measure(X / scale), atol=1e-8)
    assert np.abs(units.measure(np.full((1, 4), 1e70))).max() <= FAR["d"]
    assert np.abs(units.measure(np.full((1, 4), 1e38, np.float32))).max() <= FAR["f"]


def test_near_units_are_those_that_change_little():
    units = Units(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    assert units.near(Units(np.array([1.1, 5.0]), np.array([2.2, 0.0])))
    for other in (
        [[1.0, 0], [2.6, 0]],
        [[1.0, 0], [1.5, 0]],
        [[2.0, 0], [2, 0]],
        [[1.0, 0], [2, 1]],
    ):
        assert not units.near(Units(*np.array(other, float)))
    assert not Units(np.zeros(1), np.full(1, 1e-70)).near(Units(np.ones(1), np.full(1, 1e300)))


@few
@given(seed=seeds)
def test_the_typical_square_is_the_mean_squared_distance(seed):
    Z = np.random.default_rng(seed).normal(size=(12, 3))
    square = ((Z[:, None] - Z[None]) ** 2).sum(axis=2).mean()
    assert_allclose(typical_square(Z, np.ones(12)), square, rtol=1e-9)
    assert typical_square(np.ones((5, 2)), np.ones(5)) == 1.0


# Targets


@few
@given(seed=seeds, size=st.integers(-280, 280), centred=st.booleans())
def test_targets_are_measured_by_half_their_mean_deviation(seed, size, centred):
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, 31)
    Y = rng.normal(size=(31, 2)) * 10.0**size
    units = typical(Y, weight.astype(float), centred)
    V = (Y - units.center) * units.scale
    assert_allclose(weight @ np.abs(V) / weight.sum(), 2.0, rtol=1e-8)
    copies = typical(np.repeat(Y, weight, axis=0), np.ones(weight.sum()), centred)
    assert_array_equal(units.center, copies.center)
    assert_array_equal(units.scale, copies.scale)
    assert centred or not units.center.any()


@pytest.mark.parametrize("centred", [True, False])
def test_targets_of_a_stream_are_measured_alike(centred):
    Y = np.random.default_rng(0).normal(size=(20000, 1)) * 1e200 + 2e200 * centred
    ours = moments(Y, cuts=[1, 500]).spread(centred)
    theirs = typical(Y, np.ones(20000), centred)
    assert_allclose(ours.scale, theirs.scale, rtol=0.05)
    assert_allclose(ours.center * ours.scale, theirs.center * theirs.scale, atol=0.1)


@pytest.mark.parametrize("value", [0.0, 3.0, -1e300, 1e-310])
def test_constant_targets_have_a_unit_too(value):
    Y = np.full((5, 1), value)
    for units in (typical(Y, np.ones(5)), moments(Y).spread()):
        assert np.isfinite(units.scale).all()
        assert (units.scale > 0).all()
        assert_allclose(units.center, value)
