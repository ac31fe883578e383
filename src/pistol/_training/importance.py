"""How much a model depends on each of the user's columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._compiled.types import Array
from .._data.metric import Weighted
from .._data.origin import OriginScaler
from .._data.scaling import Scaler
from .._data.steps import feature_of
from .._learners import Patchwork
from .._learners.contributions import forest_of, whole_of
from .._learners.gradients import relative_squares
from .._learners.models import Linear
from .fitted import Fitted

LOOKED_AT = 512  # support rows at which gradients are computed
PART = 64  # rows whose steps are looked at together
MOST = 1e100  # of a step beside the largest coefficient: its square is finite


def importances(fitted: Fitted, model: Any) -> Array:
    """Mean squared derivatives with respect to scaled features, added up per column; their sum is 1.

    Trees have no derivatives. What takes their place is the variance of what their steps add to f: that
    of a linear function along a scaled feature would be its squared derivative.
    """
    squares = _squared_weights(fitted, model) if isinstance(model, Linear) else None
    squares = _squared_slopes(fitted, model) if squares is None else squares
    return squares / max(squares.sum(), 1e-300)


def spread_of_importances(fitted: Fitted) -> Array:
    """The importances by each of the models whose mean predicts, one row per model."""
    played = [learner for learner in fitted.learners if learner.t > 0] or fitted.learners
    return np.array([importances(fitted, learner.model()) for learner in played])


def _squared_weights(fitted: Fitted, model: Linear) -> Array:
    """Of a linear model the derivatives are its weights."""
    scaler = fitted.scaler
    raw = scaler.to_raw(model.weights.copy())[:, :-1]
    if isinstance(scaler, Scaler | OriginScaler):
        scale = np.where(scaler.scale > 0, scaler.scale, np.inf)
        raw = raw / scale
    raw = fitted.targets.spread(raw)
    squares = np.square(raw / max(float(np.abs(raw).max(initial=0.0)), 1e-300)).sum(axis=0)
    if fitted.columns.plain:
        return squares
    assert fitted.columns.encoder is not None
    layout = fitted.columns.encoder.layout
    return np.bincount(layout.owner, squares, layout.columns)


def _squared_slopes(fitted: Fitted, model: Any) -> Array:
    """Of a kernel machine they are taken at support rows; the columns of a category have one value."""
    whole, scaler = whole_of(model), fitted.scaler
    if not all(kernel.smooth for kernel in whole.kernels):
        raise AttributeError("feature_importances_ are there for kernel='auto' only")
    if not isinstance(model, Patchwork):
        model = replace(model, coef=np.stack([fitted.targets.spread(own) for own in model.coef]))
    some = whole.rows[:: max(1, len(whole.ids) // LOOKED_AT)]
    size, squares = relative_squares(model, some, np.ones(some.shape[0]))
    weight = scaler.weight if isinstance(scaler, Weighted) else 1.0
    squares, group = squares * np.square(weight), feature_of(scaler)
    squares = np.where(scaler.varies[group], squares, 0.0)
    even, features = np.ones(some.shape[0]), len(scaler.varies)
    squares = fitted.family.pooled(squares, some, even, scaler)[:features]
    squares += _squared_steps(model, some, size, features)
    if fitted.columns.plain:
        return squares
    assert fitted.columns.encoder is not None
    return fitted.columns.encoder.layout.by_column(squares)


def _squared_steps(model: Any, rows: Any, size: float, features: int) -> Any:
    """Variances of what a forest adds to f for each feature, divided by size², summed over outputs."""
    forest, n = forest_of(model), rows.shape[0]
    if forest is None or not n:
        return 0.0
    sums, squares = 0.0, 0.0
    for lo in range(0, n, PART):
        with np.errstate(over="ignore"):
            steps = forest.steps(rows[lo : lo + PART][:, :features]) / size
        part = np.clip(steps, -MOST, MOST)
        sums, squares = sums + part.sum(axis=0), squares + np.square(part).sum(axis=0)
    return np.maximum(squares / n - np.square(sums / n), 0.0).sum(axis=0)
