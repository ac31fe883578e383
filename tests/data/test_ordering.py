"""Random orders depend on the content of the rows; weights are rounds."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis.strategies import floats, integers, lists

from pistol._data.ordering import as_given, content, shuffled

weights = lists(floats(0, 5), min_size=1, max_size=20).map(np.array)


@given(weight=weights)
def test_rounds_add_up_to_the_weights_and_are_at_most_one(weight):
    rows, r = as_given(weight)
    assert ((r > 0) & (r <= 1)).all()
    assert np.bincount(rows, r, minlength=len(weight)) == pytest.approx(weight)


@given(weight=weights, seed=integers(0, 100))
def test_shuffling_loses_no_round(weight, seed):
    hashes = np.arange(len(weight), dtype=np.uint64) % 3
    plain, mixed = as_given(weight), shuffled(hashes, weight, seed)
    assert sorted(zip(*plain, strict=True)) == sorted(zip(*mixed, strict=True))


def table(seed, n=40):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 3, size=(n, 2)).astype(float), rng.choice([-1.0, 1.0], size=(n, 1))


@given(seed=integers(0, 10**6))
def test_the_order_of_the_rows_does_not_matter(seed):
    X, Y = table(seed)
    again = np.random.default_rng(seed + 1).permutation(len(X))
    first, _ = shuffled(content(X, Y, np.ones(len(X))), np.ones(len(X)), seed)
    second, _ = shuffled(content(X[again], Y[again], np.ones(len(X))), np.ones(len(X)), seed)
    assert (X[first] == X[again][second]).all()
    assert (Y[first] == Y[again][second]).all()


@given(seed=integers(0, 10**6))
def test_a_weight_of_k_is_played_like_k_copies(seed):
    X, Y = table(seed)
    weight = np.random.default_rng(seed).integers(0, 4, size=len(X))
    first, _ = shuffled(content(X, Y, weight), weight.astype(float), seed)
    copies = np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)
    second, _ = shuffled(content(*copies, np.ones(weight.sum())), np.ones(weight.sum()), seed)
    assert (X[first] == copies[0][second]).all()
    assert (Y[first] == copies[1][second]).all()


@given(seed=integers(0, 10**6))
def test_layout_dtype_and_the_sign_of_zero_do_not_matter(seed):
    X, Y = table(seed)
    ones = np.ones(len(X))
    expected = content(X, Y, ones)
    for other in (sp.csr_array(X), X.astype(np.float32), np.where(X == 0, -0.0, X)):
        assert (content(other, Y, ones) == expected).all()


def test_equal_rows_are_scattered():
    """Sorting by content alone would play all copies of a row one after the other."""
    hashes = np.zeros(1000, np.uint64)
    hashes[500:] = 1
    order, _ = shuffled(hashes, np.ones(1000), seed=0)
    changes = (np.diff(order >= 500) != 0).sum()
    assert (
        430 < changes < 570
    )  # 499.5 ± 2.5 standard deviations for a fair shuffle... and then some


def test_seeds_give_different_orders():
    X, Y = table(0)
    orders = {
        tuple(shuffled(content(X, Y, np.ones(40)), np.ones(40), seed)[0]) for seed in range(50)
    }
    assert len(orders) == 50


def test_different_rows_have_different_content():
    grid = np.stack(np.meshgrid(*[np.arange(12.0)] * 3), axis=-1).reshape(-1, 3)
    assert len(np.unique(content(grid, np.ones((len(grid), 1)), np.ones(len(grid))))) == len(grid)


@given(seed=integers(0, 10**6))
def test_the_units_of_the_features_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(40, 3)), rng.choice([-1.0, 1.0], size=(40, 1))
    expected = content(X, Y, np.ones(40))
    assert (content(X * [2.0**-9, 1.0, 2.0**70], Y, np.ones(40)) == expected).all()
    in_other_units = content(X * [1e-6, 1e3, 1.0], Y, np.ones(40))
    assert (in_other_units == expected).mean() > 0.9  # but for a value on the border of two steps


@given(seed=integers(0, 10**6))
def test_a_row_of_weight_zero_has_no_say(seed):
    X, Y = table(seed)
    weight = np.ones(40)
    weight[7] = 0.0
    X[7] *= 1e9
    others = np.arange(40) != 7
    expected = content(X[others], Y[others], weight[others])
    for rows in (X, sp.csr_array(X)):
        assert (content(rows, Y, weight)[others] == expected).all()
