"""Offsets and units of the features, where centring or rounding would show."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier

from pistol import LinearPistolClassifier, LinearPistolRegressor, PistolClassifier, PistolRegressor

pytestmark = pytest.mark.no_cover  # tests of single parts count these lines

FOUR = [PistolClassifier, LinearPistolClassifier, PistolRegressor, LinearPistolRegressor]
four = pytest.mark.parametrize("make", FOUR)


@four
def test_wide_dense_rows_may_have_an_offset(make):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(130, 5))
    X = z @ rng.normal(size=(5, 4097)) + 0.5 * rng.normal(size=(130, 4097))
    f = z[:, 0] - z[:, 1]
    y = (f > 0).astype(int) if is_classifier(make()) else f
    settings = {"random_state": 0, "orders": 1, "passes": 64}
    plain, moved = (
        make(**settings).fit(Z[:100], y[:100]).score(Z[100:], y[100:]) for Z in (X, X + 10.0)
    )
    assert plain > 0.8
    assert moved > plain - 0.05


def one_hot(n=1500, seed=0):
    """Three categories of twenty values each, and labels that are a sum of effects."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(20, size=(n, 3))
    X = (codes[:, :, None] == np.arange(20)).reshape(n, 60).astype(float)
    return X, (X @ rng.normal(size=60) + 0.3 * rng.normal(size=n) > 0).astype(int)


HOW = {
    "partial_fit": ({}, "partial_fit"),
    "orders=None": ({"orders": None}, "fit"),
    "no-intercept": ({"fit_intercept": False}, "fit"),
    "no-intercept-partial_fit": ({"fit_intercept": False}, "partial_fit"),
}


@pytest.mark.parametrize("constant", [1.0, 5.0])
@pytest.mark.parametrize(("changes", "call"), HOW.values(), ids=list(HOW))
def test_a_constant_added_to_one_hot_features_does_not_matter(changes, call, constant):
    X, y = one_hot()
    scores = []
    for Z in (X, X + constant):
        model = LinearPistolClassifier(random_state=0, **changes)
        getattr(model, call)(Z[:1000], y[:1000])
        scores.append(model.score(Z[1000:], y[1000:]))
    assert scores[0] > 0.8
    assert scores[1] > scores[0] - 0.06


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
@pytest.mark.parametrize("make", [PistolClassifier, PistolRegressor])
def test_without_scaling_small_numbers_are_not_lost(make, how):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int) if is_classifier(make()) else X[:, 0]
    small, plain = (
        getattr(make(scaling=False, random_state=0), how)(s * X, y) for s in (2.0**-40, 1.0)
    )
    np.testing.assert_array_equal(small.predict(2.0**-40 * X), plain.predict(X))
    tiny = getattr(make(scaling=False, random_state=0), how)(1e-12 * X, y)
    assert abs(tiny.score(1e-12 * X, y) - plain.score(X, y)) < 0.02


@pytest.mark.parametrize("make", FOUR)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_without_scaling_no_bit_of_X_is_changed(make, layout):
    rng = np.random.default_rng(0)
    X = layout(1e-9 * rng.normal(size=(50, 3)) + 1 / 3)
    y = np.arange(50) % 2
    model = make(scaling=False, random_state=0).fit(X, y)
    assert model.fitted_.scaler.transform(X) is X
