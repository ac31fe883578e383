"""Rounds beside a comparator: the regret so far, and what bounds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import theory
from .._compiled.rows import sq_norms
from .._compiled.types import Array
from ..kernels import Kernel
from ..losses import Loss
from . import Rule
from .models import Expansion

Comparator = Array | tuple[Any, Any] | Callable[[Array], Array]

ROUNDING = 1e-9  # a norm of 1 + this is 1


class Round(NamedTuple):
    """A round, and Σ|s_t| at its end."""

    x: Array
    y: float
    loss: Loss
    suffered: float
    s_sum: float


def regrets(rounds: list[Round], kernel: Kernel, h: Comparator) -> Array:
    """R_1, …, R_T against h."""
    if not rounds:
        return np.zeros(0)
    values = evaluate(h, np.array([r.x for r in rounds]), kernel)
    of_h = [r.loss.value(r.y, v, r.loss.theta) for r, v in zip(rounds, values.tolist())]
    return np.cumsum([r.suffered for r in rounds]) - np.cumsum(of_h)


def bounds(rounds: list[Round], kernel: Kernel, rule: Rule, h: Comparator, h_norm: Any) -> Array:
    """Theorem 1 after each round."""
    if not rounds:
        return np.zeros(0)
    _check_rule(rule)
    X = np.array([r.x for r in rounds])
    size = _norms(kernel, X).max()
    if size > 1 + ROUNDING:
        raise ValueError(
            f"Theorem 1 assumes ‖k(x, ·)‖ ≤ 1; {size:g} was seen. Divide the rows by it, or use a "
            "kernel with k(x, x) = 1, such as 'rbf'"
        )
    s_sums = np.array([r.s_sum for r in rounds])
    norm = _norm(h, X.shape[1], kernel, h_norm)
    return theory.regret_bound(norm, s_sums, rule.a, rule.b, rule.loss.L)


def bounds_per_coordinate(
    rounds: list[Round], kernel: Kernel, rule: Rule, x_max: float, h: Comparator, h_norm: Any
) -> Array:
    """The corollary of Appendix A after each round."""
    if not rounds:
        return np.zeros(0)
    _check_rule(rule)
    if x_max != 1.0:
        raise ValueError(
            f"Appendix A takes 1 for the scale of all features; here x_max is {x_max:g}. Divide the "
            "features by their largest magnitudes and use x_max=1.0"
        )
    X = np.array([r.x for r in rounds])
    if np.abs(X).max() > 1 + ROUNDING:
        raise ValueError(
            f"Appendix A assumes |x_i| ≤ 1; {np.abs(X).max():g} was seen. Divide the features by "
            "their largest magnitudes"
        )
    if callable(h):
        raise ValueError("with per_coordinate the bound needs the weights of h; give the vector")
    if h_norm is not None:
        raise ValueError(
            "with per_coordinate the bound is in terms of the weights of h; omit h_norm"
        )
    u = np.abs(evaluate(h, np.eye(X.shape[1]), kernel))
    s_sums = np.cumsum(np.diff([r.s_sum for r in rounds], prepend=0.0)[:, None] * np.abs(X), axis=0)
    return theory.regret_bound(u, s_sums, rule.a, rule.b, rule.loss.L).sum(axis=1)


def evaluate(h: Comparator, X: Array, kernel: Kernel) -> Array:
    """h at the rows of X."""
    if callable(h):
        values = np.asarray(h(X), np.float64).ravel()
        if len(values) != len(X):
            raise ValueError(f"h must give one value per row, {len(X)}; it gave {len(values)}")
    elif isinstance(h, tuple):
        values = _expansion(h, X.shape[1], kernel).decide(X)[:, 0]
    else:
        values = X @ _weights(h, X.shape[1], kernel)
    if not np.isfinite(values).all():  # some losses take nan for a perfect score
        raise ValueError("h must be finite")
    return values


def _expansion(h: tuple[Any, Any], features: int, kernel: Kernel) -> Expansion:
    if len(h) != 2 or np.ndim(h[1]) == 0:
        raise ValueError("a tuple is a pair (coef, points); give a weight vector as an array")
    coef = np.asarray(h[0], np.float64).reshape(1, 1, -1)
    points = np.ascontiguousarray(np.atleast_2d(np.asarray(h[1], np.float64)))
    if points.shape != (coef.size, features):
        raise ValueError(
            f"an expansion of {coef.size} coefficients needs as many points of "
            f"{features} features; got points of shape {points.shape}"
        )
    return Expansion((kernel,), np.arange(len(points)), points, sq_norms(points), coef)


def _weights(h: Any, features: int, kernel: Kernel) -> Array:
    if kernel.source != "linear":
        raise ValueError("a weight vector is a comparator for the linear kernel only")
    weights = np.asarray(h, np.float64)
    if weights.shape != (features,):
        raise ValueError(f"a weight vector needs {features} entries; got shape {weights.shape}")
    return weights


def _norm(h: Comparator, features: int, kernel: Kernel, given: Any) -> float:
    """‖h‖ in the RKHS; only who made a function knows that of it."""
    if callable(h):
        if given is None:
            raise ValueError("the bound needs ‖h‖, which a function does not tell; give h_norm")
        return given
    if given is not None:
        raise ValueError("h_norm is for functions; the norm of this h is computed")
    if isinstance(h, tuple):
        return float(_expansion(h, features, kernel).norm()[0])
    return float(np.linalg.norm(_weights(h, features, kernel)))


def _norms(kernel: Kernel, X: Array) -> Array:
    """‖k(x, ·)‖ of the rows of X; a user's function is called row by row."""
    sq = sq_norms(X)
    if not callable(kernel.source):
        return np.sqrt(kernel.diagonal(None, sq, kernel.theta))
    return np.array([_expansion(([1.0], [x]), len(x), kernel).norm()[0] for x in X])


def check_events(center: bool, intercept: bool) -> None:
    """Refuse events that are not those of the theorem."""
    if center or intercept:
        changed = "centres them" if center else "has an intercept"
        raise ValueError(
            f"Theorem 1 is about events as they are; this learner {changed}. Use "
            "Learner.theorem(...), or center=False and fit_intercept=False"
        )


def _check_rule(rule: Rule) -> None:
    """Refuse a choice of a or b that no theorem covers."""
    if rule.potential != "pistol":
        raise ValueError(
            "Theorem 1 is about a constant b, chosen before the first round; for one that changes "
            "no bound is known. Use a number, as b=1.0, or Learner.theorem(...)"
        )
    least = theory.MIN_A * rule.loss.L
    if rule.a < least * (1 - 1e-12):
        raise ValueError(
            f"Theorem 1 assumes a ≥ 2.25 L = {least:g}; here a = {rule.a:g}, which is "
            f"{rule.a / rule.loss.L:g} L. Use a = 3 L = {3 * rule.loss.L:g} or more"
        )
