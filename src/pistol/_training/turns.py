"""Which cells are learned beside each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

TURN = 4  # cells per thread between two looks at callbacks, if all were alike


def turns(sizes: Sequence[int], threads: int) -> Iterator[list[deque[int]]]:
    """Numbers of cells of these sizes, one list per thread, turn after turn.

    Time and memory of a cell grow with the square of its size. Half of the threads are given the
    largest cells that are left, the others as much work with the smallest. So all of them together take
    about as much memory as if all cells were alike. In each list the largest is first: its memory is
    enough for those that follow.
    """
    left = deque(sorted(range(len(sizes)), key=lambda cell: sizes[cell]))
    work = [size**2 for size in sizes]
    usual = TURN * sum(work) / max(len(work), 1)
    while left:
        enough = min(usual, sum(work[cell] for cell in left) / threads)
        lanes = []
        for number in range(threads):
            lane, done = list[int](), 0
            while left and (done < enough or not lane):
                lane.append(left.popleft() if number % 2 else left.pop())
                done += work[lane[-1]]
            enough = max(enough, done) if number == 0 else enough
            lanes.append(deque(sorted(lane, key=lambda cell: -sizes[cell])))
        yield [lane for lane in lanes if lane]
