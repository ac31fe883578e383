"""Fitted attributes, read off what was learned. Each is a property that several classes share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._compiled.types import Array
from .._data.metric import Weighted
from .._data.scaling import MOST
from .._learners.gradients import mean_squares
from .._learners.models import Expansion, Linear
from .base import fitted, settled


def _expansion(estimator: Any) -> Expansion:
    """The model as an expansion for the user's targets."""
    known = settled(estimator)
    model = known.model()
    assert isinstance(model, Expansion)
    return replace(model, coef=np.stack([known.targets.spread(part) for part in model.coef]))


def _support(estimator: Any) -> Expansion:
    """The same without rows whose coefficients are all zero."""
    return _expansion(estimator).without_zeros()


def _vectors(estimator: Any) -> Any:
    model = _support(estimator)
    if model.precomputed:
        return np.empty((0, 0))
    return fitted(estimator).scaler.inverse_transform(model.rows)


def _dual_coef(estimator: Any) -> Array:
    coef = _support(estimator).coef
    most = MOST / len(coef)  # so that the sum of clipped numbers is a number
    return np.clip(coef, -most, most).sum(axis=0)


def _shares(estimator: Any) -> dict[str, float]:
    model = _expansion(estimator)
    pairs = zip(model.kernels, model.shares(), strict=True)
    return {kernel.name: float(share) for kernel, share in pairs}


def _importances(estimator: Any) -> Array:
    """Mean squared derivatives with respect to scaled features, at support rows; their sum is 1."""
    model, scaler = _expansion(estimator), fitted(estimator).scaler
    if not all(kernel.smooth for kernel in model.kernels):
        raise AttributeError("feature_importances_ are there for kernel='auto' only")
    some = model.rows[:: max(1, len(model.ids) // 512)]
    squares = mean_squares(model, some, np.ones(some.shape[0]))
    weight = scaler.weight if isinstance(scaler, Weighted) else 1.0
    squares = np.where(scaler.varies, squares * np.square(weight), 0.0)
    columns = fitted(estimator).columns
    if columns.encoder is not None and not columns.plain:
        layout = columns.encoder.layout
        squares = layout.by_column(layout.pooled(squares, some))
    return squares / max(squares.sum(), 1e-300)


def _weights(estimator: Any) -> Array:
    """Weights and intercepts of the user's rows and targets, one row per output."""
    known = settled(estimator)
    model = known.model()
    assert isinstance(model, Linear)
    weights = known.targets.spread(known.scaler.to_raw(model.weights.copy()))
    weights[:, -1] += known.targets.center
    return weights


def _one_or_many(values: Array, estimator: Any) -> Any:
    """What belongs to a single target without its axis."""
    return values if len(values) > 1 or fitted(estimator).task.outputs else values[0]


def _norm(values: Array) -> Any:
    return float(values[0]) if len(values) == 1 else values


def _view(read: Any, doc: str) -> Any:
    return property(read, doc=doc)


support_ = _view(
    lambda self: _support(self).ids,
    "Numbers of the rows that the model is expanded on, counted over all rows seen.",
)
support_vectors_ = _view(_vectors, "The rows that the model is expanded on.")
dual_coef_ = _view(_dual_coef, "Coefficients of the support rows: one row per output.")
n_support_ = _view(lambda self: len(_support(self).ids), "Number of support rows.")
kernel_weights_ = _view(
    _shares, "What each kernel contributes to the model: shares of its size that sum to 1."
)
feature_importances_ = _view(
    _importances,
    "How much the model depends on each feature: mean squares of its derivatives, which sum to 1.",
)
kernel_norm_ = _view(
    lambda self: _norm(_expansion(self).norm()), "‖f‖ of the model: a number, or one per output."
)
center_ = _view(
    lambda self: _one_or_many(_intercepts(self), self),
    "A constant that is added to the expansion: a number, or one per output.",
)

coef_ = _view(lambda self: _weights(self)[:, :-1], "Weights of the features: one row per output.")
intercept_ = _view(lambda self: _weights(self)[:, -1], "The learned constants.")
target_coef_ = _view(
    lambda self: _one_or_many(_weights(self)[:, :-1], self),
    "Weights of the features: a vector for one target, one row per output for several.",
)
target_intercept_ = _view(
    lambda self: _one_or_many(_weights(self)[:, -1], self),
    "The learned constant: a number for one target, an array for several.",
)
linear_norm_ = _view(
    lambda self: _norm(Linear(_weights(self)).norm()),
    "‖f‖ of the model, the intercept included: a number, or one per output.",
)


def _intercepts(estimator: Any) -> Array:
    known = settled(estimator)
    offset = _expansion(estimator).offset
    extra = 0.0 if offset is None else known.targets.spread(offset[:, None])[:, 0]
    return known.targets.center + extra
