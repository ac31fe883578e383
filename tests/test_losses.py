"""Laws of the losses: convex, Lipschitz, smooth where they say so, links that fit."""

import pickle
from math import isfinite

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import floats, lists, sampled_from
from numba import njit
from scipy.optimize import minimize_scalar

from pistol.losses import (
    CLASSIFICATION_LOSSES,
    LOSSES,
    REGRESSION_LOSSES,
    STEPS,
    Loss,
    bounded,
    check_loss,
    epsilon_insensitive_loss,
    get_loss,
    huber_loss,
    quantile_loss,
    squared_error_loss,
)

pytestmark = pytest.mark.interpreted

INSTANCES = dict(LOSSES)
INSTANCES |= {f"quantile {tau}": quantile_loss(tau) for tau in (0.1, 0.9)}
INSTANCES |= {f"huber {delta}": huber_loss(delta) for delta in (0.01, 5.0)}
INSTANCES |= {"epsilon 2": epsilon_insensitive_loss(2.0)}
INSTANCES |= {"squared 0.5": squared_error_loss(0.5), "squared 90": squared_error_loss(90.0)}
INSTANCES |= {"poisson 700": bounded(LOSSES["poisson"], 700.0)}
all_losses = pytest.mark.parametrize("loss", INSTANCES.values(), ids=INSTANCES)


def targets(loss):
    if loss.name in CLASSIFICATION_LOSSES or loss.coupled:
        return sampled_from([-1.0, 1.0])
    return floats(-50, 50)


@all_losses
def test_grad_is_a_subgradient_bounded_by_L(loss):
    @given(y=targets(loss), p=floats(-50, 50), q=floats(-50, 50))
    def law(y, p, q):
        s = loss.grad(y, p, loss.theta)
        assert abs(s) <= loss.L
        value = loss.value(y, p, loss.theta)
        tangent = value + s * (q - p)
        assert loss.value(y, q, loss.theta) >= tangent - 1e-9 - 1e-14 * abs(value)

    law()


@all_losses
def test_grad_is_H_lipschitz(loss):
    @given(y=targets(loss), p=floats(-50, 50), q=floats(-50, 50))
    def law(y, p, q):
        change = abs(loss.grad(y, p, loss.theta) - loss.grad(y, q, loss.theta))
        assert change <= loss.H * abs(p - q) * (1 + 1e-9) + 1e-12 or p == q

    law()


@all_losses
def test_values_stay_finite_far_out(loss):
    for y in (-1.0, 1.0):
        for p in (-1e290, -1e5, 1e5, 1e290):
            assert isfinite(loss.value(y, p, loss.theta))
            assert abs(loss.grad(y, p, loss.theta)) <= loss.L


@all_losses
def test_L_is_attained(loss):
    """A larger L than needed would slow learning down."""
    grads = [abs(loss.grad(y, p, loss.theta)) for y in (-1.0, 1.0) for p in (-200.0, 0.0, 200.0)]
    assert max(grads) == pytest.approx(loss.L)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES.values() if loss.link], ids=str)
@pytest.mark.parametrize("probability", [0.02, 0.3, 0.5, 0.8, 0.97])
def test_the_link_inverts_the_best_score(loss, probability):
    def risk(p):
        positive, negative = loss.value(1.0, p, 0.0), loss.value(-1.0, p, 0.0)
        return probability * positive + (1 - probability) * negative

    best = minimize_scalar(risk, bounds=(-10, 10), method="bounded", options={"xatol": 1e-10}).x
    assert loss.link(np.array([best]))[0] == pytest.approx(probability, abs=1e-5)


@pytest.mark.parametrize("tau", [0.2, 0.5, 0.75])
def test_the_quantile_loss_is_least_at_the_quantile(tau):
    y, loss = np.linspace(0, 1, 1001), quantile_loss(tau)
    risk = [np.mean([loss.value(v, p, loss.theta) for v in y[::20]]) for p in y[::10]]
    assert y[::10][int(np.argmin(risk))] == pytest.approx(tau, abs=0.03)


@given(limit=floats(1.0, 50.0), ys=lists(floats(0.0, 1.0), min_size=2, max_size=9))
def test_the_squared_error_is_least_at_the_mean(limit, ys):
    loss = squared_error_loss(limit)
    assert abs(sum(loss.grad(y, np.mean(ys), loss.theta) for y in ys)) < 1e-12


@given(most=floats(2.0, 50.0), ys=lists(floats(0.0, 2.0), min_size=2, max_size=9))
def test_the_poisson_loss_is_least_at_the_logarithm_of_the_mean(most, ys):
    loss, mean = bounded(LOSSES["poisson"], most), max(np.mean(ys), 1e-9)
    p = STEPS * np.log(mean)
    assert abs(sum(loss.grad(y, p, loss.theta) for y in ys)) < 1e-7


@pytest.mark.parametrize("name", ["squared_error", "squared_hinge", "mse", "l2"])
def test_squared_losses_of_labels_are_refused_and_others_are_named(name):
    with pytest.raises(
        ValueError, match=r"no Lipschitz constant.*'modified_huber' or 'smooth_hinge'"
    ):
        get_loss(name, CLASSIFICATION_LOSSES)


@pytest.mark.parametrize("name", ["mse", "squared", "least_squares"])
def test_the_squared_error_has_one_name(name):
    with pytest.raises(ValueError, match=f"unknown loss '{name}'.*loss='squared_error'"):
        get_loss(name, REGRESSION_LOSSES)
    with pytest.raises(ValueError, match=r"no Lipschitz constant.*'huber'"):
        get_loss("squared_hinge", REGRESSION_LOSSES)


def test_an_unknown_loss_lists_the_choices():
    with pytest.raises(ValueError, match=r"unknown loss 'hingee'; choose one of .*hinge.*logistic"):
        get_loss("hingee", CLASSIFICATION_LOSSES)
    with pytest.raises(ValueError, match="unknown loss 'hinge'; choose one of absolute"):
        get_loss("hinge", REGRESSION_LOSSES)


@pytest.mark.parametrize(
    "make", [huber_loss, quantile_loss, epsilon_insensitive_loss, squared_error_loss]
)
@pytest.mark.parametrize("theta", [-0.5, -1.0, float("nan"), "half"])
def test_parameters_out_of_range_are_refused(make, theta):
    with pytest.raises(ValueError, match="strictly between"):
        make(theta)


@njit
def square(y, p, theta):
    return (y - p) ** 2


@njit
def d_square(y, p, theta):
    return 2 * (p - y)


@njit
def wrong(y, p, theta):
    return 0.5 if p > y else -0.5


def test_a_loss_of_ones_own_is_checked():
    with pytest.raises(ValueError, match=r"says \|grad\| ≤ L = 3, but at y=-1, p=-30"):
        check_loss(Loss("square", square, d_square, L=3.0))
    with pytest.raises(ValueError, match="no subgradient of value"):
        check_loss(Loss("wrong", square, wrong, L=1.0))
    with pytest.raises(ValueError, match="positive and finite"):
        check_loss(Loss("wrong", square, wrong, L=float("inf")))
    with pytest.raises(ValueError, match=r"must be one of.*'log'.*got 'mode'"):
        check_loss(Loss("wrong", square, wrong, L=1.0, targets="mode"))


@settings(max_examples=1)
@given(theta=floats(0.1, 0.9))
def test_built_in_losses_are_pickled_by_name(theta):
    loss = pickle.loads(pickle.dumps(quantile_loss(theta)))
    assert (loss.theta, loss.L) == (theta, max(theta, 1 - theta))
    assert loss.grad is LOSSES["quantile"].grad
    assert b"njit" not in pickle.dumps(LOSSES["hinge"])
    assert "quantile" in repr(loss)
    for name in ("squared_error", "poisson"):
        ours = bounded(LOSSES[name], 31.0)
        assert vars(pickle.loads(pickle.dumps(ours))) == vars(ours)
