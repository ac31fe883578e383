"""Full orders learn as many passes as the best candidate of a race needs, whenever they learn them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from pistol._compiled.types import read_only
from pistol._data.ordering import Rounds
from pistol._training.full_orders import FullOrders
from pistol._training.race import Racer

N = 7
SEEDS = [(0, 1), (0, 2)]
doublings = st.lists(st.integers(0, 5), min_size=1, max_size=6).map(sorted)


class Told:
    """A run that remembers the rounds that it was given."""

    def __init__(self, name):
        self.name, self.rows = name, []

    def learn(self, V, order, r, ends):
        assert ends[-1] == len(order)
        self.rows += order.tolist()
        return np.zeros((len(order), V.shape[1]))


def orders():
    return FullOrders(
        np.zeros((N, 1)), Rounds(read_only(np.arange(N)), read_only(np.ones(N))), SEEDS
    )


def follow(some, racer):
    """Learn what is left, and the rounds of each run so far."""
    for task in some.follow(racer, lambda: Told(racer.number)):
        task()
    return [run.rows for run in some.runs]


@given(doublings)
def test_passes_one_after_the_other_are_passes_at_once(powers):
    racer, some = Racer(0, []), orders()
    for power in powers:
        racer.passes = 2**power
        found = follow(some, racer)
    assert_array_equal(found, follow(orders(), racer))
    assert [len(rows) for rows in found] == [N * racer.passes] * len(SEEDS)
    assert found[0] != found[1], "each in an order of its own"


@given(doublings, st.integers(0, 5))
def test_orders_start_again_with_another_candidate(powers, last):
    some, second = orders(), Racer(1, [], passes=2**last)
    for power in powers:
        follow(some, Racer(0, [], passes=2**power))
    found = follow(some, second)
    assert {run.name for run in some.runs} == {1}
    assert_array_equal(found, follow(orders(), second))


def test_nothing_is_left_where_nothing_is_needed():
    some, racer = orders(), Racer(0, [], passes=4)
    assert some.follow(Racer(1, []), lambda: Told(1)) == []
    assert len(some.follow(racer, lambda: Told(0))) == len(SEEDS)
    assert some.follow(racer, lambda: Told(0)) == []
