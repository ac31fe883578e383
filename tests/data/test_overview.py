"""Two looks at all rows: what is known is what plain sums say, for any number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol._compiled import stored
from pistol._compiled.features import (
    COARSE,
    FIELDS,
    KEYS,
    ODD,
    PER_WAY,
    START,
    WEIGHT,
    describe,
    first_from,
)
from pistol._compiled.rows import as_rows
from pistol._compiled.threads import workers
from pistol._compiled.types import read_only
from pistol._data import overview as module
from pistol._data.duplicates import row_keys
from pistol._data.ordering import mix
from pistol._data.overview import (
    coarse_hashes,
    evenly,
    features_of,
    fine_hashes,
    overview,
    stored_values,
)
from pistol._data.validation import usable

pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning"),  # numbers that wrap around
]

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)


def table(seed, n=50, d=9):
    """Features with and without zeros, far from zero, and constant; rows of weight zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.random(d))
    X[:, 0] = 1e3 + rng.normal(size=n)
    X[:, 1] = 5.0
    X[:, 2] = 0.0
    return X, rng.integers(0, 3, n).astype(float)


def looked_at(X, weight, n_jobs=1, many=0):
    with workers(n_jobs) as threads, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MANY", many)
        seen = overview(X, weight, threads)
        return seen, fine_hashes(seen, np.arange(0, len(weight), 3), threads)


def plainly(X, weight):
    """Start and way of each feature, and its key, with one array per feature."""
    for x in X.T:
        y, w = x[weight > 0], weight[weight > 0]
        low, high = y.min(), y.max()
        if low == high:
            yield 0.0, np.inf, None
            continue
        u = (y - low) / (high - low)
        swapped = np.average(u, weights=w) > 0.5 + 2.0**-20
        u = 1.0 - u if swapped else u
        square = np.average(u * u, weights=w)
        yield (high, low - high, square) if swapped else (low, high - low, square)


@few
@given(seed=seeds, layout=st.sampled_from([np.asarray, sp.csr_array]))
def test_what_is_known_is_what_plain_sums_say(seed, layout):
    X, weight = table(seed)
    if not weight.any():
        return
    seen, _ = looked_at(layout(X), weight)
    F, expected = seen.F, np.zeros(len(X), np.uint64)
    for j, (start, way, square) in enumerate(plainly(X, weight)):
        assert_allclose(F[j, [START, PER_WAY]], [start, 1.0 / way], rtol=1e-12)
        key = np.uint64(0)
        if square is not None:
            steps = np.uint64(np.rint(KEYS * square + 2.0**-20))
            key = mix(steps * ODD + ODD)
        u = np.clip((X[:, j] - F[j, START]) * F[j, PER_WAY], 0.0, 1.0)
        expected += mix(np.rint(COARSE * u).astype(np.uint64) * ODD + key)
    assert_array_equal(seen.hashes, expected)
    assert_allclose(F[:, WEIGHT], weight @ (X != 0))


@few
@given(seed=seeds)
def test_fine_hashes_depend_on_neither_layout_nor_origin_nor_unit(seed):
    rng = np.random.default_rng(seed)
    X, weight = rng.integers(-2, 3, size=(50, 6)).astype(float), np.ones(50)
    _, expected = looked_at(X, weight)
    for other in (sp.csr_array(X), 4.0 * X, X + rng.integers(-3, 4, 6)):
        _, found = looked_at(other, weight)
        assert_array_equal(found, expected)
    assert len(set(expected)) == len({tuple(row) for row in X[::3]})


@few
@given(seed=seeds, tail=st.sampled_from([0.3, 1.0, 3.0]))
def test_no_fence_is_below_the_bound(seed, tail):
    rng = np.random.default_rng(seed)
    X = np.exp(tail * rng.normal(size=(60, 8))) * (rng.random((60, 8)) < 0.7)
    X[:, 0] += 100.0
    weight = rng.integers(1, 4, 60).astype(float)
    rows = sp.csr_array(X)
    with workers(1) as threads:
        seen = stored_values(rows, read_only(weight), threads)
    high = np.full(8, np.inf)
    for number in range(3):
        high = 4 * (weight @ np.minimum(X, high)) / (weight @ (X > 0))
        if number == 0:
            far = X.max(axis=0) > high
    lowest = seen.B[:, stored.LOWEST]
    assert (lowest[far] <= high[far]).all()
    assert (lowest[~far] == np.inf).all()
    assert_array_equal(seen.large, np.flatnonzero(rows.data > lowest[rows.indices]))
    assert_allclose(seen.F[:, stored.TOTAL], weight @ X)
    wanted, rest = rng.random(8) < 0.5, np.zeros(8)
    stored.add_rest(as_rows(rows), read_only(weight), seen.B, wanted, rest)
    assert_allclose(rest, wanted * (weight @ np.where(lowest < X, 0.0, X)))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("most", [0, 4096], ids=["wide", "narrow"])
def test_threads_change_no_bit(layout, most, monkeypatch):
    monkeypatch.setattr(module, "WIDE", most)
    X, weight = table(3, n=700)
    X = layout(X)
    first, found = looked_at(X, weight, 1)
    second, again = looked_at(X, weight, 3)
    assert (first.stored is not None) == (most == 0)
    assert_array_equal(first.F.view(np.uint64), second.F.view(np.uint64))
    assert_array_equal(first.hashes, second.hashes)
    assert_array_equal(found, again)
    if first.stored:
        assert_array_equal(first.stored.B.view(np.uint64), second.stored.B.view(np.uint64))
        assert_array_equal(first.stored.large, second.stored.large)


# Wide sparse rows


def wide(rng, n=60, d=12):
    """Rows of which some agree in all features, or in the features that they have."""
    X = rng.choice([-1.0, 1.0], (n, d)) * rng.gamma(2.0, size=(n, d)) * (rng.random((n, d)) < 0.3)
    X[1], X[2:5] = X[0], X[0] * rng.gamma(2.0, size=(3, d))
    X[5] = -X[0]
    return X


def hashes_of(X, weight):
    """Hashes of sparse rows as if they were wide: of features, of values in steps, and fine ones."""
    with workers(1) as threads, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WIDE", 0)
        seen = overview(X if sp.issparse(X) else sp.csr_array(X), weight, threads)
        known = seen, np.arange(len(weight)), threads
        return np.stack([seen.hashes, coarse_hashes(*known), fine_hashes(*known)])


@few
@given(seed=seeds)
def test_hashes_of_wide_rows_are_sums_over_values_that_are_not_zero(seed):
    rng = np.random.default_rng(seed)
    X, weight = wide(rng), rng.integers(1, 4, 60).astype(float)
    share, no = weight @ (X != 0), np.uint64(0)
    steps = (share.view(np.uint64) + np.uint64(2**31)) >> np.uint64(32)
    keys, has = mix(steps * ODD + ODD), X != 0
    u = np.rint(COARSE * (abs(X) / np.maximum(abs(X).max(axis=0), 1e-300))).astype(np.uint64)
    found = hashes_of(X, weight)
    assert_array_equal(found[0], np.where(has, keys, no).sum(axis=1))
    assert_array_equal(found[1], np.where(has, mix(u * ODD + keys), no).sum(axis=1))


@few
@given(seed=seeds)
def test_hashes_of_wide_rows_depend_on_content_alone(seed):
    rng = np.random.default_rng(seed)
    X, weight = wide(rng), rng.integers(1, 4, 60).astype(float)
    expected = hashes_of(X, weight)
    rows, columns = rng.permutation(60), rng.permutation(12)
    in_other_units = X * 2.0 ** rng.integers(-9, 9, 12)
    assert_array_equal(hashes_of(in_other_units[rows], weight[rows]), expected[:, rows])
    copies = np.repeat(np.arange(60), weight.astype(int))
    assert_array_equal(hashes_of(X[copies], np.ones(len(copies))), expected[:, copies])
    turned = X[:, columns] * rng.choice([-1, 1], 12)
    assert_array_equal(hashes_of(turned, weight)[:2], expected[:2])
    coarse, fine = (len(np.unique(found)) for found in expected[1:])
    magnitudes, every = (len(np.unique(told, axis=0)) for told in (abs(X), X + 0.0))
    assert 0.8 * magnitudes < coarse <= magnitudes  # steps are coarse
    assert fine == every


@few
@given(seed=seeds)
def test_stored_zeros_and_rows_of_weight_zero_change_no_hash_of_wide_rows(seed):
    rng = np.random.default_rng(seed)
    X, weight = sp.csr_array(wide(rng)), rng.integers(1, 4, 60).astype(float)
    X.data[::7] = 0.0
    expected = hashes_of(sp.csr_array(X.toarray()), weight)
    assert_array_equal(hashes_of(X, weight), expected)
    more = sp.vstack([X, 1e9 * X[:1]], format="csr")
    assert_array_equal(hashes_of(more, np.append(weight, 0.0))[:, :-1], expected)


@few
@given(seed=seeds, n=st.integers(1, 5))
def test_parts_are_all_of_it(seed, n):
    rng = np.random.default_rng(seed)
    X = sp.random_array((30, 40), density=0.1, format="csr", rng=rng)
    with workers(n) as threads, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MANY", 0)
        parts, columns = evenly(30, X, threads), features_of(X, threads)
        assert len(features_of(X[:, ::-1], threads)) in (1, n)
    for total, ranges in ((30, parts), (40, columns)):
        assert [ranges[0][0], *(hi for _, hi in ranges)] == [
            0,
            *(lo for lo, _ in ranges[1:]),
            total,
        ]
    X, weight = sp.csr_array(X), read_only(np.ones(30))
    whole, pieces = np.zeros((2, 40, FIELDS))
    describe(as_rows(X), weight, whole, 0, 40)
    for part in columns:
        describe(as_rows(X), weight, pieces, *part)
    assert_array_equal(whole, pieces)


@few
@given(cols=st.lists(st.integers(0, 30), unique=True).map(sorted), feature=st.integers(0, 31))
def test_the_first_entry_from_a_feature_on(cols, feature):
    plain = getattr(first_from, "py_func", first_from)  # compiled code alone calls it
    found = plain(np.array(cols, np.int32), feature)
    assert found == np.searchsorted(cols, feature)


@few
@given(seed=seeds, dtype=st.sampled_from(["f4", "f8"]))
def test_keys_of_rows_are_sums_over_values_that_are_not_zero(seed, dtype):
    X = table(seed, n=12)[0].astype(dtype)
    bits, column = X.astype(float).view(np.uint64), np.arange(1, 10, dtype=np.uint64)
    terms = np.where(X != 0, mix(mix(bits) + mix(column)), np.uint64(0))
    for layout in (np.asarray, sp.csr_array):
        for n_jobs in (1, 2, 3):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("pistol._data.duplicates.MANY", 0)
                keys = row_keys(layout(X), n_jobs=n_jobs)
            assert_array_equal(keys, terms.sum(axis=1, dtype=np.uint64))


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("canonical", [True, False])
def test_threads_check_sparse_rows(monkeypatch, n_jobs, canonical):
    monkeypatch.setattr("pistol._data.validation.MANY", 0)
    X = sp.csr_array(table(0, n=12)[0])
    if not canonical:
        X.indices, X.data = np.roll(X.indices, 1), np.roll(X.data, 1)
        X.has_canonical_format = X.has_sorted_indices = False
    expected, given_to = X.toarray(), X.copy()
    found = usable(X, None, n_jobs)
    assert found.has_canonical_format
    assert_array_equal(found.toarray(), expected)
    assert_array_equal(X.indices, given_to.indices)
    X.data[-1] = np.nan
    with pytest.raises(ValueError, match="X contains NaN"):
        usable(X, None, n_jobs)
