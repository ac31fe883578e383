"""The closed-form gradient of f is its derivative; the slopes of kernels are theirs."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol._compiled.rows import sq_norms
from pistol._compiled.sums import KINDS, groups_of
from pistol._compiled.threads import Workers, workers
from pistol._compiled.tiles import kernel_values
from pistol._data.sums import SUMS
from pistol._learners import gradients as _gradients
from pistol._learners.gradients import gradients_of, mean_squares
from pistol._learners.models import Expansion
from pistol.kernels import get_kernel

few = settings(max_examples=8, deadline=None)
seeds = st.integers(0, 10**6)
KERNELS = [
    get_kernel("rbf", 0.3, 1, 0.0),
    get_kernel("exponential", 0.4, 1, 0.0),
    *(get_kernel("bounded_poly", 0.5, m, 1e9) for m in range(4)),
]


def rows(seed, n, d=4):
    return np.random.default_rng(seed).normal(size=(n, d))


def values(kernel, S, A):
    return kernel_values([kernel], S, A, sq_norms(S), sq_norms(A))[0]


def test_every_kernel_of_a_sum_has_a_slope():
    for each in SUMS:
        kernels = each.kernels(2.0, 3)
        assert all(kernel.smooth for kernel in kernels)
        assert groups_of(kernels) is not None
    assert {kernel.map for kernel in KERNELS} == set(KINDS)
    assert not get_kernel("laplacian", 1.0, 1, 0.0).smooth


@pytest.mark.interpreted
@pytest.mark.every_case_counts_lines  # each kernel has a loop of its own
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@few
@given(seed=seeds)
def test_a_slope_is_the_derivative_of_its_kernel(kernel, seed):
    S, A, h = rows(seed, 5), rows(seed + 1, 3), 1e-6
    each = Expansion((kernel,), np.arange(5), S, sq_norms(S), np.eye(5)[None])  # one per output
    G = gradients_of(each)(A)
    for i in range(S.shape[1]):
        step = h * np.eye(S.shape[1])[i]
        numeric = (values(kernel, S, A + step) - values(kernel, S, A - step)) / (2 * h)
        assert_allclose(G[:, :, i], numeric, atol=1e-5)


@few
@given(seed=seeds, most=st.floats(0.1, 3.0))
def test_exact_gradients_know_that_rows_far_out_are_shortened(seed, most):
    kernels = tuple(
        get_kernel("bounded_poly", 0.5, m, c) for m in range(4) for c in (most, 2 * most)
    )
    model, A, h = model_of(seed, kernels=(*kernels, *KERNELS)), 2 * rows(seed + 1, 3), 1e-6
    G = gradients_of(model, exact=True)(A)
    for i in range(A.shape[1]):
        step = h * np.eye(A.shape[1])[i]
        numeric = (model.decide(A + step) - model.decide(A - step)) / (2 * h)
        assert_allclose(G[:, :, i], numeric.T, rtol=1e-5, atol=1e-5)


def model_of(seed, n=7, outputs=2, kernels=tuple(KERNELS)):
    S = rows(seed, n)
    coef = np.random.default_rng(seed).normal(size=(len(kernels), outputs, n))
    return Expansion(kernels, np.arange(n), S, sq_norms(S), coef)


@few
@given(seed=seeds, outputs=st.integers(1, 3))
def test_mean_squares_are_those_of_numerical_derivatives(seed, outputs):
    model, A, h = model_of(seed, outputs=outputs), rows(seed + 1, 70), 1e-5
    weight = np.random.default_rng(seed).uniform(0.5, 2, len(A))
    found = mean_squares(model, A, weight)
    for i, square in enumerate(found):
        step = h * np.eye(A.shape[1])[i]
        slope = (model.decide(A + step) - model.decide(A - step)) / (2 * h)
        assert_allclose(square, weight @ np.square(slope).sum(axis=1) / weight.sum(), rtol=1e-4)


def large_model(seed, outputs=6, n=300, d=80):
    """With work enough for several threads, and rows that some outputs have no coefficient for."""
    rng, S, kernels = np.random.default_rng(seed), rows(seed, n, d), SUMS[2].kernels(2.0 * d, d)
    coef = rng.normal(size=(len(kernels), outputs, n)) * (rng.random((outputs, n)) < 0.7)
    return Expansion(kernels, np.arange(n), S, sq_norms(S), coef)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_any_number_of_threads_finds_the_same_to_the_last_bit(layout, monkeypatch):
    model, weight = large_model(0), np.random.default_rng(0).uniform(0.5, 2.0, 150)
    model, A = replace(model, rows=layout(model.rows)), layout(rows(1, 150, 80))
    monkeypatch.setattr(_gradients, "LITTLE", 0)
    shared, run = [], Workers.run

    def noted(self, tasks):
        shared.append(len(tasks))
        return run(self, tasks)

    monkeypatch.setattr(Workers, "run", noted)
    alone = mean_squares(model, A, weight)
    for n_jobs in (1, 2, 3):
        with workers(n_jobs) as threads:
            assert_array_equal(mean_squares(model, A, weight, threads), alone)
    assert max(shared) > 1, "there is something to share out"


def test_many_slopes_are_made_for_fewer_rows_at_a_time(monkeypatch):
    model, A, weight = large_model(0), rows(1, 150, 80), np.ones(150)
    whole = mean_squares(model, A, weight)
    monkeypatch.setattr(_gradients, "ROOM", 0)
    assert_allclose(mean_squares(model, A, weight), whole, rtol=1e-5)


@few
@given(seed=seeds, n=st.integers(1, 150))
def test_mean_squares_are_sums_over_outputs_and_rows_of_squared_gradients(seed, n):
    model, A = large_model(seed), rows(seed + 1, n, 80)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, n)
    squares = np.square(gradients_of(model)(A)).sum(axis=0)
    assert_allclose(mean_squares(model, A, weight), weight @ squares / weight.sum(), rtol=1e-3)


@few
@given(seed=seeds, n=st.integers(1, 150))
def test_much_work_in_float32_finds_what_float64_finds(seed, n):
    model, A, weight = large_model(seed, 15, 200), rows(seed + 1, n, 80), np.ones(n)
    squares = np.square(gradients_of(model)(A)).sum(axis=0).mean(axis=0)
    assert_allclose(mean_squares(model, A, weight), squares, rtol=1e-5)


def test_sparse_rows_have_the_gradients_of_dense_ones():
    model, A = model_of(3), rows(4, 9)
    sparse = Expansion(model.kernels, model.ids, sp.csr_array(model.rows), model.sq, model.coef)
    weight = np.ones(len(A))
    assert_allclose(
        mean_squares(sparse, sp.csr_array(A), weight), mean_squares(model, A, weight), rtol=1e-9
    )


def test_coefficients_of_any_size_have_finite_gradients():
    model = model_of(5)
    large = Expansion(model.kernels, model.ids, model.rows, model.sq, model.coef * 1e150)
    A = rows(6, 4)
    found = mean_squares(large, A, np.ones(4)) / 1e300
    assert_allclose(found, mean_squares(model, A, np.ones(4)), rtol=1e-6)


@pytest.mark.parametrize("size", [1e-25, 1e-3, 1e20])
def test_gradients_follow_the_unit_of_the_rows(size):
    """Rows times a number, in kernels made for them: the gradients are divided by it."""
    S, coef = rows(0, 300), rows(1, 300, 2).T
    found = []
    for unit in (1.0, size):
        square = 8.0 * unit**2
        kernels = SUMS[2].kernels(square, 4)
        Z = unit * S
        model = Expansion(kernels, np.arange(300), Z, sq_norms(Z), np.stack([coef] * len(kernels)))
        found.append(mean_squares(model, Z[:20], np.ones(20)))
    assert_allclose(size * size * found[1], found[0], rtol=1e-3)
