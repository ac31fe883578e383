"""Learners go on from a function, in another scale, or from where they were."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol._compiled.types import read_only
from pistol._learners import Coordinates, Dual, Primal, Rule
from pistol.kernels import get_kernel
from pistol.losses import LOSSES

pytestmark = pytest.mark.interpreted

few = settings(max_examples=6, deadline=None)
seeds = st.integers(0, 10**6)
N, D, OUTPUTS = 30, 3, 2
KERNELS = (get_kernel("rbf", 0.5, 1, 0), get_kernel("rbf", 2.0, 1, 0, 0.25))
MAKERS = {
    "primal": lambda rule: Primal(rule, D, OUTPUTS, bias=1.0),
    "coordinates": lambda rule: Coordinates(rule, D, OUTPUTS, bias=1.0),
    "dual": lambda rule: Dual(rule, KERNELS, OUTPUTS, n_jobs=1),
}
LINEAR = {name: MAKERS[name] for name in ("primal", "coordinates")}
averages = pytest.mark.parametrize("average", ["linear", "uniform", None])
all_learners = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
linear_learners = pytest.mark.parametrize("make", LINEAR.values(), ids=LINEAR)
layouts = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])


def rule(average="linear"):
    return Rule(LOSSES["huber"], "pistol_anytime", 1.0, 0.5, average)


def rows(seed, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.8)
    return X, rng.normal(size=(n, OUTPUTS)) + X[:, :1]


def learn(learner, X, Y, first=0):
    """Predictions of each round, before it was learned."""
    n = X.shape[0]
    order, r = read_only(np.arange(n)), read_only(np.ones(n))
    ids = np.arange(first, first + n)
    chunks = learner.play(X, read_only(np.ascontiguousarray(Y)), order, r, ids)
    return np.concatenate([chunk.P for chunk in chunks])


def state(learner):
    """Every number of a learner."""
    found = {}

    def collect(name, value):
        if isinstance(value, np.ndarray | float | int | bool):
            found[name] = np.array(value)
        elif sp.issparse(value):
            found[name] = value.toarray()
        elif hasattr(value, "values") and hasattr(value, "truncate"):  # grows
            found[name] = value.values.copy()
        elif hasattr(value, "rows") and hasattr(value, "reserve"):
            collect(f"{name}.rows", value.rows)
        elif isinstance(value, tuple):
            for i, part in enumerate(value):
                collect(f"{name}.{i}", part)

    for name, value in vars(learner).items():
        if name != "rule":
            collect(name, value)
    return found


def assert_same_state(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert_array_equal(value, theirs[name], err_msg=name)


# Going on from f_0 = factor · f̄ + offset


@all_learners
@averages
@few
@given(seed=seeds, some=st.booleans(), twice=st.booleans())
def test_right_after_a_restart_f_is_the_affine_image_of_f_bar(make, average, seed, some, twice):
    X, Y = rows(seed)
    learner = make(rule(average))
    rng = np.random.default_rng(seed)
    for _ in range(1 + twice):
        learn(learner, X, Y, int(learner.t))
        before, t = learner.model().decide(X), learner.t
        factor, offset = rng.uniform(-2, 2, OUTPUTS), rng.normal(size=OUTPUTS)
        outputs = np.array([True, not some])
        learner.restart(factor, offset, outputs)
        expected = np.where(outputs, factor * before + offset, before)
        assert_allclose(learner.model().decide(X), expected, rtol=1e-9, atol=1e-9)
        last = learner.model(last=True).decide(X)
        assert_allclose(last[:, outputs], expected[:, outputs], rtol=1e-9, atol=1e-9)
        assert learner.t == t


@all_learners
@few
@given(seed=seeds)
def test_after_a_restart_rounds_add_to_f_0(make, seed):
    """The first prediction is f_0; from then on the same loss pulls where it should."""
    X, Y = rows(seed)
    learner = make(rule())
    learn(learner, X, Y)
    factor, offset = np.array([2.0, 0.5]), np.array([1.0, -3.0])
    expected = factor * learner.model().decide(X) + offset
    learner.restart(factor, offset, np.ones(OUTPUTS, bool))
    P = learn(learner, X[:1], Y[:1], first=N)
    assert_allclose(P, expected[:1], rtol=1e-9, atol=1e-9)
    far = np.full((200, OUTPUTS), 100.0)
    P = learn(learner, np.repeat(X[:1], 200, axis=0), far, first=N + 1)
    assert (np.abs(P[-1] - 100.0) < np.abs(P[0] - 100.0)).all() or not X[0].any()


@all_learners
def test_outputs_that_are_not_restarted_learn_on_as_if_nothing_had_happened(make):
    X, Y = rows(0)
    learner, other = make(rule()), make(rule())
    for each in (learner, other):
        learn(each, X, Y)
    learner.restart(np.full(2, 3.0), np.ones(2), np.array([True, False]))
    ours, theirs = (learn(each, X[::-1], Y[::-1], first=N) for each in (learner, other))
    assert_allclose(ours[:, 1], theirs[:, 1], rtol=1e-9, atol=1e-12)
    assert np.abs(ours[:, 0] - theirs[:, 0]).max() > 1e-3


@all_learners
@pytest.mark.parametrize("average", ["linear", "uniform"])
def test_an_average_that_begins_anew_is_of_later_rounds_only(make, average):
    X, Y = rows(1)
    learner = make(rule(average))
    learn(learner, X, Y)
    learner.forget_average()
    last = learner.model(last=True).decide(X)
    learn(learner, X[:1], Y[:1], first=N)
    # the average of one f_t
    assert_allclose(learner.model().decide(X), last, rtol=1e-9, atol=1e-9)


# Linear models


@linear_learners
@layouts
@few
@given(seed=seeds)
def test_start_from_sets_the_weights(make, layout, seed):
    X, Y = rows(seed)
    learner, rng = make(rule()), np.random.default_rng(seed)
    learn(learner, layout(X), Y)
    weights = rng.normal(size=(OUTPUTS, D + 1))
    learner.start_from(weights, np.array([2.0, 1.0, 0.5]))
    assert_allclose(learner.model().weights, weights, rtol=1e-12)
    expected = X @ weights[:, :-1].T + weights[:, -1]
    assert_allclose(learn(learner, layout(X[:1]), Y[:1]), expected[:1], rtol=1e-9, atol=1e-12)


@few
@given(seed=seeds, powers=st.lists(st.integers(-8, 8), min_size=D, max_size=D))
def test_coordinates_go_on_in_the_new_scale_as_in_the_old(seed, powers):
    """Features and weights in another unit: every prediction stays the same."""
    X, Y = rows(seed)
    ratio = 2.0 ** np.array(powers)
    learner, other = (Coordinates(rule(), D, OUTPUTS, bias=1.0) for _ in range(2))
    for each in (learner, other):
        learn(each, X, Y)
    weights = learner.model().weights
    learner.start_from(weights, np.ones(D))
    other.start_from(weights / np.append(ratio, 1.0), ratio)
    assert_allclose(learn(other, X * ratio, Y), learn(learner, X, Y), rtol=1e-9, atol=1e-12)


# Kernels in another scale


@few
@given(seed=seeds, power=st.integers(-3, 3))
def test_a_change_of_scale_that_kernels_follow_changes_no_g(seed, power):
    """Rows times s and γ over s²: the same kernel values, so the f to come is the same."""
    X, Y = rows(seed)
    s = 2.0**power
    learner = Dual(rule(), KERNELS, OUTPUTS, n_jobs=1)
    learn(learner, X, Y)
    before, t = learner.model(last=True).decide(X), learner.t
    moved = tuple(
        get_kernel("rbf", kernel.theta[0] / s**2, 1, 0, kernel.share) for kernel in KERNELS
    )
    learner.rescale(lambda rows: s * rows, moved)
    assert learner.t == t
    assert_allclose(learner.model(last=True).decide(s * X), before, rtol=1e-6, atol=1e-8)
    assert_array_equal(learner.support.rows.rows, s * X[learner.support.ids.values])


def test_a_learner_of_nothing_can_be_rescaled():
    learner = Dual(rule(), KERNELS, OUTPUTS, n_jobs=1)
    learner.rescale(lambda rows: rows, KERNELS[:1])
    X, Y = rows(0)
    other = Dual(rule(), KERNELS[:1], OUTPUTS, n_jobs=1)
    assert_array_equal(learn(learner, X, Y), learn(other, X, Y))


# Undoing


@all_learners
@layouts
@few
@given(seed=seeds, restarted=st.booleans(), changed=st.booleans())
def test_rolling_back_restores_every_bit(make, layout, seed, restarted, changed):
    X, Y = rows(seed)
    learner = make(rule())
    learn(learner, layout(X), Y)
    if restarted:
        learner.restart(np.array([2.0, 1.0]), np.array([0.0, 1.0]), np.array([True, False]))
        learn(learner, layout(X), Y, first=N)
    n = int(learner.t)
    before, twin = state(copy.deepcopy(learner)), copy.deepcopy(learner)
    Z, V = rows(seed + 1)
    mark = learner.mark(slice(None))
    learn(learner, layout(Z), V, first=n)
    if changed:
        learner.restart(np.array([0.5, 3.0]), np.array([1.0, 1.0]), np.array([True, True]))
        learner.forget_average()
        if isinstance(learner, Dual):
            learner.rescale(lambda rows: 2.0 * rows, KERNELS)
        else:
            learner.start_from(learner.model().weights, np.full(D, 2.0))
        learn(learner, layout(Z), V, first=n + N)
    learner.roll_back(mark)
    assert_same_state(state(learner), before)
    assert_array_equal(learn(learner, layout(Z), V, first=n), learn(twin, layout(Z), V, first=n))
    assert_same_state(state(learner), state(twin))


@linear_learners
def test_a_mark_of_some_features_undoes_what_rows_with_these_change(make):
    X, Y = rows(0)
    learner = make(rule())
    learn(learner, sp.csr_array(X), Y)
    before = state(copy.deepcopy(learner))
    Z = X * [1.0, 0.0, 1.0]
    mark = learner.mark(np.array([0, 2]))
    learn(learner, sp.csr_array(Z), Y, first=N)
    learner.roll_back(mark)
    assert_same_state(state(learner), before)


@all_learners
def test_a_fresh_learner_has_learned_nothing(make):
    X, Y = rows(0)
    learner = make(rule())
    learn(learner, X, Y)
    learner.restart(np.ones(2), np.ones(2), np.ones(2, bool))
    fresh, new = learner.fresh(), make(rule())
    assert fresh.t == 0
    assert_array_equal(learn(fresh, X, Y), learn(new, X, Y))
    assert_same_state(state(fresh), state(new))


def test_shortening_lowers_the_loss_and_keeps_the_norm_right():
    """After `shorten`, f at the rows is that with the least loss, and ‖g‖² is that of g."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    Y = read_only(np.ascontiguousarray(X[:, :1]))
    kernels = (get_kernel("rbf", 0.5, 1, 0.0), get_kernel("rbf", 2.0, 1, 0.0, 0.25))
    dual = Dual(Rule(LOSSES["huber"], "pistol_anytime", 1.0, 8.0, "linear"), kernels, 1)
    ids = np.arange(40)
    list(dual.play(X, Y, read_only(ids), read_only(np.ones(40)), ids))
    target = 0.3 * dual.model(last=True).decide(X)
    dual.shorten(X, lambda P: float(np.square(P - target).sum()))
    after = dual.model(last=True)
    assert_allclose(after.decide(X), target, atol=0.05 * np.abs(target).max())
    K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))
    g = np.zeros(40)
    g[dual.support.ids.values] = dual.support.coef.values[:, 0]
    assert_allclose(dual.S.g_norm_sq[0, 0], g @ K @ g, rtol=1e-6)
