"""What cannot be learned from is refused in words, and a refusal changes nothing."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from pistol import LinearPistolClassifier, PistolClassifier

pytestmark = pytest.mark.every_case_counts_lines  # each goes its own way


def put(value, row=2, column=1):
    """A copy of X with one entry changed."""

    def change(X, y, weight):
        X = X.astype(np.result_type(X, type(value)) if np.isscalar(value) else object)
        X[row, column] = value
        return X, y, weight

    return change


def weigh(value, row=2):
    def change(X, y, weight):
        weight = weight.astype(object if isinstance(value, str) else float)
        weight[row] = value
        return X, y, weight

    return change


ROWS = {
    "inf": (put(np.inf), "X contains infinity"),
    "huge": (put(1e71), r"row of Euclidean norm 1e\+71; at most 1e\+70 .*divide the features"),
    "no-rows": (lambda X, y, w: (X[:0], y[:0], w[:0]), r"0 sample\(s\).*minimum of 1 is required"),
    "one-row-as-vector": (lambda X, y, w: (X[0], y, w), "Expected 2D array, got 1D array"),
    "cube": (lambda X, y, w: (X[None], y, w), "dim 3, while dim <= 2 is required"),
    "text": (put("red"), "could not convert string to float: .*red"),
    "complex": (put(1j), "Complex data not supported"),
    "lengths": (lambda X, y, w: (X, y[1:], w), "inconsistent numbers of samples: .40, 39"),
    "no-targets": (lambda X, y, w: (X, None, w), "requires y to be passed.* is None"),
    "negative-weight": (weigh(-1.0), r"must not be negative; sample_weight\[2\] = -1"),
    "large-weight": (weigh(2e12), r"may be at most 1e\+12; got 2e\+12: divide"),
    "nan-weight": (weigh(np.nan), "sample_weight contains NaN"),
    "text-weight": (weigh("a"), "could not convert string to float"),
    "weights-too-few": (lambda X, y, w: (X, y, w[1:]), r"sample_weight.shape == \(39,\).*40"),
}
TARGETS = {
    "one-class": (lambda y: np.zeros_like(y), "needs at least 2 classes; got 1 class.*0"),
    "continuous": (lambda y: y + 0.5 * (np.arange(40) % 3), "Unknown label type: continuous"),
    "nan": (lambda y: np.where(y, np.nan, 0.0), "y contains NaN"),
    "two-outputs": (lambda y: np.column_stack([y, y]), "y should be a 1d array"),
}
REAL_TARGETS = {
    "nan": (lambda y: np.where(y > 0, np.nan, y), "y contains NaN"),
    "infinite": (lambda y: np.where(y > 0, np.inf, y), "y contains infinity"),
    "huge": (lambda y: np.where(y > 0, 1e301, y), r"must not exceed 1e\+300 .*got 1e\+301"),
    "text": (lambda y: np.where(y > 0, "high", "low"), "could not convert string to float|numeric"),
}
NUMBER = "must be a finite number greater than 0; got "
COUNT = "must be a whole number of at least 1"
PARAMETERS = [
    ("loss", "humbug", "unknown loss 'humbug'; choose one of .*"),
    ("loss", "squared_hinge", "'squared_hinge' has no Lipschitz constant.* use .*huber'"),
    ("loss", None, "unknown loss None; choose one of .*"),
    ("kernel", "bogus", "unknown kernel 'bogus'; choose one of auto, cosine, .*rbf$"),
    ("kernel", "bounded_poly", "unknown kernel 'bounded_poly'; choose one of auto, cosine"),
    ("kernel", None, "unknown kernel None; choose one of"),
    *(("a", a, f"^a {NUMBER}{a!r}") for a in (0, -1.0, np.nan, np.inf, "much", None, True)),
    *(("b", b, "^b must be .*positive number; got .*") for b in (0, -1.0, np.inf, "x", None)),
    *(("eta", b, "^eta must be .*positive number; got .*") for b in (0, -1.0, np.inf, "x", None)),
    *(("gamma", g, f"^gamma {NUMBER}{g!r}") for g in (0.0, -1, np.nan, None)),
    ("gamma", "wide", "gamma must be one of 'scale', 'auto'; got 'wide'"),
    *(("degree", v, f"^degree {NUMBER}{v!r}") for v in (0, -2, np.nan, "three")),
    *(("coef0", v, f"coef0 must be a finite number at least 0; got {v!r}") for v in (-1, np.inf)),
    *(("average", v, "average must be one of 'uniform', .*; got") for v in ("mean", 3, True)),
    *(
        ("passes", v, f"^passes {COUNT} or 'auto'; got {v!r}")
        for v in (0, -1, 1.5, "x", None, True)
    ),
    *(("orders", v, f"^orders {COUNT}, 'auto' or None .*; got {v!r}") for v in (0, -1, 1.5, "x")),
    ("class_weight", "equal", "class_weight.*'balanced'.*'equal'"),
    ("class_weight", {0: -1.0, 1: 1.0}, "class_weight.*negative"),
    ("class_weight", {0: np.nan, 1: 1.0}, "class_weight.*finite|class_weight.*NaN"),
    ("class_weight", {0: 1e15, 1: 1.0}, r"at most 1e\+12; got 1e\+15"),
    ("random_state", "dice", "'dice' cannot be used to seed"),
    ("n_jobs", 0, "n_jobs == 0"),
]
FIT_ONLY = ("passes", "orders", "random_state")  # what partial_fit does not look at


@pytest.fixture(scope="session")
def refuses_rows(refuses, trained):
    """Check it for fit and partial_fit, of a fresh model and of a trained one."""

    def check(machine, X, y, weight, message):
        for call in ("fit", "partial_fit"):
            for model in (machine(), trained(machine())):
                refuses(
                    model,
                    lambda m=model, c=call: getattr(m, c)(X, y, sample_weight=weight),
                    message,
                )

    return check


# Rows, targets, weights


@pytest.mark.parametrize(("change", "message"), ROWS.values(), ids=list(ROWS))
def test_bad_rows_are_refused(machine, rows, refuses_rows, change, message):
    refuses_rows(machine, *change(*rows(machine()), np.ones(40)), message)


@pytest.mark.parametrize(("change", "message"), REAL_TARGETS.values(), ids=list(REAL_TARGETS))
def test_bad_targets_are_refused(regressor, rows, refuses_rows, change, message):
    X, y = rows(regressor())
    refuses_rows(regressor, X, change(y), None, message)


@pytest.mark.parametrize(("change", "message"), TARGETS.values(), ids=list(TARGETS))
def test_bad_labels_are_refused(classifier, rows, trained, refuses, change, message):
    X, y = rows(classifier())
    for model in (classifier(), trained(classifier())):
        refuses(model, lambda m=model: m.fit(X, change(y)), message)
    refuses(classifier(), lambda: classifier().partial_fit(X, change(y)), message)


def test_labels_that_were_not_announced_are_refused(classifier, rows, trained, refuses):
    X, y = rows(classifier())
    model = trained(classifier())
    unknown = r"labels .*2.* not among the classes .*0.*1.*; name all classes in the first call"
    refuses(model, lambda: model.partial_fit(X, y + 1), unknown)
    others = "classes must be those of the first call, .*0.*1.*; got"
    refuses(model, lambda: model.partial_fit(X, y, classes=[0, 1, 2]), others)
    refuses(classifier(), lambda: classifier().partial_fit(X, y, classes=[0]), "at least 2 classes")


def test_another_number_of_outputs_is_refused(regressor, rows, refuses):
    X, y = rows(regressor())
    model = regressor().fit(X, np.column_stack([y, y]))
    message = r"y must have 2 output\(s\) as in the first call; got 1"
    refuses(model, lambda: model.partial_fit(X, y), message)


def test_another_number_of_features_is_refused(machine, rows, trained, refuses, scores):
    X, y = rows(machine())
    model = trained(machine())
    message = "X has 2 features, but .* is expecting 3 features"
    refuses(model, lambda: model.partial_fit(X[:, :2], y), message)
    refuses(model, lambda: scores(model, X[:, :2]), message)


# Missing values


def message_of(call):
    with pytest.raises(ValueError) as refusal:
        call()
    return str(refusal.value)


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_a_missing_value_of_sparse_rows_is_named_by_row_and_feature(untouched, rows, call):
    model = untouched()
    X, y = rows(model)
    X[7, 2] = np.nan
    message = message_of(lambda: getattr(model, call)(sp.csr_array(X), y))
    assert "NaN: row 7, feature 2." in message
    assert "impute" in message


def test_an_infinite_value_is_named_by_its_column(untouched, rows):
    model = untouched()
    X, y = rows(model)
    table = pd.DataFrame(X, columns=["age", "height", "weight"])
    endless = table.copy()
    endless.loc[3, "height"] = np.inf
    for call in (model.fit(table, y).predict, lambda X: untouched().fit(X, y)):
        message = message_of(lambda call=call: call(endless))
        assert "infinity: row 3, feature 'height'." in message
    endless.loc[2, "age"] = np.nan
    message = message_of(lambda: untouched().fit(endless, y))
    assert "infinity: row 3, feature 'height'." in message


@pytest.mark.parametrize("make", [PistolClassifier, LinearPistolClassifier])
@pytest.mark.parametrize("fitted", [False, True])
def test_probabilities_without_a_link_say_why_and_what_to_use(make, rows, fitted):
    model = make(loss="hinge")
    X, y = rows(model)
    if fitted:
        model.fit(X, y).set_params(loss="logistic")  # what counts is what it was trained with
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as refusal:
        model.predict_proba(X)
    reason = str(refusal.value.__cause__)
    assert "hinge loss has no such link" in reason
    assert "'logistic'" in reason


# Parameters


@pytest.mark.parametrize(
    ("name", "value", "message"), PARAMETERS, ids=[f"{case[0]}={case[1]!r}" for case in PARAMETERS]
)
def test_bad_parameters_are_refused(having, rows, trained, refuses, name, value, message):
    for machine in having(name):
        X, y = rows(machine())
        for model in (machine(), trained(machine())):
            model.set_params(**{"orders": 1, name: value})
            refuses(model, partial(model.fit, X, y), message)
        fresh = machine(**{name: value})
        if name not in FIT_ONLY and value != "equal":
            refuses(fresh, partial(fresh.partial_fit, X, y), message)


@pytest.mark.parametrize("name", ["b", "eta"])
def test_a_horizon_is_unknown_to_a_stream(having, rows, refuses, name):
    message = f"{name}='horizon' needs the number of rounds in advance.*'anytime' or a number"
    for machine in having(name):
        model = machine(**{name: "horizon"})
        refuses(model, lambda m=model: m.partial_fit(*rows(m)), message)


@pytest.mark.parametrize("loss", ["squared", "mse", "squared_hinge"])
def test_losses_without_a_bound_are_sent_to_others(having, rows, refuses, loss):
    for machine in having("loss"):
        model = machine(loss=loss)
        refuses(model, lambda m=model: m.fit(*rows(m)), f"{loss}'.*('squared_error'|use .*huber')")
