"""Where rows come to in trees, and what is there.

All nodes of several trees are in one table. A node sends rows up to its threshold to its `child`, and
others to the node after that; a leaf has feature -1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from .cache import plain
from .types import cube, indices, loop, matrix, table

TOGETHER = 8  # rows that are looked up together

small = types.Array(types.int32, 1, "C", readonly=True)
single = types.Array(types.float32, 1, "C", readonly=True)


def _rows(data: Any) -> Any:
    return types.Array(from_dtype(np.dtype(data)), 2, "C", readonly=True)


@plain(forceinline=True)
def _below(z, node, feature, threshold, child):
    """The node below this one that a row comes to; a leaf itself."""
    own = feature[node]
    below = child[node] + (1 if np.float32(z[max(own, 0)]) > threshold[node] else 0)
    return below if own >= 0 else node


@plain
def _find_leaves(Z, lo, root, feature, threshold, child, found):
    """Set the leaves of some rows from number `lo` on, in one tree.

    All of them go one step before any goes the next: a processor does not wait for one node at a time.
    """
    found[:] = root
    moving = True
    while moving:
        moving = False
        for i in range(len(found)):
            node = found[i]
            below = _below(Z[lo + i], node, feature, threshold, child)
            moving |= below != node
            found[i] = below


@loop(lambda data: types.void(_rows(data), small, small, single, small, types.int32[:, ::1]))
def find_leaves(Z, roots, feature, threshold, child, leaf):
    """Set the leaf of every row in every tree."""
    found = np.empty(TOGETHER, np.int32)
    for lo in range(0, len(Z), TOGETHER):
        n = min(TOGETHER, len(Z) - lo)
        for t in range(len(roots)):
            _find_leaves(Z, lo, roots[t], feature, threshold, child, found[:n])
            for i in range(n):
                leaf[lo + i, t] = found[i]


@loop(lambda data: types.void(_rows(data), small, small, single, small, table, matrix))
def add_values(Z, roots, feature, threshold, child, value, out):
    """Add the values of the leaves that every row comes to."""
    found = np.empty(TOGETHER, np.int32)
    for t in range(len(roots)):
        for lo in range(0, len(Z), TOGETHER):
            n = min(TOGETHER, len(Z) - lo)
            _find_leaves(Z, lo, roots[t], feature, threshold, child, found[:n])
            for i in range(n):
                for j in range(out.shape[1]):
                    out[lo + i, j] += value[found[i], j]


@loop(lambda data: types.void(_rows(data), small, small, single, small, table, cube))
def add_steps(Z, roots, feature, threshold, child, value, out):
    """Add each change of the value on the way to the feature it is due to, per row and output."""
    for i in range(len(Z)):
        for t in range(len(roots)):
            node = roots[t]
            while feature[node] >= 0:
                below = _below(Z[i], node, feature, threshold, child)
                for j in range(out.shape[1]):
                    out[i, j, feature[node]] += value[below, j] - value[node, j]
                node = below


leaves = types.Array(types.int32, 2, "C", readonly=True)


@loop(lambda data: types.void(leaves, small, indices, types.int32[::1]))
def climb(leaf, parent, starts, nodes):
    """Set the nodes that each row passes on the way to its leaves, from its place in `starts` on."""
    for i in range(len(leaf)):
        at = starts[i]
        for t in range(leaf.shape[1]):
            node = leaf[i, t]
            while node >= 0:
                nodes[at] = node
                at += 1
                node = parent[node]
