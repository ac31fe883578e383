"""All rows together, or cells: held-out rows choose where few rows have a gradient."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pistol import PistolClassifier
from pistol._data.metric import Weighted
from pistol._learners import Cells, Dual
from pistol._training import batch, together
from pistol._training.together import _held_out, affordable, few_gradients

N = 6000


@pytest.fixture(autouse=True)
def few_cells(monkeypatch):
    """All rows together are tried with fewer rows than usual."""
    monkeypatch.setattr(together, "SEVERAL", 0)


def flags(seed=0, noise=0.0):
    """Sparse flags, of which some decide; few rows are of the second class."""
    rng = np.random.default_rng(seed)
    X = (rng.random((N, 30)) < 0.1).astype(float)
    score = X @ np.where(np.arange(30) < 15, rng.normal(size=30), 0.0)
    y = score > np.quantile(score, 0.95)
    return X + 1e-3 * rng.random(X.shape), y ^ (rng.random(N) < noise)


def seen(monkeypatch, X, y):
    """The work that a fit hands to `learn_many`, and the plan."""
    found = []

    def look(work, number, passes, plan, watch):
        found.extend([work, plan])
        return together.learn_cells(work, number, passes, plan, watch)

    with monkeypatch.context() as patched:
        patched.setattr(batch, "learn_many", look)
        PistolClassifier(random_state=0).fit(X, y)
    return found


def losses(monkeypatch, of):
    """Held-out rows find this loss, given the learners."""
    real = together._judged

    def judged(held, learners):
        return real(held, learners)._replace(loss=of(learners[0]))

    monkeypatch.setattr(together, "_judged", judged)


def test_few_cells_are_enough_for_few_rows(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(together, "_together", None)  # nobody asks for it
    fitted = PistolClassifier(random_state=0).fit(*flags()).fitted_
    assert {type(learner) for learner in fitted.learners} == {Cells}


def test_a_learner_of_few_support_rows_keeps_to_cells(monkeypatch):
    monkeypatch.setattr(together, "few_gradients", None)  # nobody asks
    model = PistolClassifier(random_state=0, max_support=50).fit(*flags())
    assert {type(learner) for learner in model.fitted_.learners} == {Cells}


def test_affordable_counts_rounds_and_features():
    assert affordable(44_749, 300)
    assert affordable(10_000, 4_096)
    assert not affordable(100_000, 54)
    assert not affordable(1_000_000, 28)


def test_noise_gives_most_rows_a_gradient(monkeypatch):
    work, _ = seen(monkeypatch, *flags())
    assert few_gradients(work)
    work, _ = seen(monkeypatch, *flags(noise=0.3))
    assert not few_gradients(work)


def test_rows_of_the_base_and_copies_of_learned_rows_are_not_held_out(monkeypatch):
    X, y = flags()
    work, plan = seen(monkeypatch, np.vstack([X, X]), np.concatenate([y, y]))
    held = _held_out(work, plan.base)
    assert 0 < held.sum() <= 2 * together.HELD_OUT  # each row stands there twice
    assert not held[work.rows_of(plan.base)[0]].any()
    assert not np.isin(work.hashes[held], work.hashes[~held]).any()


@pytest.mark.parametrize("kind", [Cells, Dual])
def test_held_out_rows_choose_and_are_learned_too(monkeypatch, kind):
    losses(monkeypatch, lambda learner: float(not isinstance(learner, kind)))
    X, y = flags()
    fitted = PistolClassifier(random_state=0).fit(X, y).fitted_
    assert {type(learner) for learner in fitted.learners} == {kind}
    assert fitted.temperature is not None
    assert fitted.held_out_error is not None
    ids = np.concatenate([_ids(learner) for learner in fitted.learners])
    assert len(np.unique(ids)) < N / 2
    if kind is Cells:
        assert all(learner.t >= N for learner in fitted.learners)


def _ids(learner):
    parts = learner.learners if isinstance(learner, Cells) else [learner]
    return np.concatenate([part.support.ids.values for part in parts])


def test_neither_the_order_of_rows_nor_threads_matter(monkeypatch):
    losses(monkeypatch, lambda learner: float(isinstance(learner, Cells)))
    X, y = flags()
    model = PistolClassifier(random_state=0, n_jobs=1).fit(X, y)
    assert isinstance(model.fitted_.learners[0], Dual)
    mixed = np.random.default_rng(1).permutation(N)
    other = PistolClassifier(random_state=0, n_jobs=1).fit(X[mixed], y[mixed])
    assert_allclose(other.decision_function(X), model.decision_function(X), rtol=1e-4, atol=1e-4)
    threads = PistolClassifier(random_state=0, n_jobs=2).fit(X, y)
    assert_array_equal(threads.predict(X), model.predict(X))
    assert_allclose(threads.decision_function(X), model.decision_function(X), rtol=1e-9)


def rare(seed=0):
    """Pairs of flags tell a rare class; a sample has few rows of it."""
    rng = np.random.default_rng(seed)
    X = (rng.random((N, 30)) < 0.15).astype(float)
    y = (X[:, :4] * X[:, 4:8]).sum(axis=1) > 0
    return X + 1e-3 * rng.random(X.shape), y


def test_all_rows_find_a_metric_of_their_own(monkeypatch):
    """It is that of a learner without a metric, whatever a sample has found."""
    work, plan = seen(monkeypatch, *rare())
    other = together._weighted(work, 1.0 + np.arange(work.data.X.shape[1]) % 3)
    held_out = _held_out(work, plan.base)
    found, again = (
        together._tried(together._plain(each), held_out).metric() for each in (work, other)
    )
    assert_allclose(found, again, rtol=0.05, atol=0.01)
    assert found[:8].min() > found[8:30].max(), "ramps come after them"


def test_without_a_metric_rows_are_learned_as_scaled(monkeypatch):
    losses(monkeypatch, lambda learner: float(isinstance(learner, Cells)))
    model = PistolClassifier(random_state=0, metric=False).fit(*flags())
    assert isinstance(model.fitted_.learners[0], Dual)
    assert not isinstance(model.fitted_.scaler, Weighted)


def test_rows_are_scaled_as_they_were_learned(monkeypatch):
    losses(monkeypatch, lambda learner: float(isinstance(learner, Cells)))
    X, y = flags()
    model = PistolClassifier(random_state=0).fit(X, y)
    assert isinstance(model.fitted_.learners[0], Dual)
    assert_allclose(model.support_vectors_, X[model.support_], rtol=1e-4, atol=1e-4)
