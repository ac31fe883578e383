"""Nothing overflows, whatever the stream: no infinity, no NaN, not even a warning."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import is_classifier
from sklearn.metrics.pairwise import rbf_kernel

from pistol.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES

hostile = settings(max_examples=6, deadline=None)
LARGEST, SMALLEST = 1e60, 1e-200
KERNELS = ["rbf", "laplacian", "linear", "cosine"]


def powers(low, high):
    return st.floats(low, high).map(lambda e: 10.0**e)


@st.composite
def streams(draw):
    """X, signs for y, weights: features of any size, aligned or contradictory labels."""
    n, d = draw(st.integers(2, 12)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    X = rng.choice([-1.0, 0.0, 0.3, 1.0], (n, d)) * draw(
        st.lists(powers(-200, 60), min_size=d, max_size=d)
    )
    if draw(st.booleans()):
        X *= 10.0 ** rng.uniform(-100, 0, (n, 1))  # rows of any size, too
    signs = {
        "aligned": np.where(X[:, 0] < 0, -1.0, 1.0),
        "alternating": (-1.0) ** np.arange(n),
        "random": rng.choice([-1.0, 1.0], n),
    }[draw(st.sampled_from(["aligned", "alternating", "random"]))]
    signs[:2] = -1.0, 1.0
    weight = rng.uniform(0, 1, n) * draw(st.sampled_from([1.0, 3.0, 1000.0]))
    return X, signs, weight


@pytest.fixture(scope="session")
def targets():
    """Labels or targets of a given size from signs."""

    def make(model, signs, size):
        if is_classifier(model):
            return signs > 0
        return np.where(signs > 0, size, 0.0) if model.loss == "poisson" else signs * size

    return make


@pytest.fixture(scope="session")
def assert_finite(scores):
    def check(model, X):
        names = ("coef_", "intercept_", "dual_coef_", "online_loss_", "online_error_", "norm_")
        seen = {name: getattr(model, name) for name in names if hasattr(model, name)}
        seen |= {"t_": model.t_, "scores": scores(model, X)}
        if hasattr(model, "feature_importances_"):  # the gradient is known
            seen["importances"] = model.feature_importances_
            seen |= model.explain(X)._asdict()
        if hasattr(model, "neighbours"):
            seen["neighbours"] = model.neighbours(X, k=2).contributions
        if hasattr(model, "predict_proba"):
            seen["probabilities"] = model.predict_proba(X)
        bad = [name for name, value in seen.items() if not np.isfinite(value).all()]
        assert not bad

    return check


@pytest.fixture(scope="session")
def finite_or_refused(assert_finite):
    """Kernel values may be too large to work with: then fit says so and learns nothing."""

    def check(model, X, y, weight=None):
        try:
            model.fit(X, y, weight)
        except ValueError as refusal:
            assert re.search("kernel|degree", str(refusal))  # noqa: PT017
            assert not hasattr(model, "fitted_")
        else:
            assert_finite(model, X)

    return check


def setting(machine, **changes):
    """The machine with those of the changes that it has parameters for."""
    known = machine().get_params()
    return machine(**{name: value for name, value in changes.items() if name in known})


def losses(machine):
    return sorted(CLASSIFICATION_LOSSES if is_classifier(machine()) else REGRESSION_LOSSES)


@hostile
@given(
    stream=streams(),
    a=powers(-6, 6),
    b=st.one_of(powers(-6, 6), st.sampled_from(["anytime", "horizon"])),
    loss=st.integers(0, 6),
    average=st.sampled_from(["linear", "uniform", None]),
    size=powers(-300, 300),
)
def test_hostile_streams(machine, targets, assert_finite, stream, a, b, loss, average, size):
    X, signs, weight = stream
    name = losses(machine)[loss % len(losses(machine))]
    model = setting(machine, a=a, b=b, eta=b, loss=name, average=average, gamma="scale")
    y = targets(model, signs, size)
    assert_finite(model.fit(X, y, weight), X)
    assert_finite(model.partial_fit(X[::-1], y[::-1], sample_weight=weight), X)


@pytest.mark.parametrize("kernel", KERNELS)
@hostile
@given(stream=streams(), a=powers(-6, 6), b=powers(-6, 6), gamma=powers(-6, 6))
def test_hostile_streams_in_every_kernel(
    kernel_machine, targets, assert_finite, kernel, stream, a, b, gamma
):
    X, signs, weight = stream
    model = setting(kernel_machine, a=a, b=b, eta=b, gamma=gamma, kernel=kernel)
    assert_finite(model.fit(X, targets(model, signs, 1.0), weight), X)


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("a", [1e-6, 0.25, 1e6])
def test_many_aligned_gradients(machine, targets, assert_finite, number, a):
    if number >= len(losses(machine)):
        pytest.skip("fewer losses")
    signs = (-1.0) ** np.arange(700)
    X = np.column_stack([signs, np.ones(700)])
    model = setting(machine, a=a, loss=losses(machine)[number], kernel="linear")
    y = targets(model, signs, 1e300)  # out of reach: every round pulls the same way
    assert_finite(model.fit(X, y), X)


@pytest.mark.parametrize("b", ["anytime", "horizon", 1e-6, 1e6])
def test_a_turn_after_a_long_agreement(machine, targets, assert_finite, b):
    signs = np.repeat([1.0, -1.0, 1.0], 800)
    X = np.ones((2400, 1))
    model = setting(machine, a=1e-6, b=b, eta=b, kernel="linear")
    assert_finite(model.fit(X, targets(model, signs, 1e3)), X)


@pytest.mark.parametrize("scale", [SMALLEST, 1e-100, 1e30, LARGEST])
@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_units_that_change_on_the_way(machine, targets, assert_finite, scale, order):
    n = 60
    X = np.where(np.arange(n)[:, None] < n // 2, 1.0, scale)[order] * np.array([[1.0, -0.5]])
    model = setting(machine, gamma="scale")
    y = targets(model, (-1.0) ** np.arange(n), 1e200)
    for part in (slice(0, n // 2), slice(n // 2, n)):
        assert_finite(model.partial_fit(X[part], y[part]), X)


def test_rows_of_zeros(machine, targets, assert_finite):
    X = np.zeros((20, 2))
    model = setting(machine, gamma="scale")
    y = targets(model, (-1.0) ** np.arange(20), 1e300)
    assert_finite(model.fit(X, y), X)
    assert_finite(machine().fit(X, y, np.r_[1e-300, 1e-17, np.full(18, 1e-5)]), X)


STEEP = {
    "degree-2.5": {"kernel": "poly", "degree": 2.5},
    "degree-40": {"kernel": "poly", "degree": 40},
    "own": {"kernel": lambda A, B: 1e200 * rbf_kernel(A, B)},
}


def test_absurd_rows_of_weight_zero(machine, rows, assert_finite):
    X, y = rows(machine())
    X, weight = np.vstack([1e-250 * X, np.full(3, 1e60)]), np.r_[np.ones(40), 0.0]
    model = setting(machine, orders=1, random_state=0, gamma="scale")
    y = np.r_[y, 1] if is_classifier(model) else np.r_[1e-20 * y, 1e300]
    assert_finite(model.fit(X, y, weight), X)


@pytest.mark.parametrize("changes", STEEP.values(), ids=list(STEEP))
def test_steep_kernels(kernel_machine, rows, finite_or_refused, changes):
    X, y = rows(kernel_machine())
    finite_or_refused(kernel_machine(**changes), 1e3 * X, y)


@hostile
@given(stream=streams(), gamma=powers(-6, 6), degree=st.integers(1, 5))
def test_hostile_streams_in_a_polynomial_kernel(
    kernel_machine, targets, finite_or_refused, stream, gamma, degree
):
    X, signs, weight = stream
    model = kernel_machine(kernel="poly", gamma=gamma, degree=degree, coef0=1.0)
    finite_or_refused(model, X, targets(model, signs, 1.0), weight)
