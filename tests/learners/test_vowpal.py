"""Vowpal Wabbit's --pistol: our per-coordinate learner with b="vowpal" predicts what it predicts.

Found by experiment with Vowpal Wabbit 9.11:

- Its `predict` uses weights as of the last `learn` with that feature; the score that a round suffers
  from, with m and w brought up to date, is the prediction that `learn` leaves in the example.
- The constant is a feature of value 1 like any other; --noconstant is our bias=0.
- What it reports is clipped to ±50, the partial prediction is not. Which of both the gradient is taken
  at cannot be seen in float32: beyond 50 it is 0 or ±1.
- Names are hashed to 18 bits: a handful of features do not collide.
"""

from math import exp

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis.strategies import integers
from numpy.testing import assert_allclose

from pistol import LinearPistolClassifier, reference
from pistol._compiled.types import read_only
from pistol._learners import Coordinates, Dual, Primal, Rule
from pistol.kernels import get_kernel
from pistol.losses import LOSSES
from pistol.online import Learner
from pistol.potentials import POTENTIALS, pistol_choice

LOGISTIC = LOSSES["logistic"]
RULE = Rule(LOGISTIC, "pistol_vowpal", 1.0, 0.5, None)
UNITS = np.array([1.0, 1.0, 2.0, 0.3, 5.0, 0.01])

interpreted = pytest.mark.interpreted
layouts = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])


def make_stream(seed, n):
    """Sparse rows of features in different units, and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, len(UNITS))) * (rng.random((n, len(UNITS))) < 0.5)
    y = np.where(X @ rng.normal(size=len(UNITS)) + rng.normal(size=n) > 0, 1.0, -1.0)
    return X * UNITS, y


def d_logistic(y, p):
    return -y / (1.0 + exp(y * p))


def play(X, y, rule=RULE, bias=1.0):
    learner = Coordinates(rule, X.shape[1], 1, bias=bias)
    rounds = read_only(np.arange(len(y))), read_only(np.ones(len(y)))
    chunks = learner.play(X, read_only(y[:, None]), *rounds)
    return np.concatenate([chunk.P[:, 0] for chunk in chunks])


def oracle(X, y, a=1.0, b=0.5, bias=1.0):
    rows = np.hstack([X, np.full((len(y), 1), bias)])
    rounds = reference.vowpal(zip(rows, y), d_logistic, a, b, rows.shape[1])
    return [p for p, _ in rounds]


def vowpal_wabbit(X, y, *flags):
    """The scores that Vowpal Wabbit's rounds suffer from: as it reports them, and before clipping."""
    workspace = pytest.importorskip("vowpalwabbit").Workspace
    vw = workspace(arg_list=["--pistol", "--loss_function", "logistic", "--quiet", *flags])
    reported, raw = [], []
    for x, label in zip(X, y):
        pairs = " ".join(f"f{i}:{x[i]:.17g}" for i in np.flatnonzero(x))
        example = vw.example(f"{label:g} | {pairs}")
        vw.learn(example)
        reported.append(example.get_simplelabel_prediction())
        raw.append(example.get_partial_prediction())
        vw.finish_example(example)
    vw.finish()
    return np.array(reported), np.array(raw)


@interpreted
@layouts
@settings(max_examples=10, deadline=None)
@given(seed=integers(0, 10**6))
def test_coordinates_are_the_oracle(layout, seed):
    X, y = make_stream(seed, 30)
    assert_allclose(play(layout(X), y), oracle(X, y), 1e-9, 1e-12)
    other = Rule(LOGISTIC, "pistol_vowpal", 0.5, 0.1, None)
    assert_allclose(play(layout(X), y, other, 0.0), oracle(X, y, 0.5, 0.1, 0.0), 1e-9, 1e-12)


@interpreted
def test_single_events_are_the_oracle():
    X, y = make_stream(0, 40)
    learner, found = Learner("logistic", center=False, fit_intercept=False, b="vowpal"), []
    for x_t, y_t in zip(X, y):
        found.append(learner.predict(x_t))
        learner.learn(x_t, y_t)
    assert_allclose(found, oracle(X, y, bias=0.0), 1e-9, 1e-12)


@interpreted
def test_the_unit_of_a_feature_matters():
    X, y = make_stream(0, 30)
    assert not np.allclose(play(X, y, bias=0.0), play(100 * X, y, bias=0.0), rtol=0.1)


@pytest.mark.parametrize(
    "flags", [(), ("--noconstant",), ("--ftrl_alpha", "2", "--ftrl_beta", "1")]
)
def test_vowpal_wabbit_predicts_the_same(flags):
    X, y = make_stream(1, 500)
    reported, raw = vowpal_wabbit(X, y, *flags)
    a, b = (2.0, 1.0) if "--ftrl_alpha" in flags else (1.0, 0.5)
    rule = Rule(LOGISTIC, "pistol_vowpal", a, b, None)
    ours = play(sp.csr_array(X), y, rule, 0.0 if "--noconstant" in flags else 1.0)
    assert np.abs(ours).max() > 2.0
    assert_allclose(raw, ours, 1e-3, 1e-4)
    assert_allclose(reported, np.clip(ours, -50, 50), 1e-3, 1e-4)


def test_vowpal_wabbit_clips_what_it_reports_only():
    X, y = make_stream(2, 100)
    reported, raw = vowpal_wabbit(X, y, "--ftrl_beta", "200")
    ours = play(X, y, Rule(LOGISTIC, "pistol_vowpal", 1.0, 200.0, None))
    assert np.abs(ours).max() > 100.0
    assert_allclose(raw, ours, 1e-3, 1e-3 * np.abs(ours).max())
    assert_allclose(reported, np.clip(raw, -50, 50), 1e-6)


@interpreted
def test_b_is_chosen_by_name():
    assert pistol_choice("vowpal", 1.0, 1.0, None) == ("pistol_vowpal", 0.5)
    assert "pistol_vowpal" not in POTENTIALS


@interpreted
def test_only_coordinates_have_it():
    X, y = make_stream(0, 10)
    kernel = (get_kernel("rbf", 1.0, 1, 0),)
    rounds = read_only(np.arange(10)), read_only(np.ones(10))
    for learner in (Primal(RULE, X.shape[1], 1), Dual(RULE, kernel, 1, n_jobs=1)):
        with pytest.raises(ValueError, match="per-coordinate"):
            next(learner.play(X, read_only(y[:, None]), *rounds))
        with pytest.raises(ValueError, match="per-coordinate"):
            learner.model(last=True)
    for kernel in ("linear", "rbf"):
        learner = Learner("logistic", kernel=kernel, per_coordinate=False, b="vowpal")
        with pytest.raises(ValueError, match="per-coordinate"):
            learner.learn(X[0], 1.0)
    assert isinstance(Learner("logistic", b="vowpal").learn(X[0], 1.0), float)


def test_the_estimator_predicts_what_vowpal_wabbit_predicts():
    """But for rows with a new largest magnitude, which it takes note of before it predicts."""
    X, y = make_stream(3, 300)
    model = LinearPistolClassifier(b="vowpal", average=None, scaling=False)
    ours, asked = [], []
    for i in range(len(y)):
        if i > 10 and (np.abs(X[i]) <= np.abs(X[:i]).max(axis=0)).all():
            ours.append(model.decision_function(X[i : i + 1])[0])
            asked.append(i)
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[-1, 1])
    _, theirs = vowpal_wabbit(X, y)
    assert len(asked) > 200
    assert_allclose(ours, theirs[asked], rtol=1e-3, atol=1e-4)
