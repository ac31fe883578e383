"""Rows that stand in a table several times, with weights: rounds of a row may be in several folds."""

import numpy as np
import pytest
from sklearn.base import is_classifier

from pistol import PistolClassifier, PistolRegressor


@pytest.mark.parametrize("n", [300, 900, 2500])
@pytest.mark.parametrize("make", [PistolClassifier, PistolRegressor])
@pytest.mark.parametrize("weight", [1.0, 1.5, 2.0])
def test_rows_with_equal_features_and_other_targets_may_have_weights(make, weight, n):
    rng = np.random.default_rng(0)
    X = rng.integers(4, size=(n, 3)).astype(float)
    truth = X[:, 0] * X[:, 1]
    noisy = truth + rng.normal(size=n)
    label = is_classifier(make())
    y, target = (noisy > 2, truth > 2) if label else (noisy, truth)
    model = make(random_state=0).fit(X, y, sample_weight=np.full(n, weight))
    assert model.score(X, target) > 0.9


def test_balanced_classes_of_equal_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(4, size=(400, 3)).astype(float)
    y = X[:, 0] * X[:, 1] + rng.normal(size=400) > 5
    model = PistolClassifier(random_state=0, class_weight="balanced").fit(X, y)
    assert model.score(X, X[:, 0] * X[:, 1] > 5) > 0.8
