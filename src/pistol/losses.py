"""Losses, value and derivative side by side, for one sample.

Every function takes (y, p, theta): the target (±1 in classification), the raw score and the
loss's own parameter (the quantile, say; most have none). `grad` is a subgradient in p, never its
negative. At a kink it takes the value that means the smaller update, except for the Perceptron,
where a score of zero is a mistake.

A loss of your own is a pair of numba functions::

    >>> from numba import njit
    >>> from pistol.losses import Loss
    >>> @njit
    ... def value(y, p, theta):
    ...     return max(0.0, 0.5 - y * p)
    >>> @njit
    ... def grad(y, p, theta):
    ...     return -y if y * p < 0.5 else 0.0
    >>> half_margin = Loss("half_margin", value, grad, L=1.0)
    >>> half_margin.grad(1.0, 0.2, 0.0)
    -1.0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from math import exp, expm1, inf, isfinite, log, log1p, tanh
from numbers import Real
from typing import Any
from weakref import WeakSet

import numpy as np

from ._compiled.cache import INTERPRETED, jit
from ._compiled.types import Array, pick

TARGETS = ("median", "mean", "log")  # how they are scaled
OWN = ("L", "H", "theta", "levels", "ranged", "unit")  # parts in which losses of one name differ
STEPS = 16.0  # of the scores of Poisson's loss are one unit of the logarithm


@dataclass(frozen=True, eq=False)
class Loss:
    """A convex Lipschitz loss ℓ(y, p).

    Parameters
    ----------
    name : str
        How it is called in messages.
    value, grad : numba functions of (y, p, theta)
        The loss and a subgradient of it in p.
    L : float
        Lipschitz constant: |grad| ≤ L.
    H : float, default=inf
        Smoothness: grad is H-Lipschitz in p; inf if it jumps.
    theta : float, default=0.0
        The loss's own parameter, handed to both functions.
    link : callable or None
        Score → P(y = +1), where minimising the expected loss recovers a probability.
    coupled : bool, default=False
        Whether the outputs of a round, one per class, are compared with each other. Value, grad and
        link are then taken at z_j = p_j - log Σ_{k≠j} exp(p_k), and a round suffers the loss of its own
        class's output. A single output has nothing to be compared with: z = p.
    levels : tuple of float, default=()
        Several thetas, to be learned at once from one target: one output each.
    targets : {"median", "mean", "log"}, default="median"
        How the regressors scale targets: around the median; around the mean; or as multiples of
        their mean, with the score as the logarithm of such a multiple.
    ranged : bool, default=False
        Whether the regressors take theta and L from the range of the scaled targets.
    unit : float, default=1.0
        A typical gradient, E s²/E |s|, where it is far from 1. The estimators multiply a by it: a loss
        times a constant, with L and unit to match, learns the same.
    """

    name: str
    value: Callable[[float, float, float], float]
    grad: Callable[[float, float, float], float]
    L: float
    H: float = inf
    theta: float = 0.0
    link: Callable[[Array], Array] | None = None
    coupled: bool = False
    levels: tuple[float, ...] = ()
    targets: str = "median"
    ranged: bool = False
    unit: float = 1.0

    def own_parts(self) -> dict[str, Any] | None:
        """Numbers that, with its name, are all of one of our losses; None for a loss of yours."""
        ours = LOSSES.get(self.name)
        parts = ("value", "grad", "link", "coupled", "targets")
        if not ours or any(getattr(ours, part) != getattr(self, part) for part in parts):
            return None
        return {part: getattr(self, part) for part in OWN}

    def __reduce__(self) -> tuple[Any, ...]:
        own = self.own_parts()  # by name, so that no code is written into a pickle
        if own is not None:
            return built_in, (self.name, own)
        return Loss, tuple(getattr(self, f.name) for f in fields(self))

    def __repr__(self) -> str:
        more = ", coupled=True" if self.coupled else ""
        more += f", levels={self.levels}" if self.levels else ""
        return f"Loss({self.name!r}, L={self.L:g}, H={self.H:g}, theta={self.theta:g}{more})"


@jit
def smooth_hinge(y, p, theta):
    """The paper's smoothed hinge (Appendix C)."""
    x = y * p
    return 0.0 if x >= 1.0 else (1.0 - x) ** 2 if x > 0.0 else 1.0 - 2.0 * x


@jit
def d_smooth_hinge(y, p, theta):
    x = y * p
    return 0.0 if x >= 1.0 else -2.0 * y * (1.0 - x) if x > 0.0 else -2.0 * y


def smooth_hinge_link(p: Array) -> Array:
    """For f ≥ 0 the expected loss is least where P (1 - f) = 1 - P, so P = 1/(2 - f)."""
    return np.where(p >= 0, 1.0 / (2.0 - np.clip(p, 0, 1)), 1.0 - 1.0 / (2.0 + np.clip(p, -1, 0)))


@jit
def hinge(y, p, theta):
    return max(0.0, 1.0 - y * p)


@jit
def d_hinge(y, p, theta):
    return -y if y * p < 1.0 else 0.0


@jit
def perceptron(y, p, theta):
    """What the Perceptron descends on; its mistakes are the rounds with a gradient."""
    return max(0.0, -y * p)


@jit
def d_perceptron(y, p, theta):
    return -y if y * p <= 0.0 else 0.0


@jit
def logistic(y, p, theta):
    x = y * p
    return log1p(exp(-x)) if x > 0.0 else log1p(exp(x)) - x


@jit
def d_logistic(y, p, theta):
    x = y * p
    e = exp(-abs(x))
    return -y * (e if x > 0.0 else 1.0) / (1.0 + e)  # no jump, which no processor could guess


def logistic_link(p: Array) -> Array:
    """P = 1/(1 + e^{-f}), without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * p))


@jit
def modified_huber(y, p, theta):
    x = y * p
    return 0.0 if x >= 1.0 else (1.0 - x) ** 2 if x > -1.0 else -4.0 * x


@jit
def d_modified_huber(y, p, theta):
    x = y * p
    return 0.0 if x >= 1.0 else -2.0 * y * (1.0 - x) if x > -1.0 else -4.0 * y


def modified_huber_link(p: Array) -> Array:
    """P = (1 + f)/2 on [-1, 1]."""
    return 0.5 * (1.0 + np.clip(p, -1, 1))


@jit
def absolute(y, p, theta):
    return abs(y - p)


@jit
def d_absolute(y, p, theta):
    return 1.0 if p > y else -1.0 if p < y else 0.0


@jit
def huber(y, p, theta):
    """(y - p)²/2δ inside δ = theta, |y - p| - δ/2 outside: L = 1 for every δ."""
    e = abs(y - p)
    return 0.5 * e * (e / theta) if e < theta else e - 0.5 * theta


@jit
def d_huber(y, p, theta):
    return max(-1.0, min(1.0, (p - y) / theta))


@jit
def quantile(y, p, theta):
    """The pinball loss: least at the theta-quantile of y."""
    return theta * (y - p) if y > p else (1.0 - theta) * (p - y)


@jit
def d_quantile(y, p, theta):
    return -theta if y > p else 1.0 - theta if y < p else 0.0


@jit
def epsilon_insensitive(y, p, theta):
    return max(0.0, abs(y - p) - theta)


@jit
def d_epsilon_insensitive(y, p, theta):
    return 1.0 if p - y > theta else -1.0 if y - p > theta else 0.0


@jit
def log_cosh(y, p, theta):
    e = abs(y - p)
    return e + log1p(expm1(-2.0 * e) / 2.0)  # log cosh e, without overflow


@jit
def d_log_cosh(y, p, theta):
    return tanh(p - y)


@jit
def squared_error(y, p, theta):
    """(y - p)²/2, linear where |y - p| > theta: least at the mean of y."""
    e = abs(y - p)
    return 0.5 * e * e if e < theta else theta * (e - 0.5 * theta)


@jit
def d_squared_error(y, p, theta):
    return max(-theta, min(theta, p - y))


@jit
def poisson(y, p, theta):
    """e^q - y q for q = p/16, linear where e^q > theta: least where e^q is the mean of y.

    It is multiplied by 16. Scores in sixteenths of a logarithm are as large as those of other losses.
    """
    y, q, top = min(max(y, 0.0), theta), p / STEPS, log(theta)
    value = exp(q) - y * q if q < top else theta - y * top + (theta - y) * (q - top)
    return STEPS * value


@jit
def d_poisson(y, p, theta):
    q = p / STEPS
    mean = min(exp(q), theta) if q < log(theta) else theta
    return mean - min(max(y, 0.0), theta)


def huber_loss(delta: float = 1.0) -> Loss:
    """Huber's loss divided by δ, so that L = 1 and H = 1/δ."""
    _check_theta("delta", delta, 0.0, inf)
    return Loss("huber", huber, d_huber, L=1.0, H=1.0 / delta, theta=delta)


def quantile_loss(tau: float | Sequence[float] = 0.5) -> Loss:
    """The pinball loss of the τ-quantile, or of several that are learned at once and do not cross."""
    levels = () if isinstance(tau, Real) else tuple(sorted(tau))  # type: ignore[arg-type]
    if not isinstance(tau, Real) and not levels:
        raise ValueError("tau must be a number or several of them; got none")
    for level in levels or (tau,):
        _check_theta("tau", level, 0.0, 1.0)  # type: ignore[arg-type]
    middle = levels[len(levels) // 2] if levels else float(tau)  # type: ignore[arg-type]
    L = max(max(level, 1.0 - level) for level in levels or (middle,))
    return Loss("quantile", quantile, d_quantile, L=L, theta=middle, levels=levels)


def epsilon_insensitive_loss(epsilon: float = 0.1) -> Loss:
    """The support vector regression's loss: errors below ε cost nothing."""
    _check_theta("epsilon", epsilon, -1e-300, inf)
    name = "epsilon_insensitive"
    return Loss(name, epsilon_insensitive, d_epsilon_insensitive, L=1.0, theta=epsilon)


def squared_error_loss(limit: float | None = None) -> Loss:
    """Half the squared error up to |y - p| = limit, linear beyond: L = limit.

    None takes the limit from the range of the targets, which only the regressors know. The mean of
    the targets minimises it as long as no |y - p| exceeds the limit.
    """
    loss = REGRESSION_LOSSES["squared_error"]
    if limit is None:
        return loss
    _check_theta("limit", limit, 0.0, inf)
    return bounded(replace(loss, ranged=False), limit)


def bounded(loss: Loss, theta: float) -> Loss:
    """The squared error or Poisson's loss, linear beyond theta."""
    return replace(loss, theta=theta, L=theta, H=theta / STEPS if loss.name == "poisson" else 1.0)


def _check_theta(name: str, theta: float, low: float, high: float) -> None:
    if not isinstance(theta, Real) or not low < theta < high:
        raise ValueError(f"{name} must lie strictly between {low:g} and {high:g}; got {theta!r}")


CLASSIFICATION_LOSSES = {
    "smooth_hinge": Loss(
        "smooth_hinge", smooth_hinge, d_smooth_hinge, L=2.0, H=2.0, link=smooth_hinge_link
    ),
    "hinge": Loss("hinge", hinge, d_hinge, L=1.0),
    "logistic": Loss("logistic", logistic, d_logistic, L=1.0, H=0.25, link=logistic_link),
    "modified_huber": Loss(
        "modified_huber", modified_huber, d_modified_huber, L=4.0, H=2.0, link=modified_huber_link
    ),
    "perceptron": Loss("perceptron", perceptron, d_perceptron, L=1.0),
}

REGRESSION_LOSSES = {
    "absolute": Loss("absolute", absolute, d_absolute, L=1.0),
    "huber": huber_loss(),
    "quantile": quantile_loss(),
    "epsilon_insensitive": epsilon_insensitive_loss(),
    "log_cosh": Loss("log_cosh", log_cosh, d_log_cosh, L=1.0, H=1.0),
    # the least theta that the range of targets can have; see `_data.targets`
    "squared_error": Loss(
        "squared_error", squared_error, d_squared_error,
        L=8.0, H=1.0, theta=8.0, targets="mean", ranged=True, unit=4.0,
    ),
    "poisson": Loss(
        "poisson", poisson, d_poisson, L=2.0, H=0.125, theta=2.0, targets="log", ranged=True
    ),
}  # fmt: skip

# -log softmax(p)_y, one output per class: s_j = softmax(p)_j - 1{y = j} is the logistic loss's s at
# z_j, so |s_j| ≤ 1. H is that of one output, q (1 - q) ≤ ¼; for all outputs together it would be ½.
MULTINOMIAL = replace(CLASSIFICATION_LOSSES["logistic"], name="multinomial", coupled=True)

LOSSES = CLASSIFICATION_LOSSES | REGRESSION_LOSSES | {"multinomial": MULTINOMIAL}

_SQUARED = ("squared", "square", "squared_loss", "mse", "l2", "least_squares", "quadratic")
_checked: WeakSet[Loss] = WeakSet()


def get_loss(loss: str | Loss, registry: dict[str, Loss]) -> Loss:
    """The loss of this name, or a user's own after a check that it is what it says."""
    if isinstance(loss, Loss):
        if loss not in _checked:
            _checked.add(check_loss(loss))
        return loss
    mean = "squared_error" in registry
    if mean and loss in _SQUARED:
        raise ValueError(f"unknown loss {loss!r}; the mean is predicted by loss='squared_error'")
    if loss in (*_SQUARED, "squared_hinge") or (loss == "squared_error" and not mean):
        near = [name for name in ("modified_huber", "smooth_hinge", "huber") if name in registry]
        raise ValueError(
            f"loss {loss!r} has no Lipschitz constant, which the algorithm needs; use "
            f"{' or '.join(map(repr, near))}: quadratic for small errors, linear for large ones"
        )
    return pick(registry, "loss", loss)


def built_in(name: str, own: dict[str, Any]) -> Loss:
    """The loss of this name, with numbers of its own."""
    return replace(LOSSES[name], **own)


def check_loss(loss: Loss) -> Loss:
    """Refuse a loss whose gradient exceeds L or is no subgradient of its value, at sample points."""
    if not (isinstance(loss.L, Real) and isfinite(loss.L) and loss.L > 0):
        raise ValueError(f"L of {loss!r} must be positive and finite; got {loss.L!r}")
    if loss.targets not in TARGETS:
        raise ValueError(f"targets of {loss!r} must be one of {TARGETS}; got {loss.targets!r}")
    for part in (loss.value, loss.grad):
        if not hasattr(part, "py_func") and not INTERPRETED:
            raise ValueError(f"value and grad of {loss!r} must be compiled by numba; got {part!r}")
    points = [-30.0, -2.0, -1.0, -0.4, 0.0, 0.3, 1.0, 2.5, 30.0]
    for y in (-1.0, 1.0):
        for p in points:
            value, s = loss.value(y, p, loss.theta), loss.grad(y, p, loss.theta)
            if not (isfinite(value) and abs(s) <= loss.L * (1 + 1e-9)):
                raise ValueError(
                    f"{loss!r} says |grad| ≤ L = {loss.L:g}, but at y={y:g}, p={p:g} "
                    f"its value is {value:g} and its gradient {s:g}"
                )
            for q in points:
                bound = value + s * (q - p)
                if loss.value(y, q, loss.theta) < bound - 1e-7 * (1 + abs(bound)):
                    raise ValueError(
                        f"grad of {loss!r} is no subgradient of value at y={y:g}, p={p:g}: "
                        f"the tangent there lies above the loss at p={q:g}"
                    )
    return loss
