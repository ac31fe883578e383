"""Displays show what was learned; scikit-learn's own tools for looking take our estimators."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.calibration import CalibrationDisplay
from sklearn.inspection import (
    DecisionBoundaryDisplay,
    PartialDependenceDisplay,
    permutation_importance,
)
from sklearn.model_selection import cross_validate

from pistol import (
    LinearPistolClassifier,
    LinearPistolRegressor,
    PistolClassifier,
    PistolRegressor,
)
from pistol.plot import (
    ContributionsDisplay,
    EffectDisplay,
    ImportancesDisplay,
    KernelSharesDisplay,
    LearningCurveDisplay,
)

plt = pytest.importorskip("matplotlib.pyplot")
plt.switch_backend("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "town $": rng.choice(["Bern", "Ulm", "Rome", None], n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "floor": rng.integers(0, 5, n),
        }
    )
    target = 2.0 * X["size"] + (X["town $"] == "Ulm") + 0.1 * rng.normal(size=n)
    X.loc[::7, "size"] = None
    return X, target.to_numpy()


@pytest.fixture(scope="module")
def model():
    return PistolRegressor(random_state=0).fit(*table())


@pytest.fixture(scope="module")
def classes():
    X, y = table()
    return LinearPistolClassifier(random_state=0).fit(X, np.digitize(y, [-1, 1]))


def drawn(display):
    """The display, once its figure was rendered with all its labels inside."""
    assert display.figure_ is display.ax_.figure
    display.figure_.canvas.draw()
    box, (width, height) = display.figure_.get_tightbbox(), display.figure_.get_size_inches()
    assert -0.05 < box.x0 < box.x1 < width + 0.05
    assert -0.05 < box.y0 < box.y1 < height + 0.05
    return display


def test_importances_are_those_of_the_models_that_are_averaged(model, classes):
    for each in (model, classes):
        display = drawn(ImportancesDisplay.from_estimator(each))
        assert len(display.importances) == len(each.fitted_.learners)
        assert_allclose(display.importances.sum(axis=1), 1.0)
        top = display.ax_.get_yticklabels()[0].get_text()
        assert top == each.feature_names_in_[display.importances.mean(axis=0).argmax()]


def test_importances_of_models_of_other_rows():
    found = cross_validate(LinearPistolRegressor(random_state=0), *table(), return_estimator=True)
    display = drawn(ImportancesDisplay.from_estimators(found["estimator"], most=2))
    assert display.importances.shape == (5, 4)
    assert len(display.ax_.patches) == 2


def test_an_effect_is_the_mean_prediction_with_one_value_for_all(model):
    X, _ = table()
    display = drawn(EffectDisplay.from_estimator(model, X, "size", rows=len(X)))
    assert display.average.shape == (40, 1)
    for i in (0, 17, 39):
        same = X.assign(size=display.values[0][i])
        assert display.average[i, 0] == pytest.approx(model.predict(same).mean())
    words = drawn(EffectDisplay.from_estimator(model, X, "town $", rows=len(X)))
    assert words.values == [["Bern", "Rome", "Ulm", "missing"]]
    expected = [model.predict(X.assign(**{"town $": v})).mean() for v in ["Bern", "Rome", "Ulm"]]
    assert_allclose(words.average[:3, 0], expected)
    numbers = drawn(EffectDisplay.from_estimator(model, X, "floor"))
    assert numbers.values == [["0", "1", "2", "3", "4"]]
    dates = drawn(EffectDisplay.from_estimator(model, X, "day"))
    assert all(np.datetime64("2020-01-01") <= value for value in dates.values[0])


@pytest.mark.parametrize(
    "pair", [("size", "floor"), ("size", "town $"), ("town $", "day"), (0, 2)], ids=str
)
def test_effects_of_two_columns(model, pair):
    X, _ = table()
    display = drawn(EffectDisplay.from_estimator(model, X, pair, rows=20))
    assert display.average.shape == (*map(len, display.values), 1)
    other = EffectDisplay.from_estimator(model, pl.from_pandas(X), pair, rows=20)
    assert_allclose(other.average, display.average)


def test_effects_on_classes_are_probabilities(classes):
    X, _ = table()
    display = drawn(EffectDisplay.from_estimator(classes, X, "floor"))
    assert display.outputs == ["0", "1", "2"]
    assert_allclose(display.average.sum(axis=1), 1.0)
    one = EffectDisplay.from_estimator(classes, X, "floor", target=2)
    assert_allclose(one.average[:, 0], display.average[:, 2])
    assert one.ax_.get_ylabel() == "probability of 2"
    two = LinearPistolClassifier(loss="hinge", passes=1).fit(X, X.floor > 2)
    assert EffectDisplay.from_estimator(two, X, 3).ax_.get_ylabel() == "decision value of True"


def test_what_has_no_effect_to_show_is_refused(model, classes):
    X, _ = table()
    for features, message in (
        ("colour", "no column 'colour'"),
        (("size", "size"), "two different"),
        ((0, 1, 2), "one column or two"),
    ):
        with pytest.raises(ValueError, match=message):
            EffectDisplay.from_estimator(model, X, features)
    with pytest.raises(ValueError, match="say with target which of 0, 1, 2"):
        EffectDisplay.from_estimator(classes, X, (0, 1))
    with pytest.raises(ValueError, match="target 'x' is none of"):
        EffectDisplay.from_estimator(classes, X, 0, target="x")
    with pytest.raises(ValueError, match="must have one row; it has 2"):
        ContributionsDisplay.from_estimator(model, X[:2])


def test_contributions_add_up_in_the_picture(model, classes):
    X, _ = table(10, seed=1)
    display = drawn(ContributionsDisplay.from_estimator(model, X[:1]))
    whole = display.baseline + display.contributions.sum()
    assert whole == pytest.approx(model.predict(X[:1])[0])
    assert display.names[0] == "size = missing"
    display = drawn(ContributionsDisplay.from_estimator(classes, X[3:4]))
    whole = display.baseline + display.contributions.sum()
    assert whole == pytest.approx(classes.decision_function(X[3:4]).max())


def test_a_learning_curve_is_of_the_online_error(model, classes):
    for each in (model, classes):
        display = drawn(LearningCurveDisplay.from_estimator(each))
        assert (np.diff(display.rows) > 0).all()
        assert display.rows[-1] <= 1.2 * each.fitted_.counts.rows
        assert display.held_out == each.held_out_error_
        assert display.error.min() <= each.online_error_ <= display.error.max()
    display = drawn(LearningCurveDisplay([1, 10], [0.5, 0.2]).plot())
    assert len(display.ax_.lines) == 1


def test_shares_of_kernels(model):
    display = drawn(KernelSharesDisplay.from_estimator(model))
    assert_allclose([bar.get_width() for bar in display.ax_.patches], [*display.shares.values()])


def test_a_display_draws_on_axes_that_are_given(model):
    X, _ = table()
    _, axes = plt.subplots(1, 4)
    displays = [
        ImportancesDisplay.from_estimator(model, ax=axes[0]),
        LearningCurveDisplay.from_estimator(model, ax=axes[1]),
        EffectDisplay.from_estimator(model, X, "floor", ax=axes[2]),
        ContributionsDisplay.from_estimator(model, X[:1], ax=axes[3]),
    ]
    assert [display.ax_ for display in displays] == list(axes)


def test_without_matplotlib_the_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'pistol\[cli\]'"):
        ImportancesDisplay.from_estimator(model)


# scikit-learn's tools


@pytest.mark.filterwarnings("error::pistol.TableWarning")
def test_partial_dependence_and_permutation_importance_take_tables(model):
    X, y = table()
    words = X.assign(**{"town $": X["town $"].fillna("none")}).drop(columns="day")
    ours = PistolRegressor(random_state=0, passes=1, orders=1).fit(words, y)
    display = PartialDependenceDisplay.from_estimator(
        ours, words, ["size", "town $"], categorical_features=["town $"], grid_resolution=5
    )
    assert display.axes_.size == 2
    found = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert found.importances_mean.argmax() == 0


def test_decision_boundaries_and_calibration_take_our_classifiers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = X[:, 0] * X[:, 1] > 0
    ours = PistolClassifier(random_state=0).fit(X, y)
    regions = DecisionBoundaryDisplay.from_estimator(ours, X, grid_resolution=10)
    assert regions.response.shape == (10, 10)
    assert CalibrationDisplay.from_estimator(ours, X, y, n_bins=3).prob_true.size
