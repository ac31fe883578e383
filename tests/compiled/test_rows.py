"""Rows as the loops take them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis.strategies import integers

from pistol._compiled.rows import between


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@given(seed=integers(0, 100), lo=integers(0, 9), n=integers(0, 9))
def test_rows_in_between_are_views_of_the_same_values(layout, seed, lo, n):
    rng = np.random.default_rng(seed)
    X = layout(rng.normal(size=(9, 4)) * (rng.random((9, 4)) < 0.6))
    hi = min(lo + n, 9)
    part = between(X, lo, hi)
    expected = X[lo:hi]
    assert part.shape == expected.shape
    if sp.issparse(X):
        assert (part != expected).nnz == 0
        assert part.nnz == 0 or np.shares_memory(part.data, X.data)
        assert part.nnz == 0 or np.shares_memory(part.indices, X.indices)
    else:
        np.testing.assert_array_equal(part, expected)
        assert part.size == 0 or np.shares_memory(part, X)
