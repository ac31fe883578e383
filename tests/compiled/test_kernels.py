"""Kernels against scikit-learn's, and the exponential against the C library's."""

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis.strategies import booleans, floats, integers, lists, sampled_from
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import pairwise

from pistol._compiled import rows
from pistol._compiled.exp import fast_exp, prompt_exp
from pistol._compiled.panels import Panels
from pistol._compiled.threads import workers
from pistol._compiled.tiles import FEW, TILE, kernel_values, laid_out, scores, total_scores
from pistol._data.sums import SUMS
from pistol._learners import storage
from pistol.kernels import get_kernel, scale_gamma

pytestmark = pytest.mark.interpreted
powers = floats(-150, 150).map(lambda x: 10.0**x)

NAMED = {
    "rbf": lambda S, A: pairwise.rbf_kernel(S, A, gamma=0.7),
    "exponential": lambda S, A: np.exp(-0.7 * pairwise.euclidean_distances(S, A)),
    "laplacian": lambda S, A: pairwise.laplacian_kernel(S, A, gamma=0.7),
    "poly": lambda S, A: pairwise.polynomial_kernel(S, A, degree=3, gamma=0.7, coef0=0.2),
    "linear": pairwise.linear_kernel,
    "cosine": pairwise.cosine_similarity,
}


@njit
def compiled_exp(x):
    return fast_exp(x)


@njit
def compiled_prompt_exp(x):
    return prompt_exp(x)


@given(x=floats(-720, 0))
def test_exp_is_within_two_units_in_the_last_place(x):
    for function in (fast_exp, compiled_exp, prompt_exp, compiled_prompt_exp):
        assert abs(function(x) - math.exp(x)) <= 2 * math.ulp(math.exp(x)) + 1e-304


@given(x=floats(-100, 0, width=32))
def test_exp_in_float32(x):
    for function in (fast_exp, compiled_exp):
        assert function(np.float32(x)) == pytest.approx(math.exp(x), rel=4e-7, abs=2e-35)


@pytest.mark.parametrize("name", ["rbf", "linear", "cosine", "poly"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_tiles_have_the_precision_of_the_rows(name, layout):
    """float32 rows are multiplied in float32, unless far rows would cost a Gaussian its accuracy."""
    rng = np.random.default_rng(0)
    S, A = (rng.normal(size=(n, 5)).astype(np.float32) for n in (40, 7))
    coef = rng.normal(size=(1, 40, 6))  # more columns than are multiplied on the way
    kernel = get_kernel(name, 0.7, 3, 0.2)
    for offset, tolerance in [(0.0, 1e-5), (300.0, 1e-5)]:
        far = layout(S + np.float32(offset)), layout(A + np.float32(offset))
        exact = [np.asarray(x.todense() if sp.issparse(x) else x, np.float64) for x in far]
        K = NAMED[name](*exact)
        with workers(1) as threads:
            sq = [rows.sq_norms(x) for x in far]
            G, _ = scores([kernel], far[0], sq[0], coef, far[1], sq[1], threads)
        scale = np.abs(coef[0]).sum(axis=0)[:, None] * np.abs(K).max()
        assert (np.abs(G[0] - coef[0].T @ K) <= tolerance * scale).all()


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@settings(max_examples=10)
@given(
    seed=integers(0, 10**6),
    kernels=sampled_from(SUMS).flatmap(
        lambda one: lists(sampled_from(one.kernels(10.0, 5)), min_size=1, unique_by=id)
    ),
    columns=integers(1, 6),
    single=booleans(),
)
def test_a_sum_of_kernels_is_the_sum_of_its_parts(layout, seed, kernels, columns, single):
    """Whatever kernels are left of a sum, and in whatever order they come."""
    rng = np.random.default_rng(seed)
    S, A = (rng.normal(size=(n, 5)).astype(np.float32 if single else float) for n in (30, 7))
    S[0] *= 5.0  # far out
    coef = rng.normal(size=(len(kernels), 30, columns))
    sq = [rows.sq_norms(x) for x in (S, A)]
    with workers(1) as threads:
        given = kernels, layout(S), sq[0], coef, layout(A), sq[1], threads
        ours, parts = total_scores(*given), scores(*given)[0]
        in_panels = total_scores(*given, laid_out(kernels, layout(S), columns))
    exact = [
        c.T @ kernel_values([kernel], S, A, *sq)[0] for c, kernel in zip(coef, kernels, strict=True)
    ]
    tolerance = 2e-5 if single else 1e-10
    for found in (ours, in_panels, parts.sum(axis=0)):
        assert_allclose(found, sum(exact), rtol=0, atol=tolerance * np.abs(exact).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 2, FEW, FEW + 1])
def test_scores_in_panels_are_those_of_tiles_whatever_the_threads(dtype, columns):
    """More support rows than a tile has, more features than are added up at a time."""
    rng = np.random.default_rng(0)
    S, A = (rng.normal(size=(n, 300)).astype(dtype) for n in (TILE + 101, 130))
    kernels, sq = SUMS[2].kernels(600.0, 300), [rows.sq_norms(x) for x in (S, A)]
    coef = rng.normal(size=(len(kernels), len(S), columns))
    layout, found = laid_out(kernels, S, columns), []
    assert isinstance(layout, Panels) == (columns <= FEW)
    for n, form in ((1, None), (1, layout), (3, layout)):
        with workers(n) as threads:
            found.append(total_scores(kernels, S, sq[0], coef, A, sq[1], threads, form))
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    assert_allclose(found[1], found[0], rtol=0, atol=tolerance * np.abs(found[0]).max())
    assert_array_equal(found[1], found[2])


def test_panels_of_single_precision_are_not_used_where_double_is_needed():
    rng = np.random.default_rng(0)
    S, A = (rng.normal(size=(n, 3)).astype(np.float32) for n in (50, 9))
    kernels = SUMS[2].kernels(6.0, 3)
    A[0] = 1e3  # so far out that a Gaussian needs float64
    sq = [rows.sq_norms(x.astype(float)) for x in (S, A)]
    coef = rng.normal(size=(len(kernels), 50, 2))
    assert kernels[-1].precision(np.float32, sq[1].max()) == np.float64
    with workers(1) as threads:
        given = kernels, S, sq[0], coef, A, sq[1], threads
        assert_array_equal(total_scores(*given, laid_out(kernels, S, 2)), total_scores(*given))


@pytest.mark.parametrize("name", [*NAMED, "bounded_poly"])
@given(gamma=powers, coef0=powers, sq=powers)
@example(gamma=1e100, coef0=1.0, sq=1e109)
def test_what_is_computed_in_float32_is_within_its_range(name, gamma, coef0, sq):
    kernel = get_kernel(name, gamma, 2, coef0)
    if kernel.precision(np.float32, sq) == np.float32:
        assert max(sq, *np.abs(kernel.theta)) < np.finfo(np.float32).max


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_kernels_are_those_of_scikit_learn(name, layout):
    rng = np.random.default_rng(0)
    S, A = (rng.normal(size=(n, 6)) * (rng.random((n, 6)) < 0.5) for n in (9, 5))
    A[0] = 0.0
    kernel = get_kernel(name, 0.7, 3, 0.2)
    sparse_S, sparse_A = layout(S), layout(A)
    s_sq, a_sq = rows.sq_norms(sparse_S), rows.sq_norms(sparse_A)
    (K,) = kernel_values([kernel], sparse_S, sparse_A, s_sq, a_sq)
    assert_allclose(K, NAMED[name](S, A), 1e-12, 1e-14)
    (own,) = kernel_values([kernel], sparse_A, sparse_A, a_sq, a_sq)
    assert_allclose(kernel.diagonal(own, a_sq, kernel.theta), NAMED[name](A, A).diagonal(), 1e-12)


def test_a_kernel_is_pickled_by_what_made_it():
    kernel = pickle.loads(pickle.dumps(get_kernel("poly", 0.5, 2, 1.0)))
    assert (kernel.source, kernel.theta.tolist()) == ("poly", [0.5, 2.0, 1.0])


def test_an_unknown_kernel_lists_the_choices():
    with pytest.raises(ValueError, match=r"unknown kernel 'gauss'; choose one of .*cosine, lapl"):
        get_kernel("gauss", 1, 1, 0)


def test_products_of_sparse_rows_do_not_need_a_dense_matrix():
    """A million columns: the dense matrix would take 8 GB."""
    rng = np.random.default_rng(0)
    S = sp.random_array((1000, 10**6), density=2e-5, format="csr", rng=rng)
    A = S[:50]
    assert_allclose(rows.products(S, rows.Block(A)), (S @ A.T).toarray(), 1e-12)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_gamma_scale_counts_rows_by_weight(layout):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(1.0, 2.0, size=(20, 3)), rng.integers(0, 4, size=20)
    repeated = np.repeat(X, weight, axis=0)
    expected = 1 / (3 * repeated.var())
    assert scale_gamma(layout(X), weight.astype(float)) == pytest.approx(expected, rel=1e-12)
    assert scale_gamma(np.ones((4, 2)), np.ones(4)) == 1.0


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_a_store_is_the_rows_that_went_in(layout):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)) * (rng.random((50, 4)) < 0.6)
    store = storage.Store(layout(X))
    for part in (X[:1], X[1:1], X[1:30], X[30:]):
        store.append(layout(part))
    dense = store.rows.toarray() if sp.issparse(store.rows) else store.rows
    assert (dense == X).all()
    store.truncate(7)
    store.append(layout(X[7:9]))
    dense = store.rows.toarray() if sp.issparse(store.rows) else store.rows
    assert (dense == X[:9]).all()


def test_a_growing_array_keeps_the_wider_type():
    growing = storage.Growing((2,), np.float32)
    growing.append(np.ones((3, 2), np.float32))
    growing.append(np.full((1, 2), 1e300))
    assert growing.values.dtype == np.float64
    assert growing.values[3, 0] == 1e300
