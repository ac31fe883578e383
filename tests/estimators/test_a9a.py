"""The paper's first experiment at its full size, in the paper's own setting.

Needs the data: set PISTOL_DATA to a directory with a9a.xz and a9a.t.xz (LIBSVM text).
"""

import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from pistol import LinearPistolClassifier, PistolClassifier

pytestmark = pytest.mark.no_cover  # tests of single parts count these lines

PAPER = {
    "kernel": "rbf",
    "gamma": 0.04,
    "loss": "smooth_hinge",
    "a": 0.25,
    "b": "horizon",
    "passes": 1,
}


def load(name):
    path = Path(os.environ.get("PISTOL_DATA", "")) / f"{name}.xz"
    if not os.environ.get("PISTOL_DATA") or not path.exists():
        pytest.skip(f"PISTOL_DATA does not name a directory with {name}.xz")
    with lzma.open(path) as file:
        return load_svmlight_file(file, n_features=123)


@pytest.fixture(scope="module")
def a9a():
    return *load("a9a"), *load("a9a.t")


def mean_error(model, a9a, n=None):
    X, y, X_test, y_test = a9a
    X, y = X[:n], y[:n]
    errors = [
        1 - model.set_params(random_state=s).fit(X, y).score(X_test, y_test) for s in range(2)
    ]
    return np.mean(errors)


def test_later_f_count_more(a9a):
    """The average with weight t is closer to what is learned in the end than the uniform one."""
    linear, uniform = (
        mean_error(PistolClassifier(average=average, **PAPER), a9a, 8000)
        for average in ("linear", "uniform")
    )
    assert linear < uniform


def test_linear_pistol_with_nothing_set(a9a):
    """Vowpal Wabbit's --pistol and --coin have an error of 0.154 after one pass."""
    assert mean_error(LinearPistolClassifier(), a9a) < 0.154
