"""Equal parameters are described in equal words in all estimators."""

import inspect

import pytest
from numpydoc.docscrape import NumpyDocString

import pistol

NAMED = [getattr(pistol, name) for name in pistol.__all__]
ESTIMATORS = [value for value in NAMED if hasattr(value, "get_params")]
PUBLIC = ("fit", "partial_fit", "predict", "predict_proba", "decision_function", "score", "save")

# Descriptions that differ, and why.
REASONS = {
    "loss": "classification and regression have other losses; defaults differ",
    "b": "the factor suits the task, and only per-coordinate learning has Vowpal Wabbit's",
    "kernel": "the baselines refer to PistolClassifier",
    "passes": "limits depend on the family, and the baselines do not choose",
    "orders": "limits depend on the family, and the baselines do not choose",
    "average": "the paper's algorithms return other averages",
    "scaling": "sums of kernels and linear models scale other rows",
}


def parameters(cls):
    """Type and description of every parameter."""
    doc = NumpyDocString(inspect.getdoc(cls))
    return {entry.name: (entry.type, " ".join(entry.desc)) for entry in doc["Parameters"]}


DESCRIBED = {cls.__name__: parameters(cls) for cls in ESTIMATORS}
NAMES = sorted({name for described in DESCRIBED.values() for name in described})


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_parameter_is_described_in_the_order_of_the_signature(cls):
    assert list(DESCRIBED[cls.__name__]) == list(inspect.signature(cls).parameters)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_defaults_are_those_of_the_signature(cls):
    for name, parameter in inspect.signature(cls).parameters.items():
        kind, _ = DESCRIBED[cls.__name__][name]
        shown = (
            f'"{parameter.default}"' if isinstance(parameter.default, str) else parameter.default
        )
        assert kind.endswith(f"default={shown}"), (name, kind)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in REASONS])
def test_equal_parameters_have_equal_docstrings(name):
    found = {described[name] for described in DESCRIBED.values() if name in described}
    assert len(found) == 1


@pytest.mark.parametrize("name", REASONS)
def test_a_difference_that_is_allowed_is_there(name):
    found = {described[name] for described in DESCRIBED.values() if name in described}
    assert len(found) > 1, f"take {name} off the list"


def test_methods_are_documented():
    for cls in ESTIMATORS:
        for name in PUBLIC:
            method = getattr(cls, name, None)
            assert method is None or inspect.getdoc(method), (cls.__name__, name)
