"""A sum of polynomials is evaluated without its support rows, and gives the same scores."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol._compiled.rows import sq_norms
from pistol._data.sums import LINEAR, MIXED, QUADRATIC
from pistol._learners.models import Expansion


def expansion(total, n=200, d=3, outputs=2, seed=0, size=1.0):
    rng = np.random.default_rng(seed)
    Z = size * rng.normal(size=(n, d))
    kernels = total.kernels(size**2 * d, d)
    coef = rng.normal(size=(len(kernels), outputs, n))
    return Expansion(kernels, np.arange(n), Z, sq_norms(Z), coef), rng


def by_rows(model, X):
    """Scores from the support rows themselves."""
    plain = replace(model)
    vars(plain)["_polynomial"] = None
    return plain.decide(X)


@given(
    st.sampled_from([LINEAR, QUADRATIC]), st.integers(1, 4), st.integers(1, 3), st.integers(0, 99)
)
def test_scores_are_those_of_the_support_rows(total, d, outputs, seed):
    model, rng = expansion(total, d=d, outputs=outputs, seed=seed)
    assert model._polynomial is not None
    X = 3.0 * rng.normal(size=(17, d))  # some of them far out
    expected = by_rows(model, X)
    assert_allclose(model.decide(X), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert model.decide(X[:0]).shape == (0, outputs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_offset_and_rows_of_other_layouts(dtype):
    model, rng = expansion(QUADRATIC)
    model = replace(model, offset=np.array([1.0, -2.0]), rows=model.rows.astype(dtype))
    X = rng.normal(size=(9, 3)).astype(dtype)
    expected = by_rows(model, X)
    assert_allclose(model.decide(X), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    assert_array_equal(model.decide(sp.csr_array(X)), model.decide(X))


def test_only_where_it_is_one_and_faster():
    assert expansion(MIXED)[0]._polynomial is None
    assert expansion(QUADRATIC, n=8)[0]._polynomial is None
    model, _ = expansion(QUADRATIC)
    assert replace(model, rows=sp.csr_array(model.rows))._polynomial is None
    assert replace(model, coef=1e200 * model.coef)._polynomial is None


def test_it_is_not_pickled():
    model, rng = expansion(QUADRATIC)
    X, before = rng.normal(size=(5, 3)), len(pickle.dumps(model))
    scores = model.decide(X)
    again = pickle.loads(pickle.dumps(model))
    assert len(pickle.dumps(model)) == before
    assert_array_equal(again.decide(X), scores)
