"""Whatever holds the same numbers is learned alike, and is left as it was."""

import numpy as np
import pytest
import scipy.sparse as sp


def long_indices(X):
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def unsorted(X):
    """CSR with the columns of every row backwards."""
    X = sp.csr_array(X)
    for lo, hi in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[lo:hi] = X.indices[lo:hi][::-1].copy()
        X.data[lo:hi] = X.data[lo:hi][::-1].copy()
    X.has_sorted_indices = False
    return X


def doubled(X):
    """CSR in which every entry is the sum of two, some of them zeros."""
    X = sp.csr_array(X)
    indices, data = np.repeat(X.indices, 2), np.repeat(X.data / 2, 2)
    return sp.csr_array((data, indices, 2 * X.indptr), shape=X.shape)


def explicit_zeros(X):
    n, d = X.shape
    indptr = np.arange(0, n * d + 1, d)
    return sp.csr_array((X.ravel().copy(), np.tile(np.arange(d), n), indptr), shape=X.shape)


LAYOUTS = {
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "lil": sp.lil_array,
    "dok": sp.dok_array,
    "bsr": sp.bsr_array,
    "csr-matrix": sp.csr_matrix,
    "64-bit": long_indices,
    "unsorted": unsorted,
    "doubled": doubled,
    "explicit-zeros": explicit_zeros,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "integers": lambda X: (X * 16).astype(np.int64),
}


def parts(X):
    """The arrays a container is made of."""
    names = ("data", "indices", "indptr")
    if sp.issparse(X) and hasattr(X, "indptr"):
        return [getattr(X, name).copy() for name in names]
    return [X.toarray() if sp.issparse(X) else np.array(X)]


@pytest.mark.parametrize("orders", [None, 2])
@pytest.mark.parametrize("convert", LAYOUTS.values(), ids=list(LAYOUTS))
def test_layouts_are_converted_and_inputs_left_alone(unscaled, rows, assert_same, convert, orders):
    X, y = rows(unscaled())
    given = convert(X)
    plain = given.toarray() if sp.issparse(given) else np.ascontiguousarray(given, float)
    before = parts(given)
    model, other = (unscaled(orders=orders, random_state=0) for _ in range(2))
    assert_same(model.fit(given, y), other.fit(plain, y), given, plain)
    assert_same(model.partial_fit(given, y), other.partial_fit(plain, y), given, plain)
    for now, then in zip(parts(given), before, strict=True):
        np.testing.assert_array_equal(now, then)


def frozen(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def mapped(x, path):
    np.save(path, x)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("kind", ["read-only", "memory-mapped", "read-only-csr"])
def test_inputs_may_be_read_only(unscaled, rows, assert_same, tmp_path, kind):
    X, y = rows(unscaled())
    weight = np.arange(len(y)) % 3 * 0.5
    keep = frozen if kind != "memory-mapped" else lambda x: mapped(x, tmp_path / f"{id(x)}.npy")
    given = [keep(part) for part in (X, y, weight)]
    if kind == "read-only-csr":
        S = sp.csr_array(X)
        S.data, S.indices, S.indptr = frozen(S.data), frozen(S.indices), frozen(S.indptr)
        given[0] = S
    other = unscaled(orders=2, passes=2, random_state=0).fit(X, y, weight)
    model = unscaled(orders=2, passes=2, random_state=0).fit(*given)
    assert_same(model, other, given[0], X)
    model.partial_fit(given[0], given[1], sample_weight=given[2])
    assert_same(model, other.partial_fit(X, y, sample_weight=weight), X)


def test_what_was_learned_does_not_hang_on_the_users_arrays(machine, rows, scores):
    X, y = rows(machine())
    mine, labels, weight = X.copy(), y.copy(), np.ones(len(y))
    model = machine().fit(mine, labels, weight)
    before = scores(model, X)
    np.testing.assert_array_equal(mine, X)
    np.testing.assert_array_equal(labels, y)
    mine[:], labels[:], weight[:] = 7.0, 1, 3.0
    np.testing.assert_array_equal(scores(model, X), before)
