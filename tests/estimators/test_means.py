"""Losses for means: totals add up, units do not matter, and ranges may grow."""

import pickle
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pistol import LinearPistolRegressor, PistolRegressor
from pistol.losses import LOSSES, Loss, huber_loss, squared_error, squared_error_loss
from pistol.online import Learner

both = pytest.mark.parametrize("make", [LinearPistolRegressor, PistolRegressor])
means = pytest.mark.parametrize("loss", ["squared_error", "poisson"])


def skewed(n=600, seed=0, noise=0.8):
    """Log-normal targets whose mean depends on two of four features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.exp(0.5 * X[:, 0] - 0.3 * X[:, 1] + noise * rng.normal(size=n))


def feed(model, X, y, size=100):
    for lo in range(0, len(y), size):
        model.partial_fit(X[lo : lo + size], y[lo : lo + size])
    return model


@both
@means
@pytest.mark.parametrize("seed", [0, 1])
def test_totals_of_skewed_targets_add_up(make, loss, seed):
    X, y = skewed(seed=seed)
    total = make(loss=loss, random_state=0).fit(X, y).predict(X).sum()
    assert total == pytest.approx(y.sum(), rel=0.03)
    assert make(random_state=0).fit(X, y).predict(X).sum() < 0.9 * y.sum()  # Huber's loss


@both
@means
def test_without_anything_to_learn_the_mean_is_predicted(make, loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)), np.exp(rng.normal(size=500))
    found = make(loss=loss, random_state=0).fit(X, y).predict(X)
    assert found.mean() == pytest.approx(y.mean(), rel=0.05)
    assert np.abs(found - y.mean()).mean() < 0.4 * y.std()
    assert np.median(y) < 0.7 * y.mean()


@both
@means
@pytest.mark.parametrize("value", [0.0, 7.0, 1 / 3, 1e-290, 1e290])
def test_constant_targets(make, loss, value):
    X, _ = skewed(60)
    for orders in ("auto", None):
        found = make(loss=loss, orders=orders).fit(X, np.full(60, value)).predict(X)
        assert_allclose(found, value, rtol=1e-6, atol=1e-250)


@both
@means
def test_units_of_the_targets_change_no_bit(make, loss):
    X, y = skewed(300)
    for orders in ("auto", None):
        ours, theirs = (
            make(loss=loss, orders=orders, random_state=0).fit(X, t).predict(X)
            for t in (2.0**30 * y, y)
        )
        assert_array_equal(ours, 2.0**30 * theirs)


@both
@means
def test_the_order_of_the_rows_does_not_matter(make, loss):
    """Beyond 256 rows kernel values are kept in float32, whose last bits depend on it."""
    X, y = skewed(250)
    shuffled = np.random.default_rng(0).permutation(250)
    ours, theirs = (
        make(loss=loss, random_state=0).fit(X[order], y[order]).predict(X)
        for order in (shuffled, slice(None))
    )
    assert_allclose(ours, theirs, rtol=1e-9)


@both
@means
def test_other_units_change_the_rounding_only(make, loss):
    X, y = skewed(300)
    ours, theirs = (make(loss=loss, random_state=0).fit(X, t).predict(X) for t in (1e5 * y, y))
    assert_allclose(ours, 1e5 * theirs, rtol=1e-5, atol=1e-2)


@both
def test_the_origin_of_the_targets_does_not_matter_to_the_squared_error(make):
    X, y = skewed(300)
    ours, theirs = (
        make(loss="squared_error", random_state=0).fit(X, t).predict(X) for t in (y + 1024.0, y)
    )
    assert_allclose(ours - 1024.0, theirs, rtol=1e-5, atol=1e-5)


@both
@means
def test_a_weight_counts_as_copies(make, loss):
    X, y = skewed(80)
    weight = np.random.default_rng(0).integers(1, 4, 80)
    ours = make(loss=loss, random_state=0).fit(X, y, weight).predict(X)
    copies = make(loss=loss, random_state=0).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(ours, copies.predict(X), rtol=1e-6, atol=1e-9)


@both
@means
@pytest.mark.parametrize("factor", [10.0, 1e4])
def test_a_range_that_grows_is_followed(make, loss, factor):
    X, y = skewed(4000)
    y = np.where(np.arange(4000) < 1500, 1.0, factor) * y
    model = feed(make(loss=loss), X, y)
    late = slice(3000, None)
    assert 0.6 < model.predict(X[late]).sum() / y[late].sum() < 1.5
    rule = model.fitted_.learners[0].rule
    seen = np.ptp(y[:2048]) if loss == "squared_error" else y[:2048].max()
    scaled = seen * (model.fitted_.targets.transform(np.array([[2.0], [1.0]])) @ [1.0])
    unit = scaled[0] - scaled[1] if loss == "squared_error" else scaled[1]
    assert rule.loss.theta == pytest.approx(unit, rel=1e-6)
    assert rule.loss.theta == rule.loss.L


@both
@means
def test_one_row_far_out_does_not_spoil_a_stream(make, loss):
    X, y = skewed(3000)
    y[200] = 1e6
    model = feed(make(loss=loss), X, y)
    found = model.predict(X)
    assert np.isfinite(found).all()
    assert np.median(np.abs(found[2000:] - y[2000:])) < 10 * y[2000:].std()


@both
@means
def test_a_stream_may_be_cut_anywhere_and_pickled(make, loss):
    X, y = skewed(700)
    whole = make(loss=loss, orders=None).fit(X, y)
    model = make(loss=loss)
    for rows in np.array_split(np.arange(700), 7):
        model = pickle.loads(pickle.dumps(model.partial_fit(X[rows], y[rows])))
    assert_allclose(model.predict(X), whole.predict(X), rtol=1e-9)


@both
@means
def test_a_failed_call_leaves_the_range_as_it_was(make, loss, monkeypatch):
    X, y = skewed(128)
    model = make(loss=loss).partial_fit(X[:64], y[:64])
    before, learner = model.predict(X), model.fitted_.learners[0]
    rule, play = learner.rule, type(learner).play

    def fail(*args):
        assert learner.rule is not rule
        raise KeyboardInterrupt

    monkeypatch.setattr(type(learner), "play", fail)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[64:], 50 * y[64:])
    monkeypatch.setattr(type(learner), "play", play)
    assert learner.rule is rule
    assert_array_equal(model.predict(X), before)


@both
@means
def test_a_stream_goes_on_after_fit(make, loss):
    X, y = skewed(400)
    model = make(loss=loss, random_state=0).fit(X[:300], y[:300])
    before = model.predict(X)
    after = model.partial_fit(X[300:], y[300:]).predict(X)
    assert np.isfinite(after).all()
    assert np.abs(after - before).mean() < y.std()


@both
@means
def test_several_targets_are_learned_together(make, loss):
    X, y = skewed(300)
    Y = np.column_stack([y, 1e3 * y[::-1]])
    found = make(loss=loss, random_state=0).fit(X, Y).predict(X)
    assert_allclose(found.sum(axis=0), Y.sum(axis=0), rtol=0.05)
    assert feed(make(loss=loss), X, Y).predict(X).shape == Y.shape


@both
def test_counts_are_predicted_between_zero_and_the_largest(make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = rng.poisson(np.exp(X[:, 0]))
    far = np.vstack([X, 1e3 * X, -1e3 * X])
    for model in (make(loss="poisson", random_state=0).fit(X, y), feed(make(loss="poisson"), X, y)):
        found = model.predict(far)
        assert (found >= 0).all()
        assert found.max() <= y.max() * (1 + 1e-9)
    assert model.predict(X).min() > 0


def test_a_log_linear_mean_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = rng.poisson(np.exp(0.3 + X @ [0.5, -0.7]))
    model = LinearPistolRegressor(loss="poisson", random_state=0).fit(X, y)
    assert_allclose(model.coef_, [0.5, -0.7], atol=0.06)
    assert_allclose(model.intercept_, 0.3, atol=0.06)
    f = X @ model.coef_ + model.intercept_
    assert_allclose(model.predict(X), np.minimum(np.exp(f), y.max()), rtol=1e-9)


def test_exposure_is_a_weight_of_rates():
    rng = np.random.default_rng(0)
    X, exposure = rng.normal(size=(3000, 2)), rng.uniform(0.2, 3.0, 3000)
    counts = rng.poisson(exposure * np.exp(X @ [0.5, -0.7]))
    model = LinearPistolRegressor(loss="poisson", random_state=0)
    model.fit(X, counts / exposure, sample_weight=exposure)
    assert_allclose(model.coef_, [0.5, -0.7], atol=0.1)
    assert (exposure * model.predict(X)).sum() == pytest.approx(counts.sum(), rel=1e-6)


@both
def test_without_an_intercept_or_counts_there_is_still_a_mean(make):
    X, y = skewed(200)
    model = make(loss="poisson", random_state=0).fit(X, np.zeros(200))
    assert model.predict(X).max() < 1e-200
    if make is LinearPistolRegressor:
        for loss in ("squared_error", "poisson"):
            model = make(loss=loss, fit_intercept=False, random_state=0).fit(X, y)
            assert model.intercept_ == pytest.approx(0.0, abs=1e-9)


@both
def test_negative_counts_are_refused(make):
    X, y = skewed(50)
    with pytest.raises(ValueError, match=r"counts.*y\[7\] = -2\. .*squared_error"):
        make(loss="poisson").fit(X, np.where(np.arange(50) < 7, y, -2.0))
    with pytest.raises(ValueError, match=r"y\[3, 1\] = -1"):
        make(loss="poisson").fit(X, np.column_stack([y, np.where(np.arange(50) < 3, y, -1.0)]))
    model = make(loss="poisson").partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y\[0\]"):
        model.partial_fit(X, -y)


@both
def test_a_loss_times_a_constant_learns_the_same(make):
    """With L and unit to match; a power of two changes no bit."""
    X, y = skewed(100)
    losses = squared_error_loss(64.0), _four_times(squared_error_loss(64.0))
    found = [
        make(loss=loss, random_state=0, orders=orders, b=b).fit(X, y).predict(X)
        for orders, b in (("auto", "anytime"), (None, "horizon"), (None, 0.5), ("auto", 0.5))
        for loss in losses
    ]
    for ours, theirs in zip(found[::2], found[1::2], strict=True):
        assert_allclose(ours, theirs, rtol=1e-9)


@cache
def _four_times(loss):
    from numba import njit

    plain, grad = loss.value, loss.grad

    @njit
    def value(y, p, theta):
        return 4.0 * plain(y, p, theta)

    @njit
    def d_value(y, p, theta):
        return 4.0 * grad(y, p, theta)

    L, unit = 4.0 * loss.L, 4.0 * loss.unit
    return Loss("more", value, d_value, L=L, theta=loss.theta, targets="mean", unit=unit)


def test_single_events_need_a_limit():
    with pytest.raises(ValueError, match=r"range of all targets.*squared_error_loss\(limit\)"):
        Learner("squared_error")
    with pytest.raises(ValueError, match=r"range of all targets.*partial_fit"):
        Learner("poisson")
    learner = Learner(squared_error_loss(10.0))
    for x, y in [([1.0], 3.0), ([2.0], 5.0)] * 200:
        learner.learn([*x], y)
    assert learner.predict([2.0]) == pytest.approx(5.0, abs=0.5)
    with pytest.raises(ValueError, match="range of all targets"):
        learner.learn([1.0], 3.0, loss="poisson")


def test_names_and_values_agree():
    assert squared_error_loss() is LOSSES["squared_error"]
    assert squared_error(3.0, 1.0, 8.0) == 2.0 * huber_loss(4.0).value(3.0, 1.0, 4.0) * 2.0
