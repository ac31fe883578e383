"""Rows in panels have the inner products of rows anywhere, and so have lines of kernel values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pistol._compiled.cache import INTERPRETED
from pistol._compiled.lines import drop_last_bits, fill_lines, kinds_of
from pistol._compiled.memory import PAGE
from pistol._compiled.panels import DEEP, Panels, aligned, shape, width
from pistol._compiled.slopes import add_slope_squares, gradient, inner_products
from pistol._compiled.types import read_only
from pistol._data.sums import MIXED
from pistol.kernels import get_kernel

pytestmark = pytest.mark.interpreted

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
rng = np.random.default_rng(0)


@pytest.mark.parametrize("size", [(3, 5), (PAGE // 8, 5), (0, 3)])
def test_arrays_begin_where_a_vector_does(size):
    x = aligned(size, np.float32)
    assert x.shape == size
    assert x.ctypes.data % 64 == 0 or not x.size
    x[:] = 1.0
    assert x.flags.c_contiguous


@dtypes
@pytest.mark.parametrize("of", [np.float32, np.float64])
def test_panels_hold_rows_in_their_order(dtype, of):
    n = width(dtype) + 5
    Z, order = rng.normal(size=(2 * n, 3)).astype(of), read_only(rng.permutation(2 * n)[:n])
    panels, sq = Panels.of(Z, order, dtype)
    assert panels.dtype == dtype
    rows = panels.transpose(0, 2, 1).reshape(-1, 3)
    assert_array_equal(rows[:n], Z[order].astype(dtype))
    assert_allclose(sq, (rows[:n].astype(float) ** 2).sum(axis=1), rtol=1e-14)


def lines(kernels, Z, m, dtype, half=False, together=None):
    panels, sq = Panels.of(Z, read_only(np.arange(len(Z))), dtype)
    out, count = np.empty((len(kernels), m, len(Z)), dtype), -(-m // width(dtype))
    norms, kinds = read_only(sq.astype(dtype)), kinds_of(kernels, dtype)
    for p in range(count):
        fill_lines(panels, norms, norms[:0], *kinds, together or width(dtype), p, p + 1, half, out)
    return out


@dtypes
@pytest.mark.parametrize("d", [1, 7, DEEP + 3])
def test_kernels_of_another_kind_are_left_as_inner_products(dtype, d):
    w = width(dtype)
    Z = rng.normal(size=(w + 3, d))
    (found,) = lines([get_kernel("linear", 1.0, 1, 0.0)], Z, 5, dtype)
    assert_allclose(found, Z[:5] @ Z.T, atol=1e-5 * d if dtype == np.float32 else 1e-12 * d)


@pytest.mark.skipif(INTERPRETED, reason="in the products of NumPy it does")
@dtypes
def test_values_do_not_depend_on_where_a_row_stands(dtype):
    """To the last bit: so results depend on the order of rows by the order of later sums alone."""
    Z, order = rng.normal(size=(2 * width(dtype) + 5, 9)), rng.permutation(2 * width(dtype) + 5)
    kernels, m = [MIXED.kernels(18.0, 9)[q] for q in (1, 2, 3, 4)], len(Z)
    found, moved = lines(kernels, Z, m, dtype), lines(kernels, Z[order], m, dtype)
    assert_array_equal(moved, found[:, order][:, :, order])
    assert_allclose(lines(kernels, Z, m, dtype, half=True), found, rtol=1e-6)


def flags(n, d, share):
    """Rows with a few values that are not zero."""
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < share)


@pytest.mark.skipif(INTERPRETED, reason="in the products of NumPy it does")
@dtypes
@pytest.mark.parametrize("d", [1, 9, DEEP, 2 * DEEP + 3])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.7])
def test_features_that_few_rows_have_are_left_out_without_a_trace(dtype, d, share):
    """To the last bit: it does not depend on which rows are multiplied together."""
    n, kernels = 2 * width(dtype) + 5, [MIXED.kernels(2.0 * d, d)[q] for q in (1, 2, 4)]
    Z = flags(n, d, share)
    whole = lines(kernels, Z, n - 3, dtype)
    assert_array_equal(lines(kernels, Z, n - 3, dtype, together=shape().lines), whole)


def test_last_bits_are_those_below_a_grid():
    K = np.stack([rng.normal(size=(4, 5)), 1e-200 * rng.normal(size=(4, 5)), np.zeros((4, 5))])
    found = K.copy()
    drop_last_bits(found)
    for before, after in zip(K[:2], found[:2], strict=True):
        grid = 2.0 ** (np.frexp(np.abs(before).max())[1] - 36)
        assert_array_equal(after, np.rint(before / grid) * grid)
    assert_array_equal(found[2], 0.0)


@dtypes
@pytest.mark.parametrize("n", [3, DEEP + 5])
def test_a_gradient_is_a_sum_of_some_rows(dtype, n):
    w = width(dtype)
    S = rng.normal(size=(-(-n // w) * w, w)).astype(dtype)
    H, A = rng.normal(size=(n, w)).astype(dtype), rng.normal(size=(w - 2, w - 3)).astype(dtype)
    order, own = rng.permutation(n)[: n - 1], rng.normal(size=w).astype(dtype)
    out, tile = np.empty((w, w), dtype), np.empty((w, w), dtype)
    gradient(S, H, A, tile, read_only(order), read_only(own), out)
    expected = H[: n - 1].T.astype(float) @ S[order]
    expected[: w - 2, : w - 3] -= own[: w - 2, None] * A
    assert_allclose(out, expected, atol=1e-3 if dtype == np.float32 else 1e-10)
    weight, total = rng.random(w - 2), np.zeros(w - 3)
    add_slope_squares(out, weight, total)
    assert_allclose(total, weight @ out[: w - 2, : w - 3].astype(float) ** 2, rtol=1e-6)
    panels, _ = Panels.of(A, read_only(np.arange(w - 2)), dtype)
    inner = np.empty((len(S), w), dtype)
    inner_products(np.ascontiguousarray(S[:, : w - 3]), panels, inner)
    assert_allclose(inner[:, : w - 2], S[:, : w - 3] @ A.T, atol=1e-4)
