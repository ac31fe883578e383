"""Support rows that are kept as numbers of rows are those that a learner would keep itself."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pistol._compiled.rows import sq_norms
from pistol._compiled.types import read_only
from pistol._learners import Dual, Rule
from pistol._learners.storage import Picked
from pistol.kernels import get_kernel
from pistol.losses import LOSSES

SUM = (get_kernel("bounded_poly", 0.5, 1, 1e6), get_kernel("rbf", 0.5, 1, 0.0, 0.25))
N, OUTPUTS = 50, 2


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def learners(rng):
    """One with rows of its own, one with numbers of rows of a larger matrix."""
    matrix = rng.normal(size=(2 * N, 3)).astype(np.float32)
    ids, at = 1000 + np.arange(2 * N), rng.permutation(2 * N)[:N].astype(np.int32)
    centre = matrix[at].mean(axis=0)
    rule = Rule(LOSSES["huber"], "pistol_anytime", 1.0, 0.5, "linear")
    coef, u = rng.normal(size=(N, OUTPUTS)), rng.normal(size=(N, len(SUM), OUTPUTS))
    S = rule.scalars(len(SUM), OUTPUTS)
    S.t[:] = S.weight[:] = N
    S.c_sum[:], S.g_norm_sq[:] = 1.0, 2.0
    both = [Dual.resume(rule, SUM, matrix[at] - centre, ids[at], coef, u, S, 1) for _ in range(2)]
    both[1].support = both[1].support.shared(matrix, at, centre, ids)
    return both


def more(rng):
    X = rng.normal(size=(30, 3)).astype(np.float32)
    Y = read_only(rng.normal(size=(30, OUTPUTS)))
    return X, Y, read_only(rng.permutation(30)), read_only(np.ones(30)), 5000 + np.arange(30)


def assert_same(ours, theirs):
    for a, b in zip(ours.support, theirs.support, strict=True):
        x, y = (z.rows[:] if hasattr(z, "rows") else z.values for z in (a, b))
        assert_array_equal(x, y)
        assert x.dtype == y.dtype
    A = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)
    assert_array_equal(ours.model().decide(A), theirs.model().decide(A))
    assert ours.model().shares() == pytest.approx(theirs.model().shares())


def test_what_is_computed_when_asked_for_is_what_would_be_kept(rng):
    theirs, ours = learners(rng)
    assert ours.support.is_shared
    assert not theirs.support.is_shared
    assert_same(ours, theirs)
    support = ours.support
    assert_array_equal(support.sq.values, sq_norms(support.rows[:]))
    assert_array_equal(support.moved.values, np.abs(support.coef.values))
    assert_array_equal(support.ids.values, 1000 + support.rows.at)


def test_a_model_has_no_rows_of_its_own(rng):
    _, ours = learners(rng)
    assert isinstance(ours.model().rows, Picked)
    assert ours.model().rows.matrix is ours.support.rows.matrix


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_the_same(rng, copied):
    theirs, ours = learners(rng)
    assert_same(copied(ours), theirs)


def test_a_learner_that_learns_on_has_rows_of_its_own(rng):
    theirs, ours = learners(rng)
    matrix, chunk = ours.support.rows.matrix.copy(), more(rng)
    shared = ours.support.rows.matrix
    for learner in (theirs, ours):
        list(learner.play(*chunk))
    assert not ours.support.is_shared
    assert ours.support.ids.n > N
    assert_same(ours, theirs)
    assert_array_equal(shared, matrix)


def test_what_was_learned_can_be_undone(rng):
    theirs, ours = learners(rng)
    mark = ours.mark(slice(None))
    list(ours.play(*more(rng)))
    ours.roll_back(mark)
    assert_same(ours, theirs)


@pytest.mark.parametrize("change", ["forget_average", "restart", "rescale"])
def test_what_changes_a_learner_changes_both(rng, change):
    both = learners(rng)
    for learner in both:
        if change == "forget_average":
            learner.forget_average()
        elif change == "restart":
            learner.restart(np.full(OUTPUTS, 0.5), np.ones(OUTPUTS), np.arange(OUTPUTS))
        else:
            learner.rescale(lambda Z: 2.0 * Z[:], SUM)
    assert_same(*both[::-1])
