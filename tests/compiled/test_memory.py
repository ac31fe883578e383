"""Memory that is used again: no two arrays share it, and what nobody needs can go back."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pistol import PistolClassifier
from pistol._compiled import memory
from pistol._compiled.memory import KEPT, LINE, PAGE, Arena, Spare

STATUS = Path("/proc/self/status")
on_linux = pytest.mark.skipif(not STATUS.exists(), reason="only Linux says how much there is")


class Owner:
    """Somebody who has an array."""


def resident():
    """Bytes of the process that are in memory."""
    line = next(x for x in STATUS.read_text().splitlines() if x.startswith("VmRSS:"))
    return 1024 * int(line.split()[1])


@pytest.fixture
def full(monkeypatch):
    """Nothing is kept from one fit to the next: all memory is that of a fit."""
    monkeypatch.setattr(memory, "kept", Arena(0))


def used(arena, parts):
    """Which lines of an arena these parts have; no two parts have the same."""
    lines = np.zeros(arena.size // LINE, int)
    for part in parts:
        assert part.ctypes.data % LINE == 0
        first = (part.ctypes.data - arena.stretch.room.ctypes.data) // LINE
        lines[first : first + len(part) // LINE] += 1
    assert lines.max() <= 1
    return lines


steps = st.lists(st.tuples(st.booleans(), st.integers(1, 30 * LINE)), max_size=40)


@given(steps)
def test_parts_of_an_arena_never_overlap_and_come_from_the_first_gap_that_is_large_enough(steps):
    """A step takes a part of this size, or drops one of those that there are."""
    arena, owners, parts = Arena(64 * LINE), [], []
    for take, number in steps:
        if not take:
            at = number % (len(parts) + 1)
            del owners[at : at + 1], parts[at : at + 1]
            continue
        size, before = -(-number // LINE), used(arena, parts)
        fits = [
            i
            for i in range(len(before))
            if i + size <= len(before) and not before[i : i + size].any()
        ]
        owners.append(Owner())
        part = arena.part(number, owners[-1])
        assert (part is None) == (not fits)
        if part is None:
            del owners[-1]
        else:
            assert number <= len(part)
            parts.append(part)
            new = used(arena, parts) - before
            assert new.argmax() == fits[0]
            assert new.sum() == size


@given(st.lists(st.integers(1, 30 * LINE), max_size=20), st.randoms())
def test_all_of_an_arena_comes_back(sizes, random):
    arena, owners = Arena(64 * LINE), [Owner() for _ in sizes]
    for size, owner in zip(sizes, owners, strict=True):
        arena.part(size, owner)
    owner = None
    random.shuffle(owners)
    while owners:
        owners.pop()
    assert len(arena.part(arena.size, Owner())) == arena.size


def test_an_owner_that_is_gone_leaves_its_part_to_the_next():
    arena, first, second = Arena(PAGE), Owner(), Owner()
    one, two = arena.part(1000, first), arena.part(1000, second)
    assert not np.shares_memory(one, two)
    del first
    again = arena.part(500, second)
    assert np.shares_memory(one, again)


def test_threads_take_parts_that_nobody_else_has():
    arena = Arena(PAGE)

    def work(number):
        for _ in range(200):
            owner = Owner()
            part = arena.part(LINE * (1 + number), owner)
            part[:] = number
            assert (part == number).all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(arena.part(PAGE, Owner())) == PAGE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_forked_process_has_memory_of_its_own():
    owner = Owner()
    part = memory.kept.part(LINE, owner)
    part[:] = 1
    child = os.fork()
    if child == 0:
        own = memory.kept.part(KEPT, Owner())
        os._exit(0 if own is not None and not np.shares_memory(own, part) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (part == 1).all()


@on_linux
def test_an_arena_gives_its_pages_back_unless_they_are_used():
    arena, owner = Arena(8 * PAGE), Owner()
    before = resident()
    arena.part(6 * PAGE, owner)[:] = 1
    arena.clear()
    assert resident() > before + 5 * PAGE
    del owner
    arena.clear()
    assert resident() < before + 2 * PAGE
    assert arena.part(6 * PAGE, Owner()) is not None


def test_a_system_that_has_less_memory_is_asked_for_less(monkeypatch):
    """As under a limit of the address space: arrays have memory of their own then."""
    first, of = Owner(), memory.Stretch.of

    def limited(size):
        if size > PAGE:
            raise OSError(12, "Cannot allocate memory")
        return of(size)

    monkeypatch.setattr(memory, "kept", Arena(4 * PAGE))
    monkeypatch.setattr(memory.Stretch, "of", limited)
    x = Spare().array((100, 7), np.float64, first)
    x[:] = 3.0
    assert memory.kept.stretch is None
    assert (x == 3.0).all()


@pytest.mark.parametrize("advice", [True, False])
def test_what_is_offered_is_only_what_nobody_has(advice, monkeypatch):
    if not advice:
        monkeypatch.delattr(memory.mmap, "MADV_FREE", raising=False)
    arena, gone, owner = Arena(8 * PAGE), Owner(), Owner()
    arena.offer()  # nothing is there yet
    arena.part(3 * PAGE, gone)[:] = 7
    x = arena.part(PAGE + LINE, owner)
    x[:] = 5
    del gone
    for _ in range(3):
        arena.offer()
        assert (x == 5).all()
        again = Owner()
        y = arena.part(6 * PAGE // 2, again)
        y[:] = 1
        assert (y == 1).all()
        del again
    assert (x == 5).all()


@pytest.mark.parametrize("size", [100, PAGE, 3 * PAGE + 1])
def test_memory_begins_where_a_cache_line_does_on_any_system(size, monkeypatch):
    for maps in (True, False):
        if not maps:
            monkeypatch.delattr(memory.mmap, "MAP_PRIVATE", raising=False)
        room = memory.memory(size)
        assert room.ctypes.data % LINE == 0
        assert len(room) >= size
        room[:] = 1


@pytest.mark.parametrize("size", [100, PAGE, 3 * PAGE + 1])
@pytest.mark.parametrize("room", [0, KEPT])
def test_memory_of_any_size_can_be_written_to(size, room, monkeypatch):
    monkeypatch.setattr(memory, "kept", Arena(room))
    spare, owner, another = Spare(), Owner(), Owner()
    x = spare.array((size,), np.uint8, owner)
    x[:] = 7
    assert x.flags.writeable
    assert x.flags.c_contiguous
    assert int(x.sum()) == 7 * size
    y = spare.array((-(-size // 8), 2), np.float32, another)
    y[:] = 1
    assert y.flags.aligned
    assert (x == 7).all(), "no two arrays share memory"


def test_new_memory_of_a_fit_takes_the_place_of_what_is_too_small(full):
    spare = Spare()
    for size in (100, 200, 300, 250, 50):
        owner = Owner()
        spare.array((size,), np.float64, owner)
        del owner
        assert len(spare.free) == 1
    assert len(spare.free[0]) >= 8 * 300
    spare.clear()
    assert not spare.free


def test_memory_that_is_not_kept_has_no_part_of_it():
    owner, spare = Owner(), Spare(from_kept=False)
    for one in (spare, spare.another()):
        x = one.array((100, 7), np.float64, owner)
        x[:] = 1.0
        room = memory.kept.stretch
        assert room is None or not np.shares_memory(x, room.room)


@on_linux
def test_memory_of_a_fit_goes_back_to_the_system(full):
    before = resident()
    for size in (3 * PAGE, 5 * PAGE, 7 * PAGE):
        spare, owner = Spare(), Owner()
        spare.array((size,), np.uint8, owner)[:] = 1
        assert resident() > before + size // 2
        del owner, spare
    assert resident() < before + 2 * PAGE


@on_linux
def test_a_process_keeps_no_more_than_is_said(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(memory, "kept", Arena(16 * PAGE))
    X = rng.normal(size=(3000, 4))
    model = PistolClassifier(random_state=0).fit(X, X[:, 0] > 0)  # compiles
    memory.kept.clear()
    before = resident()
    model.fit(X, X[:, 0] > 0)
    assert resident() < before + memory.kept.size + 4 * PAGE, "a fit takes 60 pages and more"


def test_all_that_is_kept_is_free_after_a_fit():
    X = np.random.default_rng(0).normal(size=(700, 4))
    PistolClassifier(random_state=0).fit(X, X[:, 0] > 0)
    memory.kept.clear()
    assert memory.kept.free == [(0, KEPT)]


@pytest.mark.parametrize("library", ["of GNU", "another"])
def test_small_arrays_stay_as_they_are_when_memory_goes_back(library, monkeypatch):
    if library == "another":
        monkeypatch.setattr(memory, "gnu", lambda: None)
    arrays = [np.full(n, n) for n in range(1, 2000)]
    del arrays[::2]
    memory.trim()
    assert all((x == len(x)).all() for x in arrays)
