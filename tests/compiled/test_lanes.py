"""Vectors of the processor compute what numbers one after the other do."""

import numpy as np
import pytest
from numba.core import types
from numba.np.numpy_support import from_dtype
from numpy.testing import assert_allclose, assert_array_equal

from pistol._compiled.chains import add_rounds, add_rows, next_values
from pistol._compiled.exp import LEAST
from pistol._compiled.lanes import across, apart, count, every, lanes, larger, load, store, whole
from pistol._compiled.types import (
    ALONE,
    CONSTANT,
    POWERS,
    PRODUCTS,
    GramValues,
    gram_type,
    loop,
    read_only,
)

pytestmark = pytest.mark.interpreted

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
rng = np.random.default_rng(0)


def line(dtype):
    return types.Array(from_dtype(np.dtype(dtype)), 1, "C")


def lines(dtype):
    return types.Array(from_dtype(np.dtype(dtype)), 2, "C")


def numbers(n, dtype):
    return rng.random(whole(n, dtype)).astype(dtype)


@loop(lambda dtype: types.int64(*[line(dtype)] * 5))
def _each_operator(a, b, total, product, most):
    for x in range(0, len(a), lanes(a)):
        v, w = load(a, x), load(b, x)
        store(total, x, v + w - every(v, a[0]))
        store(product, x, v * w)
        store(most, x, larger(v, w))
    return lanes(a)


@dtypes
def test_operators(dtype):
    a, b, out = numbers(33, dtype), numbers(33, dtype), np.empty((3, whole(33, dtype)), dtype)
    assert _each_operator(a, b, *out) == count(dtype)
    assert_array_equal(out, [a + b - a[0], a * b, np.maximum(a, b)])


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 1000])
@dtypes
def test_whole_lines_have_whole_vectors(n, dtype):
    assert n <= whole(n, dtype) < n + 64 // np.dtype(dtype).itemsize
    assert whole(n, dtype) % count(dtype) == 0


# the kernels of a sum, as chains: first kernel, how many, matrix, kind
CHAINS = {
    "one": [(0, 1, 0, CONSTANT)],
    "alone": [(0, 1, 0, ALONE)],
    "two products": [(0, 2, 0, PRODUCTS)],
    "three products": [(0, 3, 0, PRODUCTS)],
    "two powers": [(0, 2, 1, POWERS)],
    "three powers": [(0, 3, 1, POWERS)],
    "mixed": [(0, 1, 0, CONSTANT), (1, 3, 0, PRODUCTS), (4, 4, 1, POWERS), (8, 1, 1, ALONE)],
}
chains = pytest.mark.parametrize("chains", CHAINS.values(), ids=CHAINS)


def values_of(chains, matrices):
    """The values of every kernel, by their definition."""
    for _, kernels, number, kind in chains:
        v = np.ones_like(matrices[0]) if kind == CONSTANT else matrices[number]
        for q in range(kernels):
            yield v
            v = fourth(v) if kind == POWERS else v ** ((q + 2) / (q + 1))


def fourth(v):
    return np.maximum(v, LEAST) ** 4


def gram_values(chains, dtype, m=7, n=21):
    matrices = rng.random((2, m, whole(n, dtype))).astype(dtype)
    matrices[1, 0] = 0.0  # as far apart as can be
    return GramValues(read_only(matrices), read_only(np.array(chains)))


rows_type = types.Array(types.uintp, 1, "C")


def _rounds_type(dtype):
    state = types.Array(from_dtype(np.dtype(dtype)), 3, "C")
    return types.void(gram_type(dtype), rows_type, line(dtype), types.int64, state, lines(dtype))


@loop(_rounds_type)
def _add_rounds(values, rows, coef, j, g, spare):
    add_rounds(values, rows, coef, j, g, spare)


@chains
@dtypes
@pytest.mark.parametrize("some", [[3], [0, 2, 5, 6, 1]])
def test_rounds_are_added_to_g_of_every_kernel(chains, dtype, some):
    values, rows = gram_values(chains, dtype), np.array(some, np.uintp)
    V = np.array(list(values_of(chains, values.matrices)))
    Q, _, n = V.shape
    g, coef = rng.normal(size=(Q, 2, n)).astype(dtype), rng.normal(size=len(some)).astype(dtype)
    before = g.copy()
    _add_rounds(values, rows, coef, 1, g, np.empty((2, n), dtype))
    near = 1e-4 if dtype == np.float32 else 1e-12
    assert_array_equal(g[:, 0], before[:, 0], "other outputs do not move")
    expected = before[:, 1] + np.einsum("k,qkn->qn", coef, V[:, some])
    assert_allclose(g[:, 1], expected, rtol=near, atol=near)


def _rows_type(dtype):
    real = types.Array(types.float64, 2, "C"), types.int64
    return types.void(gram_type(dtype), rows_type, *real, line(dtype), lines(dtype))


@loop(_rows_type)
def _add_rows(values, rows, factors, first, out, four):
    add_rows(values, rows, factors, first, out, four)


@chains
@dtypes
def test_rows_are_added_up_over_kernels_from_a_column_on(chains, dtype):
    values, rows = gram_values(chains, dtype, n=40), np.array([4, 0, 6], np.uintp)
    V = np.array(list(values_of(chains, values.matrices)))
    first, factors = whole(1, dtype), rng.normal(size=(5, len(V)))
    out = rng.normal(size=whole(9, dtype)).astype(dtype)
    before = out.copy()
    _add_rows(values, rows, factors, first, out, np.empty((4, 5), dtype))
    columns = V[:, [4, 0, 6], first : first + len(out)]
    near = 1e-4 if dtype == np.float32 else 1e-12
    expected = before + np.einsum("kq,qkn->n", factors[:3], columns)
    assert_allclose(out, expected, rtol=near, atol=near)


@loop(lambda dtype: types.void(line(dtype), line(dtype), types.int64, line(dtype)))
def _next_values(v, first, kind, out):
    next_values(v, first, kind, out)


@dtypes
def test_values_of_the_next_kernel_of_a_chain(dtype):
    v, first = numbers(24, dtype), numbers(24, dtype)
    out = np.empty_like(v)
    _next_values(v, first, PRODUCTS, out)
    assert_array_equal(out, v * first)
    _next_values(v, first, POWERS, out)
    assert_allclose(out, v**4, rtol=1e-6)


def _across_type(dtype):
    return types.void(line(dtype), *[types.int64] * 3)


@loop(_across_type)
def _across(a, at, step, to):
    across(a, at, step, to)


@dtypes
def test_a_square_of_numbers_becomes_its_columns(dtype):
    n = count(dtype)
    a = numbers(2 * n * (n + 1), dtype)
    before, step = a.copy(), n + 1
    _across(a, 1, step, n * step)
    square = before[: n * step].reshape(n, step)[:, 1:]
    expected = before.copy()
    expected[n * step :].reshape(n, step)[:, :n] = square.T
    assert_array_equal(a, expected)


def _apart_type(dtype):
    return types.void(line(dtype), types.int64, types.int64, line(dtype))


@loop(_apart_type)
def _apart(a, at, step, out):
    store(out, 0, apart(a, at, step))


@dtypes
def test_numbers_of_a_vector_may_lie_apart(dtype):
    n = count(dtype)
    a, out = numbers(5 * n, dtype), np.empty(n, dtype)
    _apart(a, 2, 5, out)
    assert_array_equal(out, a[2 : 5 * n : 5])
