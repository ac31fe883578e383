"""Targets with thresholds: `fit` chooses ramps beside the features, and everything works with them."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pistol
from pistol import PistolClassifier, PistolRegressor
from pistol._data.metric import Weighted
from pistol._data.steps import Stepped

N = 240


def rows(n=N, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4))


def jumps(X):
    """Thresholds of three features; the last one is useless."""
    return 2.0 * (X[:, 0] > 0.3) * (X[:, 1] > -0.5) + (X[:, 2] > 0.0)


def scaler_of(model):
    scaler = model.fitted_.scaler
    return scaler.scaler if isinstance(scaler, Weighted) else scaler


@pytest.fixture(scope="module")
def model():
    X = rows()
    model = PistolRegressor(random_state=0).fit(X, jumps(X))
    assert isinstance(scaler_of(model), Stepped)
    return model


def test_thresholds_are_learned_better_than_without_steps(model):
    X, new = rows(), rows(2000, 1)
    other = PistolRegressor(scaling="robust", random_state=0).fit(X, jumps(X))
    assert not isinstance(scaler_of(other), Stepped)
    ours, theirs = (np.abs(each.predict(new) - jumps(new)).mean() for each in (model, other))
    assert ours < 0.95 * theirs


def test_steps_that_fall_behind_at_first_may_be_chosen():
    """Beside a product of features, steps show only with a metric and more passes.

    With half as many rows the last bits of kernel values would choose.
    """

    def target(X):
        return np.floor(2 * X[:, 0]) + X[:, 1] * X[:, 2]

    errors = []
    for seed in range(3):
        X, new = np.random.default_rng(seed).normal(size=(2, 2000, 6))
        models = [
            PistolRegressor(scaling=scaling, random_state=seed).fit(X, target(X))
            for scaling in (True, "robust")
        ]
        assert isinstance(scaler_of(models[0]), Stepped)
        errors.append([np.abs(each.predict(new) - target(new)).mean() for each in models])
    ours, theirs = np.mean(errors, axis=0)
    assert ours < 0.85 * theirs


def test_smooth_targets_are_learned_without_steps():
    X = rows()
    model = PistolClassifier(random_state=0).fit(X, np.square(X).sum(axis=1) > 3.4)
    assert not isinstance(scaler_of(model), Stepped)


def test_importances_and_contributions_are_those_of_the_features(model):
    X = rows(20, 2)
    assert model.feature_importances_.shape == (4,)
    assert_allclose(model.feature_importances_.sum(), 1.0)
    assert model.feature_importances_[:3].sum() > 0.9
    why = model.explain(X)
    assert why.contributions.shape == (20, 4)
    assert_allclose(why.contributions.sum(axis=1) + why.baseline, model.predict(X), rtol=1e-6)
    centre = model.fitted_.scaler.scaler.scaler.scaler.center  # weighted, stepped, bent
    assert_allclose(why.baseline, model.predict(centre[None])[0], rtol=1e-6)
    assert np.abs(why.contributions[:, 3]).mean() < 0.3 * np.abs(why.contributions[:, :3]).mean()


def test_a_file_holds_the_ramps_and_learning_goes_on(model, tmp_path):
    X = rows(60, 3)
    model = pistol.load(saved(model, tmp_path / "model"))
    again = pistol.load(saved(model, tmp_path / "again"))
    assert_array_equal(again.predict(X), model.predict(X))
    for each in (model, again):
        each.partial_fit(X, jumps(X))
    assert_array_equal(again.predict(X), model.predict(X))
    model.save(tmp_path / "small", predict_only=True)
    assert_allclose(pistol.load(tmp_path / "small").predict(X), model.predict(X), atol=1e-4)


def saved(model, path):
    model.save(path)
    return path


def test_one_more_row_does_not_make_predictions_jump(model, tmp_path):
    model, X = pistol.load(saved(model, tmp_path / "model")), rows(200, 4)
    before = model.predict(X)
    model.partial_fit(X[:1], jumps(X[:1]))
    assert np.abs(model.predict(X) - before).mean() < 0.1 * np.abs(before).mean()


def test_units_do_not_matter(model):
    X, factors = rows(), 2.0 ** np.array([3, -9, 20, 0])
    other = PistolRegressor(random_state=0).fit(X * factors, jumps(X))
    new = rows(50, 5)
    assert_array_equal(other.predict(new * factors), model.predict(new))


def test_tables_with_words_have_steps_too():
    X, rng = rows(), np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(word=rng.choice(["x", "y", "z"], N))
    frame.loc[::7, "a"] = None
    y = jumps(X) + (frame["word"] == "x")
    model = PistolRegressor(random_state=0).fit(frame, y)
    assert isinstance(scaler_of(model), Stepped)
    assert model.feature_importances_.shape == (5,)
    why = model.explain(frame[:10])
    assert_allclose(why.contributions.sum(axis=1) + why.baseline, model.predict(frame[:10]))
    assert "What was learned" in model._repr_html_()
