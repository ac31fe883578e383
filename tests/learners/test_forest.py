"""Trees that all rows share: rows come to leaves, and each node has a scalar learner."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from pistol import reference
from pistol._compiled.threads import workers
from pistol._compiled.types import read_only
from pistol._data.mapped import Mapped
from pistol._learners import Cells, Dual, Rule, forest, nodes
from pistol._learners.contributions import contributions
from pistol._learners.forest import Forest, Trees
from pistol._learners.models import mean_model
from pistol._learners.nodes import (
    LEAST,
    Codes,
    Nodes,
    TreeData,
    gradients_at,
    grown,
    learned_forest,
)
from pistol._learners.trees import grow_tree
from pistol.kernels import get_kernel
from pistol.losses import LOSSES

pytestmark = pytest.mark.interpreted

seeds = st.integers(0, 10**6)
outputs = st.sampled_from([1, 3])
tables = arrays(
    np.float32,
    st.tuples(st.integers(1, 60), st.integers(1, 4)),
    elements=st.floats(-(2.0**99), 2.0**99, width=32) | st.integers(-3, 3).map(np.float32),
)


def a_rule(loss="huber"):
    return Rule(LOSSES[loss], "pistol_anytime", 1.0, 8.0, "linear")


def data_of(codes, Y, start=None):
    start = np.zeros(Y.shape) if start is None else start
    return TreeData(codes, Y, start, np.arange(len(Y)), np.ones(len(Y)))


def some_trees(codes, S, rng):
    """Trees along these gradients: those of Huber's loss at scores of zero, if they are at most 1."""
    return grown(data_of(codes, -S), a_rule(), rng)


def codes_of(Z, sample=None):
    with workers(1) as threads:
        return Codes.of(Z, Z.shape[1], np.arange(Z.shape[0]) if sample is None else sample, threads)


def a_forest(seed, n=200, d=3, K=1):
    """A forest of random values, as one of codes and as one of rows; and the rows."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)).astype(np.float32)
    codes = codes_of(Z)
    trees = some_trees(codes.codes, rng.normal(size=(n, K)), rng)
    coded = Forest(trees, rng.normal(size=(len(trees.feature), K)))
    return coded, codes.thresholds(coded), codes.codes, Z


def walked(trees, z):
    """The nodes that a row passes, tree by tree."""
    for node in trees.roots:
        passed = [int(node)]
        while trees.feature[passed[-1]] >= 0:
            at = passed[-1]
            above = z[trees.feature[at]] > trees.threshold[at]
            passed.append(int(trees.child[at]) + int(above))
        yield passed


@given(Z=tables)
def test_a_code_is_at_most_another_where_the_value_is_at_most_the_edge(Z):
    edges, codes, keys = codes_of(Z)
    same = (codes[:, None] == codes[None]).all(axis=2)
    assert_array_equal(keys[:, None] == keys[None], same, "and rows of the same codes have one key")
    for j, own in enumerate(edges):
        for code in range(np.isfinite(own).sum()):
            assert_array_equal(codes[:, j] <= code, Z[:, j] <= own[code])


@given(seed=seeds, n=st.integers(257, 2000))
def test_many_values_have_all_codes_and_about_as_many_rows_of_each(seed, n):
    Z = np.random.default_rng(seed).normal(size=(n, 1)).astype(np.float32)
    counts = np.bincount(codes_of(Z).codes[:, 0])
    assert len(counts) == 256
    assert counts.max() <= 2 * n / 255 + 2


def test_few_different_values_have_a_code_each():
    Z = np.repeat(np.arange(256, dtype=np.float32), 3)[:, None]
    assert len(np.unique(codes_of(Z).codes)) == 256
    assert not codes_of(np.full((9, 1), 7.0, np.float32)).codes.any()


def test_rows_that_are_made_when_they_are_asked_for_have_the_codes_of_others(monkeypatch):
    Z = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    whole = codes_of(np.exp(Z)).codes
    monkeypatch.setattr(nodes, "BLOCK", 7)
    assert_array_equal(codes_of(Mapped(Z).then(np.exp)).codes, whole)


@given(seed=seeds, n=st.integers(1, 400), K=outputs)
def test_every_leaf_has_rows_enough_and_none_is_lost(seed, n, K):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, rng.integers(1, 30), size=(n, 4)).astype(np.uint8)
    trees = some_trees(codes, rng.normal(size=(n, K)), rng)
    leaves = trees.leaves(codes.astype(np.float32))
    assert (trees.feature[leaves] == -1).all()
    for own in leaves.T:
        _, counts = np.unique(own, return_counts=True)
        assert counts.min() >= min(n, LEAST)
    assert len(np.unique(leaves)) == (trees.feature == -1).sum(), "no leaf is empty"


def test_a_split_is_where_the_gradients_differ():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 255, size=(400, 3)).astype(np.uint8)
    S = np.where(codes[:, [1]] > 100, 1.0, -1.0)
    trees = some_trees(codes, S, rng)
    looked_at = trees.feature[trees.roots]
    assert (looked_at == 1).mean() > 0.8, "in most trees the first node looks at the right feature"


def test_equal_rows_are_not_split():
    trees = some_trees(np.full((500, 2), 3, np.uint8), np.ones((500, 1)), np.random.default_rng(0))
    assert_array_equal(trees.feature, np.full(len(trees.roots), -1))


def test_a_tree_of_very_wide_rows_looks_at_some_of_the_features(monkeypatch):
    monkeypatch.setattr(nodes, "FEATURES", 2)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 255, size=(300, 9)).astype(np.uint8)
    trees = some_trees(codes, rng.normal(size=(300, 1)), rng)
    ends = [*trees.roots[1:], len(trees.feature)]
    for lo, hi in zip(trees.roots, ends, strict=True):
        assert len(set(trees.feature[lo:hi]) - {-1}) <= 2
    assert len(set(trees.feature)) > 4, "others in other trees"


@given(seed=seeds, K=outputs)
def test_a_forest_is_the_sum_of_the_leaves_of_its_trees(seed, K):
    coded, scaled, codes, Z = a_forest(seed, K=K)
    found = scaled.decide(Z)
    assert_array_equal(
        found, coded.decide(codes.astype(np.float32)), "codes are steps of the values"
    )
    for z, score in zip(Z[:20], found, strict=False):
        expected = sum(scaled.value[passed[-1]] for passed in walked(scaled.trees, z))
        assert_allclose(score, expected, rtol=1e-12)


@given(seed=seeds)
def test_sparse_rows_are_like_dense_ones(seed):
    _, scaled, _, Z = a_forest(seed)
    Z = np.where(np.abs(Z) < 1, 0, Z)
    for layout in (sp.csr_array, sp.csr_matrix):
        assert_array_equal(codes_of(layout(Z)).codes, codes_of(Z).codes)
        assert_array_equal(scaled.decide(layout(Z)), scaled.decide(Z))


@given(seed=seeds, K=outputs)
def test_steps_along_features_add_up(seed, K):
    _, scaled, _, Z = a_forest(seed, K=K)
    roots = scaled.value[scaled.trees.roots].sum(axis=0)
    assert_allclose(scaled.steps(Z).sum(axis=2) + roots, scaled.decide(Z), rtol=1e-9, atol=1e-12)


@given(seed=seeds, factor=st.floats(-2, 2))
def test_the_mean_and_multiples_of_forests_are_those_of_their_scores(seed, factor):
    (_, one, _, Z), (_, other, _, _) = a_forest(seed), a_forest(seed + 1)
    mean = Forest.mean([one, other, one]).times(factor)
    expected = factor * (2 * one.decide(Z) + other.decide(Z)) / 3
    assert_allclose(mean.decide(Z), expected, rtol=1e-9, atol=1e-12)


def test_values_stay_finite_whatever_they_are_multiplied_by():
    _, one, _, Z = a_forest(0)
    assert np.isfinite(one.times(1e300).decide(Z)).all()


@pytest.mark.parametrize("n", [0, 1, 50])
def test_rows_are_decided_in_parts(n, monkeypatch):
    _, one, _, Z = a_forest(0)
    whole = one.decide(Z[:n])
    monkeypatch.setattr(forest, "BLOCK", 7)
    monkeypatch.setattr(forest, "LITTLE", 0)
    assert_array_equal(one.decide(Z[:n]), whole)
    assert_array_equal(one.decide(Z[:n].astype(np.float64)), whole)


def test_a_row_in_double_precision_is_looked_up_as_the_rows_that_were_learned():
    trees = Trees(np.zeros(1, np.int32), np.array([0, -1, -1], np.int32),
                  np.array([1, 0, 0], np.float32), np.array([1, -1, -1], np.int32))  # fmt: skip
    Z = np.array([[1.0 + 1e-9]])
    assert_array_equal(trees.leaves(Z), trees.leaves(Z.astype(np.float32)))


@given(seed=seeds)
def test_trees_joined_are_the_trees_one_by_one(seed):
    (one, _, codes, _), (other, *_) = a_forest(seed), a_forest(seed + 1)
    joined = Trees.joined([one.trees, other.trees])
    Z = codes.astype(np.float32)
    leaves = np.hstack([one.trees.leaves(Z), other.trees.leaves(Z) + len(one.trees.feature)])
    assert_array_equal(joined.leaves(Z), leaves)


@given(seed=seeds)
def test_the_parent_of_a_node_is_the_one_that_leads_there(seed):
    trees = a_forest(seed)[0].trees
    parent = trees.parents()
    assert_array_equal(np.flatnonzero(parent < 0), np.sort(trees.roots))
    for node in np.flatnonzero(parent >= 0):
        assert trees.child[parent[node]] in (node, node - 1)


@given(seed=seeds, loss=st.sampled_from(["huber", "logistic", "smooth_hinge"]))
def test_gradients_are_those_of_the_loss(seed, loss):
    rng, rule = np.random.default_rng(seed), a_rule(loss)
    P, Y = rng.normal(size=(20, 2)), rng.choice([-1.0, 1.0], (20, 2))
    expected = np.vectorize(lambda y, p: rule.loss.grad(y, p, rule.loss.theta))(Y, P)
    assert_allclose(gradients_at(rule, Y, P), expected, rtol=1e-12)


@given(seed=seeds, n=st.integers(1, 60))
def test_every_node_learns_as_a_coordinate_of_the_appendix_does(seed, n):
    """The oracle is told which nodes each row passes; its weights are averaged with weight t."""
    rng, rule = np.random.default_rng(seed), a_rule()
    codes = rng.integers(0, 9, size=(n, 2)).astype(np.uint8)
    Y, start = rng.normal(size=(n, 1)), rng.normal(size=(n, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nodes, "LEAST", 4)
        patch.setattr(nodes, "TOGETHER", 13)
        given = data_of(codes, Y, start)
        trees = grown(given, rule, rng)
        learner = Nodes(trees, rule, 1, codes)
        P = np.concatenate(list(learner.learn(given)))
    passed = [np.concatenate(list(walked(trees, z))) for z in codes.astype(np.float32)]
    rows = np.zeros((n, len(trees.feature)))
    for row, own in zip(rows, passed, strict=True):
        row[own] = 1.0
    b = rule.b * nodes.SHARE / rows.sum(axis=1).mean()
    stream = zip(rows, zip(start[:, 0], Y[:, 0], strict=True), strict=True)
    rounds = reference.pistol_per_coordinate(
        stream,
        lambda pair, p: rule.loss.grad(pair[1], pair[0] + p, rule.loss.theta),
        rule.a,
        lambda alpha: b * np.sqrt(2 * alpha),
        rule.loss.L,
        [1.0] * rows.shape[1],
    )
    predictions, weights = zip(*rounds, strict=True)
    assert_allclose(P - start, np.array(predictions)[:, None], rtol=1e-9, atol=1e-12)
    mean = np.average(weights, axis=0, weights=np.arange(1, n + 1))
    found = learner.forest().decide(codes.astype(np.float32))
    assert_allclose(found[:, 0], rows @ mean, rtol=1e-9, atol=1e-12)


def test_noise_averages_out():
    """A function of two features with much noise: what is left is a small part of the noise."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 255, size=(4000, 4)).astype(np.uint8)
    truth = np.where((codes[:, [0]] > 100) & (codes[:, [2]] > 50), 1.0, -1.0)
    Y = truth + rng.normal(size=truth.shape)
    found = learned_forest(data_of(codes, Y), a_rule(), (0,))
    error = np.abs(found.decide(codes.astype(np.float32)) - truth).mean()
    assert error < 0.3 * np.abs(truth).mean()


def some_cells(seed, K=2):
    """Cells that have learned nothing, on a base and a forest; and rows."""
    rng = np.random.default_rng(seed)
    Z, Y = rng.normal(size=(200, 3)).astype(np.float32), read_only(rng.normal(size=(200, K)))
    kernels = (get_kernel("rbf", 0.5, 1, 0.0),)
    base = Dual(a_rule(), kernels, K, 1)
    order, r = read_only(rng.permutation(200)), read_only(np.ones(200))
    for _ in base.play(Z, Y, order, r):
        pass
    tree = grow_tree(Z, 60, rng)
    learners = [Dual(a_rule(), kernels, K, 1) for _ in range(tree.cells)]
    centres = [np.zeros(3, np.float32)] * tree.cells
    scaled = a_forest(seed, K=K)[1]
    return Cells(tree, centres, learners, base.model(), scaled), (Z, Y, order, r)


@given(seed=seeds)
def test_cells_go_on_from_a_base_and_a_forest(seed):
    cells, (Z, Y, order, r) = some_cells(seed)
    expected = cells.base.decide(Z) + cells.forest.decide(Z)
    assert_allclose(cells.model().decide(Z), expected, rtol=1e-12)
    P = np.concatenate([chunk.P for chunk in cells.play(Z, Y, order[:1], r[:1])])
    assert_allclose(P, expected[order[:1]], rtol=1e-12)
    mean = mean_model([cells.model(), cells.fresh().model()])
    own = cells.model().decide(Z) - expected
    assert_allclose(mean.decide(Z), expected + 0.5 * own, rtol=1e-9, atol=1e-9)
    assert mean.shares()["trees"] > 0


@given(seed=seeds)
def test_a_forest_is_multiplied_by_a_restart_and_comes_back(seed):
    cells, (Z, Y, order, r) = some_cells(seed)
    for _ in cells.play(Z, Y, order, r):
        pass
    before, mark = cells.model().decide(Z), cells.mark(slice(None))
    factor, offset = np.array([0.5, 3.0]), np.array([2.0, -1.0])
    cells.restart(factor, offset, np.array([0, 1]))
    assert_allclose(cells.model().decide(Z), factor * before + offset, atol=1e-6)
    cells.roll_back(mark)
    assert_array_equal(cells.model().decide(Z), before)


@given(seed=seeds)
def test_contributions_with_a_forest_add_up(seed):
    cells, (Z, Y, order, r) = some_cells(seed)
    for _ in cells.play(Z, Y, order, r):
        pass
    model = cells.model()
    found, first = contributions(model, Z[:5], np.zeros(3))
    assert_allclose(first + found.sum(axis=2), model.decide(Z[:5]), rtol=1e-6, atol=1e-6)
