"""Columns of one category count as one feature."""

import numpy as np
import pytest
import scipy.sparse as sp

from pistol._data.bends import Bent
from pistol._data.layout import Layout, pooled
from pistol._data.scaling import Scaler, scaler_of


def layout(levels):
    """A number and a category."""
    owner = np.array([0] + [1] * levels)
    return Layout(owner, owner.copy(), owner == 1, 2)


def rows(share, n=2000):
    """A number, and one-hot columns whose levels have these shares."""
    codes = np.repeat(np.arange(len(share)), np.round(np.array(share) * n).astype(int))
    number = np.random.default_rng(0).normal(size=len(codes))
    return np.column_stack([number, np.eye(len(share))[codes]])


@pytest.mark.parametrize("share", [[0.25] * 4, [0.9, 0.05, 0.05], [0.5, 0.5], [0.1] * 10], ids=str)
def test_levels_are_as_far_apart_as_the_values_of_a_flag(share):
    X = rows(share)
    ours, weight = layout(len(share)), np.ones(len(X))
    scaler = ours.levelled(Bent(scaler_of(X, weight)), ours.means(X, weight))
    Z = scaler.transform(X)
    np.testing.assert_allclose(Z[:, 0], Bent(scaler_of(X, weight)).transform(X)[:, 0])
    first = [Z[X[:, 1 + k] == 1][0, 1:] for k in range(len(share))]
    far = [((a - b) ** 2).sum() for i, a in enumerate(first) for b in first[:i]]
    np.testing.assert_allclose(far, 4.0)
    np.testing.assert_allclose(Z[:, 1:].mean(axis=0), 0.0, atol=1e-9)


def test_sparse_rows_are_scaled_alike():
    X = rows([0.5, 0.3, 0.2])
    ours, weight = layout(3), np.ones(len(X))
    np.testing.assert_allclose(ours.means(sp.csr_array(X), weight), ours.means(X, weight))
    plain = Scaler(np.zeros(4), np.ones(4), centred=False)
    scaled = ours.levelled(plain, ours.means(X, weight))
    assert not scaled.center.any()
    assert len(np.unique(scaled.scale[1:])) == 1


def test_pooled_squares_are_alike_within_a_group_and_levels_that_never_occur_do_not_count():
    X = rows([0.5, 0.5, 0.0])
    squares = np.array([3.0, 1.0, 2.0, 100.0])
    group, weight = layout(3).group, np.ones(len(X))
    alike = pooled(squares, group, X, weight)
    np.testing.assert_allclose(alike, [3.0, 1.5, 1.5, 1.5])
    np.testing.assert_allclose(pooled(squares, group, sp.csr_array(X), weight), alike)
    np.testing.assert_allclose(
        pooled(squares, group, np.vstack([X, X + 9]), np.append(weight, 0 * weight)), alike
    )
    np.testing.assert_allclose(layout(3).by_column(alike), [3.0, 1.5])
    assert layout(3).count(np.array([True, True, True, False])) == 2
