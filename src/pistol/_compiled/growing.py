"""Trees that are grown along the gradients of a loss.

Features are in steps of a byte, their codes. A node draws one threshold per feature, the code of one of
its rows, and splits at the one that separates the gradients best.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from .cache import plain
from .loops import gradients
from .types import loop, matrix, numbers, plugs, real, rounds

STEPS = 255  # between codes of a feature, at most: 255 thresholds, and codes from 0 to 255
ENOUGH = 4096  # rows of a node from which its threshold is chosen, at most
DRAWS = 3  # of thresholds, until one has rows enough on both sides
# Random numbers are those of Park and Miller, x ← 48271 x mod 2³¹ - 1.
FACTOR, LARGEST = 48271, 2147483647


def _coding(data: Any) -> Any:
    rows = types.Array(from_dtype(np.dtype(data)), 2, "C", readonly=True)
    edges = types.Array(types.float32, 2, "C", readonly=True)
    return types.void(
        rows, edges, types.Array(types.uint8, 2, "C"), types.Array(types.int64, 1, "C")
    )


@loop(_coding)
def encode(Z, edges, codes, keys):
    """Set the code of every value, how many edges of its feature are smaller, and a key of each row.

    There are 255 edges per feature, in ascending order; those that are not needed are infinite. Rows
    with the same codes have the same key.
    """
    for i in range(len(Z)):
        key = 1
        for j in range(edges.shape[0]):
            at, step = 0, 128
            while step > 0:
                at += step if edges[j, at + step - 1] < Z[i, j] else 0
                step //= 2
            codes[i, j] = at
            key = (key * FACTOR + at + 1) % LARGEST
        keys[i] = key


@loop(lambda data: types.void(matrix, rounds, plugs, matrix))
def set_gradients(P, rounds, rule, out):
    """Set the gradients of rounds, given scores of each of them."""
    z, s = np.empty(P.shape[1]), np.empty(P.shape[1])
    for k in range(len(rounds.order)):
        gradients(rounds, rule, k, P, z, s)
        out[k] = s


@plain
def _draw_cuts(codes, rows, lo, hi, state, cut):
    """Set a code per feature: that of one of these rows, or the one below; the random state after."""
    for j in range(len(cut)):
        state = state * FACTOR % LARGEST
        code = np.int64(codes[rows[lo + state // 2 % (hi - lo)], j])
        cut[j] = np.uint8(code - state % 2 if code > 0 else code)
    return state


@plain(fastmath=True)
def _add_up(g, codes, rows, lo, hi, cut, count, total):
    """For each feature, how many rows are at most at its cut, and the sum of their gradients."""
    count[:], total[:] = 0.0, 0.0
    one, none = np.float32(1.0), np.float32(0.0)
    for i in range(lo, hi):
        row = rows[i]
        own = np.float32(g[row])
        for j in range(len(cut)):
            below = codes[row, j] <= cut[j]
            count[j] += one if below else none
            total[j] += own if below else none


@plain
def _best_cut(count, total, n, whole, least):
    """The feature whose cut separates the gradients best; -1 if all leave too few on one side."""
    best, found = -1.0, -1
    for j in range(len(count)):
        left, right = float(count[j]), n - float(count[j])
        if left >= least and right >= least:
            below = float(total[j])
            above = whole - below
            gain = below * below / left + above * above / right
            if gain > best:
                best, found = gain, j
    return found


@plain
def _partition(codes, rows, lo, hi, feature, code, room):
    """Put the rows at most at this code first, all in their order; where the others begin."""
    at, n = lo, 0
    for i in range(lo, hi):
        row = rows[i]
        if codes[row, feature] <= code:
            rows[at] = row
            at += 1
        else:
            room[n] = row
            n += 1
    for i in range(n):
        rows[at + i] = room[i]
    return at


@plain
def _search(g, codes, rows, lo, hi, least, state, cut, count, total):
    """The feature to split at, at its cut; -1 if there is none; and the random state after."""
    some = min(hi, lo + ENOUGH)
    few, whole = max(1.0, least * (some - lo) / (hi - lo)), 0.0
    for i in range(lo, some):
        whole += g[rows[i]]
    for _ in range(DRAWS):
        state = _draw_cuts(codes, rows, lo, some, state, cut)
        _add_up(g, codes, rows, lo, some, cut, count, total)
        found = _best_cut(count, total, float(some - lo), whole, few)
        if found >= 0:
            return found, state
    return -1, state


def _growing(data: Any) -> Any:
    codes = types.Array(types.uint8, 2, "C", readonly=True)
    own, out = types.Array(types.int64, 1, "C"), types.Array(types.int32, 1, "C")
    return types.int64(numbers, codes, own, real, types.int64, out, out, out)


@loop(_growing)
def grow(g, codes, rows, least, state, feature, code, parent):
    """Grow a tree from these rows, which are put in the order of its leaves; how many nodes it has.

    A leaf has feature -1 and at least so many rows, about. The root is node 0, and the two nodes below
    another one follow each other, rows up to its code first.
    """
    d = codes.shape[1]
    cut, room = np.empty(d, np.uint8), np.empty(len(rows), np.int64)
    count, total = np.empty(d, np.float32), np.empty(d, np.float32)
    starts, ends = np.empty(len(feature), np.int64), np.empty(len(feature), np.int64)
    starts[0], ends[0], parent[0], nodes, at = 0, len(rows), -1, 1, 0
    while at < nodes:
        lo, hi = starts[at], ends[at]
        feature[at], code[at] = -1, 0
        if hi - lo >= 2 * least and nodes + 2 <= len(feature):
            found, state = _search(g, codes, rows, lo, hi, least, state, cut, count, total)
            if found >= 0:
                feature[at], code[at] = found, cut[found]
                middle = _partition(codes, rows, lo, hi, found, cut[found], room)
                for side in range(2):
                    starts[nodes + side] = middle if side else lo
                    ends[nodes + side] = hi if side else middle
                    parent[nodes + side] = at
                nodes += 2
        at += 1
    return nodes
