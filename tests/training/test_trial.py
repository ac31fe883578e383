"""A race on a sample chooses scaling and metric, then one on all rows the kernels and the passes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from pistol import PistolClassifier, PistolRegressor
from pistol._compiled import threads
from pistol._data.metric import Weighted
from pistol._data.steps import Stepped
from pistol._training import batch
from pistol._training.full_orders import FullOrders
from pistol._training.kernel_family import KernelFamily
from pistol._training.plan import Limits
from pistol._training.race import Racer
from pistol._training.ways import LEADING

SMALL = Limits(few=400, sample=120, cell=60, trial=True)
N = 240


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(KernelFamily, "limits", SMALL)


def rows(n=N, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 6)) * [1, 10, 100, 1, 1, 1]
    return X, X[:, 0] * X[:, 1] / 10 + X[:, 3]


def scores(model, X):
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


@pytest.fixture(params=[PistolClassifier, PistolRegressor], ids=["classes", "targets"])
def problem(request):
    X, y = rows()
    return request.param(random_state=0), X, y > 0 if request.param is PistolClassifier else y


def test_the_races_are_on_the_sample_and_on_all_rows(problem, monkeypatch):
    estimator, X, y = problem
    seen, race = [], batch._race

    def noted(work, plan, watch, numbers=None):
        seen.append((len(work.rounds.rows), work.problem.family, numbers))
        return race(work, plan, watch, numbers)

    monkeypatch.setattr(batch, "_race", noted)
    model = estimator.fit(X, y)
    (few, first, every), (many, second, leading) = seen
    assert few == SMALL.sample * 2 // 3 + SMALL.sample, "what is learned, and what is held out"
    assert many == N
    assert first.metric
    assert first.scaling is True
    assert every is None
    assert 1 <= len(leading) <= LEADING
    assert not second.metrics(X), "the metric is chosen already"
    assert model.fitted_.family == first, "learning goes on with the family that was asked for"
    assert model.t_ == N * model.passes_


def test_only_candidates_that_are_near_race_on_all_rows():
    racers = [Racer(number, [], best=best) for number, best in enumerate([1.1, 1.04, 1.0])]
    assert [racer.number for racer in batch._near(racers)] == [1, 2]
    assert batch._near(racers[:1]) == racers[:1]


def test_full_orders_take_kernel_values_of_the_race(problem, monkeypatch):
    """Nothing but the order of the columns differs from values that are computed again."""
    estimator, X, y = problem
    again = clone(estimator).fit(X, y)
    settled, made = batch._settled, []

    def without(ways, orders):
        for level in settled(ways, FullOrders(orders.V, orders.rounds, [])):
            level.best.again = None
            yield level

    def noted(self, candidates, *args):
        made.append(len(candidates))
        return runs(self, candidates, *args)

    runs = KernelFamily.runs
    monkeypatch.setattr(KernelFamily, "runs", noted)
    estimator.fit(X, y)
    shared = len(made)
    monkeypatch.setattr(batch, "_settled", without)
    computed = clone(estimator).fit(X, y)
    assert len(made) == 2 * shared + 1
    assert_allclose(scores(computed, X), scores(again, X), rtol=1e-3, atol=1e-3)


def test_the_metric_of_the_sample_is_the_models(problem):
    estimator, (X, _) = problem[0], rows(seed=4)
    y = np.tanh(X[:, 0]) * X[:, 1] / 10 + np.sin(X[:, 3])
    model = estimator.fit(X, y > 0 if isinstance(estimator, PistolClassifier) else y)
    assert isinstance(model.fitted_.scaler, Weighted)
    assert model.feature_importances_[[0, 1, 3]].sum() > 0.9


def test_steps_may_be_chosen():
    X, _ = rows()
    y = 2.0 * (X[:, 0] > 0.3) * (X[:, 1] > -5) + (X[:, 3] > 0)
    scaler = PistolRegressor(random_state=0).fit(X, y).fitted_.scaler
    assert isinstance(scaler.scaler if isinstance(scaler, Weighted) else scaler, Stepped)


def test_threads_do_not_matter(problem, monkeypatch):
    """Those that the race does not need learn full orders beside it."""
    estimator, X, y = problem
    monkeypatch.setattr(threads, "MANY", 0)
    beside, follow = [], FullOrders.follow

    def noted(self, best, make):
        tasks = follow(self, best, make)
        beside.append(len(tasks))
        return tasks

    monkeypatch.setattr(FullOrders, "follow", noted)
    one = clone(estimator).set_params(n_jobs=1).fit(X, y)
    assert len(beside) == 1, "after the race"
    three = clone(estimator).set_params(n_jobs=3).fit(X, y)
    assert sum(beside[1:-1]) > 0, "beside the race"
    assert_array_equal(scores(one, X), scores(three, X))


def test_weight_two_is_two_copies(problem):
    """Last bits may choose other passes in single tables, so nearer in most is all there is."""
    estimator, twice, gaps = problem[0], np.arange(50), []
    for seed in range(5):
        X, f = rows(seed=seed)
        noisy = f + np.random.default_rng(seed).normal(size=N)
        y = f > 0 if isinstance(estimator, PistolClassifier) else noisy
        weight = np.where(np.isin(np.arange(N), twice), 2.0, 1.0)
        weighted = clone(estimator).fit(X, y, sample_weight=weight)
        copied = clone(estimator).fit(np.vstack([X, X[twice]]), np.append(y, y[twice]))
        seeded = clone(estimator).set_params(random_state=1).fit(X, y, sample_weight=weight)
        gaps.append([np.abs(scores(m, X) - scores(copied, X)).mean() for m in (weighted, seeded)])
    gap, usual = np.median(gaps, axis=0)
    assert gap < 0.5 * usual


def test_learning_goes_on_after_it(problem):
    estimator, X, y = problem
    model = estimator.fit(X[:200], y[:200])
    before = model.t_
    assert model.partial_fit(X[200:], y[200:]).t_ == before + 40


def test_what_needs_no_choice_has_one_race(monkeypatch):
    monkeypatch.undo()
    for options in ({"metric": False}, {"scaling": False}, {"kernel": "rbf"}):
        assert not KernelFamily(**({"kernel": "auto"} | options)).limits.trial
    assert KernelFamily("auto").limits.trial
