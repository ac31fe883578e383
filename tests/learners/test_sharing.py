"""Two threads that share each round compute what one thread computes, bit for bit."""

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis.strategies import booleans, integers, sampled_from
from numpy.testing import assert_array_equal

from pistol._compiled import exchange
from pistol._compiled.divided import Work, follow, lead
from pistol._compiled.exchange import AWAY, GONE, STATUS, new_desk
from pistol._compiled.rows import as_rows
from pistol._compiled.types import Rounds, Scalars
from pistol._learners import Coordinates, Rule, sharing
from pistol.losses import LOSSES, MULTINOMIAL

pytestmark = pytest.mark.interpreted

N, D = 60, 12
followed = pytest.mark.skipif(not exchange.FOLLOWED, reason="one thread plays alone here")
threads = ThreadPoolExecutor(1)


def stream(seed, outputs, dense, dtype=np.float64, n=N):
    """Rows with zeros, one of them empty, targets, and rounds of several sizes."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.6)).astype(dtype)
    X[rng.integers(n)] = 0.0
    Y = np.where(rng.integers(outputs, size=(n, 1)) == np.arange(outputs), 1.0, -1.0)
    rounds = Rounds.of(Y, rng.permutation(n), rng.choice([0.5, 1.0, 2.0], size=n))
    return X if dense else sp.csr_array(X), rounds


def played(X, rounds, rule, border, outputs, pair):
    """All that is learned by one thread, or by two, and whether they parted before the end."""
    learner, rows = Coordinates(rule, X.shape[1], outputs, 1.0), as_rows(X)
    longest = int(np.diff(rows.indptr).max())
    works, desk = [Work.of(longest, outputs) for _ in range(2)], new_desk(outputs)
    given_to = rows, rounds, border, rule.plugs_per_coordinate(outputs)
    P, own = np.zeros((2, len(rounds.order), outputs)), Scalars(*(x.copy() for x in learner.S))
    state = learner.state
    other = None
    if pair:
        other = threads.submit(follow, *given_to, own, state, 1.0, P[1], works[1], *desk)
        while desk[1][STATUS, 0] == AWAY:
            pass
    parted = lead(*given_to, learner.S, state, 1.0, P[0], works[0], *desk)
    taken = other is not None and other.result(60)
    return taken, parted, (P[0], state, learner.S.t, learner.S.weight)


def both(X, rounds, rule, border, outputs):
    """What one thread learns and what two do; the follower may have gone, so several times."""
    alone = played(X, rounds, rule, border, outputs, False)[2]
    for _ in range(200):
        taken, parted, shared = played(X, rounds, rule, border, outputs, True)
        for one, two in zip(alone, shared, strict=True):
            assert_array_equal(one, two)
        if taken:
            return parted
    raise AssertionError("the leader never took a follower on")


@followed
@settings(max_examples=20, deadline=None)
@given(
    seed=integers(0, 10**6),
    dense=booleans(),
    outputs=sampled_from([1, 3, 9]),
    potential=sampled_from(["pistol_anytime", "pistol_shared"]),
    border=integers(0, D),
    dtype=sampled_from([np.float64, np.float32]),
)
def test_two_threads_learn_what_one_learns(seed, dense, outputs, potential, border, dtype):
    loss = LOSSES["logistic"] if outputs == 1 else MULTINOMIAL
    X, rounds = stream(seed, outputs, dense, dtype)
    both(X, rounds, Rule(loss, potential, 0.5, 2.0, "linear"), border, outputs)


@followed
def test_threads_part_when_one_waits_for_long():
    """A long row of entries that are all the follower's."""
    n, d, border = 4000, 600_000, 10
    short = sp.random(n, border, 0.5, "csr", random_state=0)
    short.resize(n, d)
    full = sp.csr_array(np.ones((1, d)))
    full.data[:border] = 0.0
    X = sp.csr_array(sp.vstack([short, full, short], "csr"))
    y = np.random.default_rng(0).choice([-1.0, 1.0], size=(2 * n + 1, 1))
    rounds = Rounds.of(y, np.arange(len(y)), np.ones(len(y)))
    rule = Rule(LOSSES["logistic"], "pistol_shared", 0.5, 2.0, "linear")
    assert any(both(X, rounds, rule, border, 1) for _ in range(20))


def test_a_follower_that_nobody_takes_on_goes():
    X, rounds = stream(0, 1, True)
    rule = Rule(LOSSES["logistic"], "pistol_anytime", 0.5, 2.0, "linear")
    learner, desk = Coordinates(rule, D, 1, 1.0), new_desk(1)
    before = learner.state.copy()
    given_to = as_rows(X), rounds, 3, rule.plugs_per_coordinate(1), learner.S, learner.state, 1.0
    assert not follow(*given_to, np.zeros((N, 1)), Work.of(D, 1), *desk)
    assert_array_equal(learner.state, before)
    assert desk[1][STATUS, 0] == (GONE if exchange.FOLLOWED else AWAY)


def test_a_follower_that_comes_late_does_nothing():
    X, rounds = stream(0, 1, True)
    rule = Rule(LOSSES["logistic"], "pistol_anytime", 0.5, 2.0, "linear")
    learner, desk, P = Coordinates(rule, D, 1, 1.0), new_desk(1), np.zeros((N, 1))
    given_to = as_rows(X), rounds, 3, rule.plugs_per_coordinate(1), learner.S, learner.state, 1.0
    assert not lead(*given_to, P, Work.of(D, 1), *desk)
    before = learner.state.copy()
    assert not follow(*given_to, P, Work.of(D, 1), *desk)
    assert_array_equal(learner.state, before)
    assert learner.t == rounds.r.sum()


@followed
def test_who_waits_for_long_says_so():
    receive = numba.njit(nogil=True)(lambda *given: exchange.receive(*given))
    lines, marks = new_desk(2)
    for k, pause in enumerate([0.0, 0.0, 0.02, 0.0]):
        numbers, line = np.zeros(2), exchange.NUMBERS + 2 + k % 2
        waiting = threads.submit(receive, lines, marks, exchange.FOLLOWER, k, numbers)
        sleep(pause)
        lines[line, 1:3] = k + 0.5, -1.0
        marks[line, 0] = 2 * (k + 1)
        waited = waiting.result(10)
        assert numbers.tolist() == [k + 0.5, -1.0]
        assert not pause or waited > exchange.LONG


@pytest.mark.parametrize("dense", [True, False])
def test_rows_have_two_parts_where_they_are_long_and_wide(monkeypatch, dense):
    X = stream(0, 1, dense)[0]
    assert sharing.border_of(X) is None
    for name in ("WIDE", "LONG", "MANY"):
        monkeypatch.setattr(sharing, name, 0)
    border = sharing.border_of(X)
    low = (X if dense else X.toarray())[:, :border] != 0
    assert 0.3 < low.sum() / np.count_nonzero(X if dense else X.data) < 0.7
    if not dense:
        X.indices[:2] = X.indices[:2][::-1].copy()
        X.has_sorted_indices = False
        assert sharing.border_of(X) is None
