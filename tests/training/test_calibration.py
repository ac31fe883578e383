"""From scores to probabilities: P ∝ exp(T f) with the T that suits held-out rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss as reference_log_loss

from pistol import LinearPistolClassifier, PistolClassifier
from pistol._training.calibration import log_loss, probabilities, temperature, two_sided
from pistol._training.tasks import TEMPERATURES

few = settings(max_examples=10, deadline=None)
seeds = st.integers(0, 10**6)
classes = st.integers(2, 5)


def problem(seed, k, n=80):
    """Scores that tell something, the numbers of the classes, and weights."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(k, size=n)
    if k == 2:
        scores = rng.normal(size=(n, 1)) + 1.5 * (2 * codes[:, None] - 1)
    else:
        scores = rng.normal(size=(n, k)) + 2.0 * (np.arange(k) == codes[:, None])
    return scores, codes, rng.integers(1, 4, n).astype(float)


@few
@given(seed=seeds, k=classes, T=st.floats(0.01, 100))
def test_probabilities_sum_to_one_and_rise_with_the_score(seed, k, T):
    scores, _, _ = problem(seed, k)
    P = probabilities(scores, T)
    assert P.shape == (80, k)
    assert (P >= 0).all()
    assert_allclose(P.sum(axis=1), 1.0)
    if k == 2:
        assert (np.diff(P[scores[:, 0].argsort(), 1]) >= 0).all()
        assert_allclose(P[:, 1] > 0.5, scores[:, 0] > 0)
    else:
        assert_array_equal(P.argmax(axis=1), scores.argmax(axis=1))


@few
@given(seed=seeds, k=classes, T=st.floats(0.1, 3))
def test_the_log_loss_is_that_of_the_probabilities(seed, k, T):
    """As long as no probability is so small that scikit-learn takes another in its place."""
    scores, codes, weight = problem(seed, k)
    expected = reference_log_loss(
        codes, probabilities(scores, T), sample_weight=weight, labels=np.arange(k)
    )
    assert_allclose(log_loss(scores, codes, weight)(T), expected, rtol=1e-6)


@few
@given(seed=seeds, k=classes, factor=st.floats(1e-6, 1e6))
def test_the_scale_of_the_scores_does_not_matter(seed, k, factor):
    scores, codes, weight = problem(seed, k)
    T = temperature(scores, codes, weight)
    scaled = temperature(factor * scores, codes, weight)
    assert_allclose(scaled * factor, T, rtol=1e-3)
    assert_allclose(probabilities(factor * scores, scaled), probabilities(scores, T), atol=1e-3)


@few
@given(seed=seeds, k=classes)
def test_no_other_temperature_nearby_is_better(seed, k):
    """But for the pseudo-count, one row of 82 or more that is wrong."""
    scores, codes, weight = problem(seed, k)
    T = temperature(scores, codes, weight)
    best = log_loss(scores, codes, weight)(T)
    for factor in (0.5, 0.7, 0.9, 1.1, 1.4, 2.0):
        assert best < log_loss(scores, codes, weight)(factor * T) + 0.02


@few
@given(seed=seeds, k=classes)
def test_a_weight_counts_as_copies(seed, k):
    scores, codes, weight = problem(seed, k)
    many = np.repeat(np.arange(len(codes)), weight.astype(int))
    copies = temperature(scores[many], codes[many], np.ones(len(many)))
    # the size of typical scores is taken over rows
    assert_allclose(temperature(scores, codes, weight), copies, rtol=0.05)


@few
@given(seed=seeds, k=classes)
def test_rows_that_are_all_right_leave_some_doubt(seed, k):
    scores, _, weight = problem(seed, k)
    codes = (scores[:, 0] > 0).astype(int) if k == 2 else scores.argmax(axis=1)
    T = temperature(scores, codes, weight)
    assert np.isfinite(T)
    assert probabilities(scores, T).max(axis=1).mean() < 1.0


def test_scores_that_tell_nothing_give_even_probabilities():
    rng = np.random.default_rng(0)
    scores, codes = rng.normal(size=(500, 1)), np.arange(500) % 2
    T = temperature(scores, codes, np.ones(500))
    assert np.abs(probabilities(scores, T) - 0.5).max() < 0.2
    assert np.isfinite(temperature(np.zeros((10, 1)), codes[:10], np.ones(10)))


# Estimators


def noisy(n, seed=0):
    """Labels of which three in ten are coins."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 3)) * 64) / 64
    coin = rng.random(n) < 0.3
    return X, np.where(coin, rng.integers(0, 2, n), X[:, 0] > 0).astype(int), coin


@pytest.mark.parametrize("make", [PistolClassifier, LinearPistolClassifier])
def test_probabilities_are_calibrated(make):
    X, y, _ = noisy(3000)
    P = make(random_state=0).fit(X[:600], y[:600]).predict_proba(X[600:])[:, 1]
    for low, high in ((0.0, 0.3), (0.7, 1.0)):
        inside = (low <= P) & (high >= P)
        assert inside.mean() > 0.1
        assert abs(P[inside].mean() - y[600:][inside].mean()) < 0.1


@pytest.mark.parametrize("n", [300, 2100])
def test_calibration_counts_each_round_once(n):
    """Below and above 4,096 rounds: probabilities of weights are those of copies."""
    X, y, coin = noisy(n)
    weight = np.where(coin, 3.0, 2.0)  # rows that cannot be predicted count more
    many = np.repeat(np.arange(n), weight.astype(int))
    ours = PistolClassifier(loss="logistic", random_state=0).fit(X, y, weight).predict_proba(X)
    theirs = PistolClassifier(loss="logistic", random_state=0).fit(X[many], y[many])
    assert_allclose(ours, theirs.predict_proba(X), atol=0.01)


@settings(max_examples=50, deadline=None)
@given(seed=seeds, outputs=st.sampled_from([1, 3]))
def test_five_temperatures_tell_the_least_loss_of_all(seed, outputs):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(30, outputs)) * 10.0 ** rng.uniform(-2, 2)
    codes, weight = rng.integers(max(outputs, 2), size=30), rng.uniform(0.1, 1.0, 30)
    loss = log_loss(scores, codes, weight)
    assert loss.least(TEMPERATURES) == pytest.approx(min(map(loss, TEMPERATURES)), rel=1e-12)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, outputs=st.sampled_from([1, 3]), T=st.floats(1e-3, 1e3))
def test_the_compiled_loss_is_that_of_numpy(seed, outputs, T):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(30, outputs)) * 10.0 ** rng.uniform(-2, 2)
    codes, weight = rng.integers(max(outputs, 2), size=30), rng.uniform(0.0, 1.0, 30)
    logits = T * two_sided(scores)
    most = logits.max(axis=1)
    sums = most + np.log(np.exp(logits - most[:, None]).sum(axis=1))
    expected = weight @ (sums - logits[np.arange(30), codes]) / weight.sum()
    assert_allclose(log_loss(scores, codes, weight)(T), expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_score_that_is_no_number_has_no_loss(outputs):
    """Otherwise a candidate with such scores might be taken for the best."""
    scores = np.random.default_rng(0).normal(size=(9, outputs))
    scores[4, 0] = np.nan
    for code in range(min(outputs + 1, 3)):
        loss = log_loss(scores, np.full(9, code), np.ones(9))
        assert np.isnan(loss(1.0))
        assert not loss.least(2.0 ** np.arange(-1.5, 4.5, 0.5)) < np.inf
