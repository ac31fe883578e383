"""The adversarial setting: predict, suffer, learn; regret against any comparator."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers
from numba import njit
from numpy.testing import assert_allclose

from pistol import reference
from pistol._compiled.types import read_only
from pistol._learners import Dual
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
    learner = Learner.theorem("logistic", kernel=kernel, gamma=0.5, a=2.25, b=1.0)
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
    learner = Learner.theorem("hinge", per_coordinate=True, a=2.25, b=1 / 3)
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
    learner = Learner.theorem(push, a=0.25)
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
        ({"kernel": "rbf", "center": True}, "center needs kernel='linear'"),
        ({"kernel": rbf, "fit_intercept": True}, "fit_intercept needs kernel='linear'"),
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
    "parameters", [{}, {"per_coordinate": False}, {"kernel": "rbf", "gamma": 0.5}], ids=str
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
    learner = Learner("absolute")
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
        (lambda X: X[:2, 0], "one value per row, 25; it gave 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            learner.regret(h)


def test_targets_of_regression_must_be_finite():
    with pytest.raises(ValueError, match="y must be finite"):
        Learner("absolute").learn([1.0], np.nan)


def test_a_learner_says_what_it_is():
    learner = Learner("hinge", kernel="rbf", gamma=0.5)
    expected = "Learner('hinge', Kernel('rbf', gamma=0.5, degree=3, coef0=0), a=0.25, t=0)"
    assert repr(learner) == expected
    assert repr(Learner()).startswith("Learner('logistic', per_coordinate=True, center=True, ")
    assert "per_coordinate=False, center=False" in repr(Learner.theorem())


# The defaults.


def stream(seed, n=400, d=5):
    """Events of moderate size, multiples of 1/64, whose labels depend on a hyperplane off zero."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)) * 64) / 64
    return X, np.where(X @ rng.normal(size=d) + rng.normal() > 0, 1.0, -1.0)


def predictions(learner, X, y):
    """What was predicted before each event was learned."""
    found = []
    for x_t, y_t in zip(X, y):
        found.append(learner.predict(x_t))
        learner.learn(x_t, y_t)
    return np.array(found)


def mistakes(learner, X, y):
    return np.mean(predictions(learner, X, y) * y <= 0)


@few
@given(seed=integers(0, 10**6))
def test_the_scale_of_a_feature_changes_nothing(seed):
    X, y = stream(seed, 60)
    scale = 2.0 ** np.random.default_rng(seed).integers(-20, 20, X.shape[1])
    plain, scaled = Learner(), Learner()
    assert (predictions(plain, X, y) == predictions(scaled, X * scale, y)).all()
    assert plain.decide(X) == approx(scaled.decide(X * scale))


@few
@given(seed=integers(0, 10**6))
def test_the_offset_of_a_feature_changes_nothing(seed):
    X, y = stream(seed, 60)
    offset = np.random.default_rng(seed).integers(-(2**20), 2**20, X.shape[1])
    plain, shifted = Learner(), Learner()
    expected = predictions(plain, X, y)
    assert predictions(shifted, X + offset, y) == approx(expected, rel=1e-6, abs=1e-6)
    assert shifted.decide(X + offset) == approx(plain.decide(X), rel=1e-6, abs=1e-6)


@few
@given(seed=integers(0, 10**6))
def test_the_defaults_are_one_learner_per_centred_feature_and_a_constant(seed):
    X, y = events(seed)
    X = X * [1e-3, 1.0, 1e3] + [0.0, 10.0, -5e3]
    means = np.cumsum(X, axis=0) / np.arange(1, len(X) + 1)[:, None]
    Z = np.hstack([X - means, np.ones((len(X), 1))])
    grad = LOSSES["logistic"].grad
    rounds = reference.pistol_per_coordinate(
        zip(Z.tolist(), y), lambda y, p: grad(y, p, 0.0), 1.0, reference.anytime, 1.0, [0.0] * 4
    )
    learner, weights = Learner(), []
    for x_t, y_t, (p_t, w_t) in zip(X, y, rounds, strict=True):
        assert learner.predict(x_t) == approx(p_t, rel=1e-6, abs=1e-9)
        learner.learn(x_t, y_t)
        weights.append(w_t)
    w = np.average(weights, axis=0, weights=np.arange(1, len(y) + 1))
    expected = (X - means[-1]) @ w[:-1] + w[-1]
    assert learner.decide(X) == approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_defaults_learn_where_the_setting_of_the_theorem_does_not(seed):
    X, y = stream(seed)
    X = X * np.geomspace(1e-3, 1e3, X.shape[1]) + np.geomspace(1e-2, 1e4, X.shape[1])
    assert mistakes(Learner(), X, y) < 0.5 * mistakes(Learner.theorem(), X, y)


@pytest.mark.parametrize("per_coordinate", [True, False])
def test_a_class_that_is_rare_is_left_to_the_intercept(per_coordinate):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)), np.where(rng.random(500) < 0.1, 1.0, -1.0)
    assert mistakes(Learner(per_coordinate=per_coordinate), X, y) < 0.2
    assert mistakes(Learner(per_coordinate=per_coordinate, fit_intercept=False), X, y) > 0.3


def test_a_refused_event_does_not_move_the_mean():
    X, y = events(0)
    careful, careless = Learner(), Learner()
    for x_t, y_t in zip(X, y):
        for bad in (np.full(3, np.nan), np.full(3, np.inf), np.full(3, 1e100)):
            with pytest.raises(ValueError, match="x must be finite"):
                careless.predict(bad)
            with pytest.raises(ValueError, match="x must be finite"):
                careless.learn(bad, y_t)
        assert careless.predict(x_t) == careful.predict(x_t)
        assert careless.learn(x_t, y_t) == careful.learn(x_t, y_t)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_several_threads_may_ask_at_once(kernel):
    X, y = stream(0, 200)
    learner = Learner(kernel=kernel)
    predictions(learner, X, y)
    expected = [learner.predict(x) for x in X]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(learner.predict, np.tile(X, (4, 1))))
    assert found == expected * 4


# Kernels.


def squared(A, B):
    return (1.0 + A @ B.T) ** 2


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "cosine", squared])
@few
@given(seed=integers(0, 10**6))
def test_single_events_are_the_rounds_of_a_chunk(kernel, seed):
    X, y = events(seed, 40)
    learner = Learner("smooth_hinge", kernel=kernel, gamma=0.5, degree=2, a=1.0)
    found = predictions(learner, X, y)
    whole = Dual(learner._rule, (learner._kernel,), 1, n_jobs=1)
    order, r = read_only(np.arange(len(X))), read_only(np.ones(len(X)))
    (chunk,) = whole.play(X, read_only(y[:, None]), order, r)
    near = {"rel": 1e-8, "abs": 1e-10}
    assert found == approx(chunk.P[:, 0], **near)
    assert learner._events.learner.support.ids.values.tolist() == whole.support.ids.values.tolist()
    assert learner.decide(X) == approx(whole.model().decide(X)[:, 0], **near)
    for ours, theirs in zip(learner._events.learner.S, whole.S):
        assert ours == approx(theirs, **near)


def test_a_kernel_that_fails_changes_nothing():
    X, y = events(0)
    calls = []

    def moody(A, B):
        calls.append(A)
        if len(calls) % 3 == 0:
            raise RuntimeError("not now")
        return squared(A, B)

    learner, calm = (Learner("hinge", kernel=kernel) for kernel in (moody, squared))
    for x_t, y_t in zip(X, y):
        calm.learn(x_t, y_t)
        while learner.t < calm.t:
            try:
                learner.learn(x_t, y_t)
            except RuntimeError:
                assert learner.t == calm.t - 1
    assert learner.cumulative_loss == calm.cumulative_loss
    ours, theirs = learner._events.learner, calm._events.learner
    for name in ("ids", "sq", "coef", "u", "moved"):
        assert (getattr(ours.support, name).values == getattr(theirs.support, name).values).all()
    assert (ours.support.rows.rows == theirs.support.rows.rows).all()


@pytest.mark.parametrize("how", [{}, {"per_coordinate": False}, {"kernel": "rbf"}])
def test_one_call_does_what_two_do(how):
    """`step` is predict and learn; `learn_many` is a step per row. A bad row changes nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    two, one, many = (Learner(**how) for _ in range(3))
    expected = []
    for x, target in zip(X, y, strict=True):
        expected.append(two.predict(x))
        two.learn(x, target)
    assert_allclose([one.step(x, t) for x, t in zip(X, y, strict=True)], expected, rtol=1e-12)
    assert_allclose(many.learn_many(X[:9], y[:9]), expected[:9], rtol=1e-12)
    bad = X[9:].copy()
    bad[4, 1] = np.nan
    for rows, targets in ((bad, y[9:]), (X[9:, :2], y[9:]), (X[9:], 2 * y[9:]), (X[9:], y[:3])):
        with pytest.raises(ValueError, match=r"must be"):
            many.learn_many(rows, targets)
    assert_allclose(many.learn_many(X[9:], y[9:]), expected[9:], rtol=1e-12)
    assert many.t == one.t == two.t == 20
    assert_allclose(many.decide(X), two.decide(X), rtol=1e-12)
