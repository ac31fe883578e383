"""Which cells are learned beside each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

TURN = 4  # cells per thread between two looks at callbacks, if all were alike
LAST = 2 * TURN  # cells per thread that are left for the last turn, at most


def turns(sizes: Sequence[int], threads: int) -> Iterator[list[deque[int]]]:
    """Numbers of cells of these sizes, one list per thread, turn after turn.

    Time and memory of a cell grow with the square of its size. Half of the threads are given the
    largest cells that are left, the others as much work with the smallest. So all of them together take
    about as much memory as if all cells were alike. When few are left, work that ends at about the same
    time matters more. In each list the largest is first: its memory is enough for those that follow.
    """
    left = deque(sorted(range(len(sizes)), key=lambda cell: sizes[cell]))
    usual = TURN * sum(size**2 for size in sizes) / max(len(sizes), 1)
    while len(left) > LAST * threads:
        yield _large_beside_small(left, sizes, threads, usual)
    if left:
        yield _ending_together(left, sizes, threads)


def _large_beside_small(
    left: deque[int], sizes: Sequence[int], threads: int, usual: float
) -> list[deque[int]]:
    """The next turn, with the usual work per thread; its cells are taken off those that are left."""
    enough = min(usual, sum(sizes[cell] ** 2 for cell in left) / threads)
    lanes = []
    for number in range(threads):
        lane, done = list[int](), 0
        while left and (done < enough or not lane):
            lane.append(left.popleft() if number % 2 else left.pop())
            done += sizes[lane[-1]] ** 2
        enough = max(enough, done) if number == 0 else enough
        lanes.append(deque(sorted(lane, key=lambda cell: -sizes[cell])))
    return [lane for lane in lanes if lane]


def _ending_together(left: deque[int], sizes: Sequence[int], threads: int) -> list[deque[int]]:
    """All cells that are left: each goes to the thread with the least work, the largest first."""
    lanes, done = [deque[int]() for _ in range(threads)], [0] * threads
    for cell in reversed(left):
        free = done.index(min(done))
        lanes[free].append(cell)
        done[free] += max(sizes[cell], 1) ** 2
    return [lane for lane in lanes if lane]
