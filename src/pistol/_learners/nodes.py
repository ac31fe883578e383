"""Trees grown along gradients, with one scalar learner per node.

1[x in a node] is a feature, and each of these has a learner of its own, as every coordinate has in
Appendix A. Its regret holds against any values of the nodes, for trees that are given beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._compiled.growing import STEPS, encode, grow, set_gradients
from .._compiled.leaves import climb
from .._compiled.threads import Workers
from .._compiled.types import Array, Rounds, Rows, read_only
from .coordinates import Coordinates
from .forest import BLOCK, Forest, Trees, dense
from .rule import Rule, chunks

TREES = 15
LEAST, PER_OUTPUT = 20, 2.5  # rounds of a leaf, about; or so many per output if that is more
ROUNDS = 2**16  # from which a tree is grown, at most
FEATURES = 256  # that a tree looks at, at most
TOGETHER = 1024  # rounds whose nodes are looked up together
SHARE = 0.25  # of b, divided by the number of nodes that a row passes: all of them move at once


class Codes(NamedTuple):
    """Rows in steps of a byte: the code of a value is how many edges of its feature are smaller."""

    edges: Array  # (features, 255)
    codes: Array  # (rows, features)
    keys: Array  # of rows; those with the same codes have the same

    @classmethod
    def of(cls, Z: Any, features: int, sample: Array, threads: Workers) -> Codes:
        """The first so many features of rows, with edges between values of a sample."""
        edges = read_only(_edges(dense(Z[sample])[:, :features]))
        codes, keys = np.empty((Z.shape[0], features), np.uint8), np.empty(Z.shape[0], np.int64)
        parts = [(at, codes[at], keys[at]) for at in chunks(codes, BLOCK)]
        threads.run([partial(_encode, Z, edges, *part) for part in parts])
        return cls(edges, read_only(codes), keys)

    def thresholds(self, forest: Forest) -> Forest:
        """A forest of these codes as one of rows."""
        trees = forest.trees
        at = trees.threshold.astype(np.int64)
        threshold = np.where(trees.feature >= 0, self.edges[trees.feature, at], np.float32(0.0))
        return replace(forest, trees=trees._replace(threshold=threshold))


def _encode(Z: Any, edges: Array, at: slice, codes: Array, keys: Array) -> None:
    encode(read_only(dense(Z[at]).astype(np.float32, copy=False)), edges, codes, keys)


def _edges(Z: Array) -> Array:
    """Thresholds between the values of each feature, or between quantiles of many values."""
    edges = np.full((Z.shape[1], STEPS), np.inf, np.float32)
    for own, line in zip(edges, np.sort(Z.T.astype(np.float32), axis=1), strict=True):
        values = _different(line)
        if len(values) > STEPS + 1:
            at = np.linspace(0, len(line) - 1, STEPS + 1)
            values = _different(line[at.astype(np.int64)])
        low, high = values[:-1], values[1:]
        middle = low + np.float32(0.5) * (high - low)
        own[: len(middle)] = np.where(middle < high, middle, low)
    return edges


def _different(line: Array) -> Array:
    """The values of a sorted line, each once."""
    return line[np.append(True, line[1:] > line[:-1])]


def gradients_at(rule: Rule, Y: Array, P: Array) -> Array:
    """The gradients of rounds of size 1 with these targets and scores."""
    out = np.empty_like(P)
    rounds = Rounds.of(Y, np.arange(len(Y)), np.ones(len(Y)))
    set_gradients(np.ascontiguousarray(P), rounds, rule.plugs(P.shape[1]), out)
    return out


class TreeData(NamedTuple):
    """What trees learn from: all rows as codes, with scores to go on from, and rounds of some rows."""

    codes: Array
    Y: Array
    start: Array
    order: Array
    r: Array

    def at(self, which: Any) -> TreeData:
        """Some of the rounds, and their rows alone."""
        rows = self.order[which]
        each = np.arange(len(rows))
        return TreeData(self.codes[rows], self.Y[rows], self.start[rows], each, self.r[which])


def grown(data: TreeData, rule: Rule, random: np.random.Generator) -> Trees:
    """Trees along the gradients of rounds, those of several outputs in random proportions.

    Each is grown from some rounds, if there are many. Thresholds are codes.
    """
    parts, n = [], len(data.order)
    for _ in range(TREES):
        own = data.at(random.permutation(n)[:ROUNDS])
        parts.append(_tree(own.codes, gradients_at(rule, own.Y, own.start), random))
    return Trees.joined(parts)


def _tree(codes: Array, S: Array, random: np.random.Generator) -> Trees:
    (n, d), features = codes.shape, None
    if d > FEATURES:
        features = random.permutation(d)[:FEATURES]
        codes = np.ascontiguousarray(codes[:, features])
    g = S @ (random.normal(size=S.shape[1]) if S.shape[1] > 1 else np.ones(1))
    least = max(LEAST, PER_OUTPUT * S.shape[1])
    feature, code, parent = np.zeros((3, 2 * int(n / least) + 1), np.int32)
    state, rows = int(random.integers(1, 2**31 - 1)), np.arange(n)
    nodes = grow(read_only(g), read_only(codes), rows, least, state, feature, code, parent)
    feature, code, child = feature[:nodes], code[:nodes], np.full(nodes, -1, np.int32)
    child[parent[1:nodes:2]] = np.arange(1, nodes, 2)
    if features is not None:
        feature[feature >= 0] = features[feature[feature >= 0]]
    return Trees(np.zeros(1, np.int32), feature, code.astype(np.float32), child)


class Nodes:
    """One scalar learner per node of trees, for rows that are codes."""

    def __init__(self, trees: Trees, rule: Rule, outputs: int, some: Array) -> None:
        """Some rows tell how many nodes a row passes."""
        self.trees, self.parent = trees, trees.parents()
        self.depth = _depth(self.parent)
        passed = float(self.depth[self._leaves(some)].sum(axis=1).mean())
        rule = replace(rule, b=rule.b * SHARE / passed)
        self.learner = Coordinates(rule, len(trees.feature), outputs, x_max=1.0)

    def _leaves(self, codes: Array) -> Array:
        return self.trees.leaves(codes.astype(np.float32))

    def learn(self, data: TreeData) -> Iterator[Array]:
        """Learn these rounds, one after the other; what was predicted, in parts."""
        for at in chunks(data.order, TOGETHER):
            own = data.at(at)
            P = own.start.copy()
            rounds = Rounds.of(own.Y, own.order, own.r)
            self.learner.learn(self._passed(own.codes), rounds, P)
            yield P

    def _passed(self, codes: Array) -> Rows:
        """The nodes that rows pass, as entries of sparse rows."""
        leaf = self._leaves(codes)
        starts = np.append(0, np.cumsum(self.depth[leaf].sum(axis=1)))
        nodes = np.empty(starts[-1], np.int32)
        climb(read_only(leaf), read_only(self.parent), read_only(starts), nodes)
        ones = np.ones(len(nodes), np.float32)
        return Rows(read_only(starts), read_only(nodes), read_only(ones), 1)

    def forest(self) -> Forest:
        """f̄; the value of a node is the sum over those that a row has passed there."""
        value = self.learner.model().weights[:, :-1].T.copy()
        for depth in range(2, int(self.depth.max()) + 1):
            at = np.flatnonzero(self.depth == depth)
            value[at] += value[self.parent[at]]
        return Forest(self.trees, value)


def _depth(parent: Array) -> Array:
    """How many nodes a row has passed at each node, itself included."""
    depth, above = np.ones(len(parent), np.int64), parent
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)
    return depth


def learned_forest(data: TreeData, rule: Rule, seed: tuple[int, ...]) -> Forest:
    """Trees along the gradients of rounds, and one pass over these rounds for their nodes.

    Thresholds are codes.
    """
    random, n = np.random.default_rng(seed), len(data.order)
    trees = grown(data, rule, random)
    nodes = Nodes(trees, rule, data.Y.shape[1], data.at(slice(BLOCK)).codes)
    mixed = random.permutation(n)
    for _ in nodes.learn(data._replace(order=data.order[mixed], r=data.r[mixed])):
        pass
    return nodes.forest()
