"""What was learned can be told: contributions add up, importances sum to 1, errors are kept."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

import pistol
from pistol import (
    LinearPistolClassifier,
    LinearPistolRegressor,
    PistolClassifier,
    PistolRegressor,
    TableWarning,
)
from pistol._training.kernel_family import KernelFamily
from pistol._training.plan import Limits

MAIN = [PistolClassifier, PistolRegressor, LinearPistolClassifier, LinearPistolRegressor]
main = pytest.mark.parametrize("make", MAIN, ids=lambda make: make.__name__)


def table(make, n=90, seed=0, labels=3):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.integers(20, 60, n)),
            "city": rng.choice(["Rome", "Paris", "Oslo", None], n),
            "since": pd.Timestamp("2019-03-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "member": rng.random(n) < 0.5,
        }
    )
    target = (X.city == "Rome") * 2.0 + X.age.fillna(70) / 20 + X.member + rng.normal(size=n) / 4
    target = target.to_numpy()
    codes = target.argsort().argsort() * labels // n
    return X, np.array(list("abcdef"))[codes] if is_classifier(make()) else target


@pytest.fixture(scope="module")
def fitted():
    """Every main estimator with its defaults, fitted to a table of words, gaps and dates."""
    return {make: make(random_state=0).fit(*table(make)) for make in MAIN}


@main
def test_contributions_of_columns_add_up_to_the_prediction(make, fitted, scores):
    model = fitted[make]
    X, _ = table(make, n=30, seed=1)
    found = model.explain(X)
    assert found.contributions.shape[-1] == X.shape[1]
    size = np.abs(scores(model, X)).max()
    whole = found.contributions.sum(axis=-1) + found.baseline
    assert_allclose(whole, scores(model, X), rtol=1e-9, atol=1e-9 * size)
    again = model.explain(X[::-1][X.columns[::-1]])  # columns are found by name
    assert_allclose(again.contributions, found.contributions[::-1], atol=1e-9 * size)


@main
def test_contributions_are_counted_from_the_reference(make, fitted, scores):
    model = fitted[make]
    X, _ = table(make, n=30, seed=1)
    found = model.explain(X, reference=X[:1])
    assert_allclose(found.baseline, np.squeeze(scores(model, X[:1])), rtol=1e-9, atol=1e-9)
    assert_allclose(found.contributions[0], 0.0, atol=1e-9)
    same = X.iloc[[0] * len(X)].reset_index(drop=True).assign(member=X.member)
    others = np.delete(model.explain(same, reference=X[:1]).contributions, 3, axis=-1)
    assert_allclose(others, 0.0, atol=1e-9, err_msg="columns that do not differ contribute nothing")


def test_linear_contributions_are_weights_times_distances(linear_machine, rows):
    model = linear_machine()
    X, y = rows(model, labels=3)
    model.fit(X, y)
    found = model.explain(X, reference=X[:5])
    gap = X - X[:5].mean(axis=0)
    expected = gap * model.coef_ if model.coef_.ndim == 1 else gap[:, None] * model.coef_
    assert_allclose(found.contributions, expected, atol=1e-9)


@pytest.mark.parametrize("labels", [2, 3])
def test_sparse_rows_of_linear_models_have_sparse_contributions(rows, labels):
    model = LinearPistolClassifier(passes=1, random_state=0)
    X, y = rows(model, labels=labels)
    X = sp.csr_array(X)
    found, baseline = model.fit(X, y).explain(X)
    parts = [found] if labels == 2 else found
    assert all(part.nnz == X.nnz for part in parts)
    whole = np.stack([part.sum(axis=1) for part in parts], axis=1) + baseline
    assert_allclose(whole, model.decision_function(X).reshape(len(y), -1), atol=1e-9)


@pytest.mark.parametrize("make", [PistolClassifier, PistolRegressor])
def test_neighbours_are_the_terms_of_the_prediction(make, fitted, scores):
    model = fitted[make]
    X, _ = table(make, n=10, seed=1)
    all_rows = model.neighbours(X, k=model.n_support_)
    constant = getattr(model, "intercept_", 0.0)
    assert_allclose(all_rows.contributions.sum(axis=-1) + constant, scores(model, X))
    assert set(np.unique(all_rows.rows)) == set(model.support_)
    best = model.neighbours(X, k=2)
    assert_array_equal(best.rows, all_rows.rows[..., :2])
    assert (np.diff(np.abs(all_rows.contributions), axis=-1) <= 0).all()


def test_many_rows_are_explained_in_cells(monkeypatch):
    monkeypatch.setattr(KernelFamily, "limits", Limits(few=80, sample=60, cell=40))
    X, y = table(PistolRegressor, n=120)
    model = PistolRegressor(random_state=0, metric=False).fit(X, y)
    near = model.neighbours(X, k=120)
    whole = near.contributions.sum(axis=1) + model.intercept_
    assert_allclose(whole, model.predict(X), rtol=1e-5)  # cells keep their rows in float32
    found, baseline = model.explain(X)
    assert_allclose(found.sum(axis=1) + baseline, model.predict(X), rtol=1e-5)
    assert model.held_out_error_ > 0
    _check_curve(model)


def test_what_cannot_be_explained_is_refused(rows):
    model = PistolClassifier(kernel="laplacian", passes=1, orders=1)
    X, y = rows(model)
    with pytest.raises(NotFittedError):
        model.explain(X)
    with pytest.raises(NotFittedError):
        model.neighbours(X)
    model.fit(X, y)
    with pytest.raises(ValueError, match="use kernel='auto'"):
        model.explain(X)
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        model.neighbours(X, k=0)
    assert model.neighbours(X[:2], k=3).rows.shape == (2, 3)
    with pytest.raises(ValueError, match="2 features"):
        PistolClassifier(passes=1, orders=1).fit(X, y).explain(X, reference=X[:, :2])


def test_a_gram_matrix_has_neighbours(rows):
    model = PistolClassifier(kernel="precomputed", passes=1, orders=1)
    X, y = rows(model)
    K = X @ X.T
    found = model.fit(K, y).neighbours(K, k=len(K))
    assert_allclose(found.contributions.sum(axis=1), model.decision_function(K), atol=1e-9)


@main
def test_importances_are_of_the_columns_of_the_table(make, fitted):
    model = fitted[make]
    found = dict(zip(model.feature_names_in_, model.feature_importances_, strict=True))
    assert list(found) == ["age", "city", "since", "member"]
    assert sum(found.values()) == pytest.approx(1)
    assert min(found.values()) >= 0
    assert found["city"] > found["since"]


# What training has kept


def _check_curve(model):
    """The sums of the curve are those of the online error."""
    online = model.fitted_.online
    rounds, error = online.curve.sum(axis=0)
    assert_allclose([rounds, error], [online.rounds, online.error])
    assert error / rounds == pytest.approx(model.online_error_)


@main
def test_curve_and_held_out_error_come_back_from_files_and_pickles(make, fitted, tmp_path):
    model = fitted[make]
    _check_curve(model)
    assert 0 < model.held_out_error_ < (0.67 if is_classifier(model) else 1.5)
    model.save(tmp_path / "model.pistol")
    for again in (pistol.load(tmp_path / "model.pistol"), pickle.loads(pickle.dumps(model))):
        assert again.held_out_error_ == model.held_out_error_
        assert_array_equal(again.fitted_.online.curve, model.fitted_.online.curve)
        assert again.fitted_.columns.notices == model.fitted_.columns.notices
        assert again.fitted_.remembered is None, "hashes of rows are not kept"


def test_a_stream_has_a_curve_and_no_held_out_rows(machine, rows, stream):
    X, y = rows(machine(), n=60)
    whole, parts = (stream(machine(), X, y, borders) for borders in ([], [7, 31]))
    _check_curve(whole)
    assert_allclose(parts.fitted_.online.curve, whole.fitted_.online.curve)
    assert_array_equal(whole.fitted_.online.curve[:, 0].nonzero()[0][[0, -1]], [0, 23])
    with pytest.raises(AttributeError, match="no held-out rows"):
        _ = whole.held_out_error_


def test_learning_on_forgets_the_held_out_error(rows):
    model = LinearPistolClassifier(random_state=0)
    X, y = rows(model)
    model.fit(X, y)
    assert hasattr(model, "held_out_error_")
    assert not hasattr(model.partial_fit(X, y), "held_out_error_")


# What is said


def said(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, TableWarning)]


@pytest.mark.parametrize("convert", [np.asarray, lambda X: pd.DataFrame(X, columns=list("uvwz"))])
def test_plain_numbers_are_looked_at(convert):
    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.5
    X = np.column_stack([rng.normal(size=60), np.arange(60), 3.0 * y - 1, rng.integers(0, 2, 60)])
    names = list(getattr(convert(X), "columns", range(4)))
    labels = np.where(y, "yes", "no").astype(object)
    (message,) = said(lambda: LinearPistolClassifier(passes=1).fit(convert(X), labels))
    assert message.splitlines() == [
        f"column {names[1]!r} counts the rows; if it is only their number, drop it",
        f"column {names[2]!r} determines the target; is it known when you predict?",
    ]
    labels[:4] = "perhaps"
    model = LinearPistolClassifier(passes=1)
    (message,) = said(lambda: model.fit(convert(X[:, :1].repeat(4, axis=1)), labels))
    assert message == "class 'perhaps' has 4 row(s), which is little to learn from"
    assert model.fitted_.columns.notices == (message,)
    target = 2.0 * X[:, 0] + 1.0
    (message,) = said(lambda: LinearPistolRegressor(passes=1).fit(convert(X), target))
    assert f"column {names[0]!r} determines the target" in message


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, pd.DataFrame])
def test_learned_rows_among_those_to_predict_are_said_once(convert):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(100, 3)), rng.normal(size=(80, 3))
    model = LinearPistolRegressor(passes=1).fit(convert(X), X[:, 0] + rng.normal(size=100))
    mixed = convert(np.concatenate([new, X[:20]]))
    assert said(lambda: model.predict(convert(new))) == []
    (message,) = said(lambda: model.predict(mixed))
    assert message.startswith("about 20% of these 100 rows were learned")
    assert said(lambda: model.predict(mixed)) == []
    assert said(lambda: model.partial_fit(convert(X), X[:, 0]).predict(mixed)) == []


def test_training_rows_and_rows_that_repeat_are_nothing_to_be_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    model = LinearPistolRegressor(passes=1).fit(X, X[:, 0] + rng.normal(size=100))
    assert said(lambda: model.predict(X)) == []
    few = pd.DataFrame({"a": rng.choice(list("xyz"), 100), "b": rng.choice(list("uv"), 100)})
    model = LinearPistolClassifier(passes=1).fit(few, rng.random(100) < 0.5)
    assert said(lambda: model.predict(few[:60])) == []


# Notebooks


def test_the_diagram_says_what_was_learned_and_runs_nothing_of_the_user():
    X, y = table(PistolClassifier)
    word = "<script>alert('x')</script>"
    X = X.rename(columns={"city": word}).assign(same=word)
    labels = np.where(y == "a", "<img src=x onerror=alert(1)>", y)
    model = PistolClassifier(random_state=0)
    assert "What was learned" not in model._repr_html_()
    with pytest.warns(TableWarning):
        model.fit(X, labels)
    html = model._repr_html_()
    assert "<script>alert" not in html
    assert "<img" not in html
    assert html.count("&lt;script&gt;alert") >= 1
    for fact in ("What was learned", "90", "5, 4 of them used", "passes", "online error",
                 "held-out error", "strongest features", "is constant and is not used"):  # fmt: skip
        assert fact in html
    assert f"{model.held_out_error_:.2%}" in html


def test_every_fitted_estimator_has_a_diagram(machine, rows):
    model = machine()
    model.fit(*rows(model))
    assert "What was learned" in model._repr_html_()
