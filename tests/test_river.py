"""river's interface: its own checks, and events with features and classes that come and go."""

import pickle
from math import isfinite, nan

import numpy as np
import pytest

pytest.importorskip("river")

from river import checks, metrics

from pistol import river as ours

CLASSIFIERS = [ours.LinearPistolClassifier, ours.PistolClassifier]
REGRESSORS = [ours.LinearPistolRegressor, ours.PistolRegressor]
# those that go through a data set of river's; the others take no time
LONG = {
    "check_bounded_memory_growth", "check_shuffle_features_no_impact", "check_pickling",
    "check_predict_proba_one", "check_classifier_tracks_seen_labels", "check_learn_one",
}  # fmt: skip


@pytest.mark.parametrize("cls", [ours.LinearPistolClassifier, ours.LinearPistolRegressor])
def test_rivers_own_checks(cls):
    for check in checks.yield_checks(cls()):
        check(cls())


@pytest.mark.parametrize("cls", [ours.PistolClassifier, ours.PistolRegressor])
def test_rivers_own_checks_of_kernels(cls):
    """They share all but their learner with the others: the rest is left to those."""
    for check in checks.yield_checks(cls(max_support=20)):
        if check.__name__ not in LONG and "dataset" not in getattr(check, "keywords", {}):
            check(cls(max_support=20))


def events(n, seed=0):
    rng = np.random.default_rng(seed)
    for x, z in rng.normal(size=(n, 2)):
        yield {"x": 1e4 + 10 * x, "z": z, "word": "ab"[int(x > 0)]}, x


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_classes_and_features_may_come_at_any_time(cls):
    model, right = cls(), metrics.Accuracy()
    for t, (event, x) in enumerate(events(240)):
        if t > 60:
            event["late"] = x * x
        if t % 3 == 0:
            del event["z"]
        if t % 5 == 0:
            event["z"] = nan if t % 2 else None
        label = ("low" if x < 0 else "high") if t < 120 or abs(x) < 1 else "far"
        if t > 180:
            right.update(label, model.predict_one(event))
        model.learn_one(event, label)
    assert set(model.predict_proba_one(event)) == {"low", "high", "far"}
    assert right.get() > 0.6
    assert model.predict_one({}) in {"low", "high", "far"}
    assert model.predict_one({"unknown": 3.0, "other": "word"}) == model.predict_one({})


@pytest.mark.parametrize("cls", REGRESSORS)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_targets_of_any_size_are_learned(cls, unit):
    model, error, spread = cls(), 0.0, 0.0
    for t, (event, x) in enumerate(events(200)):
        y = unit * (50 + 3 * x)
        if t >= 150:
            error += abs(model.predict_one(event) - y)
            spread += abs(3 * x * unit)
        model.learn_one(event, y)
    assert error < 0.5 * spread


@pytest.mark.interpreted
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # numbers that wrap around
@pytest.mark.parametrize("cls", CLASSIFIERS + REGRESSORS)
def test_learning_goes_on_after_a_pickle(cls):
    model = cls()
    some = [(event, x if cls in REGRESSORS else x > 0) for event, x in events(60)]
    for event, y in some[:30]:
        model.learn_one(event, y)
    again = pickle.loads(pickle.dumps(model))
    for event, y in some[30:]:
        assert model.predict_one(event) == again.predict_one(event)
        model.learn_one(event, y)
        again.learn_one(event, y)
    assert model.predict_one(some[0][0]) == again.predict_one(some[0][0])


def test_drift_is_followed_and_told():
    model, plain = ours.LinearPistolClassifier(drift=True), ours.LinearPistolClassifier()
    noise = np.random.default_rng(2).normal(size=4000)
    for t, (event, x) in enumerate(events(4000, seed=1)):
        if t == 2000:
            assert model.n_drifts == 0
        y = (x if t < 2000 else -x) + noise[t]
        for one in (model, plain):
            one.learn_one(event, y > 0)
    assert model.n_drifts > 0
    assert plain.n_drifts == 0


@pytest.mark.parametrize("cls", CLASSIFIERS + REGRESSORS)
def test_bad_events_are_named_and_change_nothing(cls):
    model = cls()
    for event, x in events(20):
        model.learn_one(event, x if cls in REGRESSORS else x > 0)
    before = model.predict_one(event)
    for wrong, match in (
        ({"x": 1.0, "bad": [1, 2]}, "'bad' must be a number or a word"),
        ({"bad": float("inf")}, "'bad' is infinite"),
        ([1.0, 2.0], "must be a dict"),
    ):
        with pytest.raises(ValueError, match=match):
            model.learn_one(wrong, 1.0 if cls in REGRESSORS else True)
        with pytest.raises(ValueError, match=match):
            model.predict_one(wrong)
    assert model.predict_one(event) == before
    if cls in REGRESSORS:
        with pytest.raises(ValueError, match="y must be finite"):
            model.learn_one(event, nan)
        assert isfinite(model.predict_one(event))
