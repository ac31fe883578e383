"""Checks of what users hand in. They run once a call, before anything is changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from .._compiled.rows import sq_norms
from .._compiled.types import MAX_NORM_SQ, MAX_TARGET, Array

MAX_WEIGHT = 1e6  # weight k is k rounds
MAX_ROUNDS = 2e8  # of one call; each takes sixteen bytes
CALLBACK_STATE = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")
DTYPES = [np.float64, np.float32]


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[dict[str, Any]]:
    """Put the estimator's attributes back if anything in the block fails; hands them out."""
    before = dict(vars(estimator))
    try:
        yield before
    except BaseException:
        restore(estimator, before)
        raise


def restore(estimator: Any, attributes: dict[str, Any]) -> None:
    """Give an estimator these attributes, but for what scikit-learn needs to end its callbacks."""
    attributes = attributes | {k: v for k, v in vars(estimator).items() if k in CALLBACK_STATE}
    vars(estimator).clear()
    vars(estimator).update(attributes)


def check_rows(
    estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool, **checks: Any
) -> Any:
    """X (and y) as finite C-contiguous or CSR floats whose norms leave room for arithmetic."""
    checked = validate_data(
        estimator, X, y, reset=reset, dtype=DTYPES, order="C", accept_sparse="csr", **checks
    )
    X = checked[0] if isinstance(checked, tuple) else checked
    if sp.issparse(X):
        X = canonical(X)
    largest = sq_norms(X).max(initial=0.0)
    if not largest <= MAX_NORM_SQ:
        raise ValueError(
            f"X has a row of Euclidean norm {np.sqrt(largest):.3g}; at most "
            f"{np.sqrt(MAX_NORM_SQ):.0e} is supported: divide the features by a constant"
        )
    return (X, checked[1]) if isinstance(checked, tuple) else X


def canonical(X: Any) -> Any:
    """A CSR array with sorted 32-bit column numbers, none of them twice; X itself is not changed."""
    if X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"X has {X.shape[1]} features; at most 2^31 - 1 are supported")
    X = sp.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_weight(sample_weight: Any, X: Any, *, zero: bool) -> Array:
    """Non-negative finite weights, one a row; a number without a row's memory if there are none.

    All of them may be zero in a later chunk of a stream, which then changes nothing.
    """
    if sample_weight is None:
        return np.broadcast_to(1.0, X.shape[0])
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, allow_all_zero_weights=zero)
    return check_rounds(np.asarray(weight))


def check_rounds(weight: Array, name: str = "sample_weight") -> Array:
    """Weights that can be played."""
    bad = np.flatnonzero(~((weight >= 0) & (weight < inf)))
    if len(bad):
        raise ValueError(
            f"{name} must be finite and must not be negative; {name}[{bad[0]}] = {weight[bad[0]]:g}"
        )
    if weight.max(initial=0.0) > MAX_WEIGHT:
        raise ValueError(
            f"{name} counts rounds and may be at most {MAX_WEIGHT:g}; got {weight.max():g}: "
            "divide all weights by a constant"
        )
    if weight.sum() > MAX_ROUNDS:
        raise ValueError(
            f"{name} adds up to {weight.sum():g} rounds; at most {MAX_ROUNDS:g} can be played in one "
            "call: divide all weights by a constant"
        )
    return weight


def check_targets(y: Any) -> Array:
    """Real targets of shape (rows, outputs)."""
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    if np.abs(y).max(initial=0.0) > MAX_TARGET:
        raise ValueError(f"y must not exceed {MAX_TARGET:g} in magnitude; got {np.abs(y).max():g}")
    return np.ascontiguousarray(y.reshape(len(y), -1))


def check_gram(X: Any, columns: slice | None = None) -> None:
    """A precomputed kernel: square and symmetric, or rows of one in which `columns` are theirs."""
    if sp.issparse(X):
        raise ValueError("a precomputed kernel must be a dense matrix; got a sparse one")
    if columns is None and X.shape[0] != X.shape[1]:
        raise ValueError(f"a precomputed kernel must be square; got shape {X.shape}")
    if columns is not None and columns.stop > X.shape[1]:
        raise ValueError(
            f"a precomputed kernel of {X.shape[1]} columns has {X.shape[1]} rows in all; "
            f"this chunk would end at row {columns.stop}"
        )
    own = X if columns is None else X[:, columns]
    if not np.allclose(own, own.T, rtol=1e-5, atol=1e-7 * np.abs(own).max(initial=0.0)):
        i, j = np.unravel_index(np.abs(own - own.T).argmax(), own.shape)
        raise ValueError(
            f"a precomputed kernel must be symmetric; entries ({i}, {j}) and ({j}, {i}) "
            f"are {own[i, j]:g} and {own[j, i]:g}"
        )
    if not (own.diagonal() >= 0).all():
        raise ValueError(f"a kernel needs k(x, x) >= 0; got {own.diagonal().min():g}")


def check_number(name: str, value: Any, low: float = 0.0, *, closed: bool = False) -> float:
    """A finite real number above `low` (or equal to it, if closed)."""
    ok = isinstance(value, Real) and not isinstance(value, bool) and value < inf
    if not ok or not (value >= low if closed else value > low):
        bound = "at least" if closed else "greater than"
        raise ValueError(f"{name} must be a finite number {bound} {low:g}; got {value!r}")
    return float(value)


def check_count(name: str, value: Any, *, none: str = "", auto: bool = False) -> None:
    """A whole number from 1 on, or "auto" or None where that means something."""
    if (value is None and none) or (auto and isinstance(value, str) and value == "auto"):
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        names = ["'auto'"] * auto + [f"None ({none})"] * bool(none)
        other = "".join(f", {name}" for name in names[:-1]) + "".join(
            f" or {n}" for n in names[-1:]
        )
        raise ValueError(f"{name} must be a whole number of at least 1{other}; got {value!r}")


def check_choice(name: str, value: Any, choices: Any) -> None:
    """One of a few values."""
    plain = value is None or isinstance(value, str)
    if not plain or value not in choices:
        given = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {given}; got {value!r}")
