"""Ramps beside scaled features: how far along each of its parts a value is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from .cache import plain
from .moments import GRAIN
from .types import indices, loop, matrix, numbers, real, table

BLOCK = 64  # rows that are looked up together


@plain
def _look_up(z, values, places, at, found):
    """Set `found` to `places` at each z, on straight lines between `values` and constant beyond them.

    All z go one step of the search before any goes the next: as SIMD code, without a jump that no
    processor could guess.
    """
    at[:] = 0
    left = len(values) - 1
    while left > 1:  # values[at] <= z
        half = left // 2
        for i in range(len(z)):
            there = at[i] + half
            at[i] = there if values[np.uint64(there)] <= z[i] else at[i]
        left -= half
    for i in range(len(z)):
        first = np.uint64(at[i])
        last = first + np.uint64(1)
        slope = (places[last] - places[first]) / (values[last] - values[first])
        place = slope * (z[i] - values[first]) + places[first]
        place = places[0] if z[i] <= values[0] else place
        found[i] = places[len(places) - 1] if z[i] >= values[len(values) - 1] else place


@plain
def _extend_row(z, keep, place, step, center, size, out):
    """Set one row. `place` has, for each ramp, how many ramps of its feature have risen at this row."""
    d = len(z)
    for j in range(d):
        out[j] = z[j] * keep[j]
    for ramp in range(len(place)):
        height = place[ramp] - step[ramp]
        height = 0.0 if height < 0.0 else height
        height = 1.0 if height > 1.0 else height
        out[d + ramp] = (height - center[ramp]) * size[ramp]


def _signature(data: Any) -> Any:
    each = from_dtype(np.dtype(data))
    rows = types.Array(each, 2, "C", readonly=True)
    out = types.Array(each, 2, "C")
    return types.void(
        rows, numbers, indices, indices, numbers, numbers, indices, numbers, numbers, out
    )


@loop(_signature)
def extend_rows(Z, keep, owner, starts, values, places, first, center, size, out):
    """Set rows with ramps: Z · keep, and (ramp - center) · size of the ramps of each `owner`.

    `starts` tells where the knots of a feature begin, and `first` which of all ramps is its first; both
    have one number more at the end.
    """
    block = min(BLOCK, len(Z))
    z, found, at = np.empty(block), np.empty(block), np.empty(block, np.int64)
    place, step = np.empty((block, len(center))), np.empty(len(center))
    for f in range(len(owner)):
        step[first[f] : first[f + 1]] = np.arange(first[f + 1] - first[f])
    for lo in range(0, len(Z), BLOCK):
        n = min(BLOCK, len(Z) - lo)
        for f in range(len(owner)):
            for i in range(n):
                z[i] = np.float64(np.float32(Z[lo + i, owner[f]]))
            knots = slice(starts[f], starts[f + 1])
            _look_up(z[:n], values[knots], places[knots], at, found)
            for i in range(n):
                place[i, first[f] : first[f + 1]] = found[i]
        for i in range(n):
            _extend_row(Z[lo + i], keep, place[i], step, center, size, out[lo + i])


@plain
def _rank(z, weight, total, values, rank):
    """Different values of a sorted feature, and their ranks from 0 to 1; how many there are."""
    n, share, below = 0, 0.0, 0.0
    for i in range(len(z)):
        share += weight[i]
        if i + 1 == len(z) or z[i + 1] != z[i]:
            share /= total
            below += share
            values[n], rank[n] = z[i], below - 0.5 * share
            n, share = n + 1, 0.0
    least, most = rank[0], rank[n - 1]
    for k in range(n):
        rank[k] = (rank[k] - least) / (most - least)
    return n


@plain
def _mark(rank, low, high, marked):
    """Mark the first rank at or above each of `low`, and the last at or below each of `high`."""
    marked[:] = False
    k = 0
    for least in low:
        while k + 1 < len(rank) and rank[k] < least:
            k += 1
        marked[k] = True
    k = 0
    for most in high:
        while k + 1 < len(rank) and rank[k + 1] <= most:
            k += 1
        marked[k] = True


@plain
def _knots(own, rank, marked, ramps, values, places):
    """Set the knots of a feature with these values and ranks; how many there are."""
    at = 0
    for k in range(len(own)):
        if marked[k]:
            values[at], places[at] = own[k], np.rint(ramps * rank[k] * GRAIN) / GRAIN
            at += 1
    return at


def _sorted(data: Any) -> Any:
    lines = types.Array(from_dtype(np.dtype(data)), 2, "C", readonly=True)
    counts = types.Array(types.int64, 1, "C")
    return types.void(lines, table, real, numbers, numbers, real, matrix, matrix, counts)


@loop(_sorted)
def find_knots(Z, weight, total, low, high, ramps, values, places, counts):
    """Set knots of features, whose values are sorted, a line each, and how many each of them has.

    They are where ranks pass `low` or `high`; a feature with so few values that there is at most a ramp
    between any two of them has one at each. Beside each line is one of weights, or one beside all.
    """
    own, rank = np.empty(Z.shape[1]), np.empty(Z.shape[1])
    marked = np.empty(Z.shape[1], np.bool_)
    for f in range(len(Z)):
        n = _rank(Z[f], weight[min(f, len(weight) - 1)], total, own, rank)
        if n <= ramps + 1.0:
            marked[:n], rank[:n] = True, np.arange(n) / ramps
        else:
            _mark(rank[:n], low, high, marked[:n])
        counts[f] = _knots(own[:n], rank[:n], marked, ramps, values[f], places[f])
