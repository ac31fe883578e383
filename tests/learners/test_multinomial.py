"""The multinomial loss: outputs that are compared with each other, against the oracle."""

import pickle
from math import exp

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.special import log_softmax, softmax

from pistol import reference
from pistol._compiled import tiles as _tiles
from pistol._compiled.loops import compare, total_loss
from pistol._compiled.plugs import address
from pistol._compiled.threads import workers
from pistol._compiled.types import read_only
from pistol._learners import Coordinates, Dual, Primal, Rule
from pistol._learners.gram import GramRun
from pistol._learners.gram_matrix import Gram
from pistol.kernels import get_kernel
from pistol.losses import CLASSIFICATION_LOSSES, LOSSES, MULTINOMIAL, check_loss
from pistol.potentials import C_MAX

pytestmark = pytest.mark.interpreted

N, D, A, GAMMA = 14, 3, 1.0, 0.3
KERNEL = get_kernel("rbf", GAMMA, 1, 0)
LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array}
LEARNERS = ("primal", "coordinates", "dual", "gram")

all_layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
all_learners = pytest.mark.parametrize("name", LEARNERS)
scores = st.lists(st.floats(-30, 30), min_size=2, max_size=5)


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    """Blocks and tiles of a few rows, so that short streams cross their borders."""
    monkeypatch.setattr("pistol._learners.dual.BLOCK", 4)
    monkeypatch.setattr("pistol._learners.primal.CHUNK", 5)
    monkeypatch.setattr("pistol._learners.coordinates.CHUNK", 5)
    monkeypatch.setattr(_tiles, "TILE", 3)


def make_stream(seed, classes):
    """Rows of norm about 1, one of them zero, and the numbers of their classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) / 2 * (rng.random((N, D)) < 0.8)
    X[rng.integers(N)] = 0.0
    return X, rng.integers(classes, size=N)


def one_hot(y, classes):
    return read_only(np.where(np.arange(classes) == y[:, None], 1.0, -1.0))


def play(name, rule, X, Y, layout=np.asarray):
    """Predictions of all rounds, in order and of size 1."""
    order, r, outputs = read_only(np.arange(len(Y))), read_only(np.ones(len(Y))), Y.shape[1]
    if name == "gram":
        with workers(1) as threads:
            gram = Gram(layout(X), (KERNEL,), threads)
        return GramRun(gram, (KERNEL,), rule, outputs, layout(X), order, 1).learn(Y, order, r)
    learner = {
        "primal": lambda: Primal(rule, X.shape[1], outputs, bias=1.0),
        "coordinates": lambda: Coordinates(rule, X.shape[1], outputs, bias=1.0),
        "dual": lambda: Dual(rule, (KERNEL,), outputs, n_jobs=1),
    }[name]()
    return np.concatenate([chunk.P for chunk in learner.play(layout(X), Y, order, r)])


def oracle(name, X, y, classes):
    """The same predictions by the reference, with b = anytime."""
    b, L = reference.anytime, MULTINOMIAL.L
    with_bias = list(zip(np.hstack([X, np.ones((len(X), 1))]), y.tolist()))
    rows = list(zip(X, y.tolist()))

    def rbf(x, z):
        return exp(-GAMMA * ((x - z) ** 2).sum())

    plays = {
        "primal": lambda grad: reference.pistol(with_bias, grad, np.dot, A, b, L),
        "coordinates": lambda grad: reference.pistol_per_coordinate(
            with_bias, grad, A, b, L, [0.0] * (D + 1)
        ),
        "dual": lambda grad: reference.pistol(rows, grad, rbf, A, b, L),
    }
    play = plays["dual" if name == "gram" else name]
    rounds = reference.product_space(play, reference.d_multinomial, classes)
    return [[p for p, _ in outputs] for outputs in rounds]


@given(p=scores, data=st.data())
def test_the_oracles_gradient_is_that_of_minus_log_softmax(p, data):
    y = data.draw(st.integers(0, len(p) - 1))
    expected = approx_fprime(np.array(p), lambda p: -log_softmax(p)[y], 1e-6)
    assert_allclose(reference.d_multinomial(y, p), expected, atol=1e-5)


@given(p=scores, data=st.data())
def test_the_logistic_loss_of_compared_scores_is_the_multinomial_one(p, data):
    y = data.draw(st.integers(0, len(p) - 1))
    z = np.empty(len(p))
    compare(np.array(p), z)
    s = [MULTINOMIAL.grad(1.0 if j == y else -1.0, z[j], 0.0) for j in range(len(p))]
    assert_allclose(s, reference.d_multinomial(y, p), 1e-9, 1e-15)
    assert_allclose(MULTINOMIAL.value(1.0, z[y], 0.0), -log_softmax(p)[y], 1e-9, 1e-15)
    assert_allclose(MULTINOMIAL.link(z), softmax(p), 1e-9, 1e-15)


@all_learners
@all_layouts
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4))
def test_every_learner_is_the_oracle_round_by_round(name, layout, seed, classes):
    X, y = make_stream(seed, classes)
    rule = Rule(MULTINOMIAL, "pistol_anytime", A, 0.5, "linear")
    P = play(name, rule, X, one_hot(y, classes), layout)
    near = 1e-9 if name == "gram" else 1e-12  # kernel values in memory are in steps of 2^-36
    assert_allclose(P, oracle(name, X, y, classes), 1e-8, near)


@all_learners
def test_an_output_alone_learns_by_the_logistic_loss(name):
    X, y = make_stream(0, 2)
    Y = read_only(2.0 * y[:, None] - 1.0)
    coupled, alone = (
        play(name, Rule(loss, "pistol_anytime", A, 0.5, "linear"), X, Y)
        for loss in (MULTINOMIAL, LOSSES["logistic"])
    )
    assert_array_equal(coupled, alone)


@all_learners
def test_two_outputs_are_one_seen_from_both_sides(name):
    """The gradients of two outputs are each other's negatives, and so are the scores."""
    X, y = make_stream(1, 2)
    P = play(name, Rule(MULTINOMIAL, "pistol_anytime", A, 0.5, None), X, one_hot(y, 2))
    assert_allclose(P[:, 0], -P[:, 1], 1e-9, 1e-12)
    assert np.abs(P).max() > 0.1


huge = st.builds(lambda s, e: s * 10.0**e, st.sampled_from([-1.0, 0.0, 1.0]), st.floats(-5, 130))


@given(p=st.lists(huge, min_size=2, max_size=6), data=st.data())
def test_huge_scores_stay_finite(p, data):
    p = np.array(p)
    y, z = data.draw(st.integers(0, len(p) - 1)), np.empty(len(p))
    compare(p, z)
    assert np.isfinite(z).all()
    s = np.array([MULTINOMIAL.grad(1.0 if j == y else -1.0, z[j], 0.0) for j in range(len(p))])
    assert_allclose(s, softmax(p) - (np.arange(len(p)) == y), 1e-7, 1e-12)
    value = MULTINOMIAL.value(1.0, z[y], 0.0)
    assert_allclose(value, -log_softmax(p)[y], 1e-7, 1e-12)


@all_learners
def test_rounds_with_huge_scores_stay_finite(name):
    X, y = make_stream(2, 3)
    rule = Rule(MULTINOMIAL, "constant", A, C_MAX, "linear")
    if name == "coordinates":  # whose c is that of Algorithm 3: so small an a takes it to the cap
        rule = Rule(MULTINOMIAL, "pistol", 1e-6, 1e-4, "linear")
    P = play(name, rule, X, one_hot(y, 3))
    assert np.isfinite(P).all()
    assert np.abs(P).max() > 1e100


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4))
def test_a_round_suffers_the_loss_of_its_own_class(seed, classes):
    rng = np.random.default_rng(seed)
    P, y, r = rng.normal(size=(N, classes)) * 5, rng.integers(classes, size=N), rng.random(N)
    order = rng.permutation(N)
    rule = Rule(MULTINOMIAL, "pistol", A, 1.0, None)
    found = total_loss(
        read_only(P), one_hot(y, classes), read_only(order), read_only(r),
        address(MULTINOMIAL.value, 3), rule.theta(classes), rule.coupled,
    )  # fmt: skip
    expected = -r @ log_softmax(P, axis=1)[np.arange(N), y[order]]
    assert_allclose(found, expected, 1e-9)


def test_one_output_suffers_the_logistic_loss():
    P, y = np.array([[2.0], [-1.0]]), np.array([[1.0], [1.0]])
    for loss in (MULTINOMIAL, LOSSES["logistic"]):
        rule = Rule(loss, "pistol", A, 1.0, None)
        found = total_loss(
            read_only(P), read_only(y), read_only(np.arange(2)), read_only(np.ones(2)),
            address(loss.value, 3), rule.theta(1), rule.coupled,
        )  # fmt: skip
        assert found == pytest.approx(np.log1p(np.exp(-2.0)) + np.log1p(np.exp(1.0)))


def test_the_loss_travels_by_name_and_says_that_it_is_coupled():
    loss = pickle.loads(pickle.dumps(MULTINOMIAL))
    assert loss.coupled
    assert loss.grad is MULTINOMIAL.grad is LOSSES["logistic"].grad
    assert b"njit" not in pickle.dumps(MULTINOMIAL)
    assert repr(loss) == "Loss('multinomial', L=1, H=0.25, theta=0, coupled=True)"
    assert LOSSES["multinomial"] is MULTINOMIAL
    assert "multinomial" not in CLASSIFICATION_LOSSES
    assert not pickle.loads(pickle.dumps(LOSSES["logistic"])).coupled
    check_loss(MULTINOMIAL)
