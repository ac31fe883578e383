"""Cells are learned in turns: each once, large ones beside small ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pistol._training.turns import LAST, TURN, turns

sizes = st.lists(st.integers(0, 5000), max_size=60)


@given(sizes=sizes, threads=st.integers(1, 9))
def test_every_cell_has_its_turn(sizes, threads):
    found = [cell for lanes in turns(sizes, threads) for lane in lanes for cell in lane]
    assert sorted(found) == list(range(len(sizes)))


@given(sizes=sizes, threads=st.integers(1, 9))
def test_the_first_of_a_list_is_the_largest(sizes, threads):
    for lanes in turns(sizes, threads):
        assert 0 < len(lanes) <= threads
        for lane in lanes:
            own = [sizes[cell] for cell in lane]
            assert own == sorted(own, reverse=True)


def test_together_they_take_much_less_memory_than_the_largest_would():
    sizes = list(range(1800, 5000, 10))
    most = max(sum(sizes[lane[0]] ** 2 for lane in lanes) for lanes in turns(sizes, 2))
    assert most < 1.4 * max(sizes) ** 2, "rather than 2"


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_the_lists_of_a_turn_take_about_as_long(threads):
    sizes = list(range(1800, 5000, 10))
    *rounds, _ = turns(sizes, threads)
    for lanes in rounds:
        work = [sum(sizes[cell] ** 2 for cell in lane) for lane in lanes]
        assert max(work) - min(work) <= max(sizes) ** 2


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_few_cells_are_shared_out(threads):
    lanes = next(iter(turns([100] * threads, threads)))
    assert [len(lane) for lane in lanes] == [1] * threads


def test_a_turn_is_short():
    *before, last = turns([100] * 50, 2)
    assert all(len(lane) <= TURN for lanes in before for lane in lanes)
    assert all(len(lane) <= LAST for lane in last)


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=LAST), st.integers(1, 9))
def test_threads_that_share_out_few_cells_end_at_about_the_same_time(sizes, threads):
    """Nobody has more than his share, but for the last cell that he was given."""
    (lanes,) = turns(sizes, threads)
    work = [[sizes[cell] ** 2 for cell in lane] for lane in lanes]
    usual = sum(sum(own) for own in work) / threads
    assert all(sum(own[:-1]) <= usual for own in work)
