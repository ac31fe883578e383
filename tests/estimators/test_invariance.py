"""Changes that mean nothing move the decisions of the linear estimators no more than rounding does."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_diabetes

from pistol import LinearPistolClassifier, LinearPistolRegressor

pytestmark = pytest.mark.no_cover  # tests of single parts count these lines

SAME = {
    "powers of two": lambda X, rng: X * 2.0 ** rng.integers(-9, 9, X.shape[1]),
    "factors": lambda X, rng: X * rng.uniform(0.1, 10.0, X.shape[1]),
    "shifts": lambda X, rng: X + 3 * X.std(axis=0) * rng.normal(size=X.shape[1]),
    "tiny shifts": lambda X, rng: X + 1e-9 * X.std(axis=0),
    "signs": lambda X, rng: X * rng.choice([-1.0, 1.0], X.shape[1]),
    "another order": lambda X, rng: X[:, rng.permutation(X.shape[1])],
    "float32": lambda X, rng: X.astype(np.float32),
    "a constant feature": lambda X, rng: np.insert(X, 1, 7.0, axis=1),
}


def decisions(model, X, y, learn):
    learned = model.partial_fit if learn == "stream" else model.fit
    model = learned(X[:200], y[:200])
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


@pytest.mark.parametrize("learn", ["fit", "stream"])
@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("kind", [LinearPistolClassifier, LinearPistolRegressor])
def test_what_means_nothing_changes_nothing(kind, name, learn):
    X, y = (load_diabetes if kind is LinearPistolRegressor else load_breast_cancer)(return_X_y=True)
    X[:, 2] += 0.01 * X[:, 2].std() * np.arange(len(X)) / len(X)
    other = SAME[name](X, np.random.default_rng(0))
    expected = decisions(kind(random_state=0), X, y, learn)
    found = decisions(kind(random_state=0), other, y, learn)
    # after a few rows of a stream, a value may be exactly at its centre in one precision alone
    near = 0.1 if (name, learn) == ("float32", "stream") else 1e-4
    assert_allclose(found, expected, rtol=0, atol=near * np.abs(expected - expected.mean()).mean())


@pytest.mark.parametrize("learn", ["fit", "stream"])
def test_rare_flags_may_be_standardised(learn):
    rng = np.random.default_rng(0)
    level = rng.choice(40, size=(400, 3), p=rng.dirichlet(np.ones(40)))
    X = np.hstack([np.eye(40)[level[:, j]] for j in range(3)])
    y = (rng.normal(size=120) @ X.T > 0).astype(int)
    Z = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    expected = decisions(LinearPistolClassifier(random_state=0), X, y, learn)
    found = decisions(LinearPistolClassifier(random_state=0), Z, y, learn)
    assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).mean())


@pytest.mark.parametrize("far", [1e2, 1e3, 1e6, 1e30])
def test_one_row_far_out_does_not_spoil_a_fit(far):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    f = X[:, 0] - 2 * X[:, 1]
    Z = X.copy()
    Z[0] = far
    classifier = LinearPistolClassifier(random_state=0).fit(Z[:1000], f[:1000] > 0)
    regressor = LinearPistolRegressor(random_state=0).fit(Z[:1000], f[:1000])
    assert classifier.score(X[1000:], f[1000:] > 0) > 0.97
    assert regressor.score(X[1000:], f[1000:]) > 0.97


def test_rows_with_many_entries_do_not_overshoot():
    """Hundreds of rare words per row: one pass is already better than guessing by far."""
    rng = np.random.default_rng(0)
    X = (rng.random((1200, 3000)) < 0.1).astype(float)
    y = X @ rng.normal(size=3000) > 0
    X = sp.csr_array(X)
    shared = LinearPistolClassifier(passes=1, orders=1, random_state=0).fit(X[:1000], y[:1000])
    alone = LinearPistolClassifier(b=1.0, passes=1, orders=1, random_state=0)
    alone = alone.fit(X[:1000], y[:1000])
    assert shared.online_loss_ < alone.online_loss_
