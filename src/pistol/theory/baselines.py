"""Section 3: what is guaranteed of averaged SGD and of the Perceptron."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._checks import Number, at_least_0, checked, plain, rounds


class Tuned(NamedTuple):
    """A bound minimised over the step size, and the step size that does it."""

    bound: Number
    eta: Number


def asgd_bound(h_norm: Number, T: Number, eta: Number, h_risk: Number = 0.0) -> Number:
    """Equation (3): the expected risk of averaged SGD with the square loss.

    Parameters
    ----------
    h_norm : float or array
        ‖h‖.
    T : int or array
        The number of examples.
    eta : float or array
        The step size, in (0, 1/4].
    h_risk : float or array, default=0.0
        The risk of h.

    Returns
    -------
    bound : float or array
        h_risk + ‖h‖²/(η T) + 4 η.

    Notes
    -----
    For ℓ(x) = (1 - x)² and examples drawn independently. The proof even has ‖h‖²/(2 η T).
    """
    h_norm, T, h_risk = at_least_0("h_norm", h_norm), rounds(T), at_least_0("h_risk", h_risk)
    eta = checked("eta", eta, lambda v: (v > 0) & (v <= 0.25), "in (0, 1/4]")
    return plain(h_risk + h_norm * h_norm / (eta * T) + 4 * eta)


def asgd_bound_tuned(h_norm: Number, T: Number, h_risk: Number = 0.0) -> Tuned:
    """Equation (4): the least of `asgd_bound` over the step sizes that it allows.

    Parameters
    ----------
    h_norm : float or array
        ‖h‖, which a learner does not know: that is the point of the equation.
    T : int or array
        The number of examples.
    h_risk : float or array, default=0.0
        The risk of h.

    Returns
    -------
    tuned : Tuned
        `bound` and `eta`: h_risk + 4 ‖h‖/√T at η = ‖h‖/(2 √T), if that is at most 1/4.

    Notes
    -----
    The paper takes the minimum over all η > 0, though equation (3) is for η ≤ 1/4. So its 4 ‖h‖/√T
    is right for T ≥ 4 ‖h‖²; for fewer examples η is 1/4 here and the bound is larger. For h = 0 the
    bound is a limit, and eta is 0.
    """
    h_norm, T, h_risk = at_least_0("h_norm", h_norm), rounds(T), at_least_0("h_risk", h_risk)
    eta = np.minimum(h_norm / (2 * np.sqrt(T)), 0.25)
    bound = np.where(
        eta < 0.25, h_risk + 4 * h_norm / np.sqrt(T), h_risk + 4 * h_norm * h_norm / T + 1.0
    )
    return Tuned(plain(bound), plain(eta))


def perceptron_mistake_bound(h_norm: Number, h_hinge_loss: Number) -> Number:
    """Equation (5): the mistakes of the kernel Perceptron on any sequence.

    Parameters
    ----------
    h_norm : float or array
        ‖h‖.
    h_hinge_loss : float or array
        D = Σ max(1 - y_t h(x_t), 0).

    Returns
    -------
    bound : float or array
        D + ‖h‖² + ‖h‖ √D.

    Notes
    -----
    Assumes ‖k(x_t, ·)‖ ≤ 1, which the paper does not repeat here.
    """
    h_norm, D = at_least_0("h_norm", h_norm), at_least_0("h_hinge_loss", h_hinge_loss)
    return plain(D + h_norm * h_norm + h_norm * np.sqrt(D))
