"""Slots for features: what a table from feature numbers to slots must keep to."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from pistol._compiled import slots as module
from pistol._compiled.slots import Slots

pytestmark = pytest.mark.interpreted

WIDE = 2**31 - 1
FEATURES = st.one_of(
    st.integers(0, 9),  # repeated
    st.integers(0, WIDE - 1),
    st.integers(0, 2**15 - 1).map(lambda k: k * 2**16),  # alike in their low bits
)
SIXTY_FOUR = st.one_of(FEATURES, st.integers(0, 2**40).map(lambda k: k * 2**22))


@st.composite
def matrices(draw, features=FEATURES, rows=6):
    """CSR rows whose entries are in no order and may repeat a feature."""
    drawn = draw(st.lists(st.lists(features, max_size=8), max_size=rows))
    keys = np.array([key for row in drawn for key in row], np.int64)
    wide = len(keys) and keys.max() >= 2**31
    indptr = np.cumsum([0, *map(len, drawn)])
    X = sp.csr_array((len(drawn), 2**62 if wide else WIDE))
    X.indptr, X.data = indptr, np.arange(1.0, len(keys) + 1)
    X.indices = keys if wide else keys.astype(np.int32)
    return X


def entries(X, features=None):
    """The rows as lists of pairs of a feature and a value, in the order in which they are stored."""
    names = X.indices if features is None else features[X.indices]
    pairs = list(zip(names.tolist(), X.data.tolist()))
    return [pairs[lo:hi] for lo, hi in zip(X.indptr[:-1], X.indptr[1:])]


@given(matrices(SIXTY_FOUR))
def test_mapping_back_gives_the_rows_in_their_order(X):
    table = Slots()
    rows = table.compress(X, grow=True)
    assert entries(rows, table.features) == entries(X)
    assert rows.shape == (X.shape[0], len(table))
    assert entries(table.compress(X, grow=False), table.features) == entries(X)


@given(matrices(SIXTY_FOUR))
def test_slots_are_given_in_the_order_of_first_sight(X):
    table = Slots()
    table.compress(X, grow=True)
    assert table.features.tolist() == list(dict.fromkeys(X.indices.tolist()))


@given(matrices(), matrices())
def test_entries_of_unknown_features_are_dropped(X, Z):
    table = Slots()
    table.compress(X, grow=True)
    seen = table.features.tolist()
    rows = table.compress(Z, grow=False)
    assert entries(rows, table.features) == [[p for p in r if p[0] in seen] for r in entries(Z)]
    assert rows.shape == (Z.shape[0], len(seen))
    assert table.features.tolist() == seen


@given(st.lists(matrices(SIXTY_FOUR), min_size=1, max_size=4))
def test_growing_in_chunks_equals_growing_at_once(chunks):
    one, many = Slots(), Slots()
    found = [entries(many.compress(X, grow=True)) for X in chunks]
    stacked = sp.csr_array((sum(X.shape[0] for X in chunks), 2**62))
    stacked.indices = np.concatenate([X.indices for X in chunks])
    stacked.data = np.concatenate([X.data for X in chunks])
    stacked.indptr = np.cumsum([0, *np.concatenate([np.diff(X.indptr) for X in chunks])])
    assert entries(one.compress(stacked, grow=True)) == [row for rows in found for row in rows]
    assert one.features.tolist() == many.features.tolist()


@given(matrices(SIXTY_FOUR), matrices(SIXTY_FOUR), matrices(SIXTY_FOUR))
def test_truncate_undoes_a_chunk(first, lost, then):
    plain, undone = Slots(), Slots()
    for table in (plain, undone):
        table.compress(first, grow=True)
    n = len(undone)
    undone.compress(lost, grow=True)
    undone.truncate(n)
    assert undone.features.tolist() == plain.features.tolist()
    assert entries(undone.compress(lost, grow=False)) == entries(plain.compress(lost, grow=False))
    assert entries(undone.compress(then, grow=True)) == entries(plain.compress(then, grow=True))


@given(st.data())
def test_any_history_leaves_what_a_dictionary_would(data):
    table, oracle = Slots(), {}
    for _ in range(data.draw(st.integers(1, 8))):
        if data.draw(st.booleans()):
            X = data.draw(matrices(SIXTY_FOUR))
            table.compress(X, grow=True)
            for key in X.indices.tolist():
                oracle.setdefault(key, len(oracle))
        else:
            n = data.draw(st.integers(0, len(oracle)))
            table.truncate(n)
            oracle = dict(list(oracle.items())[:n])
    assert table.features.tolist() == list(oracle)
    Z = data.draw(matrices(SIXTY_FOUR))
    expected = [[(oracle[k], v) for k, v in row if k in oracle] for row in entries(Z)]
    assert entries(table.compress(Z, grow=False)) == expected


def colliding(n):
    """n features with one home: k · 2^31 + (k ^ 5) folds to 5 for every k below 2^31."""
    return np.array([(k << 31) + (k ^ 5) for k in range(n)], np.int64)


def test_features_with_one_home_are_told_apart():
    keys = colliding(300)
    table = Slots(keys)
    assert table.features.tolist() == keys.tolist()
    assert Slots(keys)._found(keys[::-1]).tolist() == list(range(299, -1, -1))
    table.truncate(100)
    assert table._found(keys).tolist() == [*range(100), *[-1] * 200]


def pickled(table):
    return pickle.loads(pickle.dumps(table))


@pytest.mark.parametrize("again", [Slots.copy, copy.copy, copy.deepcopy, pickled])
def test_copies_have_the_same_slots_and_lead_their_own_lives(again):
    table = Slots([7, 3, 2**40])
    twin = again(table)
    assert twin.features.tolist() == [7, 3, 2**40]
    twin._entered(np.array([5, 7]))
    table._entered(np.array([9]))
    table.truncate(1)
    assert twin.features.tolist() == [7, 3, 2**40, 5]
    assert twin._found(np.array([5, 9, 3])).tolist() == [3, -1, 1]


def test_the_values_are_shared_and_the_rows_untouched():
    X = sp.random_array((50, 1000), density=0.1, format="csr", rng=np.random.default_rng(0))
    before = X.copy()
    table = Slots()
    rows = table.compress(X, grow=True)
    assert np.shares_memory(rows.data, X.data)
    assert rows.indices.dtype == np.int32
    table.compress(X[:, ::2].tocsr(), grow=False)
    assert (before != X).nnz == 0
    weights = np.zeros(1000)
    weights[table.features] = np.arange(len(table))
    np.testing.assert_allclose(rows @ np.arange(float(len(table))), X @ weights)


def test_the_list_of_features_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        Slots([1, 2]).features[0] = 3


def memory(table):
    return table._features.nbytes + table._table.nbytes


def test_memory_follows_the_features_seen():
    rng = np.random.default_rng(0)
    X = sp.csr_array((np.ones(5000), rng.integers(0, WIDE, 5000), [0, 5000]), shape=(1, WIDE))
    table = Slots()
    for _ in range(20):
        table.compress(X, grow=True)
    assert memory(table) <= 28 * (len(table) + 5000)


@pytest.mark.skipif(
    module._find.compiled(np.dtype(np.int32)) is module._find.py_func, reason="slow"
)
def test_a_million_features_take_the_memory_of_a_million():
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 2**31, 10**6)
    X = sp.csr_array((np.ones(10**6), keys.astype(np.int32), [0, 10**6]), shape=(1, WIDE))
    table = Slots()
    table.compress(X, grow=True)
    assert memory(table) <= 28 * (len(table) + module.BLOCK)
    assert len(table) == len(np.unique(keys))
