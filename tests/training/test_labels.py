"""Labels are what scikit-learn takes for labels, also where it is not asked."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from pistol._training.tasks import labels


def theirs(y):
    check_classification_targets(y)
    return column_or_1d(y, warn=True)


def outcome(function, y):
    """Labels, or what was wrong with them, and all that was said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = function(y)
        except ValueError as error:
            found = str(error)
    return found, [str(warning.message) for warning in said]


@settings(max_examples=100, deadline=None)
@given(
    kind=st.sampled_from(["i1", "u1", "i8", "?", "f4", "f8", "U3", "O"]),
    most=st.integers(1, 60),
    n=st.integers(1, 60),
    odd=st.sampled_from([None, 0.5, np.nan, np.inf, -1e300]),
    seed=st.integers(0, 10**6),
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_labels_are_those_of_sklearn_and_so_is_what_is_said(kind, most, n, odd, seed):
    y = np.random.default_rng(seed).integers(0, most, n).astype(kind)
    if odd is not None and y.dtype.kind == "f":
        with np.errstate(over="ignore"):
            y[0] = odd
    (ours, said), (expected, heard) = outcome(labels, y), outcome(theirs, y)
    assert said == heard
    if isinstance(expected, str):
        assert ours == expected
    else:
        assert_array_equal(ours, expected, strict=True)
