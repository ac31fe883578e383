"""Rounds of the metric: each fold learns its own, from the rows that it learns from."""

from copy import copy
from itertools import count

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pistol import PistolClassifier, PistolRegressor
from pistol._compiled.threads import workers
from pistol._compiled.types import read_only
from pistol._data.metric import Weighted
from pistol._data.ordering import Rounds
from pistol._data.scaling import Unscaled
from pistol._data.steps import Stepped
from pistol._learners import Rule
from pistol._training import batch, families, kernel_family, metric
from pistol._training.folds import Folds
from pistol._training.race import Contest
from pistol._training.ways import JOINING, Ways
from pistol.losses import REGRESSION_LOSSES


def product(n=400, useless=12, seed=0):
    """Two features matter, and only together."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2 + useless))
    return X, np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1])


@pytest.fixture
def found(monkeypatch):
    """Fit a model; the weights that the folds found in each round, and the race's contest."""
    seen = []

    def levels(ways):
        for level in metric.levels(ways):
            now = level._replace(best=copy(level.best))  # candidates go on learning
            seen.append((ways.contest, now))
            yield level

    monkeypatch.setattr(batch, "levels", levels)

    def fit(model, X, y):
        seen.clear()
        model.fit(X, y)
        return seen

    return fit


def test_what_matters_only_together_is_found():
    X, y = product()
    model = PistolRegressor(random_state=0).fit(X, y)
    assert isinstance(model.fitted_.scaler, Weighted)
    assert model.feature_importances_[:2].sum() > 0.9
    rows, targets = product(1000, seed=1)
    plain = PistolRegressor(random_state=0, metric=False).fit(X, y)
    ours, without = (np.abs(m.predict(rows) - targets).mean() for m in (model, plain))
    assert ours < 0.5 * without


def test_targets_of_held_out_rows_do_not_change_the_metric_of_their_fold():
    X, y = product(n=90, useless=2)
    rounds = Rounds(np.arange(90), np.ones(90))
    folds = Folds(rounds, np.arange(90) % 3, 3, seed=0)
    rule = Rule(REGRESSION_LOSSES["huber"], "pistol_anytime", 1.0, 8.0, "linear")
    weights = []
    for held_out in (y[::3], -5.0 * y[::3]):
        V = y[:, None].copy()
        V[::3, 0] = held_out
        data = families.Data(X, read_only(V), np.ones(90), np.arange(90))
        with workers(1) as threads:
            falling = count(0, -1)  # every race beats the one before
            contest = Contest(data.Y, folds, lambda P, falling=falling: next(falling), threads)
            family = kernel_family.KernelFamily("auto")
            every = metric.levels(Ways(contest, family, data, [Unscaled(4)], rule, 8))
            weights.append(next(lv.weights for lv in every if lv.weights is not None))
    assert_array_equal(weights[0][0], weights[1][0])
    assert (weights[0][1] != weights[1][1]).any()


def test_each_fold_has_a_metric_of_its_own(found):
    X, y = product(n=120, useless=3)
    weights = next(lv.weights for _, lv in found(PistolRegressor(random_state=0), X, y)[::-1])
    assert weights is not None
    assert len({tuple(w) for w in weights}) == len(weights)


def test_the_best_so_far_never_gets_worse(found):
    X, y = product(n=200, useless=3)
    losses = [level.best.best for _, level in found(PistolRegressor(random_state=0), X, y)]
    assert losses == sorted(losses, reverse=True)


def test_where_all_features_matter_the_metric_may_be_none():
    X = np.random.default_rng(0).normal(size=(600, 8))
    y = np.square(X).sum(axis=1) > 7.3  # a ball: every direction is the same
    model = PistolClassifier(random_state=0).fit(X, y)
    plain = PistolClassifier(random_state=0, metric=False).fit(X, y)
    rows = np.random.default_rng(1).normal(size=(2000, 8))
    truth = np.square(rows).sum(axis=1) > 7.3
    assert model.score(rows, truth) > plain.score(rows, truth) - 0.02


@pytest.mark.parametrize("kw", [{"metric": False}, {"kernel": "rbf"}, {"passes": 2}, {"orders": 1}])
def test_no_metric_where_none_is_asked_for_or_nothing_is_chosen(kw):
    X, y = product(n=100, useless=2)
    model = PistolRegressor(random_state=0, **kw).fit(X, y)
    assert not isinstance(model.fitted_.scaler, Weighted)


def test_one_feature_needs_no_metric():
    X = np.linspace(-1, 1, 80)[:, None]
    assert not isinstance(PistolRegressor().fit(X, X[:, 0]).fitted_.scaler, Weighted)


def test_a_stream_goes_on_in_the_metric_of_fit():
    X, y = product()
    model = PistolRegressor(random_state=0).fit(X, y)
    weight, before = model.fitted_.scaler.weight, model.predict(X)
    more, targets = product(60, seed=2)
    model.partial_fit(more, targets)
    assert_array_equal(model.fitted_.scaler.weight, weight)
    assert np.abs(model.predict(X) - before).max() < 0.2


def stream(X, y, size, **kw):
    model = PistolRegressor(random_state=0, **kw)
    for lo in range(0, len(X), size):
        model.partial_fit(X[lo : lo + size], y[lo : lo + size])
    return model


def test_streams_learn_a_metric_and_may_be_cut_anywhere():
    X, y = product(700)
    whole = stream(X, y, 700)
    assert isinstance(whole.fitted_.scaler, Weighted)
    weight = whole.fitted_.scaler.weight
    assert weight[:2].min() > 3 * weight[2:].max()
    for size in (53, 512):
        assert_allclose(stream(X, y, size).predict(X), whole.predict(X), rtol=1e-6, atol=1e-9)
    assert_allclose(
        PistolRegressor(orders=None).fit(X, y).predict(X), whole.predict(X), rtol=1e-6, atol=1e-9
    )


def test_a_stream_does_not_jump_when_it_learns_a_metric():
    X, y = product(513)
    before = stream(X[:512], y[:512], 512)
    start = before.predict(X)
    after = before.partial_fit(X[512:], y[512:])  # the metric is learned before this row
    assert isinstance(after.fitted_.scaler, Weighted)
    end, constant = after.predict(X), np.abs(y - np.median(y)).mean()
    assert np.abs(end - y).mean() < 1.05 * max(np.abs(start - y).mean(), constant)
    assert np.std(end) < 1.5 * np.std(start)


def test_a_metric_makes_streams_better():
    X, y = product(2000, useless=10)
    with_it, without = (stream(X, y, 500, metric=metric) for metric in (True, False))
    assert with_it.online_error_ < 0.9 * without.online_error_
    rows, targets = product(1000, useless=10, seed=3)
    ours, plain = (np.abs(m.predict(rows) - targets).mean() for m in (with_it, without))
    assert ours < 0.7 * plain


def stairs(n=240, seed=0):
    """Ramps say more than the feature."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 3))
    return X, np.floor(4 * X[:, 0])


@pytest.mark.parametrize("rows", [product(n=150, useless=2), stairs()], ids=["product", "stairs"])
@pytest.mark.parametrize("metric", [False, True])
def test_the_scaling_and_the_metric_with_the_least_loss_of_all_that_were_tried_win(
    rows, metric, found
):
    seen = found(PistolRegressor(random_state=0, metric=metric, n_jobs=1), *rows)
    tried = [racer.best for _, level in seen for racer in level.racers]
    assert seen[-1][1].best.best == min(tried)


def test_steps_are_found():
    model = PistolRegressor(random_state=0).fit(*stairs())
    scaler = model.fitted_.scaler
    scaler = scaler.scaler if isinstance(scaler, Weighted) else scaler
    assert isinstance(scaler, Stepped)


def test_the_scout_looks_for_metrics_alone_and_the_others_join_it_where_it_did_best(found):
    """Kernel values of all candidates in all metrics would take most of the time of a fit."""
    X, y = product(n=200, useless=6)
    seen = [level for _, level in found(PistolRegressor(random_state=0, n_jobs=1), X, y)]
    alone = [level for level in seen if len(level.racers) == 1]
    joined = [level for level in seen if len(level.racers) > 1]
    assert {level.best.number for level in alone} == {kernel_family.KernelFamily.scout}
    assert {len({one.number for one in level.racers}) for level in joined} == {1 + JOINING}
    assert all(level.racers[0].number == kernel_family.KernelFamily.scout for level in joined)
    least = min(alone, key=lambda level: level.best.best)
    assert all(level.scaler is least.scaler for level in joined)
    assert all(level.weights is least.weights for level in joined)
