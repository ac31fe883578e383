"""Many rows: wide rows with ramps are never in memory together, neither in a fit nor in its model."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pistol import PistolClassifier
from pistol._data.mapped import Mapped
from pistol._training import cells, together
from pistol._training.kernel_family import KernelFamily
from pistol._training.plan import Limits

ROWS, FEATURES = 40_000, 16
WIDE = 9 * FEATURES  # columns with eight ramps beside each feature
# Small cells, and a small sample and base: what is left grows with the number of rows.
SMALL = Limits(few=300, sample=600, cell=500, base=300)


def table(n=ROWS):
    """Labels that change suddenly along single features, so that ramps are chosen; some are wrong."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES)).astype(np.float32)
    y = (X[:, :4] > [0.0, 0.8, -0.8, 0.3]).sum(axis=1) % 2 == 0
    return X, y ^ (rng.random(n) < 0.2)


@pytest.fixture
def many(monkeypatch):
    """So many rows are too many to have all of them in memory as they are learned."""
    monkeypatch.setattr(KernelFamily, "limits", SMALL)
    monkeypatch.setattr(cells, "MANY", 0)
    monkeypatch.setattr(cells, "COPIED", 0)
    monkeypatch.setattr(together, "MOST_WORK", 0)  # which is for fewer rows


def support_of(model):
    """Of all cells of all trees."""
    return [one.support for tree in model.fitted_.learners for one in tree.learners]


def test_a_fit_takes_memory_for_the_features_and_not_for_their_ramps(many):
    """Bytes that NumPy asks for. Kernel values are not among them: they have memory of their own."""
    X, y = table()
    model = PistolClassifier(random_state=0, n_jobs=1, metric=False)
    model.fit(X, y)  # compiles
    tracemalloc.start()
    try:
        model.fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.fitted_.scaler.features == WIDE
    assert peak < 4 * ROWS * WIDE, "less than all rows with ramps"


def test_support_rows_share_what_their_ramps_are_made_from(many):
    X, y = table(3000)
    model = PistolClassifier(random_state=0, metric=False).fit(X, y)
    matrices = {id(one.rows.matrix): one.rows.matrix for one in support_of(model)}
    (matrix,) = matrices.values()
    assert isinstance(matrix, Mapped)
    assert matrix.X.nbytes == X.nbytes
    assert matrix.shape == (len(X), WIDE)


def test_what_is_learned_and_predicted_does_not_depend_on_what_is_in_memory(many, monkeypatch):
    X, y = table(3000)
    ours = PistolClassifier(random_state=0).fit(X, y)
    monkeypatch.setattr(cells, "MANY", 2**30)
    shared = PistolClassifier(random_state=0).fit(X, y)
    monkeypatch.setattr(cells, "COPIED", 2**30)
    theirs = PistolClassifier(random_state=0).fit(X, y)
    kinds = [[one.is_shared for one in support_of(model)] for model in (ours, shared, theirs)]
    assert [all(kinds[0]), all(kinds[1]), any(kinds[2])] == [True, True, False]
    for model in (shared, theirs):
        assert_array_equal(ours.decision_function(X), model.decision_function(X))
        for a, b in zip(support_of(ours), support_of(model), strict=True):
            assert_array_equal(a.rows.rows[:], b.rows.rows[:])
            assert_array_equal(a.u.values, b.u.values)
