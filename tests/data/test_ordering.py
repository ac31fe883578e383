"""Shuffled orders depend on the content of the rows; weights are rounds."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis.strategies import floats, integers, lists

from pistol._compiled.threads import workers
from pistol._data import ordering, overview, seen
from pistol._data.ordering import (
    FREE,
    PER_ROW,
    Rounds,
    as_given,
    by_content,
    copies,
    learned_share,
    round_size,
    sampled,
    shuffled,
)

pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning"),  # numbers that wrap around
]

weights = lists(floats(0, 5), min_size=1, max_size=20).map(np.array)


def content(X, Y, weight):
    with workers(1) as threads:
        return ordering.content(X, Y, weight, threads)[0]


@given(weight=weights)
def test_rounds_add_up_to_the_weights_and_are_at_most_one(weight):
    rows, r = as_given(weight)
    assert ((r > 0) & (r <= 1)).all()
    assert np.bincount(rows, r, minlength=len(weight)) == pytest.approx(weight)


@given(weight=weights, seed=integers(0, 100))
def test_shuffling_loses_no_round(weight, seed):
    hashes = np.arange(len(weight), dtype=np.uint64) % 3
    plain = as_given(weight)
    mixed = shuffled(hashes, plain, seed)
    assert sorted(zip(*plain, strict=True)) == sorted(zip(*mixed, strict=True))


def table(seed, n=40):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 3, size=(n, 2)).astype(float), rng.choice([-1.0, 1.0], size=(n, 1))


@given(seed=integers(0, 10**6))
def test_copies_are_equal_rows_of_one_target(seed):
    """A row with several targets was observed several times: each of its rounds is on its own."""
    X, Y = table(seed, n=12)
    weight = np.random.default_rng(seed).integers(1, 4, 12).astype(float)
    rounds = shuffled(content(X, Y, weight), as_given(weight), 0)
    found = copies(rounds, content(X, Y, weight), X, Y)
    seen = [(tuple(X[i]), Y[i, 0]) for i in rounds.rows]
    targets = {x: {y for other, y in seen if other == x} for x, _ in seen}
    for i, (x, y) in enumerate(seen):
        for j, other in enumerate(seen):
            same = i == j or ((x, y) == other and len(targets[x]) == 1)
            assert (found[i] == found[j]) == same


def test_rows_that_all_differ_have_no_copies():
    X, Y = np.arange(6.0)[:, None], np.ones((6, 1))
    rounds = as_given(np.ones(6))
    assert len(set(copies(rounds, content(X, Y, np.ones(6)), X, Y))) == 6


@given(seed=integers(0, 10**6))
def test_the_order_of_the_rows_does_not_matter(seed):
    X, Y = table(seed)
    again = np.random.default_rng(seed + 1).permutation(len(X))
    ones = np.ones(len(X))
    first, _ = shuffled(content(X, Y, ones), as_given(ones), seed)
    second, _ = shuffled(content(X[again], Y[again], ones), as_given(ones), seed)
    assert (X[first] == X[again][second]).all()
    assert (Y[first] == Y[again][second]).all()


@given(seed=integers(0, 10**6))
def test_a_weight_of_k_is_learned_like_k_copies(seed):
    X, Y = table(seed)
    weight = np.random.default_rng(seed).integers(0, 4, size=len(X))
    ones = np.ones(weight.sum())
    first, _ = shuffled(content(X, Y, weight), as_given(weight.astype(float)), seed)
    copies = np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)
    second, _ = shuffled(content(*copies, ones), as_given(ones), seed)
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
    """Sorting by content alone would give all copies of a row one after the other."""
    hashes = np.zeros(1000, np.uint64)
    hashes[500:] = 1
    order, _ = shuffled(hashes, as_given(np.ones(1000)), seed=0)
    changes = (np.diff(order >= 500) != 0).sum()
    assert 430 < changes < 570  # a fair shuffle has 499.5 ± 16 on average


def test_seeds_give_different_orders():
    X, Y = table(0)
    hashes, rounds = content(X, Y, np.ones(40)), as_given(np.ones(40))
    orders = {tuple(shuffled(hashes, rounds, seed).rows) for seed in range(50)}
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
def test_a_row_of_weight_zero_changes_no_hash(seed):
    X, Y = table(seed)
    weight = np.ones(40)
    weight[7] = 0.0
    X[7] *= 1e9
    others = np.arange(40) != 7
    expected = content(X[others], Y[others], weight[others])
    for rows in (X, sp.csr_array(X)):
        assert (content(rows, Y, weight)[others] == expected).all()


# Round sizes

counts = lists(integers(0, 10**12), min_size=1, max_size=30)
any_weights = counts.flatmap(
    lambda k: lists(floats(0, 1), min_size=len(k), max_size=len(k)).map(
        lambda f: np.array(k, float) + np.array(f)
    )
)


@given(weight=any_weights)
def test_rounds_of_any_weights_add_up_and_are_not_too_many(weight):
    weight = np.append(weight, 1.0)
    size = round_size(weight)
    rows, r = as_given(weight, size)
    assert size >= 1
    assert ((r > 0) & (r <= size * (1 + 1e-12))).all()
    np.testing.assert_allclose(np.bincount(rows, r, minlength=len(weight)), weight, rtol=1e-9)
    assert len(rows) <= max(FREE, PER_ROW * len(weight))
    assert set(rows) == set(np.flatnonzero(weight))
    assert (np.diff(rows) >= 0).all()


@given(weight=lists(integers(0, 8), min_size=1, max_size=50).map(lambda k: np.array(k, float)))
def test_small_weights_are_rounds_of_size_one(weight):
    """At most 8 copies per row are always learned one by one."""
    assert round_size(weight) == 1.0
    _, r = as_given(weight)
    assert (r == 1.0).all()
    assert len(r) == weight.sum()


def test_the_number_of_rounds_does_not_grow_with_the_weights():
    for factor in (1e2, 1e4, 1e8, 1e12):
        weight = np.full(200, factor)
        assert len(as_given(weight, round_size(weight)).rows) <= FREE
    many = np.full(10_000, 1e6)
    assert len(as_given(many, round_size(many)).rows) <= PER_ROW * 10_000


def test_no_weights_cost_no_memory():
    weight = np.broadcast_to(1.0, 1000)
    rows, r = as_given(weight)
    assert r is weight
    np.testing.assert_array_equal(rows, np.arange(1000))


@given(seed=integers(0, 10**6), n=integers(1, 60))
def test_a_sample_is_chosen_by_content_and_counts_rounds(seed, n):
    X, Y = table(seed)
    weight = np.random.default_rng(seed).integers(0, 4, size=len(X)).astype(float)
    rounds = as_given(weight)
    rows, counted = sampled(content(X, Y, weight), rounds, n)
    assert counted.sum() == min(n, len(rounds.rows))
    assert (counted <= weight[rows]).all()
    many = np.repeat(np.arange(len(X)), weight.astype(int))
    ones = np.ones(len(many))
    copies, each = sampled(content(X[many], Y[many], ones), as_given(ones), n)

    def told(rows, counted):
        parts = np.column_stack([X[rows], Y[rows]]).tolist()
        total = {}
        for part, k in zip(map(tuple, parts), counted, strict=True):
            total[part] = total.get(part, 0) + k
        return total

    assert told(rows, counted) == told(many[copies], each)


@given(seed=integers(0, 10**6))
def test_equal_rounds_are_told_apart(seed):
    X, Y = table(seed)
    weight = np.random.default_rng(seed).integers(0, 4, size=len(X)).astype(float)
    rounds, keys = by_content(content(X, Y, weight), as_given(weight))
    assert isinstance(rounds, Rounds)
    assert len(np.unique(keys)) == len(keys) == len(rounds.rows)


@given(seed=integers(0, 10**6))
def test_order_sign_and_origin_of_the_features_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.gamma(2.0, size=(60, 4)), rng.choice([-1.0, 1.0], size=(60, 1), p=[0.3, 0.7])
    ones, coarse = np.ones(60), np.uint64(32)
    expected = content(X, Y, ones) >> coarse
    order = rng.permutation(4)
    others = {
        "order": (X[:, order], Y),
        "sign": (X * rng.choice([-1, 1], 4), Y),
        "labels": (X, -Y),
        "origin": (X + [3.0, -1e3, 0.1, 7.0], Y),
        "a constant feature": (np.insert(X, 2, 5.0, axis=1), Y),
    }
    for name, other in others.items():
        assert ((content(*other, ones) >> coarse) == expected).mean() > 0.9, name


def test_rounding_to_float32_seldom_matters():
    X, Y = np.random.default_rng(0).normal(size=(500, 10)), np.ones((500, 1))
    hashes = (content(rows, Y, np.ones(500)) for rows in (X, X.astype(np.float32)))
    ours, theirs = (h >> np.uint64(32) for h in hashes)
    assert (ours == theirs).mean() > 0.98


def test_rows_that_are_alike_in_coarse_steps_are_told_apart():
    X = np.append(np.linspace(0.0, 1.0, 50), 1e9)[:, None]
    ones, Y = np.ones(51), np.ones((51, 1))
    first, second = (
        rows[shuffled(content(rows, Y, ones), as_given(ones), 3).rows] for rows in (X, X[::-1])
    )
    assert (first == second).all()


def test_rows_that_are_alike_in_coarse_steps_alone_have_a_fine_half():
    """All others are told apart already; a row of weight zero is nobody's like."""
    X = np.array([0.0, 0.5, 0.5 + 1e-6, 0.8, 0.8, 1.0, 0.0])[:, None]
    weight = np.array([1.0, 1, 1, 1, 1, 1, 0])
    found = content(X, np.ones((7, 1)), weight)
    low, half = np.uint64(2**32 - 1), np.uint64(32)
    assert ((found & low) > 0).tolist() == [False, True, True, True, True, False, False]
    assert found[1] >> half == found[2] >> half
    assert found[1] != found[2]
    assert found[3] == found[4]


@given(seed=integers(0, 10**6))
def test_features_that_do_not_occur_change_no_hash(seed):
    """Very wide rows are hashed without them; the others keep their numbers."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((20, 40), density=0.05, format="csr", rng=rng)
    Y, ones = rng.normal(size=(20, 1)), np.ones(20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seen, "WIDE", 1)
        patch.setattr(seen, "OFTEN", 10**9)
        assert seen.sparsely_wide(X)
        narrow = content(X, Y, ones)
    assert (narrow == content(X, Y, ones)).all()


@given(seed=integers(0, 10**6))
def test_laws_of_content_hold_for_wide_rows(seed):
    """Order of rows and features, units, copies; rows that have the same features are told apart."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(40, 12)) * (rng.random((40, 12)) < 0.3)
    X[:10] = rng.gamma(2.0, size=(10, 12)) * (X[0] > 0)
    Y, weight = rng.choice([-1.0, 1.0], size=(40, 1)), rng.integers(1, 4, 40).astype(float)

    def played(X, Y, weight):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(overview, "WIDE", 0)
            hashes = content(sp.csr_array(X), Y, weight)
        assert len(np.unique(hashes)) == len(np.unique(np.hstack([X, Y]), axis=0))
        return shuffled(hashes, as_given(weight), seed).rows

    table = np.hstack([X, Y])  # rows may be alike
    expected = table[played(X, Y, weight)]
    rows, columns, unit = rng.permutation(40), rng.permutation(12), 2.0 ** rng.integers(-5, 5, 12)
    assert (table[rows[played(X[rows], Y[rows], weight[rows])]] == expected).all()
    assert (table[played(X[:, columns] * unit, Y, weight)] == expected).mean() > 0.9
    copies = np.repeat(np.arange(40), weight.astype(int))
    assert (table[copies[played(X[copies], Y[copies], np.ones(len(copies)))]] == expected).all()


def test_wide_rows_of_features_that_are_equally_frequent_are_told_apart():
    """Such features have one key, as balanced one-hot columns have: all is left to the fine half."""
    rng, n, levels = np.random.default_rng(0), 6000, 100
    codes = np.column_stack([rng.permutation(np.arange(n) % levels) for _ in range(5)])
    columns = (codes + levels * np.arange(5)).ravel()
    X = sp.csr_array((np.ones(5 * n), columns, 5 * np.arange(n + 1)), shape=(n, 5 * levels))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overview, "WIDE", 0)
        hashes = content(X, np.ones((n, 1)), np.ones(n))
    assert len(np.unique(hashes)) == len(np.unique(codes, axis=0))


def test_wide_rows_are_learned_alike_whether_they_are_dense_or_sparse():
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(40, 12)) * (rng.random((40, 12)) < 0.3)
    Y, weight = rng.choice([-1.0, 1.0], size=(40, 1)), rng.integers(1, 4, 40).astype(float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overview, "WIDE", 0)
        assert (content(X, Y, weight) == content(sp.csr_array(X), Y, weight)).all()


@given(seed=integers(0, 100), n=integers(1, 40))
def test_rounds_of_one_size_are_ordered_whether_it_is_in_memory_once_or_not(seed, n):
    hashes = np.random.default_rng(seed).integers(10, size=n).astype(np.uint64) << np.uint64(31)
    once = as_given(np.broadcast_to(1.0, n))
    written = Rounds(once.rows, once.r.copy())
    assert once.r.strides == (0,)
    for make in (
        lambda given: shuffled(hashes, given, seed),
        lambda given: sampled(hashes, given, 5),
    ):
        for ours, theirs in zip(make(once), make(written), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert shuffled(hashes, once, seed).r.strides == (0,)


@given(weight=weights, n=integers(1, 30))
def test_shares_that_were_learned_add_up_to_what_was_learned(weight, n):
    hashes = np.arange(len(weight), dtype=np.uint64) % 3
    rows, learned = sampled(hashes, as_given(weight), n)
    share = learned_share(hashes, weight, rows, learned)
    assert ((share >= 0) & (share <= 1)).all()
    assert weight @ share == pytest.approx(learned.sum(), rel=1e-5)
    for kind in range(3):
        assert len(np.unique(share[hashes == kind])) <= 1, "copies are known alike"
