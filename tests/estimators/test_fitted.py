"""What a fitted estimator shows, and how it lives with the tools around it."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from sklearn.base import clone
from sklearn.metrics.pairwise import (
    cosine_similarity,
    laplacian_kernel,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from pistol import LinearPistolClassifier, PistolClassifier
from pistol.losses import CLASSIFICATION_LOSSES, Loss, d_hinge, hinge

few = settings(max_examples=settings.default.max_examples // 2, deadline=None)
KERNELS = {
    "rbf": lambda A, B: rbf_kernel(A, B, gamma=0.5),
    "laplacian": lambda A, B: laplacian_kernel(A, B, gamma=0.5),
    "poly": lambda A, B: polynomial_kernel(A, B, gamma=0.5, degree=3, coef0=1.0),
    "linear": linear_kernel,
    "cosine": cosine_similarity,
}
LINKED = [name for name, loss in CLASSIFICATION_LOSSES.items() if loss.link is not None]


def rational(A, B):
    """A kernel of the user's own."""
    return 1.0 / (1.0 + ((A[:, None] - B[None]) ** 2).sum(axis=2))


@njit
def half_hinge(y, p, theta):
    return max(0.0, 0.5 - y * p)


@njit
def d_half_hinge(y, p, theta):
    return -y if y * p < 0.5 else 0.0


OWN = Loss("half_hinge", half_hinge, d_half_hinge, L=1.0)
logistic = CLASSIFICATION_LOSSES["logistic"]
BORROWED = Loss("borrowed", hinge, d_hinge, L=1.0)  # own name, functions from here


# The model behind the scores


@pytest.mark.parametrize("orders", [None, 3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_expansion_is_the_decision_function(kernel_machine, rows, scores, kernel, orders):
    X, y = rows(kernel_machine(), labels=3)
    model = kernel_machine(kernel=kernel, coef0=1.0, orders=orders, random_state=0).fit(X, y)
    K = KERNELS[kernel](model.support_vectors_, X)
    f = (model.dual_coef_ @ K).T + getattr(model, "intercept_", 0.0)
    np.testing.assert_allclose(f.reshape(scores(model, X).shape), scores(model, X), atol=1e-9)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert len(model.support_) == model.n_support_ == model.dual_coef_.shape[1]
    K = KERNELS[kernel](model.support_vectors_, model.support_vectors_)
    norm = np.sqrt(np.einsum("ji,ik,jk->j", model.dual_coef_, K, model.dual_coef_))
    np.testing.assert_allclose(np.atleast_1d(model.norm_), norm, rtol=1e-7)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("labels", [2, 3])
def test_the_weights_are_the_decision_function(linear_machine, rows, scores, bias, labels):
    X, y = rows(linear_machine(), labels=labels)
    model = linear_machine(fit_intercept=bias, orders=2, random_state=0).fit(X, y)
    f = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(f.reshape(scores(model, X).shape), scores(model, X), atol=1e-9)
    weights = np.column_stack([np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)])
    np.testing.assert_allclose(np.atleast_1d(model.norm_), np.linalg.norm(weights, axis=1))
    assert bias or not np.any(model.intercept_)


def test_shapes_of_the_weights_follow_scikit_learn(regressor, rows):
    X, y = rows(regressor())
    one, two = regressor().fit(X, y), regressor().fit(X, np.column_stack([y, y]))
    assert one.predict(X).shape == (40,)
    assert two.predict(X).shape == (40, 2)
    if hasattr(one, "fit_intercept"):
        assert one.coef_.shape == (3,)
        assert isinstance(one.intercept_, float)
        assert two.coef_.shape == (2, 3)
        assert two.intercept_.shape == (2,)


def test_online_error_is_the_error_before_learning(classifier, rows):
    X, y = rows(classifier(), n=25)
    X[0] = 2.0  # the largest magnitudes: all rows after it are scaled alike
    own = {"kernel": "rbf"} if "kernel" in classifier().get_params() else {"scaling": False}
    model, replayed = classifier(**own).fit(X, y), classifier(average=None, **own)
    errors = []
    for t in range(len(X)):
        p = replayed.decision_function(X[t : t + 1])[0] if t else 0.0
        errors.append((p > 0) != y[t])
        assert replayed.partial_fit(X[t : t + 1], y[t : t + 1], classes=[0, 1]).t_ == t + 1
    np.testing.assert_allclose(model.online_error_, np.mean(errors), rtol=1e-9)
    np.testing.assert_allclose(replayed.online_error_, np.mean(errors), rtol=1e-9)


def test_an_unfitted_estimator_has_no_fitted_attributes(machine):
    for name in ("t_", "online_loss_", "online_error_", "norm_", "coef_", "dual_coef_"):
        assert not hasattr(machine(), name)


# Kernels


@pytest.mark.parametrize("name", KERNELS)
def test_a_callable_and_a_gram_matrix_equal_the_named_kernel(
    kernel_machine, rows, assert_same, name
):
    X, y = rows(kernel_machine(), labels=3)
    k = KERNELS[name]
    named = kernel_machine(kernel=name, coef0=1.0).fit(X, y)
    assert_same(kernel_machine(kernel=k).fit(X, y), named, X)
    gram = kernel_machine(kernel="precomputed").fit(k(X, X), y)
    assert_same(gram, named, k(X[:7], X), X[:7])
    np.testing.assert_array_equal(gram.support_, named.support_)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_gamma_scale_is_one_over_the_variance(kernel_machine, rows, assert_same, layout, offset):
    X, y = rows(kernel_machine())
    X += offset
    model = kernel_machine(kernel="laplacian", gamma="scale").fit(layout(X), y)
    fixed = kernel_machine(kernel="laplacian", gamma=1 / (3 * X.var())).fit(X, y)
    assert_same(model, fixed, X)


def test_rows_of_a_gram_matrix_may_come_in_chunks(kernel_machine, rows, stream, assert_same):
    X, y = rows(kernel_machine())
    K = rbf_kernel(X, gamma=0.5)
    whole = kernel_machine(kernel="precomputed").fit(K, y)
    assert_same(stream(kernel_machine(kernel="precomputed"), K, y, [7, 20]), whole, K)


def test_cross_validation_cuts_a_gram_matrix_both_ways(kernel_machine, rows):
    X, y = rows(kernel_machine())
    K = rbf_kernel(X, gamma=0.5)
    named, gram = kernel_machine(kernel="rbf"), kernel_machine(kernel="precomputed")
    ours, theirs = cross_val_predict(gram, K, y, cv=3), cross_val_predict(named, X, y, cv=3)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)
    np.testing.assert_allclose(cross_val_score(gram, K, y), cross_val_score(named, X, y))
    grid = GridSearchCV(gram, {"passes": [1, 2]}, cv=3, n_jobs=1).fit(K, y)
    assert grid.predict(K).shape == y.shape


# Probabilities


@pytest.mark.parametrize("loss", LINKED)
@few
@given(seed=st.integers(0, 10**6), labels=st.integers(2, 4))
def test_probabilities_sum_to_one_and_follow_the_scores(rows, loss, seed, labels):
    for model in (PistolClassifier(loss=loss), LinearPistolClassifier(loss=loss)):
        X, y = rows(model, seed=seed, labels=labels)
        P = model.fit(X, y).predict_proba(X)
        assert P.shape == (len(X), labels)
        assert (P >= 0).all()
        np.testing.assert_allclose(P.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
        f = model.decision_function(X)
        if labels == 2:
            assert (np.diff(P[f.argsort(), 1]) >= 0).all()


def test_no_link_no_probabilities(classifier):
    if "loss" not in classifier().get_params():  # the Perceptron's is fixed
        assert not hasattr(classifier(), "predict_proba")
    else:
        for loss in CLASSIFICATION_LOSSES:
            assert hasattr(classifier(loss=loss), "predict_proba") == (loss in LINKED)


# Units


@pytest.mark.parametrize("orders", [None, 2])
@few
@given(powers=st.lists(st.integers(-60, 60), min_size=3, max_size=3))
def test_units_that_are_powers_of_two_change_no_bit(
    coordinate_machine, rows, assert_same, orders, powers
):
    X, y = rows(coordinate_machine())
    unit = 2.0 ** np.array(powers)
    a, b = (coordinate_machine(orders=orders, random_state=0) for _ in range(2))
    assert_same(a.fit(X * unit, y), b.fit(X, y), X * unit, X, exact=True)


@few
@given(powers=st.lists(st.integers(-30, 30), min_size=3, max_size=3))
def test_units_do_not_matter(coordinate_machine, rows, assert_same, powers):
    X, y = rows(coordinate_machine())
    unit = 10.0 ** np.array(powers)
    a, b = coordinate_machine().fit(X * unit, y), coordinate_machine().fit(X, y)
    assert_same(a, b, X * unit, X)


# Copies


def variants(machine):
    """The machine as it is, with a loss and with a kernel of the user's own."""
    yield machine(orders=2, random_state=0)
    if "loss" in machine().get_params():
        yield machine(loss=OWN)
    if "kernel" in machine().get_params():
        yield from (machine(kernel=rational), machine(kernel="precomputed"))


@pytest.mark.parametrize("twin", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def test_copies_are_the_same_to_the_last_bit_and_learn_on(machine, rows, assert_same, twin):
    for model in variants(machine):
        X, y = rows(model)
        if model.get_params().get("kernel") == "precomputed":
            X = rational(X, X)
            assert_same(twin(model.fit(X, y)), model, X, exact=True)
            continue
        other = twin(model.fit(X, y))
        assert_same(other, model, X, exact=True)
        assert_same(other.partial_fit(X, y), model.partial_fit(X, y), X, exact=True)
        fresh = clone(model)
        assert not hasattr(fresh, "fitted_")
        assert_same(fresh.fit(X, y), twin(clone(model)).fit(X, y), X, exact=True)


def test_a_loss_of_built_in_functions_keeps_its_own_name_and_link(rows, assert_same):
    model = PistolClassifier(loss=BORROWED, orders=None)
    X, y = rows(model)
    other = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    assert_same(other, model.set_params(loss="hinge").fit(X, y), X)
    assert other.loss.name == "borrowed"
    unlinked = Loss("logistic", *(getattr(logistic, part) for part in ("value", "grad", "L")))
    assert pickle.loads(pickle.dumps(unlinked)).link is None


def test_a_copy_learns_without_its_original(machine, rows, scores):
    X, y = rows(machine())
    model = machine().fit(X, y)
    before = scores(model, X)
    copy.deepcopy(model).partial_fit(X, y)
    np.testing.assert_array_equal(scores(model, X), before)


def test_the_html_page_of_an_estimator_can_be_made(machine, rows):
    X, y = rows(machine())
    for model in variants(machine):
        page = estimator_html_repr(model)
        assert type(model).__name__ in page
    assert type(model).__name__ in estimator_html_repr(machine().fit(X, y))


# Other tools


def test_sample_weights_find_their_way_through_a_pipeline(machine, rows, assert_same):
    X, y = rows(machine())
    weight = np.arange(len(X)) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        model = machine().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scaler, model).fit(X, y, sample_weight=weight)
    Z = StandardScaler().fit_transform(X)
    assert_same(pipe[-1], machine().fit(Z, y, weight), Z, exact=True)
