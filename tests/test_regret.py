"""The regret over time, what bounds it, and its picture."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import booleans, floats, integers, sampled_from
from scipy.sparse import csr_array

from pistol import theory
from pistol.losses import LOSSES, quantile_loss
from pistol.online import Learner
from pistol.plot import RegretDisplay

approx = pytest.approx
few = settings(max_examples=25)
pytestmark = pytest.mark.interpreted


def events(seed, n=20, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), rng.choice([-1.0, 1.0], size=n)


def played(X, y, loss="hinge", **parameters):
    learner = Learner.theorem(loss, record=True, **parameters)
    for x_t, y_t in zip(X, y):
        learner.learn(x_t, y_t)
    return learner


def rbf(x, z):
    return np.exp(-0.5 * ((x - z) ** 2).sum())


@few
@given(seed=integers(0, 10**6), per_coordinate=booleans())
def test_regret_and_bound_after_t_rounds_are_those_of_a_learner_that_played_t(seed, per_coordinate):
    X, y = events(seed)
    h = np.array([1.0, -2.0, 0.5])
    whole = played(X, y, per_coordinate=per_coordinate)
    for t in (1, 7, len(X)):
        part = played(X[:t], y[:t], per_coordinate=per_coordinate)
        assert whole.regrets(h)[t - 1] == approx(part.regret(h))
        assert whole.bounds(h)[t - 1] == approx(part.bound(h))
    assert whole.regret(h) == whole.regrets(h)[-1]
    assert whole.regrets(h).shape == whole.bounds(h).shape == (len(X),)


@few
@given(
    seed=integers(0, 10**6),
    loss=sampled_from(["hinge", "smooth_hinge", "logistic", "absolute", "quantile"]),
    ratio=floats(2.25, 20.0),
    log_b=floats(-3.0, 3.0),
    size=floats(0.0, 50.0),
)
def test_regret_stays_below_the_bound(seed, loss, ratio, log_b, size):
    X, y = events(seed)
    h = np.random.default_rng(seed).normal(size=3) * size
    L = LOSSES[loss].L
    for per_coordinate in (False, True):
        learner = played(X, y, loss, a=ratio * L, b=10**log_b, per_coordinate=per_coordinate)
        assert np.all(learner.regrets(h) <= learner.bounds(h))


def test_the_bound_is_theorem_1_with_the_gradients_so_far():
    X, y = events(0)
    h = np.array([1.0, -2.0, 0.5])
    learner = Learner.theorem("smooth_hinge", b=0.5, record=True)
    sums = []
    for x_t, y_t in zip(X, y):
        learner.learn(x_t, y_t)
        sums.append(learner.s_sum)
    expected = [theory.regret_bound(np.linalg.norm(h), s, 6.0, 0.5, 2.0) for s in sums]
    assert learner.bounds(h) == approx(np.array(expected))
    assert learner.bound(h) == approx(expected[-1])


def test_per_coordinate_the_bound_is_that_of_appendix_A():
    X, y = events(0)
    u = np.array([1.0, -2.0, 0.0])
    learner = Learner.theorem("hinge", per_coordinate=True, b=1 / 3, record=True)
    s_sums = np.zeros(3)
    for x_t, y_t in zip(X, y):
        s = LOSSES["hinge"].grad(y_t, learner.predict(x_t), 0.0)
        learner.learn(x_t, y_t)
        s_sums += np.abs(s * x_t)
        assert learner.bound(u) == approx(theory.per_coordinate_bound(u, s_sums, 3.0, 1.0))
    assert learner.bound((np.eye(3) @ u, np.eye(3))) == approx(learner.bound(u))


def test_the_norm_of_h_is_that_of_the_kernel_space():
    X, y = events(0)
    learner = played(X, y, kernel="rbf", gamma=0.5)
    coef = np.array([1.0, -2.0, 0.5])
    K = np.array([[rbf(x, z) for z in X[:3]] for x in X[:3]])
    norm = np.sqrt(coef @ K @ coef)
    expected = theory.regret_bound(norm, learner.s_sum, 3.0, 1.0, 1.0)
    assert learner.bound((coef, X[:3])) == approx(expected)
    assert learner.bound(lambda X: 0 * X[:, 0], h_norm=norm) == approx(expected)


def test_before_the_first_round_there_is_nothing_to_tell():
    learner = Learner.theorem("hinge", record=True)
    h = np.zeros(3)
    assert (learner.regret(h), learner.bound(h)) == (0.0, 0.0)
    assert len(learner.regrets(h)) == len(learner.bounds(h)) == 0


X, Y = events(0)
LONG = 2 * X
ZERO = np.zeros(3)


def twice(A, B):
    return 2.0 * A @ B.T


@pytest.mark.parametrize(
    ("rows", "parameters", "message"),
    [
        (X, {"a": 2.0}, r"a ≥ 2\.25 L = 2\.25; here a = 2, which is 2 L\. Use a = 3 L = 3"),
        (X, {"b": "anytime"}, "about a constant b.*Use a number"),
        (LONG, {}, r"‖k\(x, ·\)‖ ≤ 1; 2 was seen"),
        (X, {"kernel": twice}, r"‖k\(x, ·\)‖ ≤ 1; 1\.41421 was seen"),
        (X, {"kernel": "poly", "gamma": 2.0, "degree": 2}, "≤ 1; 2 was seen"),
        (np.sign(X) * 1.5, {"per_coordinate": True}, r"\|x_i\| ≤ 1; 1\.5 was seen"),
        (X, {"per_coordinate": True, "b": "vowpal"}, "about a constant b"),
    ],
)
def test_what_no_theorem_covers_has_no_bound(rows, parameters, message):
    learner = played(rows, Y, **parameters)
    h = ZERO if parameters.get("kernel", "linear") == "linear" else ([1.0], rows[:1])
    assert np.isfinite(learner.regret(h))
    with pytest.raises(ValueError, match=message):
        learner.bound(h)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, r"events as they are; this learner centres them.*Learner\.theorem"),
        ({"center": False}, "has an intercept.*fit_intercept=False"),
        ({"center": False, "fit_intercept": False}, r"constant b.*Learner\.theorem"),
        ({"center": False, "fit_intercept": False, "b": 1.0}, r"Use a = 3 L = 3 or more"),
        ({"center": False, "fit_intercept": False, "b": 1.0, "a": 3.0}, "here x_max is 0"),
        ({"kernel": "rbf"}, "constant b"),
    ],
)
def test_the_defaults_have_a_regret_but_no_bound(parameters, message):
    learner = Learner(record=True, **parameters)
    for x_t, y_t in zip(X, Y):
        learner.learn(x_t, y_t)
    h = ([1.0], X[:1])
    assert np.isfinite(learner.regret(h))
    with pytest.raises(ValueError, match=message):
        learner.bound(h)


def test_a_comparator_without_a_norm_has_no_bound():
    learner = played(X, Y)
    with pytest.raises(ValueError, match="give h_norm"):
        learner.bound(lambda X: X[:, 0])
    with pytest.raises(ValueError, match="h_norm is for functions"):
        learner.bound(ZERO, h_norm=1.0)
    with pytest.raises(ValueError, match="needs the weights of h"):
        played(X, Y, per_coordinate=True).bound(lambda X: X[:, 0], h_norm=1.0)
    with pytest.raises(ValueError, match="omit h_norm"):
        played(X, Y, per_coordinate=True).bound(ZERO, h_norm=1.0)
    with pytest.raises(ValueError, match="record=True"):
        Learner("hinge").bounds(ZERO)


@pytest.mark.parametrize(
    ("h", "message"),
    [
        (np.array([1.0, np.nan, 0.0]), "h must be finite"),  # the hinge loss of nan is 0
        (lambda X: np.full(len(X), np.inf), "h must be finite"),
        (([np.nan], X[:1]), "h must be finite"),
        (lambda X: X, "one value per row, 20; it gave 60"),
        ((1.0, -2.0, 0.5), "give a weight vector as an array"),
        (([1.0, 2.0], X[:1]), "2 coefficients needs as many points"),
    ],
)
def test_what_is_no_comparator_is_refused(h, message):
    with pytest.raises(ValueError, match=message):
        played(X, Y).regret(h)


def test_what_is_no_event_is_refused():
    with pytest.raises(ValueError, match=r"a vector of numbers; got <.*sparse"):
        Learner("hinge").learn(csr_array(X[:1]), 1.0)


def test_rounding_of_a_norm_is_not_a_broken_assumption():
    assert np.isfinite(played(X * (1 + 1e-12), Y).bound(ZERO))


@pytest.mark.parametrize("loss", ["multinomial", quantile_loss([0.1, 0.5, 0.9])], ids=str)
def test_losses_of_several_scores_are_refused(loss):
    with pytest.raises(ValueError, match="several scores per round"):
        Learner(loss)
    with pytest.raises(ValueError, match="several scores per round"):
        Learner("logistic").learn([1.0], 1.0, loss=loss)


# The picture.


def test_the_display_draws_what_the_learner_reports():
    learner, h = played(X, Y), np.array([1.0, -2.0, 0.5])
    display = RegretDisplay.from_learner(learner, h)
    assert display.t.tolist() == list(range(1, len(X) + 1))
    assert display.regret_line_.get_ydata() == approx(learner.regrets(h))
    assert display.bound_line_.get_ydata() == approx(learner.bounds(h))
    assert display.ax_.get_xlabel() == "rounds t"
    assert display.figure_ is display.ax_.figure
    norm = float(np.linalg.norm(h))
    again = RegretDisplay.from_learner(learner, lambda X: X @ h, ax=display.ax_, h_norm=norm)
    assert again.ax_ is display.ax_
    assert again.bound == approx(display.bound)
    plain = RegretDisplay.from_learner(learner, h, name="of PiSTOL", log=False)
    assert plain.ax_.get_yscale() == "linear"
    assert "of PiSTOL" in [text.get_text() for text in plain.ax_.get_legend().get_texts()]


@pytest.mark.parametrize(
    ("regret", "bound", "scale"),
    [
        ([1.0, 2.0], [3.0, 4.0], "log"),
        ([-5.0, 2.0], [3.0, np.inf], "symlog"),
        ([0, 1], [2, 3], "symlog"),
    ],
)
def test_a_regret_that_is_not_positive_is_shown(regret, bound, scale):
    display = RegretDisplay([1, 2], regret, bound).plot()
    assert display.ax_.get_yscale() == scale
    assert display.ax_.get_ylim()[0] <= min(regret)
    assert RegretDisplay([1, 2], regret, bound).plot(log=False).ax_.get_yscale() == "linear"


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pistol\[cli\]"):
        RegretDisplay([1], [1.0], [2.0]).plot()


@pytest.fixture(autouse=True)
def _no_windows():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    yield
    plt.close("all")
