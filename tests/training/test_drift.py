"""A stream that changes: a younger learner takes over, and none does without a change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import is_classifier

from pistol import LinearPistolClassifier, LinearPistolRegressor, PistolClassifier, PistolRegressor
from pistol._training.drift import FACTOR, FIRST, LEAST, STEP, Challengers, Duel, steps
from pistol._training.stream import doublings

LINEAR, KERNEL = (
    [LinearPistolClassifier, LinearPistolRegressor],
    [PistolClassifier, PistolRegressor],
)
four = pytest.mark.parametrize("make", LINEAR + KERNEL)


def rows(make, seed, n, change=None):
    """A linear problem; from a row on every label or target is turned into its opposite."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    f = X[:, 0] + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n)
    f = f if change is None else np.where(np.arange(n) < change, f, -f)
    return X, (f > 0).astype(int) if is_classifier(make()) else f


def feed(model, X, y, size=50):
    """The model after the stream, and its mean error on each chunk before it was learned."""
    more = {"classes": [0, 1]} if is_classifier(model) else {}
    errors = []
    for lo in range(0, len(y), size):
        part = slice(lo, lo + size)
        if lo:
            gap = model.predict(X[part]) - y[part]
            errors.append(np.mean(gap != 0) if more else np.abs(gap).mean())
        model.partial_fit(X[part], y[part], **more)
    return model, np.array(errors)


@four
def test_a_change_is_followed(make):
    n, seeds = (1600, 2) if make in LINEAR else (1900, 1)
    for seed in range(seeds):
        X, y = rows(make, seed, n, change=n // 2)
        _, plain = feed(make(), X, y)
        _, errors = feed(make(drift=True), X, y)
        late = slice(3 * len(errors) // 4, None)  # a quarter of the stream after the change
        assert errors[late].mean() < 0.8 * plain[late].mean()


def test_after_a_change_a_younger_learner_takes_over():
    for seed in range(3):
        X, y = rows(LinearPistolClassifier, seed, 1600, change=800)
        model, errors = feed(LinearPistolClassifier(drift=True), X, y)
        assert model.t_ <= 800 + FIRST  # the incumbent is not older than the change
        assert errors[24:].mean() < 1.5 * errors[5:16].mean()  # as good as it was before


@four
def test_without_a_change_the_incumbent_stays(make):
    n, seeds = (800, 10) if make in LINEAR else (700, 3)
    stayed = [feed(make(drift=True), *rows(make, s, n), 100)[0].t_ == n for s in range(seeds)]
    assert np.mean(stayed) >= 0.9


@four
def test_without_a_change_forgetting_costs_little(make):
    n = 1500 if make in LINEAR else 700
    X, y = rows(make, 11, n)
    _, plain = feed(make(), X, y, 100)
    _, errors = feed(make(drift=True), X, y, 100)
    assert errors.mean() < 1.2 * plain.mean() + 0.02


# Challengers


class Fake:
    """A learner."""


def duel(gains, every=FIRST):
    found = Duel(Fake(), every)
    for gain in gains:
        found = found.then(gain, complete=True)
    return found


@given(gain=st.floats(0.01, 10), looks=st.integers(1, 50))
def test_a_steady_advantage_wins_after_a_few_looks(gain, looks):
    """n equal gains are ahead by n/√n standard errors: two at LEAST = 4, not more."""
    assert duel([gain] * looks).won == (looks > LEAST)


@given(gains=st.lists(st.floats(-10, 0), max_size=30))
def test_who_is_behind_never_wins(gains):
    assert not duel(gains).won


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), factor=st.floats(1e-3, 1e3))
def test_the_unit_of_the_loss_does_not_matter(seed, factor):
    gains = np.random.default_rng(seed).normal(0.3, 1.0, 40)
    assert duel(gains).won == duel(factor * gains).won


def test_chance_seldom_wins():
    rng = np.random.default_rng(0)
    won = [duel(rng.normal(size=64)).won for _ in range(500)]
    assert np.mean(won) < 0.06


@given(gains=st.lists(st.floats(-5, 5), min_size=1, max_size=20), cut=st.integers(0, 20))
def test_a_comparison_may_be_cut(gains, cut):
    """Gains of parts of a step add up."""
    whole, parts = Duel(Fake(), FIRST), Duel(Fake(), FIRST)
    for gain in gains:
        whole = whole.then(gain, complete=True)
        first = gain * cut / 20
        parts = parts.then(first, complete=False).then(gain - first, complete=True)
    assert (parts.looks, parts.pending) == (whole.looks, 0.0)
    np.testing.assert_allclose([parts.gain, parts.squares], [whole.gain, whole.squares], atol=1e-9)


def run(rounds):
    """Challengers of a stream in which nobody wins, after so many rounds."""
    challengers = Challengers()
    for seen in range(STEP, rounds + 1, STEP):
        duels = tuple(each.then(0.0, complete=True) for each in challengers.duels)
        challengers = Challengers(challengers.age, duels).renewed(seen, Fake)
    return challengers


@pytest.mark.parametrize("rounds", [FIRST - STEP, FIRST, 1024, 2048, 5000 // STEP * STEP, 20_000])
def test_challengers_begin_at_multiples_of_their_turns(rounds):
    challengers = run(rounds)
    assert challengers.age == rounds // STEP * STEP
    ages = {each.every: each.looks * STEP for each in challengers.duels}
    assert len(ages) == len(challengers.duels)
    turns = [FIRST * FACTOR**k for k in range(9) if FIRST * FACTOR**k <= rounds]
    assert ages == {every: rounds // STEP * STEP % every for every in turns}


def test_the_one_that_is_farthest_ahead_takes_over_and_younger_ones_stay():
    challengers = Challengers(
        5000, (duel([1.0] * 30, 2048), duel([1.0] * 10, 256), duel([-1.0] * 40, 16_384))
    )
    winner = challengers.winner()
    assert winner is challengers.duels[0]
    after = challengers.after(winner)
    assert after.age == 30 * STEP
    assert after.duels == (challengers.duels[1],)
    assert Challengers(100, (duel([-1.0] * 9),)).winner() is None


@given(first=st.integers(0, 500), n=st.integers(0, 500))
def test_pieces_end_where_a_comparison_is_due(first, n):
    pieces = list(steps(first, doublings(first, n)))
    assert [i for piece in pieces for i in range(piece.start, piece.stop)] == list(range(n))
    ends = {first + piece.stop for piece in pieces}
    assert set(range((first // STEP + 1) * STEP, first + n + 1, STEP)) <= ends
