"""Rows that are left out choose by which sum of kernels, and how often, the rows are played."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol import PistolClassifier, PistolRegressor
from pistol._compiled.threads import workers
from pistol._compiled.types import read_only
from pistol._training.race import RACE, choose, folds

few = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 10**6)
N, K = 24, 3


# Folds


@few
@given(seed=seeds, k=st.integers(2, 6))
def test_every_fold_has_its_share_of_every_group(seed, k):
    rng = np.random.default_rng(seed)
    groups, r = rng.integers(3, size=60), np.ones(60)
    fold = folds(groups, r, k)
    assert set(fold) <= set(range(k))
    for group in range(3):
        sizes = np.bincount(fold[groups == group], minlength=k)
        assert np.ptp(sizes) <= 1


@few
@given(seed=seeds)
def test_every_fold_has_its_share_of_the_weight(seed):
    r = np.random.default_rng(seed).uniform(0, 1, 200)
    shares = np.bincount(folds(np.zeros(200, int), r, 5), r)
    assert_allclose(shares, r.sum() / 5, atol=1.0)


def test_fewer_rounds_than_folds_are_no_error():
    assert len(folds(np.zeros(2, int), np.ones(2), 5)) == 2
    assert len(folds(np.zeros(0, int), np.ones(0), 5)) == 0


# The race


class Fake:
    """A play whose error after so many passes is known."""

    def __init__(self, name, error, moves=True):
        self.name, self.error, self.moves, self.passes = name, error, moves, 0
        self.alpha = np.zeros((1, 1))

    def learn(self, Y, order, r):
        self.passes += 1
        self.alpha += self.moves
        self.rounds = len(order)
        return np.zeros((len(order), Y.shape[1]))

    def scores(self, at):
        return np.full((len(at), 1), self.error(self.passes))

    def snapshot(self):
        return self.passes

    def learner(self, kept=None):
        return self.name, self.passes if kept is None else kept


@pytest.fixture
def race():
    def run(*ways, stop=lambda now: False, most=64, whole=2, seen=lambda *_: None):
        makers = [lambda i=i, way=way: Fake(i, *way) for i, way in enumerate(ways)]
        rows, r = read_only(np.arange(N)), read_only(np.ones(N))
        fold = folds(np.zeros(N, int), r, K)
        with workers(1) as threads:
            return choose(
                makers, np.zeros((N, 1)), (rows, r), fold, K, 0, lambda P: float(P.mean()),
                threads, most=most, whole=whole, stop=stop, seen=seen,
            )  # fmt: skip

    return run


def test_the_better_way_wins(race):
    choice = race((lambda p: 1.0,), (lambda p: 0.5,), (lambda p: 0.7,))
    assert choice.number == 1
    assert choice.loss == 0.5
    assert choice.passes == 1
    assert Counter(name for name, _ in choice.learners) == {1: K + 2}


def test_the_number_of_passes_is_where_the_error_is_least(race):
    choice = race((lambda p: abs(p - 8) + 1.0,), (lambda p: 4.5,))
    assert (choice.number, choice.passes) == (0, 8)
    assert choice.learners == [(0, 8)] * (K + 2)
    assert_array_equal(choice.left_out, 1.0)


def test_there_is_an_end_to_what_always_gets_better(race):
    assert race((lambda p: 1.0 / p,), most=16).passes == 16


def test_nothing_is_played_on_when_nothing_moves(race):
    played = []
    choice = race((lambda p: 1.0 / p, False), stop=lambda now: played.append(now()))
    assert len(played) == 1
    assert choice.passes == 1


def test_what_does_not_get_better_is_given_up(race):
    rounds = []
    race((lambda p: 1.0,), stop=lambda now: rounds.append(0))
    assert len(rounds) == 3  # after one pass, after two, after four: twice nothing was gained


def test_only_the_best_go_on(race):
    lasting = []
    ways = [(lambda p, i=i: (i + 1.0) / p,) for i in range(4)]
    plays = []

    class Told(Fake):
        def __init__(self, *args):
            super().__init__(*args)
            plays.append(self)

    rows, r = read_only(np.arange(N)), read_only(np.ones(N))
    makers = [lambda i=i, way=way: Told(i, *way) for i, way in enumerate(ways)]
    with workers(1) as threads:
        choose(
            makers, np.zeros((N, 1)), (rows, r), folds(np.zeros(N, int), r, K), K, 0,
            lambda P: float(P.mean()), threads, most=32, whole=0,
        )  # fmt: skip
    lasting = {i: max(play.passes for play in plays if play.name == i) for i in range(4)}
    assert lasting == {3: 2, 2: 4, 1: 16, 0: 32}
    assert RACE == {2: 3, 4: 2, 16: 1}


def test_a_callback_may_stop_it(race):
    choice = race((lambda p: 1.0 / p,), stop=lambda now: now()[0][1] >= 2)
    assert choice.passes == 2
    assert choice.learners == [(0, 2)] * (K + 2)


def test_first_predictions_are_told_once_an_order(race):
    told = []
    race((lambda p: 1.0 / p,), seen=lambda learner, order, r, P: told.append((len(order), len(P))))
    assert told == [(N - N // K, N - N // K)] * K


# What follows for the estimators


def rows(seed, n=30):
    rng = np.random.default_rng(seed)
    X = rng.integers(-32, 33, (n, 3)) / 16
    target = X[:, 0] - X[:, 1] * X[:, 2] + rng.integers(-8, 9, n) / 16
    return X, target


MODELS = {
    "classifier": (PistolClassifier, lambda y: y > np.median(y)),
    "three": (PistolClassifier, lambda y: np.digitize(y, np.quantile(y, [0.3, 0.6]))),
    "regressor": (PistolRegressor, lambda y: y),
}
all_models = pytest.mark.parametrize(("make", "encode"), MODELS.values(), ids=MODELS)


def scores(model, X):
    return getattr(model, "decision_function", model.predict)(X)


@all_models
@settings(max_examples=4, deadline=None)
@given(seed=seeds)
def test_a_weight_is_so_many_copies(make, encode, seed):
    X, y = rows(seed)
    y = encode(y)
    weight = np.random.default_rng(seed).integers(1, 4, len(y))
    ours = scores(make(random_state=0).fit(X, y, weight), X)
    many = np.repeat(np.arange(len(y)), weight)
    theirs = scores(make(random_state=0).fit(X[many], y[many]), X)
    assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())


@all_models
@settings(max_examples=4, deadline=None)
@given(seed=seeds)
def test_the_order_of_the_rows_does_not_matter(make, encode, seed):
    X, y = rows(seed)
    y, p = encode(y), np.random.default_rng(seed).permutation(len(y))
    ours, theirs = (scores(make(random_state=0).fit(X[q], y[q]), X) for q in (p, slice(None)))
    assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())
