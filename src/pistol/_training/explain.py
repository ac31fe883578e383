"""Why a prediction is what it is: contributions of the user's columns, and of training rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array
from .._data.intake import Columns
from .._data.scaling import MOST, Scaler
from .._data.steps import per_feature, typical
from .._learners.contributions import contributions, terms, whole_of
from .._learners.models import Linear
from .fitted import Fitted


class Explanation(NamedTuple):
    """What each column adds to the prediction for each row.

    The contributions of a row and the baseline add up to its decision value, or to its predicted
    target.

    Attributes
    ----------
    contributions : array of shape (n_samples, n_columns) or (n_samples, n_outputs, n_columns)
        One number for each of the user's own columns. A linear model of sparse rows has sparse
        ones: a CSR array, or a list with one CSR array per output.
    baseline : float or array of shape (n_outputs,)
        The prediction for the reference.
    """

    contributions: Any
    baseline: Any


class Neighbours(NamedTuple):
    """The training rows that contribute most to the prediction for each row.

    Attributes
    ----------
    rows : array of shape (n_samples, k) or (n_samples, n_outputs, k)
        Their numbers, counted over all rows that were learned; -1 where there are fewer than k.
    contributions : array of the same shape
        What each adds to the decision value or to the predicted target, largest first.
    """

    rows: Array
    contributions: Array


def explained(fitted: Fitted, X: Any, reference: Any = None) -> Explanation:
    """Contributions of the columns to scores of encoded rows, for the user's targets.

    `reference` are encoded rows whose mean is where contributions are counted from.
    """
    model = fitted.model()
    if isinstance(model, Linear):
        parts, value = _linear(fitted, X, reference)
    else:
        if not all(kernel.smooth for kernel in whole_of(model).kernels):
            raise ValueError(
                "explain needs a kernel whose gradient is known; use kernel='auto' or kernel='rbf'"
            )
        Z = fitted.scaler.transform(X)
        start = typical(fitted.scaler)
        if reference is not None:
            start = _mean(fitted.scaler.transform(reference))
        found, value = contributions(model, Z, start)
        found = per_feature(found, fitted.scaler)
        shape = found.shape[0], found.shape[2]
        spread = fitted.targets.spread(found.transpose(1, 0, 2).reshape(len(value), -1))
        parts = [own.reshape(shape) for own in spread]
    first = fitted.targets.spread(value[:, None])[:, 0] + fitted.targets.center
    parts = [_by_column(own, fitted.columns) for own in parts]
    if _single(fitted, len(parts)):
        return Explanation(parts[0], float(first[0]))
    return Explanation(parts if sp.issparse(parts[0]) else np.stack(parts, axis=1), first)


def raw_weights(fitted: Fitted) -> Array:
    """Weights and intercepts of the user's rows and targets, one row per output."""
    weights = fitted.targets.spread(fitted.scaler.to_raw(fitted.model().weights.copy()))
    weights[:, -1] += fitted.targets.center
    return weights


def _linear(fitted: Fitted, X: Any, reference: Any) -> tuple[list[Any], Array]:
    """w · (x - reference) of every feature, one array per output, and the score of the reference."""
    weights, scaler = raw_weights(fitted)[:, :-1], fitted.scaler
    start = scaler.center if isinstance(scaler, Scaler) else np.zeros(weights.shape[1])
    start = start if reference is None else _mean(reference)
    first = fitted.model().decide(scaler.transform(start[None]))[0]
    with np.errstate(over="ignore"):
        if sp.issparse(X) and not start.any():
            return [sp.csr_array(X.multiply(own)) for own in weights], first
        gap = (X.toarray() if sp.issparse(X) else X) - start
        return [np.clip(gap * own, -MOST, MOST) for own in weights], first


def _mean(X: Any) -> Array:
    return np.asarray(X.mean(axis=0), np.float64).ravel()


def _by_column(parts: Any, columns: Columns) -> Any:
    """Sums over the features that each column of the table was encoded as."""
    if columns.plain:
        return parts
    assert columns.encoder is not None
    layout = columns.encoder.layout
    return np.asarray(parts @ np.eye(layout.columns)[layout.owner])


def _single(fitted: Fitted, outputs: int) -> bool:
    """Whether predictions have no axis of outputs."""
    return outputs == 1 and not getattr(fitted.task, "outputs", 0)


def neighbours_of(fitted: Fitted, X: Any, k: int) -> Neighbours:
    """The k training rows that contribute most to the scores of encoded rows."""
    found = terms(fitted.model(), fitted.scaler.transform(X))
    outputs = len(found[0].values)
    rows, values = np.full((len(found), outputs, k), -1), np.zeros((len(found), outputs, k))
    for i, (ids, each) in enumerate(found):
        order = np.argsort(-np.abs(each), axis=1, kind="stable")[:, :k]
        rows[i, :, : order.shape[1]] = ids[order]
        values[i, :, : order.shape[1]] = fitted.targets.spread(
            np.take_along_axis(each, order, axis=1)
        )
    if _single(fitted, outputs):
        return Neighbours(rows[:, 0], values[:, 0])
    return Neighbours(rows, values)
