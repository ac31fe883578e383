"""Steps: ramps beside each feature, which vary as much together as the feature alone."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol._data import steps
from pistol._data.bends import bent_scaler
from pistol._data.mapped import Mapped
from pistol._data.metric import Weighted, weighted
from pistol._data.scaling import GRAIN
from pistol._data.steps import (
    GRID,
    RAMPS,
    ROUNDING,
    Onwards,
    _knots,
    feature_of,
    onwards,
    per_feature,
    stepped,
)

few = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 10**6)


def table(seed, n=200):
    """A normal feature, one with a few values, a flag, a constant, and one that is mostly zero."""
    rng = np.random.default_rng(seed)
    mostly = np.where(rng.random(n) < 0.7, 0.0, rng.exponential(size=n))
    parts = [rng.normal(size=n), rng.integers(0, 4, n), rng.random(n) < 0.5, np.ones(n), mostly]
    return np.column_stack([part.astype(float) for part in parts])


def scalers(X, weight=None, most=4096):
    weight = np.ones(len(X)) if weight is None else weight
    scaler = bent_scaler(X, weight, np.arange(len(X)), weight)
    return scaler, stepped(scaler, scaler.transform(X), weight, most)


@few
@given(seed=seeds)
def test_a_feature_and_its_ramps_vary_as_much_as_the_feature_alone(seed):
    X = table(seed)
    plain, steps = scalers(X)
    total = per_feature(steps.transform(X).var(axis=0), steps)
    assert_allclose(total, plain.transform(X).var(axis=0), rtol=1e-6, atol=1e-12)


@few
@given(seed=seeds)
def test_ramps_rise_from_one_quantile_to_the_next(seed):
    X = table(seed)
    _, steps = scalers(X)
    low, high = X.min(axis=0), X.max(axis=0)
    ends = steps.transform(np.stack([low, high, low - 10.0, high + 10.0]))[:, 5:]
    ramps = ends / steps.size + steps.center
    assert_allclose(ramps[[0, 2]], 0.0, atol=1e-12)
    assert_allclose(ramps[[1, 3]], 1.0, atol=1e-12)
    of_normal = steps.owner == 0
    assert of_normal.sum() == RAMPS
    shares = np.diff(np.append(steps.center[of_normal], 0.0)[::-1])
    assert_allclose(shares[1:], 1.0 / RAMPS, atol=0.05)  # as many rows between any two of them


def plain_knots(z, weight):
    """One feature's, in plain NumPy."""
    values, at = np.unique(z.astype(np.float32), return_inverse=True)
    if len(values) <= RAMPS + 1:
        return values, np.arange(len(values))
    share = np.bincount(at, weight) / weight.sum()
    middle = np.cumsum(share) - 0.5 * share
    rank = (middle - middle[0]) / (middle[-1] - middle[0])
    low = np.searchsorted(rank, GRID - ROUNDING)
    high = np.searchsorted(rank, GRID + ROUNDING, side="right") - 1
    kept = np.unique([low, high])
    return values[kept], np.rint(RAMPS * rank[kept] * GRAIN) / GRAIN


@pytest.mark.interpreted
@few
@given(seed=seeds, n=st.integers(3, 300), kind=st.sampled_from(["ones", "alike", "any"]))
def test_knots_are_at_the_quantiles_of_a_feature(seed, n, kind):
    rng = np.random.default_rng(seed)
    weight = {"ones": np.ones(n), "alike": np.full(n, 0.3), "any": rng.random(n) + 0.01}[kind]
    parts = [rng.normal(size=n), rng.integers(0, 20, n), rng.exponential(size=n).round(1)]
    Z = np.column_stack([np.append(part[: n - 3], [0.0, 1.0, 2.0]) for part in parts])
    for z, (values, places) in zip(Z.T, _knots(Z, weight), strict=True):
        ours, theirs = plain_knots(z, weight)
        assert_array_equal(values, ours)
        assert_array_equal(places, theirs)


@pytest.mark.interpreted
@few
@given(seed=seeds, n=st.sampled_from([1, 63, 64, 65, 200]), dtype=st.sampled_from(["f", "d"]))
def test_rows_with_ramps_are_what_the_formula_says(seed, n, dtype):
    _, steps = scalers(table(seed))
    Z = (3.0 * np.random.default_rng(seed).normal(size=(n, 5))).astype(dtype)
    ramps = [
        np.clip(np.interp(Z[:, i].astype(np.float32), *knots) - k, 0.0, 1.0)
        for i, knots in steps.places.items()
        for k in range(int(knots[1][-1]))
    ]
    extended = steps.extended(Z)
    assert extended.dtype == Z.dtype
    precise = 1e-12 if dtype == "d" else 1e-6
    assert_allclose(extended[:, :5], Z * steps.keep, rtol=precise)
    expected = (np.transpose(ramps) - steps.center) * steps.size
    assert_allclose(extended[:, 5:], expected, rtol=precise, atol=precise)


@few
@given(seed=seeds, n=st.sampled_from([30, 32, 100, 240]))
def test_the_order_of_the_rows_does_not_matter(seed, n):
    """Not even where a mean is halfway between two multiples that it could be rounded to."""
    X = table(seed, n)
    _, ours = scalers(X)
    _, theirs = scalers(X[np.random.default_rng(seed).permutation(n)])
    assert_array_equal(ours.center, theirs.center)
    assert_array_equal(ours.size, theirs.size)
    assert_array_equal(ours.transform(X), theirs.transform(X))


def test_features_with_two_values_or_one_have_no_ramps_and_stay_as_they_are():
    X = table(0)
    plain, steps = scalers(X)
    assert_array_equal(np.unique(steps.owner), [0, 1, 4])
    assert (steps.owner == 1).sum() == 3  # one between any two neighbours of four values
    assert_array_equal(steps.transform(X)[:, 2:4], plain.transform(X)[:, 2:4])


@few
@given(seed=seeds)
def test_the_scaled_rows_can_be_taken_back(seed):
    X = table(seed)
    _, steps = scalers(X)
    assert_allclose(steps.inverse_transform(steps.transform(X)), X, atol=1e-6)


@few
@given(seed=seeds)
def test_weights_count_as_copies(seed):
    X = table(seed)
    weight = np.random.default_rng(seed).integers(1, 4, len(X))
    _, once = scalers(X, weight.astype(float))
    _, copied = scalers(np.repeat(X, weight, axis=0))
    assert_array_equal(once.owner, copied.owner)
    assert_allclose(once.transform(X), copied.transform(X), rtol=1e-9, atol=1e-9)


@few
@given(seed=seeds, scale=st.sampled_from([2.0**-20, 4.0, 1e5]), shift=st.sampled_from([0.0, 7.0]))
def test_units_do_not_matter(seed, scale, shift):
    X = table(seed)
    _, steps = scalers(X)
    _, other = scalers(X * scale + shift)
    # a ramp may be rounded to the next multiple of 1 / GRAIN, and is multiplied by its size
    assert_allclose(other.transform(X * scale + shift), steps.transform(X), atol=1e-5)


@few
@given(seed=seeds, n=st.sampled_from([60, 200, 1000]))
def test_a_feature_times_minus_one_has_the_mirrored_ramps(seed, n):
    X = table(seed, n)[:, [0, 4]]
    _, steps = scalers(X)
    _, other = scalers(-X)
    mirrored = per_feature(np.square(other.transform(-X)), other)
    assert_allclose(mirrored, per_feature(np.square(steps.transform(X)), steps), atol=1e-6)


@few
@given(seed=seeds, gap=st.sampled_from([1e-9, 1e-3]))
def test_ramps_are_the_same_in_single_precision(seed, gap):
    rng = np.random.default_rng(seed)
    X = (rng.choice([-1.0, 1.0], 200) + gap * rng.normal(size=200))[:, None]
    plain, steps = scalers(X)
    Z = plain.transform(X)
    if steps is not None:
        assert_allclose(steps.extended(Z.astype(np.float32)), steps.extended(Z), atol=1e-5)


@few
@given(seed=seeds)
def test_going_on_from_scaled_rows_is_scaling(seed):
    X, rng = table(seed), np.random.default_rng(seed)
    plain, steps = scalers(X)
    both = Weighted(steps, rng.uniform(0.5, 2.0, steps.features))
    assert_array_equal(onwards(plain.transform(X), plain, plain), plain.transform(X))
    assert_array_equal(onwards(plain.transform(X), plain, steps), steps.transform(X))
    assert_array_equal(onwards(plain.transform(X), plain, both), both.transform(X))
    assert_array_equal(both.transform(X), weighted(steps.transform(X), both.weight))
    assert_array_equal(feature_of(both), [0, 1, 2, 3, 4, *steps.owner])


def test_float32_rows_stay_float32():
    X = table(1).astype(np.float32)
    _, steps = scalers(X)
    assert steps.transform(X).dtype == np.float32


@pytest.mark.parametrize("most", [4096, 20])
def test_there_are_no_steps_where_nothing_would_rise_or_where_they_would_be_too_many(most):
    X = table(2)
    flags = X[:, [2, 3]]
    assert scalers(flags)[1] is None
    assert (scalers(X, most=most)[1] is None) == (most < 24)
    scaler, _ = scalers(X)
    assert stepped(scaler, sp.csr_array(X), np.ones(len(X)), 4096) is None


@few
@given(seed=seeds, dtype=st.sampled_from([np.float32, np.float64]), weights=st.booleans())
def test_some_columns_are_those_of_all_columns_bit_for_bit(seed, dtype, weights):
    rng, X = np.random.default_rng(seed), table(seed)
    part = rng.integers(1, 50)
    start, scaler = scalers(X)
    if weights:
        scaler = Weighted(scaler, rng.exponential(size=scaler.features))
    step, Z = Onwards(start, scaler), start.transform(X).astype(dtype)
    whole, d = step(Z), scaler.features
    assert step.adds_columns
    assert not Onwards(start, Weighted(start, np.ones(start.features))).adds_columns
    some = np.sort(rng.choice(d, rng.integers(1, d + 1), replace=False))
    for rows in (slice(5, 60), rng.integers(0, len(X), 40)):
        for columns in (some, some[:1], np.array([3]), np.array([0, 3])):  # 3 is constant
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(steps, "PART", part)
                assert_array_equal(step.columns(Z, rows, columns), whole[rows][:, columns])


def test_rows_without_their_ramps_are_as_long_as_the_features():
    X = table(0).astype(np.float32)
    start, scaler = scalers(X)
    rows = Mapped(X).then(start.transform).then(Onwards(start, scaler))
    ours, whole = rows.narrow(), rows.in_parts()
    assert_array_equal(ours.X, start.transform(X))
    assert_array_equal(ours[:], whole)
    assert ours.shape == whole.shape
    columns = np.array([1, 6, whole.shape[1] - 1])
    assert_array_equal(ours[3:9, columns], whole[3:9][:, columns])
