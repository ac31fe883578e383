"""Losses and kernels of the user's own that are not what they should be."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit
from sklearn.metrics.pairwise import rbf_kernel

from pistol.losses import Loss

FIRST, FATAL = 40, 350  # rows of the first training; the row that a kernel fails on


def slope(y, p, theta):
    return -y if y * p < 1.0 else 0.0


def value(y, p, theta):
    return max(0.0, 1.0 - y * p)


LOSSES = {
    "too-steep": (Loss("steep", njit(value), njit(slope), L=0.5), "says .*L = 0.5, but at .*grad"),
    "no-subgradient": (Loss("odd", njit(slope), njit(slope), L=1.0), "is no subgradient of value"),
    "no-constant": (Loss("vast", njit(value), njit(slope), L=np.inf), "positive and finite"),
    "not-compiled": (Loss("plain", value, slope, L=1.0), "numba"),
}


@pytest.mark.parametrize(("loss", "message"), LOSSES.values(), ids=list(LOSSES))
def test_a_loss_must_be_what_it_says(having, rows, refuses, loss, message):
    for machine in having("loss"):
        X, y = rows(machine())
        model = machine().fit(X, y).set_params(loss=loss)
        refuses(model, lambda m=model, X=X, y=y: m.fit(X, y), message)


def spoil(K, i, j, value):
    K = K.copy()
    K[i, j] = value
    return K


GRAMS = {
    "not-square": (lambda K: K[:, :-1], r"must be square; got shape \(40, 39\)"),
    "not-symmetric": (lambda K: spoil(K, 3, 5, 9.0), r"symmetric; entries \(3, 5\) and \(5, 3\)"),
    "negative-diagonal": (lambda K: spoil(K, 4, 4, -2.0), r"k\(x, x\) >= 0; got -2"),
    "sparse": (sp.csr_array, "dense matrix|[Ss]parse data"),
}


@pytest.mark.parametrize(("change", "message"), GRAMS.values(), ids=list(GRAMS))
def test_a_matrix_that_is_no_kernel_is_refused(kernel_machine, rows, refuses, change, message):
    X, y = rows(kernel_machine())
    K = rbf_kernel(X, gamma=0.5)
    for model in (kernel_machine(), kernel_machine(kernel="precomputed").fit(K, y)):
        model.set_params(kernel="precomputed")
        refuses(model, lambda m=model: m.fit(change(K), y), message, K)


def test_a_gram_matrix_has_no_more_rows_than_columns(kernel_machine, rows, refuses):
    X, y = rows(kernel_machine())
    K = rbf_kernel(X, gamma=0.5)
    model = kernel_machine(kernel="precomputed").fit(K, y)
    message = "of 40 columns has 40 rows in all; this chunk would end at row 45"
    refuses(model, lambda: model.partial_fit(K[:5], y[:5]), message, K)


FAULTS = {
    "shape": (lambda K: K[:, :-1], ValueError, r"must return .* of shape \(.*\); it returned"),
    "nan": (lambda K: K * np.nan, ValueError, "finite matrix.* with NaN or infinite values"),
    "negative": (lambda K: -K, ValueError, r"k\(x, x\) >= 0; got -1"),
    "raises": (lambda K: {}["gone"], KeyError, "gone"),
}


class Failing:
    """A Gaussian kernel that fails as soon as one certain row is among those it is asked about."""

    def __init__(self, row, fault):
        self.row, self.fault = row, fault

    def __call__(self, A, B):
        K = rbf_kernel(A, B, gamma=0.5)
        return FAULTS[self.fault][0](K) if (self.row == A).all(axis=1).any() else K


@pytest.mark.parametrize("trained", [None, 1, 2])
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_kernel_that_fails_on_the_way_leaves_all_as_it_was(
    kernel_machine, rows, refuses, fault, call, trained
):
    X, y = rows(kernel_machine(), n=700)
    model = kernel_machine(kernel=Failing(X[FATAL], fault), orders=trained, random_state=0)
    if trained is not None:
        model.fit(X[:FIRST], y[:FIRST])
    _, error, message = FAULTS[fault]
    refuses(model, lambda: getattr(model, call)(X[FIRST:], y[FIRST:]), message, X[:5], error)
