"""What is known of columns of numbers after a first look."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from pistol._data import fences, intake


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), dtype=st.sampled_from(["f", "d"]))
def test_medians_are_those_of_numpy_however_few_features_are_sorted_together(seed, n, dtype):
    X = np.random.default_rng(seed).normal(size=(n, 7)).astype(dtype)
    for part in (1, 2 * n, 100 * n):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fences, "PART", part)
            assert_array_equal(intake._medians(X), np.median(X, axis=0), strict=True)
