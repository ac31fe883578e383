"""A fitted model depends on nothing but what it was fitted with."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import is_classifier

from pistol._estimators.base import FREE

OTHER = {
    "loss": {True: "hinge", False: "absolute"},
    "a": 3.0,
    "b": 2.0,
    "eta": 0.3,
    "kernel": "laplacian",
    "gamma": 0.123,
    "degree": 2,
    "coef0": 0.7,
    "scaling": False,
    "metric": False,
    "max_support": 20,
    "per_coordinate": False,
    "fit_intercept": False,
    "average": None,
    "passes": 7,
    "orders": 3,
    "drift": True,
    "categorical_features": None,
    "random_state": 5,
    "class_weight": {0: 2.0, 1: 1.0},
    "n_jobs": 1,
    "verbose": True,
}


def another(model, name):
    """A value that the parameter does not have."""
    value = OTHER[name]
    value = value[is_classifier(model)] if name == "loss" else value
    if value == model.get_params()[name]:
        value = {"average": "linear", "drift": False}[name]
    return value


@pytest.fixture(scope="session")
def outputs():
    """All that a model says of rows."""

    def say(model, X):
        names = ("predict", "decision_function", "predict_proba")
        shown = ("coef_", "intercept_", "dual_coef_", "support_", "online_error_", "classes_")
        said = [getattr(model, name)(X) for name in names if hasattr(model, name)]
        return said + [getattr(model, name) for name in shown if hasattr(model, name)]

    return say


def assert_equal(ours, theirs):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_set_params_after_training_changes_nothing_that_was_learned(untouched, rows, outputs, how):
    model = untouched()
    X, y = rows(model, n=60)
    getattr(model, how)(X, y)
    before, original = outputs(model, X), model.get_params()
    for name in original:
        model.set_params(**{name: another(model, name)})
        assert_equal(outputs(model, X), before)
        model.set_params(**{name: original[name]})
    model.set_params(**{name: another(model, name) for name in original})  # all at once
    assert_equal(outputs(model, X), before)


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_a_parameter_that_was_changed_in_mid_stream_is_refused_by_name(
    untouched, rows, refuses, how
):
    model = untouched()
    X, y = rows(model, n=60)
    getattr(model, how)(X, y)
    original = model.get_params()
    for name in sorted(set(original) - FREE):
        model.set_params(**{name: another(model, name)})
        message = f"^{name} was .* when training began and is .* now; .*Set {name} back"
        refuses(model, lambda: model.partial_fit(X, y), message, X)
        model.set_params(**{name: original[name]})
    model.partial_fit(X, y)


def test_parameters_that_a_stream_does_not_look_at_may_change(untouched, rows, assert_same):
    model, other = untouched(), untouched()
    X, y = rows(model, n=60)
    for each in (model, other):
        each.partial_fit(X[:30], y[:30])
    model.set_params(**{name: another(model, name) for name in FREE & set(model.get_params())})
    assert_same(model.partial_fit(X[30:], y[30:]), other.partial_fit(X[30:], y[30:]), X, exact=True)


def test_every_parameter_is_tried(untouched):
    assert set(untouched().get_params()) <= set(OTHER)


class Own:
    """A kernel of the user's own that is equal to itself alone."""

    def __call__(self, A, B):
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize(
    "twin", [lambda x: x, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_kernel_object_is_the_same_as_itself(kernel_machine, rows, twin):
    model = kernel_machine(kernel=Own())
    X, y = rows(model)
    model = twin(model.fit(X, y)).partial_fit(X, y)
    assert model.t_ == 2 * len(y)
    with pytest.raises(ValueError, match=r"kernel was .* when training began"):
        model.set_params(kernel=Own()).partial_fit(X, y)


def test_a_dictionary_that_was_changed_in_place_is_refused(classifier, rows):
    weight = {0: 1.0, 1: 2.0}
    model = classifier(class_weight=weight)
    X, y = rows(model)
    model.partial_fit(X, y)
    weight[1] = 5.0
    with pytest.raises(ValueError, match=r"^class_weight was"):
        model.partial_fit(X, y)
