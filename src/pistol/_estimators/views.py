"""Fitted attributes, read off what was learned. Each is a property that several classes share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .._compiled.types import Array
from .._data.scaling import MOST
from .._data.validation import check_count
from .._learners import Patchwork
from .._learners.models import Expansion, Linear
from .._training.explain import Neighbours, neighbours_of, raw_weights
from .._training.importance import importances
from .base import fitted, rows_for, settled


def _expansion(estimator: Any) -> Expansion:
    """The model as an expansion for the user's targets."""
    known = settled(estimator)
    model = known.model()
    assert isinstance(model, Expansion)
    return replace(model, coef=np.stack([known.targets.spread(part) for part in model.coef]))


def _expansions(estimator: Any) -> list[tuple[Expansion, float]]:
    """The parts of the model, for the user's targets, and how much each counts."""
    known = settled(estimator)
    model = known.model()
    parts = model.expansions() if isinstance(model, Patchwork) else [(model, 1.0)]
    return [
        (replace(part, coef=np.stack([known.targets.spread(own) for own in part.coef])), share)
        for part, share in parts
    ]


class _Support(NamedTuple):
    """Support rows whose coefficients are not all zero: numbers, rows, coefficients."""

    ids: Array
    rows: Any
    coef: Array


def _support(estimator: Any) -> _Support:
    parts = [(part.without_zeros(), share) for part, share in _expansions(estimator)]
    ids, first, place = np.unique(
        np.concatenate([part.ids for part, _ in parts]), return_index=True, return_inverse=True
    )
    coef = np.zeros((len(ids), parts[0][0].coef.shape[1]))
    most = MOST / sum(len(part.coef) for part, _ in parts)  # their sum is a number
    each = [share * np.clip(part.coef, -most, most).sum(axis=0).T for part, share in parts]
    np.add.at(coef, place, np.concatenate(each))
    if parts[0][0].precomputed:
        return _Support(ids, np.empty((0, 0)), coef.T)
    rows = [part.rows for part, _ in parts]
    stacked = sp.csr_array(sp.vstack(rows)) if sp.issparse(rows[0]) else np.concatenate(rows)
    return _Support(ids, stacked[first], coef.T)


def _vectors(estimator: Any) -> Any:
    rows = _support(estimator).rows
    return rows if not rows.shape[1] else fitted(estimator).scaler.inverse_transform(rows)


def _shares(estimator: Any) -> dict[str, float]:
    model = settled(estimator).model()
    if isinstance(model, Patchwork):
        return model.shares()
    model = _expansion(estimator)
    pairs = zip(model.kernels, model.shares(), strict=True)
    return {kernel.name: float(share) for kernel, share in pairs}


def _importances(estimator: Any) -> Array:
    known = settled(estimator)
    return importances(known, known.model())


def _weights(estimator: Any) -> Array:
    """Weights and intercepts of the user's rows and targets, one row per output."""
    return raw_weights(settled(estimator))


def _one_or_many(values: Array, estimator: Any) -> Any:
    """What belongs to a single target without its axis."""
    return values if len(values) > 1 or fitted(estimator).task.outputs else values[0]


def _kernel_norm(estimator: Any) -> Any:
    if isinstance(settled(estimator).model(), Patchwork):
        raise AttributeError("the norm is known only for a single kernel with known points")
    return _norm(_expansion(estimator).norm())


def _norm(values: Array) -> Any:
    return float(values[0]) if len(values) == 1 else values


def _view(read: Any, doc: str) -> Any:
    return property(read, doc=doc)


def neighbours(self: Any, X: Any, k: int = 5) -> Neighbours:
    """The training rows that contribute most to the prediction for each row.

    The prediction is a sum over support rows, and the contributions are its terms: a positive one
    speaks for the output, a negative one against it.

    Parameters
    ----------
    X : table, array-like or sparse matrix of shape (n_samples, n_features)
        Rows to look at.
    k : int, default=5
        How many training rows per row, by the size of their contributions.

    Returns
    -------
    neighbours : Neighbours
        The named tuple (rows, contributions).
    """
    check_is_fitted(self, "fitted_")
    check_count("k", k)
    known = settled(self)
    return neighbours_of(known, rows_for(self, X, known), k)


support_ = _view(
    lambda self: _support(self).ids,
    "Numbers of the rows that the model is expanded on, counted over all rows seen.",
)
support_vectors_ = _view(_vectors, "The rows that the model is expanded on.")
dual_coef_ = _view(
    lambda self: _support(self).coef, "Coefficients of the support rows: one row per output."
)
n_support_ = _view(lambda self: len(_support(self).ids), "Number of support rows.")
kernel_weights_ = _view(
    _shares, "What each kernel contributes to the model: shares of its size that sum to 1."
)
feature_importances_ = _view(
    _importances,
    "How much the model depends on each feature: mean squares of its derivatives, which sum to 1.",
)
kernel_norm_ = _view(_kernel_norm, "‖f‖ of the model: a number, or one per output.")
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
    model: Any = known.model()
    offset = model.base.offset if isinstance(model, Patchwork) else model.offset
    extra = 0.0 if offset is None else known.targets.spread(offset[:, None])[:, 0]
    return known.targets.center + extra
