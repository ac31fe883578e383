"""Contributions of features and of support rows add up to f."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from pistol._compiled.rows import sq_norms
from pistol._data.sums import SUMS
from pistol._learners.cells import Parts, Patchwork, centred
from pistol._learners.contributions import contributions, integrated_gradients, terms
from pistol._learners.gradients import gradients_of
from pistol._learners.models import Expansion
from pistol._learners.trees import grow_tree

few = settings(max_examples=3, deadline=None)
seeds = st.integers(0, 10**6)
D, OUTPUTS = 3, 2


def rows(seed, n, d=D):
    return np.random.default_rng(seed).normal(size=(n, d))


def expansion(seed, kernels, S, ids=None):
    ids = np.arange(len(S)) if ids is None else ids
    coef = np.random.default_rng(seed).normal(size=(len(kernels), OUTPUTS, len(S)))
    return Expansion(kernels, ids, S, sq_norms(S), coef, offset=np.array([0.5, -1.0]))


def patchwork(seed):
    """A function of all space, and two partitions with one in each cell."""
    kernels, S = SUMS[2].kernels(2.0 * D, D), rows(seed, 60)
    parts = []
    for number in (1, 2):
        tree = grow_tree(S, 20, np.random.default_rng(seed + number))
        cell = tree.cell_of(S)
        own = [np.flatnonzero(cell == i) for i in range(tree.cells)]
        centres = [S[at].mean(axis=0) for at in own]
        models = [
            expansion(seed + 1, kernels, centred(S[at], c), at)
            for at, c in zip(own, centres, strict=True)
        ]
        parts.append(Parts(tree, centres, models))
    return Patchwork(expansion(seed, kernels, S), tuple(parts))


@few
@given(seed=seeds)
def test_the_exact_gradient_is_the_derivative_where_rows_are_shortened(seed):
    kernels, h = SUMS[2].kernels(1.0, D), 1e-6  # rows are longer than what polynomials take
    model, A = expansion(seed, kernels, rows(seed, 9)), 2.0 * rows(seed + 1, 5)
    G = gradients_of(model, exact=True)(A)
    for i in range(D):
        step = h * np.eye(D)[i]
        numeric = (model.decide(A + step) - model.decide(A - step)) / (2 * h)
        assert_allclose(G[:, :, i].T, numeric, rtol=1e-4, atol=1e-4 * np.abs(numeric).max())


@pytest.mark.parametrize("candidate", SUMS, ids=lambda each: each.name)
@few
@given(seed=seeds)
def test_integrated_gradients_are_nearly_complete(candidate, seed):
    """Kinks are all that 16 points of a line miss."""
    model = expansion(seed, candidate.kernels(2.0 * D, D), rows(seed, 12))
    Z, start = rows(seed + 1, 6), rows(seed + 2, 1)[0]
    whole = model.decide(Z) - model.decide(start[None])
    missed = integrated_gradients(model, Z, start).sum(axis=-1) - whole
    size = np.abs(model.coef).sum(axis=(0, 2)).max()  # of f; changes of f along a line may cancel
    assert np.abs(missed).max() < 0.2 * size


@few
@given(seed=seeds)
def test_contributions_add_up_also_in_cells(seed):
    model, Z, start = patchwork(seed), rows(seed + 3, 70), rows(seed + 4, 1)[0]
    found, first = contributions(model, Z, start)
    assert found.shape == (70, OUTPUTS, D)
    assert_allclose(first, model.decide(start[None])[0])
    assert_allclose(found.sum(axis=-1) + first, model.decide(Z), rtol=1e-9, atol=1e-9)
    assert not contributions(model, start[None], start)[0].any()


@few
@given(seed=seeds)
def test_terms_of_support_rows_add_up_also_in_cells(seed):
    model, Z = patchwork(seed), rows(seed + 3, 7)
    offset = np.array([0.5, -1.0])
    for (ids, values), score in zip(terms(model, Z), model.decide(Z), strict=True):
        assert (np.diff(ids) > 0).all()
        assert len(ids) == 60, "all rows of the base, and no row twice"
        assert_allclose(values.sum(axis=1) + 2 * offset, score, rtol=1e-9, atol=1e-9)


def test_a_function_without_support_rows_has_no_gradient():
    """What a learner that never erred has learned: the constant."""
    kernels = SUMS[2].kernels(1.0, D)
    nothing = rows(0, 0)
    model = Expansion(
        kernels, np.arange(0), nothing, sq_norms(nothing), np.zeros((len(kernels), 1, 0))
    )
    for Z in (rows(1, 4), rows(1, 0)):
        assert not gradients_of(model, exact=True)(Z).any()
        parts, start = (
            contributions(model, Z, rows(2, 1)[0]) if len(Z) else (np.zeros(0), np.zeros(0))
        )
        assert not parts.any()
        assert not start.any()


def test_a_model_without_support_rows_has_no_terms():
    nothing = expansion(0, SUMS[2].kernels(2.0 * D, D), rows(0, 0))
    for found in terms(nothing, rows(1, 4)):
        assert found.ids.shape == (0,)
        assert found.values.shape == (OUTPUTS, 0)
