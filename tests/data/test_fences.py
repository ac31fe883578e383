"""Values far out are moved to a fence, and nothing else is."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from pistol._compiled.threads import workers
from pistol._data import fences
from pistol._data import overview as module
from pistol._data.fences import FAR_OUT, fences_of
from pistol._data.overview import overview

pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning"),  # numbers that wrap around
]

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)


def table(seed, n=60):
    """A normal, a skewed and a mostly zero feature, and a constant."""
    rng = np.random.default_rng(seed)
    rare = rng.normal(size=n) * (rng.random(n) < 0.2)
    return np.column_stack([rng.normal(size=n), np.exp(rng.normal(size=n)), rare, np.ones(n)])


def within_stored(X, weight):
    with workers(1) as threads:
        return fences.within_stored(X, overview(X, weight, threads), threads)


def plainly_within(X, weight):
    """The same in plain Python, one feature after the other."""
    Z = X.tocsc().astype(float)
    for j in range(Z.shape[1]):
        at = slice(Z.indptr[j], Z.indptr[j + 1])
        x, w = Z.data[at], weight[Z.indices[at]]
        high = np.inf
        for _ in range(3):
            near = np.minimum(abs(x), high)
            high = 4 * (w @ near) / max(w @ (near > 0), 1e-300)
        if (w @ abs(x) * 4 < w @ (x != 0) * abs(x * (w > 0)).max(initial=0.0)) and len(x):
            Z.data[at] = np.clip(x, -high, high)
    return Z.tocsr()


@few
@given(seed=seeds)
def test_ordinary_rows_stay_as_they_are(seed):
    X = table(seed)[:, [0, 3]]
    assert fences_of(X, np.ones(60)).within(X) is X


@few
@given(seed=seeds, power=st.integers(3, 60), row=st.integers(0, 59))
def test_a_row_far_out_comes_close(seed, power, row):
    X = table(seed)
    X[row, :3] = 10.0**power
    near = fences_of(X, np.ones(60)).within(X)
    assert np.abs(near[row, :3]).max() < 1e3
    others = np.arange(60) != row
    assert_array_equal(near[others, 0], X[others, 0])


@few
@given(seed=seeds, powers=st.lists(st.integers(-40, 40), min_size=4, max_size=4))
def test_shifts_and_powers_of_two_change_no_bit(seed, powers):
    X = np.rint(2.0**10 * table(seed))  # whole numbers: their differences are exact
    X[0, :3] = 2.0**30
    unit, shift = 2.0 ** np.array(powers), np.array([2.0**20, -5.0, 1.0, 3.0])
    near = fences_of(X, np.ones(60)).within(X)
    other = (X + shift) * unit
    assert_array_equal(fences_of(other, np.ones(60)).within(other) / unit - shift, near)


@few
@given(seed=seeds)
def test_a_weight_is_so_many_copies(seed):
    X = table(seed)
    weight = np.random.default_rng(seed).integers(1, 4, 60)
    ours = fences_of(X, weight.astype(float))
    theirs = fences_of(np.repeat(X, weight, axis=0), np.ones(weight.sum()))
    assert_array_equal([ours.low, ours.high], [theirs.low, theirs.high])


def test_the_usual_value_does_not_hide_how_far_the_others_are():
    X = np.zeros((100, 1))
    X[:9, 0] = 1.0
    X[9, 0] = 1000.0
    assert fences_of(X, np.ones(100)).high == FAR_OUT
    assert fences_of(np.zeros((5, 1)), np.ones(5)).high == np.inf


@few
@given(seed=seeds, powers=st.lists(st.integers(-40, 40), min_size=3, max_size=3))
def test_stored_values_far_out_come_close_in_any_unit(seed, powers):
    rng = np.random.default_rng(seed)
    X = (
        rng.integers(1, 4, size=(60, 3))
        * (rng.random((60, 3)) < 0.5)
        * rng.choice([-1.0, 1.0], (60, 3))
    )
    X[0] = 1.0
    weight = rng.integers(1, 4, 60)
    assert within_stored(sp.csr_array(X / np.maximum(np.abs(X), 1)), weight).max() == 1.0
    X[0] = [1e3, -1e6, 1.0]
    near = within_stored(sp.csr_array(X), weight).toarray()
    assert (np.abs(near[0, :2]) < [2e2, 4e4]).all()
    assert (np.sign(near) == np.sign(X)).all()
    unit = 2.0 ** np.array(powers)
    assert_array_equal(within_stored(sp.csr_array(X * unit), weight).toarray() / unit, near)
    copies = within_stored(sp.csr_array(np.repeat(X, weight, axis=0)), np.ones(weight.sum()))
    np.testing.assert_allclose(copies.toarray(), np.repeat(near, weight, axis=0), rtol=1e-12)


@few
@given(seed=seeds, tail=st.sampled_from([0.5, 1.5, 4.0]), dtype=st.sampled_from(["f4", "f8"]))
def test_sparse_fences_are_those_of_a_plain_loop(seed, tail, dtype):
    rng = np.random.default_rng(seed)
    X = sp.random_array((80, 12), density=0.4, format="csr", rng=rng)
    X.data = (rng.choice([-1, 1], X.nnz) * np.exp(tail * rng.normal(size=X.nnz))).astype(dtype)
    X.data[rng.random(X.nnz) < 0.05] = 0.0  # stored zeros are no values
    weight = rng.integers(1, 4, 80).astype(float)
    before = X.copy()
    near = within_stored(X, weight)
    assert near.dtype == X.dtype
    assert_array_equal(X.toarray(), before.toarray())
    np.testing.assert_allclose(near.toarray(), plainly_within(X, weight).toarray(), rtol=1e-6)


def test_used_memory_is_used_again_only_where_it_is_large_enough(monkeypatch):
    monkeypatch.setattr(module, "WIDE", 0)  # so that rows are wide
    rng = np.random.default_rng(0)
    for n in (6, 60):
        X = sp.csr_array(rng.random((n, 7)))
        X.data[0] = 1e6
        with workers(1) as threads:
            seen = overview(X, np.ones(n), threads)
            near = fences.within_stored(X, seen, threads)
        memory = seen.stored.memory
        assert np.shares_memory(near.data, memory) == (X.nnz <= len(memory))
        expected = plainly_within(X, np.ones(n)).toarray()
        np.testing.assert_allclose(near.toarray(), expected, rtol=1e-12)
