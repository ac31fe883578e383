"""The adversarial setting: predict, suffer, learn; regret against any comparator."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers
from numba import njit

from pistol import reference
from pistol.losses import LOSSES, Loss
from pistol.online import Learner

approx = pytest.approx
pytestmark = pytest.mark.interpreted
few = settings(max_examples=10, deadline=None)


def events(seed, n=25, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), rng.choice([-1.0, 1.0], size=n)


def rbf(x, z):
    return np.exp(-0.5 * ((x - z) ** 2).sum())


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@few
@given(seed=integers(0, 10**6))
def test_it_is_algorithm_3(kernel, seed):
    X, y = events(seed)
    learner = Learner("logistic", kernel=kernel, gamma=0.5, a=2.25, b=1.0)
    k = np.dot if kernel == "linear" else rbf
    loss = LOSSES["logistic"]
    rounds = list(
        reference.pistol(zip(X, y), lambda y, p: loss.grad(y, p, 0.0), k, a=2.25, b=1.0, L=1.0)
    )
    for x_t, y_t, (p_t, _) in zip(X, y, rounds, strict=True):
        assert learner.predict(x_t) == approx(p_t, rel=1e-9, abs=1e-12)
        assert learner.learn(x_t, y_t) == approx(loss.value(y_t, p_t, 0.0))
    predictions = np.array([p for p, _ in rounds])
    values = [loss.value(a, b, 0.0) for a, b in zip(y, predictions)]
    slopes = [loss.grad(a, b, 0.0) for a, b in zip(y, predictions)]
    assert learner.t == len(y)
    assert learner.cumulative_loss == approx(sum(values))
    assert learner.s_sum == approx(np.abs(slopes).sum())
    f_bar = reference.average([f for _, f in rounds], [1.0] * len(y))
    expected = [reference.inner(f_bar, [(1.0, x)], k) for x in X]
    assert learner.decide(X) == approx(expected, rel=1e-8, abs=1e-12)


@few
@given(seed=integers(0, 10**6))
def test_per_coordinate_is_appendix_A(seed):
    X, y = events(seed)
    learner = Learner("hinge", per_coordinate=True, a=2.25, b=1 / 3)
    grad = LOSSES["hinge"].grad
    rounds = reference.pistol_per_coordinate(
        zip(X, y), lambda y, p: grad(y, p, 0.0), a=2.25, b=1 / 3, L=1.0, m=[1.0] * 3
    )
    for x_t, y_t, (p_t, _) in zip(X, y, rounds, strict=True):
        assert learner.predict(x_t) == approx(p_t, rel=1e-9, abs=1e-12)
        learner.learn(x_t, y_t)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@few
@given(seed=integers(0, 10**6))
def test_regret_is_the_difference_of_the_sums(kernel, seed):
    X, y = events(seed)
    learner = Learner("hinge", kernel=kernel, gamma=0.5, record=True)
    assert learner.regret(lambda X: X[:, 0]) == 0.0
    for x_t, y_t in zip(X, y):
        learner.learn(x_t, y_t)
    coef, points = np.array([0.5, -2.0]), X[:2]
    k = np.dot if kernel == "linear" else rbf
    h = np.array([sum(c * k(z, x) for c, z in zip(coef, points)) for x in X])
    expected = learner.cumulative_loss - np.maximum(0, 1 - y * h).sum()
    assert learner.regret((coef, points)) == approx(expected)
    assert learner.regret(lambda X: h) == approx(expected)
    if kernel == "linear":
        assert learner.regret(coef @ points) == approx(expected)
    else:
        with pytest.raises(ValueError, match="linear kernel only"):
            learner.regret(np.zeros(3))


def test_every_round_may_have_its_own_loss():
    X, y = events(0)
    names = ["hinge", "logistic", "absolute"]
    learner = Learner("hinge", record=True)
    total = 0.0
    for t, (x_t, y_t) in enumerate(zip(X, y)):
        loss = LOSSES[names[t % 3]]
        p = learner.predict(x_t)
        total += loss.value(y_t, p, loss.theta)
        learner.learn(x_t, y_t, loss=loss.name)
    assert learner.cumulative_loss == approx(total)
    at_zero = sum(LOSSES[names[t % 3]].value(y_t, 0.0, 0.0) for t, y_t in enumerate(y))
    assert learner.regret(np.zeros(3)) == approx(total - at_zero)
    with pytest.raises(ValueError, match="promised losses with L ≤ 1; 'smooth_hinge' has 2"):
        learner.learn(X[0], 1.0, loss="smooth_hinge")


@njit
def linear_value(y, p, theta):
    return y * p


@njit
def linear_grad(y, p, theta):
    return y


def test_linear_losses_of_an_adversary_stay_finite():
    """Gradients that all point the same way: exp(‖g‖²/2α) alone overflows after 350 rounds."""
    push = Loss("push", linear_value, linear_grad, L=1.0)
    learner = Learner(push, a=0.25)
    for _ in range(3000):
        learner.learn([1.0], -1.0)
    assert np.isfinite([learner.predict([1.0]), learner.cumulative_loss]).all()
    assert np.isfinite(learner.decide([[1.0]])).all()


def test_bad_events_change_nothing():
    learner = Learner("hinge", record=True)
    learner.learn([1.0, 0.0], 1.0)
    before = learner.predict([1.0, 0.0]), learner.t, learner.cumulative_loss
    for x, y, message in [
        ([1.0], 1.0, "one event of 2 features; got 1"),
        ([np.nan, 0.0], 1.0, "finite"),
        ([1e100, 0.0], 1.0, "moderate"),
        ([1.0, 0.0], np.inf, "y must be -1 or"),
        ([1.0, 0.0], 0, "y must be -1 or"),
        ([[1.0, 0.0], [0.0, 1.0]], 1.0, "one event"),
    ]:
        with pytest.raises(ValueError, match=message):
            learner.learn(x, y)
    assert (learner.predict([1.0, 0.0]), learner.t, learner.cumulative_loss) == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "precomputed"}, "precomputed"),
        ({"kernel": "rbf", "per_coordinate": True}, "per_coordinate needs kernel='linear'"),
        ({"a": 0.0}, "a must be a finite number greater than 0"),
        ({"b": -1.0}, "b must be 'anytime'"),
        ({"b": "horizon"}, "only fit knows"),
        ({"L": "big"}, "L must be a finite number"),
        ({"average": "median"}, "average must be one of"),
        ({"gamma": 0}, "gamma must be"),
        ({"kernel": "poly", "degree": 2.5}, "degree must be a whole number"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        Learner("hinge", **parameters)


def test_regret_without_a_record_says_what_to_do():
    with pytest.raises(ValueError, match="record=True"):
        Learner("hinge").regret(np.zeros(2))


def test_before_the_first_round_everything_is_zero():
    learner = Learner("hinge")
    assert learner.predict([1.0, 2.0]) == 0.0
    assert (learner.decide([[1.0, 2.0]]) == 0).all()


@pytest.mark.parametrize(
    "parameters", [{}, {"per_coordinate": True}, {"kernel": "rbf", "gamma": 0.5}], ids=str
)
def test_a_learner_travels(parameters):
    """A copy goes on as the original does, and the two do not share state."""
    X, y = events(0)
    learner = Learner("hinge", record=True, **parameters)
    for x_t, y_t in zip(X[:10], y):
        learner.learn(x_t, y_t, loss="logistic")
    for copy in (pickle.loads(pickle.dumps(learner)), deepcopy(learner)):
        assert copy.predict(X[11]) == learner.predict(X[11])
        before = learner.predict(X[11])
        copy.learn(X[10], y[10])
        assert (copy.t, learner.t) == (11, 10)
        assert learner.predict(X[11]) == before
        assert copy.regret(lambda X: X[:, 0]) != learner.regret(lambda X: X[:, 0])


@few
@given(seed=integers(0, 10**6))
def test_prediction_and_loss_agree_when_an_event_sets_a_new_unit(seed):
    X, y = events(seed)
    X *= np.geomspace(1, 1e6, len(X))[:, None]  # every event is larger than all before
    learner = Learner("absolute", per_coordinate=True, x_max=0.0)
    for x_t, y_t in zip(X, y):
        p = learner.predict(x_t)
        assert learner.learn(x_t, y_t) == approx(abs(y_t - p))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_events_need_not_be_arrays_of_float64(kernel):
    X, y = events(0)
    learners = [Learner("hinge", kernel=kernel) for _ in range(4)]
    for x_t, y_t in zip(np.round(X, 3).astype(np.float32), y):
        x = x_t.astype(np.float64)
        for learner, form in zip(learners, (x, x.tolist(), x[None], x_t), strict=True):
            learner.learn(form, y_t)
    assert len({learner.predict(X[0]) for learner in learners}) == 1


def test_a_comparator_that_does_not_fit_is_refused():
    X, y = events(0)
    learner = Learner("hinge", record=True)
    for x_t, y_t in zip(X, y):
        learner.learn(x_t, y_t)
    for h, message in [
        (([1.0, 2.0, 3.0], X[:1]), "3 coefficients needs as many points"),
        (([1.0], [[1.0, 0.0]]), "3 features"),
        (np.zeros(2), "needs 3 entries"),
        (lambda X: X[:2, 0], "a value a row, 25; it gave 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            learner.regret(h)


def test_targets_of_regression_must_be_finite():
    with pytest.raises(ValueError, match="y must be finite"):
        Learner("absolute").learn([1.0], np.nan)


def test_a_learner_says_what_it_is():
    learner = Learner("hinge", kernel="rbf", gamma=0.5)
    assert (
        repr(learner) == "Learner('hinge', Kernel('rbf', gamma=0.5, degree=3, coef0=0), a=3, t=0)"
    )
    assert "per_coordinate=True" in repr(Learner("hinge", per_coordinate=True))
