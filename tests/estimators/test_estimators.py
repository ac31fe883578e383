"""Laws that every estimator obeys, whatever its representation, loss or kernel."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from pistol import (
    AveragedSGDClassifier,
    KernelPerceptron,
    LinearPistolClassifier,
    LinearPistolRegressor,
    PistolClassifier,
    PistolRegressor,
)

few = settings(max_examples=settings.default.max_examples // 2, deadline=None)
BORDERS = st.sets(st.integers(1, 39), max_size=5)
SEEDS = st.integers(0, 10**6)
FORMATS = {
    "csr": sp.csr_array,
    "pandas": lambda X: pd.DataFrame(X, columns=list("abc")),
    "polars": lambda X: pl.DataFrame(X, schema=list("abc")),
    "float32": lambda X: X.astype(np.float32),
    "float32-csr": lambda X: sp.csr_array(X.astype(np.float32)),
    "fortran": np.asfortranarray,
    "list": lambda X: X.tolist(),
}


@parametrize_with_checks(
    [
        PistolClassifier(),
        PistolRegressor(),
        AveragedSGDClassifier(),
        KernelPerceptron(),
        LinearPistolClassifier(),
        LinearPistolClassifier(per_coordinate=False),
        LinearPistolRegressor(),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# Chunks and formats


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@few
@given(borders=BORDERS, seed=SEEDS)
def test_fit_is_partial_fit_in_any_chunks(
    machine, rows, stream, assert_same, layout, borders, seed
):
    X, y = rows(machine(), seed=seed)
    whole = machine().fit(layout(X), y)
    parts = stream(machine(), layout(X), y, borders)
    assert_same(parts, whole, X)
    assert parts.t_ == whole.t_ == len(X)
    np.testing.assert_allclose(parts.online_loss_, whole.online_loss_, rtol=1e-9)
    np.testing.assert_allclose(parts.online_error_, whole.online_error_, rtol=1e-9)


def test_chunks_need_not_meet_the_borders_of_blocks(machine, rows, stream, assert_same):
    X, y = rows(machine(), n=600)
    assert_same(stream(machine(), X, y, [1, 200, 256, 300]), machine().fit(X, y), X)


def test_chunks_may_change_their_layout(machine, rows, stream, assert_same):
    X, y = rows(machine())
    layouts = iter([sp.csr_array, np.asarray, np.float32, sp.csr_array])
    # takes rows as they are
    own = {"kernel": "rbf"} if "kernel" in machine().get_params() else {"scaling": False}
    mixed = stream(machine(**own), X, y, [10, 20, 30], convert=lambda chunk: next(layouts)(chunk))
    assert_same(mixed, machine(**own).fit(X, y), X)


@pytest.mark.parametrize("convert", FORMATS.values(), ids=list(FORMATS))
@pytest.mark.parametrize("orders", [None, 2])
def test_the_format_of_X_does_not_matter(unscaled, rows, assert_same, convert, orders):
    X, y = rows(unscaled())
    model, plain = (unscaled(orders=orders, random_state=1) for _ in range(2))
    assert_same(model.fit(convert(X), y), plain.fit(X, y), convert(X), X)


@pytest.mark.parametrize("outlier", [1.0, 1e12])
@few
@given(seed=SEEDS)
def test_the_order_of_the_rows_does_not_matter_to_fit(machine, rows, assert_same, outlier, seed):
    X, y = rows(machine())
    X[0] *= outlier
    p = np.random.default_rng(seed).permutation(len(X))
    model, other = (machine(orders=2, passes=2, random_state=seed) for _ in range(2))
    assert_same(model.fit(X[p], y[p]), other.fit(X, y), X[1:])


def test_n_jobs_changes_no_bit(kernel_machine, rows, assert_same):
    X, y = rows(kernel_machine(), n=2500)
    one, two = (kernel_machine(orders=1, random_state=0, n_jobs=n).fit(X, y) for n in (1, 2))
    assert_same(one, two, X, exact=True)


def test_the_same_seed_gives_the_same_bits_and_another_one_another_model(machine, rows, scores):
    X, y = rows(machine())
    a, b, c = (scores(machine(orders=1, random_state=s).fit(X, y), X) for s in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


# Sample weights


@few
@given(seed=SEEDS, gamma=st.sampled_from(["scale", 0.5]))
def test_weight_zero_changes_nothing(machine, rows, stream, assert_same, seed, gamma):
    changes = {"gamma": gamma} if hasattr(machine(), "gamma") else {}
    X, y = rows(machine(), seed=seed)
    far, there = np.vstack([X[:20], 1e3 * X[:9], X[20:]]), np.r_[y[:20], y[:9], y[20:]]
    weight = np.r_[np.ones(20), np.zeros(9), np.ones(20)]
    for orders in (None, 2):
        model, other = (machine(orders=orders, random_state=seed, **changes) for _ in range(2))
        assert_same(model.fit(far, there, weight), other.fit(X, y), X)
    streamed = stream(machine(**changes), far, there, [29], weight)
    plain = stream(machine(**changes), X, y, [20])
    assert_same(streamed, plain, X)
    assert streamed.t_ == plain.t_


@few
@given(copies=st.lists(st.integers(0, 4), min_size=30, max_size=30), seed=SEEDS)
def test_weight_k_is_k_copies(machine, rows, stream, assert_same, copies, seed):
    copies = np.array([1, *copies, 1])  # some weight is positive
    X, y = rows(machine(), n=32, seed=seed)
    many = np.repeat(np.arange(32), copies)
    p = np.random.default_rng(seed).permutation(many)
    model, other = (machine(orders=2, passes=2, random_state=seed) for _ in range(2))
    y[[0, -1]] = y.min(), y.max()  # all labels are there, with or without weights
    assert_same(model.fit(X, y, copies), other.fit(X[p], y[p]), X)
    assert model.t_ == other.t_ == 2 * copies.sum()
    streamed = stream(machine(), X, y, [7], copies)
    assert_same(streamed, stream(machine(), X[many], y[many]), X)


@few
@given(weight=st.lists(st.floats(0, 5), min_size=40, max_size=40))
def test_fractional_weights_are_fractions_of_rounds(machine, rows, scores, weight):
    weight = np.array([*weight[:-1], 0.5])
    X, y = rows(machine())
    model = machine(orders=1, random_state=0).fit(X, y, weight)
    assert np.isfinite(scores(model, X)).all()
    np.testing.assert_allclose(model.t_, weight.sum())


def test_class_weight_is_a_sample_weight(classifier, rows, stream, assert_same):
    X, y = rows(classifier(), labels=3)
    per_class = {0: 2.0, 1: 0.5, 2: 1.0}
    weight = np.array([per_class[label] for label in y])
    model, other = (classifier(orders=2, random_state=0) for _ in range(2))
    assert_same(model.set_params(class_weight=per_class).fit(X, y), other.fit(X, y, weight), X)
    streamed = stream(classifier(class_weight=per_class), X, y, [3])
    assert_same(streamed, stream(classifier(), X, y, [3], weight), X)


def test_balanced_gives_every_class_the_same_share(classifier, rows, assert_same):
    X, y = rows(classifier())
    y = (np.arange(len(y)) < 10).astype(int)
    balanced = classifier(class_weight="balanced").fit(X, y)
    assert_same(balanced, classifier(class_weight={0: 40 / 60, 1: 40 / 20}).fit(X, y), X)
    with pytest.raises(ValueError, match=r"'balanced' needs all labels at once.*dictionary"):
        classifier(class_weight="balanced").partial_fit(X, y)


# Labels, outputs, orders, passes


@pytest.mark.parametrize("names", [["no", "yes"], [False, True], [-1.0, 1.0], [7, 30]])
def test_labels_may_be_anything(classifier, rows, assert_same, names):
    X, y = rows(classifier())
    labels = np.array(names, object if isinstance(names[0], str) else None)[y]
    model, plain = classifier().fit(X, labels), classifier().fit(X, y)
    assert_same(model, plain, X, exact=True)
    np.testing.assert_array_equal(model.classes_, names)
    np.testing.assert_array_equal(model.predict(X), np.array(names)[plain.predict(X)])


@few
@given(seed=SEEDS, k=st.integers(3, 5))
def test_one_against_the_rest_is_a_binary_problem_a_class(classifier, rows, seed, k):
    X, y = rows(classifier(), seed=seed, labels=k)
    own = {"loss": "hinge"} if "loss" in classifier().get_params() else {}  # logistic compares them
    model = classifier(**own).fit(X, y)
    together = model.decision_function(X)
    alone = [classifier(**own).fit(X, y == j).decision_function(X) for j in range(k)]
    np.testing.assert_allclose(together, np.transpose(alone), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), together.argmax(axis=1))


@few
@given(seed=SEEDS)
def test_an_output_of_several_is_learned_as_if_alone(regressor, rows, seed):
    X, y = rows(regressor(), seed=seed)
    Y = np.column_stack([y, -2 * y, y / 8])  # whose units ask to be looked at together
    together = regressor().fit(X, Y).predict(X)
    for j in range(3):
        np.testing.assert_allclose(
            together[:, j], regressor().fit(X, Y[:, j]).predict(X), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("passes", [1, 2])
def test_several_orders_are_the_mean_of_single_ones(machine, rows, scores, passes):
    X, y = rows(machine())
    mean = machine(orders=4, passes=passes, random_state=np.random.RandomState(5)).fit(X, y)
    seeds = np.random.RandomState(5)  # one order after the other draws the same numbers
    single = [machine(orders=1, passes=passes, random_state=seeds).fit(X, y) for _ in range(4)]
    np.testing.assert_allclose(
        scores(mean, X), np.mean([scores(model, X) for model in single], axis=0), atol=1e-9
    )
    np.testing.assert_allclose(mean.online_loss_, np.mean([m.online_loss_ for m in single]))


def test_a_second_pass_is_a_second_partial_fit(machine, rows, stream, assert_same):
    X, y = rows(machine())
    twice = stream(stream(machine(), X, y), X, y)
    model = machine(passes=2).fit(X, y)
    assert_same(model, twice, X)
    assert model.t_ == twice.t_ == 80


@few
@given(seed=SEEDS)
def test_rows_far_from_the_origin_are_told_apart(machine, rows, assert_same, seed):
    """An offset leaves distinct rows only a few bits apart; they are no copies for all that."""
    X, y = rows(machine(), n=60)
    X = X * 100 + 1e6
    p = np.random.default_rng(seed).permutation(len(X))
    model, other = (machine(orders=1, random_state=seed) for _ in range(2))
    assert_same(model.fit(X[p], y[p]), other.fit(X, y), X, near=1e-4)  # another order: about 0.1


def test_a_chunk_of_weight_zero_changes_nothing(machine, rows, stream, assert_same):
    X, y = rows(machine())
    model, other = (stream(machine(), X, y) for _ in range(2))
    model.partial_fit(X[:1] + 5, y[:1], sample_weight=[0.0])
    assert_same(model, other, X, exact=True)


def test_a_single_row_may_have_any_weight(machine, rows, stream, assert_same):
    X, y = rows(machine())
    model, other = (stream(machine(), X, y) for _ in range(2))
    model.partial_fit(X[:1], y[:1], sample_weight=np.broadcast_to(2.0, 1))
    other.partial_fit(X[[0, 0]], y[[0, 0]])
    assert_same(model, other, X)


def test_labels_may_stand_in_a_column(classifier, rows, assert_same):
    X, y = rows(classifier())
    with pytest.warns(DataConversionWarning):
        model = classifier(class_weight="balanced").fit(X, y[:, None])
    assert_same(model, classifier(class_weight="balanced").fit(X, y), X)
