"""A tree is a partition: every row is in one cell, and cells are not too large."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from pistol._data.mapped import Mapped
from pistol._learners import trees
from pistol._learners.trees import grow_tree

pytestmark = pytest.mark.interpreted

tables = arrays(
    np.float64, st.tuples(st.integers(1, 60), st.integers(1, 4)), elements=st.integers(-3, 3)
)
seeds = st.integers(0, 1000)


@given(Z=tables, most=st.integers(1, 20), seed=seeds)
def test_cells_are_small_unless_their_rows_agree(Z, most, seed):
    tree = grow_tree(Z, most, np.random.default_rng(seed))
    cell = tree.cell_of(Z)
    assert set(cell) == set(range(tree.cells)), "no cell is empty"
    for number in range(tree.cells):
        rows = Z[cell == number]
        assert len(rows) <= most or (rows == rows[0]).all()


@given(Z=tables, most=st.integers(1, 20), seed=seeds)
def test_equal_rows_are_in_one_cell_wherever_they_come_from(Z, most, seed):
    tree = grow_tree(Z, most, np.random.default_rng(seed))
    order = np.random.default_rng(seed).permutation(len(Z))
    assert_array_equal(tree.cell_of(Z[order]), tree.cell_of(Z)[order])


@given(Z=tables, most=st.integers(1, 20), seed=seeds)
def test_sparse_rows_are_split_like_dense_ones(Z, most, seed):
    dense, sparse = (grow_tree(X, most, np.random.default_rng(seed)) for X in (Z, sp.csr_array(Z)))
    for ours, theirs in zip(dense, sparse, strict=True):
        assert_array_equal(ours, theirs)
    assert_array_equal(dense.cell_of(sp.csr_array(Z)), dense.cell_of(Z))


def test_a_feature_that_does_not_vary_is_never_asked():
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.full(200, 7.0), rng.normal(size=200), 1e-9 * rng.normal(size=200)])
    tree = grow_tree(Z, 10, rng)
    assert set(tree.feature) == {-1, 1}, "and one of tiny variance is hardly ever"


@given(Z=tables, most=st.integers(1, 20), seed=seeds)
def test_rows_by_number_are_split_like_a_copy_of_them(Z, most, seed):
    rows = np.random.default_rng(seed).integers(len(Z), size=2 * len(Z)).astype(np.int32)
    ours, theirs = (
        grow_tree(*given, np.random.default_rng(seed), some)
        for given, some in (((Z, most), rows), ((Z[rows], most), None))
    )
    for x, y in zip(ours, theirs, strict=True):
        assert_array_equal(x, y)


def test_cells_are_looked_up_in_parts(monkeypatch):
    Z = np.random.default_rng(0).normal(size=(50, 2))
    tree = grow_tree(Z, 5, np.random.default_rng(0))
    whole = tree.cell_of(Z)
    monkeypatch.setattr(trees, "PART", 7)
    assert_array_equal(tree.cell_of(Z), whole)
    assert len(tree.cell_of(Z[:0])) == 0


@given(seed=seeds, most=st.integers(1, 20))
def test_rows_that_are_made_when_they_are_asked_for_are_split_like_others(seed, most):
    Z = np.random.default_rng(seed).normal(size=(60, 3)).astype(np.float32)
    made = Mapped(Z).then(np.exp)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "FEW", 7)
        ours, theirs = (grow_tree(X, most, np.random.default_rng(seed)) for X in (made, np.exp(Z)))
    for x, y in zip(ours, theirs, strict=True):
        assert_array_equal(x, y)
    assert_array_equal(ours.cell_of(made), theirs.cell_of(np.exp(Z)))


@given(
    Z=arrays(np.float32, (7, 3), elements=st.sampled_from([0.0, 0.0, 1.0, -2.5])),
    layout=st.sampled_from([sp.csc_array, sp.csr_array]),
)
def test_the_spread_of_sparse_rows_is_that_of_dense_ones(Z, layout):
    rows = np.arange(len(Z))
    found, expected = trees._spread(layout(Z), rows), trees._spread(Z, rows)
    assert_allclose(found, expected, rtol=1e-12)
    assert_array_equal(found == 0, (Z[0] == Z).all(axis=0))


@given(seed=st.integers(0, 10**6), far=st.sampled_from([0.0, 100.0]))
def test_the_spread_is_the_variance_of_some_rows(seed, far):
    rng = np.random.default_rng(seed)
    Z, rows = (far + rng.normal(size=(60, 4))).astype(np.float32), rng.integers(0, 60, 40)
    expected = Z[rows].var(axis=0, dtype=np.float64)
    assert_allclose(trees._spread(Z, rows.astype(np.int32)), expected, rtol=1e-9)
