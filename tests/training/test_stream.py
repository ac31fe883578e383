"""Streams of targets: what was learned is carried over when their scale or level changes."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import r2_score

from pistol import LinearPistolClassifier, LinearPistolRegressor, PistolRegressor
from pistol._training.fitted import POINTS, _added, learned_before
from pistol._training.stream import doublings

both = pytest.mark.parametrize("make", [LinearPistolRegressor, PistolRegressor])
N = 4096
CHANGES = {
    "level 10": lambda f, later: np.where(later, f + 10, f),
    "level 1e6": lambda f, later: np.where(later, f + 1e6, f),
    "scale 1e4": lambda f, later: np.where(later, 1e4 * f, f),
    "scale 1e-4": lambda f, later: np.where(later, f, 1e4 * f),
    "both": lambda f, later: np.where(later, 1e3 - 50 * f, f),
    "trend": lambda f, later: f + 0.05 * np.arange(len(f)),
}


def linear_rows(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=n)


def feed(model, X, y, size=100):
    for lo in range(0, len(y), size):
        model.partial_fit(X[lo : lo + size], y[lo : lo + size])
    return model


def predicted_first(model, X, y, size=100):
    """Predictions of each chunk before it is learned."""
    found = [np.zeros(size)]
    for lo in range(0, len(y), size):
        if lo:
            found.append(model.predict(X[lo : lo + size]))
        model.partial_fit(X[lo : lo + size], y[lo : lo + size])
    return np.concatenate(found)


# An average begins anew when the features are scaled anew, and single f_t of few rows are rough.
JUMPS = {
    "linear": (LinearPistolRegressor, {}, 1.0),
    "rbf": (PistolRegressor, {"kernel": "rbf", "gamma": 0.3}, 1.0),
    "auto": (PistolRegressor, {}, 60.0),
}


@pytest.mark.parametrize(("make", "own", "most"), JUMPS.values(), ids=list(JUMPS))
@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 99), power=st.sampled_from([32, 64, 256, 512]), share=st.floats(0.1, 1))
def test_one_more_row_does_not_make_predictions_jump(make, own, most, change, seed, power, share):
    """Each prediction stays between what it was and the centre of the recent targets."""
    X, f = linear_rows(seed, power + 100)
    y = change(f, np.arange(len(f)) >= share * power)
    model = make(**own).partial_fit(X[:power], y[:power])
    before = model.predict(X)
    after = model.partial_fit(X[power : power + 1], y[power : power + 1]).predict(X)
    center = np.median(y[:power])
    spread = np.abs(y[:power] - center).mean()
    low, high = np.minimum(before, center), np.maximum(before, center)
    assert (after >= low - most * spread).all()
    assert (after <= high + most * spread).all()


@both
@pytest.mark.parametrize("offset", [1e1, 1e3, 1e6])
def test_after_a_change_of_level_no_prediction_is_far_beyond_the_targets_seen(make, offset):
    X, f = linear_rows(n=1600)
    y = np.where(np.arange(1600) < 700, f, offset + f)
    model = make().partial_fit(X[:700], y[:700])
    for lo in range(700, 1600, 50):
        model.partial_fit(X[lo : lo + 50], y[lo : lo + 50])
        seen, found = y[: lo + 50], model.predict(X)
        reach = 3 * np.ptp(seen)
        assert found.max() <= seen.max() + reach
        assert found.min() >= seen.min() - reach


@both
@pytest.mark.parametrize("first", [0.0, 1e3, 1e6, -1e12])
def test_a_first_target_far_out_does_not_spoil_the_stream(make, first):
    X, y = linear_rows(n=4000)
    y[0] = first
    found = predicted_first(make(), X, y)
    assert r2_score(y[-500:], found[-500:]) > 0.9


@both
def test_some_targets_far_out_in_mid_stream_do_not_spoil_it(make):
    X, y = linear_rows(n=3000)
    y[1500:1510] = 1e6
    found = predicted_first(make(), X, y)
    assert r2_score(y[-500:], found[-500:]) > 0.9


@both
def test_a_trend_is_followed(make):
    X, f = linear_rows(n=3000)
    y = f + 0.05 * np.arange(3000)
    found = predicted_first(make(), X, y)
    late = slice(500, None)
    assert np.abs(found[late] - y[late]).max() < np.ptp(y)
    assert np.abs(found[late] - y[late]).mean() < np.abs(np.median(y[late]) - y[late]).mean()


three_changes = pytest.mark.parametrize("change", ["level 10", "scale 1e4", "trend"])


@both
@three_changes
def test_units_of_the_targets_change_no_bit(make, change):
    X, f = linear_rows(n=1200)
    y = CHANGES[change](f, np.arange(1200) >= 700)
    ours, theirs = (predicted_first(make(), X, t) for t in (2.0**20 * y, y))
    np.testing.assert_array_equal(ours / 2.0**20, theirs)


@three_changes
def test_rounding_of_the_targets_changes_next_to_nothing(change):
    X, f = linear_rows(n=1200)
    y = CHANGES[change](f, np.arange(1200) >= 700)
    ours, theirs = (predicted_first(LinearPistolRegressor(), X, t) for t in (1e6 * y, y))
    np.testing.assert_allclose(ours / 1e6, theirs, rtol=1e-5, atol=1e-5 * np.abs(y).mean())


@both
@three_changes
def test_the_origin_of_the_targets_matters_to_the_first_rounds_only(make, change):
    """One target alone tells a level, but no scale; afterwards the errors are alike."""
    X, f = linear_rows(n=1200)
    y = CHANGES[change](f, np.arange(1200) >= 700)
    ours, theirs = feed(make(), X, 1e6 * y + 1e9), feed(make(), X, y)
    assert 0.7 < ours.online_error_ / (1e6 * theirs.online_error_) < 1.4
    mean = [
        np.abs(model.predict(X) - t).mean() for model, t in ((ours, 1e6 * y + 1e9), (theirs, y))
    ]
    assert 0.6 < mean[0] / (1e6 * mean[1]) < 1.6


@pytest.mark.parametrize("make", [partial(PistolRegressor, metric=False), LinearPistolRegressor])
def test_outputs_of_a_stream_are_scaled_each_for_itself(make):
    """They share a metric, so there is none here."""
    X, f = linear_rows(n=600)
    jump = np.where(np.arange(600) < 200, f, 1e4 + 100 * f)
    together = feed(make(), X, np.column_stack([f, jump])).predict(X)
    for j, y in enumerate((f, jump)):
        alone = feed(make(), X, y).predict(X)
        np.testing.assert_allclose(together[:, j], alone, rtol=1e-5, atol=1e-5 * np.abs(y).mean())


@given(first=st.integers(0, 2000), n=st.integers(0, 2000))
def test_pieces_end_where_the_number_of_rounds_has_doubled(first, n):
    pieces = list(doublings(first, n))
    assert [i for piece in pieces for i in range(piece.start, piece.stop)] == list(range(n))
    ends = {first + piece.stop for piece in pieces}
    powers = {2**k for k in range(13)}
    assert {p for p in powers if first < p <= first + n} <= ends
    assert ends <= powers | {first + n}


@given(
    st.lists(st.sampled_from([0.25, 1.0, 3.0]), min_size=1, max_size=60), st.sampled_from([0, 1, 7])
)
def test_each_round_counts_where_so_many_came_before_it(sizes, start):
    r = np.array(sizes)
    before, errors = learned_before(r, start), np.arange(len(r)) % 3 == 0
    curve = _added(np.ones((2, 2)), before, r, errors)
    for place, (size, error) in enumerate(curve):
        there = np.floor(POINTS * np.log2(1 + before)) == place
        first = 1.0 if place < 2 else 0.0
        assert (size, error) == (first + r[there].sum(), first + r[there & errors].sum())


@pytest.mark.parametrize("kind", [np.int8, np.float32, np.float64, bool])
def test_labels_of_any_type_of_number_are_the_same_labels(kind):
    X, y = linear_rows(n=100)
    models = []
    for labels in ((y > 0).astype(int), (y > 0).astype(kind)):
        models.append(LinearPistolClassifier().partial_fit(X, labels, classes=[0, 1]))
    assert (models[0].coef_ == models[1].coef_).all()
    with pytest.raises(ValueError, match="not among the classes"):
        models[0].partial_fit(X, np.full(len(X), 2, np.int8))
    with pytest.raises(ValueError, match="NaN"):
        models[0].partial_fit(X, np.full(len(X), np.nan))
