"""Held-out rows choose the kernels and the number of passes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol import PistolClassifier, PistolRegressor
from pistol._compiled.threads import workers
from pistol._compiled.types import read_only
from pistol._data.ordering import Rounds
from pistol._learners import step_by_step
from pistol._training.folds import Folds, assign_folds, shuffled_passes
from pistol._training.race import (
    NEAR,
    SURVIVORS,
    Contest,
    Racer,
    within,
)

few = settings(max_examples=10, deadline=None)
seeds = st.integers(0, 10**6)
N, K = 24, 3


# Folds


@few
@given(seed=seeds, k=st.integers(2, 6))
def test_every_fold_has_its_share_of_every_group(seed, k):
    rng = np.random.default_rng(seed)
    groups = rng.integers(3, size=60)
    fold = assign_folds(np.arange(60), groups, np.ones(60), 1 / k)
    assert set(fold) <= set(range(k))
    for group in range(3):
        sizes = np.bincount(fold[groups == group], minlength=k)
        assert np.ptp(sizes) <= 1


@few
@given(seed=seeds)
def test_every_fold_has_its_share_of_the_weight(seed):
    r = np.random.default_rng(seed).uniform(0, 1, 200)
    fold = assign_folds(np.arange(200), np.zeros(200, int), r, 1 / 5)
    assert_allclose(np.bincount(fold, r), r.sum() / 5, atol=1.0)


@few
@given(seed=seeds, k=st.integers(1, 6))
def test_copies_are_in_one_fold(seed, k):
    """Otherwise the models would know the rows that they are judged by."""
    rng = np.random.default_rng(seed)
    rows, group = rng.integers(30, size=120), rng.integers(2, size=30)
    share = 1 / k if k > 1 else rng.uniform(0.1, 0.9)
    folds = Folds.of(Rounds(rows, rng.uniform(0.5, 1.5, 120)), rows, group[rows], k, share, seed)
    for learned, held_out in zip(folds.learned, folds.held_out, strict=True):
        assert not set(rows[learned]) & set(rows[held_out])


@few
@given(seed=seeds, k=st.integers(1, 5))
def test_rows_that_a_fold_learns_come_first(seed, k):
    """A row may have rounds in several folds, where rows with its features have other targets."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.append(np.arange(30), rng.integers(30, size=60)))
    rounds, share = Rounds(rows, np.ones(90)), 1 / k if k > 1 else rng.uniform(0.1, 0.9)
    folds = Folds.of(rounds, np.arange(90), rng.integers(3, size=90), k, share, seed)
    for i, learned in enumerate(folds.learned):
        columns, m = folds.columns(i)
        assert set(columns[:m]) == set(rows[learned])
        assert_array_equal(np.sort(columns), np.arange(30))
    columns, m = folds.columns(None)
    assert_array_equal(np.sort(columns), np.arange(m))


@few
@given(seed=seeds)
def test_a_single_fold_learns_some_of_every_group(seed):
    rng = np.random.default_rng(seed)
    groups = np.append(rng.integers(5, size=40), [5, 6, 6])
    fold = assign_folds(np.arange(43), groups, np.ones(43), rng.uniform(0.1, 0.9))
    assert set(groups[fold > 0]) == set(groups)


def test_fewer_rounds_than_folds_are_no_error():
    for n in (2, 0):
        assert len(assign_folds(np.arange(n), np.zeros(n, int), np.ones(n), 1 / 5)) == n


@few
@given(seed=seeds, k=st.integers(2, 6))
def test_a_fold_learns_from_what_it_does_not_hold_out(seed, k):
    rng = np.random.default_rng(seed)
    rounds = Rounds(rng.integers(10, size=40), np.ones(40))
    fold = assign_folds(rounds.rows, rng.integers(2, size=10)[rounds.rows], rounds.r, 1 / k)
    folds = Folds(rounds, fold, k, seed)
    for i in range(k):
        both = np.concatenate([rounds.rows[folds.learned[i]], rounds.rows[folds.held_out[i]]])
        assert_array_equal(np.sort(both), np.sort(rounds.rows))
    everywhere = np.concatenate([rounds.rows[folds.held_out[i]] for i in range(k)])
    assert_array_equal(np.sort(everywhere), np.sort(rounds.rows))


@few
@given(seed=seeds, k=st.integers(1, 5))
def test_a_round_counts_if_a_fold_holds_it_out(seed, k):
    rng = np.random.default_rng(seed)
    rounds = Rounds(np.arange(90), rng.uniform(0.5, 1.5, 90))
    share = 1 / k if k > 1 else rng.uniform(0.1, 0.9)
    folds = Folds.of(rounds, rounds.rows, rng.integers(2, size=90), k, share, seed)
    held_out = np.concatenate(folds.held_out)
    assert len(set(held_out)) == len(held_out)
    expected = np.zeros(90)
    expected[held_out] = rounds.r[held_out]
    assert_array_equal(folds.counted, expected)
    assert folds.counted.sum() == pytest.approx(k * share * rounds.r.sum(), abs=3.0)


@few
@given(seed=seeds, k=st.integers(2, 4))
def test_passes_of_a_fold_are_kept_and_follow_from_their_numbers(seed, k):
    rounds = Rounds(np.arange(30), np.arange(30.0))
    folds = Folds(rounds, np.arange(30) % k, k, seed)
    for i in range(k):
        kept = folds.passes(i, range(3))
        assert folds.passes(i, range(3)) is kept
        again = shuffled_passes(rounds, np.flatnonzero(np.arange(30) % k != i), (seed, i), range(3))
        singly = [folds.passes(i, range(n, n + 1)) for n in range(3)]
        for name in ("rows", "r", "ends"):
            assert_array_equal(getattr(kept, name), getattr(again, name))
        assert_array_equal(kept.rows, np.concatenate([one.rows for one in singly]))
        assert_array_equal(kept.r, kept.rows)
        assert_array_equal(kept.ends, np.cumsum([len(one.rows) for one in singly]))


# The race


class Fake:
    """A run whose error after so many passes is known."""

    def __init__(self, name, error, moves=True):
        self.name, self.error, self.moves, self.passes = name, error, moves, 0
        self.alpha = np.zeros((1, 1))

    def learn(self, V, order, r, ends):
        assert ends[-1] == len(order) == len(r)
        self.passes += len(ends)
        self.alpha += self.moves
        self.learned = order
        return np.zeros((len(order), V.shape[1]))

    def scores(self, at):
        assert not set(at) & set(self.learned), "held-out rows were learned"
        return np.full((len(at), 1), self.error(self.passes))

    def learn_and_score(self, *args):
        return step_by_step(self, *args)

    def snapshot(self):
        return self.passes

    def learner(self, kept=None):
        return self.name, self.passes if kept is None else kept


@pytest.fixture
def run():
    """The best candidate after each doubling, and all runs."""

    def go(*candidates, most=64):
        runs = []

        def maker(name, error, moves=True):
            def make():
                runs.append(Fake(name, error, moves))
                return runs[-1]

            return make

        makers = [maker(i, *candidate) for i, candidate in enumerate(candidates)]
        rounds = Rounds(read_only(np.arange(N)), read_only(np.ones(N)))
        folds = Folds(rounds, assign_folds(rounds.rows, np.zeros(N, int), rounds.r, 1 / K), K, 0)
        with workers(1) as threads:
            mean = lambda P: float(P.mean())  # noqa: E731
            contest = Contest(np.zeros((N, 1)), folds, mean, threads, watched=True)
            racers = [Racer(i, [make() for _ in range(K)]) for i, make in enumerate(makers)]
            return list(contest.race(racers, most)), runs

    return go


def test_losses_within_a_share_of_the_least():
    assert within(0.1, [1.0, 1.05, 1.2]) == [0, 1]
    assert within(0.1, [-1.0, -0.95, -0.8]) == [0, 1]
    assert within(0.0, [2.0, 2.0]) == [0, 1]


def test_the_best_candidate_wins(run):
    *_, best = run((lambda p: 1.0,), (lambda p: 0.5,), (lambda p: 0.7,))[0]
    assert (best.number, best.best, best.passes) == (1, 0.5, 1)
    assert best.learner() == (1, 1)


def test_the_number_of_passes_is_where_the_error_is_least(run):
    *_, best = run((lambda p: abs(p - 8) + 1.0,), (lambda p: 4.5,))[0]
    assert (best.number, best.passes) == (0, 8)
    assert best.learner() == (0, 8)  # as of then, although they went on
    assert_array_equal(best.held_out, 1.0)


def test_there_is_an_end_to_what_always_gets_better(run):
    assert run((lambda p: 1.0 / p,), most=16)[0][-1].passes == 16


def test_the_race_ends_when_nothing_moves(run):
    found, runs = run((lambda p: 1.0 / p, False))
    assert len(found) == 1
    assert {fake.passes for fake in runs} == {1}


def test_what_does_not_get_better_is_given_up(run):
    found, _ = run((lambda p: 1.0,))
    assert len(found) == 3  # after one pass, after two, after four: twice nothing was gained


def test_only_the_best_go_on(run):
    _, runs = run(*[(lambda p, i=i: (i + 1.0) / p,) for i in range(5)], most=32)
    lasting = {i: max(fake.passes for fake in runs if fake.name == i) for i in range(5)}
    assert lasting == {4: 2, 3: 2, 2: 4, 1: 16, 0: 32}
    assert SURVIVORS == {2: 3, 4: 2, 16: 1}


def test_a_candidate_can_go_on_where_its_race_ended(run):
    found, _ = run((lambda p: 1.0 / p,), most=4)
    racer, rounds = found[-1], Rounds(read_only(np.arange(N)), read_only(np.ones(N)))
    folds = Folds(rounds, assign_folds(rounds.rows, np.zeros(N, int), rounds.r, 1 / K), K, 0)
    with workers(1) as threads:
        contest = Contest(np.zeros((N, 1)), folds, lambda P: float(P.mean()), threads, True)
        assert [(best.passes, best.done) for best in contest.race([racer], 16)] == [
            (8, 8),
            (16, 16),
        ]
    assert {fake.passes for fake in racer.runs} == {16}


@pytest.fixture
def longer():
    """Candidates after eight passes and after more of them, with a look on few folds or without."""

    def go(*errors, look=True):
        rounds = Rounds(read_only(np.arange(N)), read_only(np.ones(N)))
        folds = Folds(rounds, assign_folds(rounds.rows, np.zeros(N, int), rounds.r, 1 / K), K, 0)
        racers = [Racer(i, [Fake(i, error) for _ in range(K)]) for i, error in enumerate(errors)]
        with workers(1) as threads:
            mean = lambda P: float(P.mean())  # noqa: E731
            contest = Contest(np.zeros((N, 1)), folds, mean, threads, watched=True)
            contest.go_on([(racer, [1, 2, 4, 8]) for racer in racers])
            few = contest._replace(folds=folds.first()) if look else None
            *_, best = contest._replace(few=few).longer(racers, 64)
        return best, [[run.passes for run in racer.runs] for racer in racers]

    return go


def test_few_folds_have_a_look_at_the_next_doubling(longer):
    """The others learn what helps, and are spared what does not."""
    best, passes = longer(lambda p: abs(p - 16) + 1.0)
    assert passes == [[32, 16, 16]]
    assert (best.passes, best.best, len(best.held_out)) == (16, 1.0, N)
    assert best.learner() == (0, 16)
    assert [len(chunk.rows) for chunk in best.first] == [N - N // K] * K


def test_the_other_folds_learn_only_what_is_near_the_best(longer):
    for behind, others in ((NEAR - 0.01, 16), (NEAR + 0.01, 8)):
        _, passes = longer(lambda p: 1.0 / p, lambda p, by=behind: (1.0 + by) / p)
        assert passes == [[64] * K, [16, others, others]]


def test_a_look_changes_nothing_where_passes_help(longer):
    (ours, passes), (theirs, _) = (longer(lambda p: 1.0 / p, look=look) for look in (True, False))
    for name in ("best", "passes", "marks", "snapshots", "idle", "still"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert_array_equal(ours.scores, theirs.scores)
    assert_array_equal(ours.held_out, theirs.held_out)
    assert passes == [[64] * K]


def test_a_race_can_be_stopped_after_any_doubling(run):
    found, _ = run((lambda p: 1.0 / p,))
    assert [best.number for best in found] == [0] * 7
    assert len({id(best) for best in found}) == 1


def test_first_passes_are_kept_once_per_fold(run):
    *_, best = run((lambda p: 1.0 / p,))[0]
    assert [(len(chunk.rows), len(chunk.P)) for chunk in best.first] == [(N - N // K,) * 2] * K


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
@settings(max_examples=3, deadline=None)
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
@settings(max_examples=3, deadline=None)
@given(seed=seeds)
def test_the_order_of_the_rows_does_not_matter(make, encode, seed):
    X, y = rows(seed)
    y, p = encode(y), np.random.default_rng(seed).permutation(len(y))
    ours, theirs = (scores(make(random_state=0).fit(X[q], y[q]), X) for q in (p, slice(None)))
    assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())
