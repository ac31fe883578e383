"""Checks of what users hand in. They run once per call, before anything is changed.

scikit-learn is imported where something has to be converted: `pistol predict` starts faster without.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import inf
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.rows import sq_norms, sq_norms_between
from .._compiled.threads import workers
from .._compiled.types import MAX_NORM_SQ, MAX_TARGET, Array

MAX_WEIGHT = 1e12
MANY = 2**20  # stored values from which threads are worth their while
DTYPES = [np.float64, np.float32]
LAYOUT: dict[str, Any] = {
    "dtype": DTYPES,
    "order": "C",
    "accept_sparse": "csr",
    "ensure_all_finite": False,  # `finite` says more about what is wrong
}


def usable(X: Any, names: Sequence[Any] | Array | None, n_jobs: int | None = 1) -> Any:
    """X, if its values are finite and its norms leave room for arithmetic; CSR in canonical form."""
    X, largest = _canonical_with_norm(X, n_jobs) if sp.issparse(X) else (X, _largest(sq_norms(X)))
    if not largest <= MAX_NORM_SQ:
        _refuse_values(X, names)
        raise ValueError(
            f"X has a row of Euclidean norm {np.sqrt(largest):.3g}; at most "
            f"{np.sqrt(MAX_NORM_SQ):.0e} is supported: divide the features by a constant"
        )
    return X


def _canonical_with_norm(X: Any, n_jobs: int | None) -> tuple[Any, float]:
    """Sparse rows in canonical form, and their largest squared norm; both looks at once."""
    X = as_csr(X)
    with workers(n_jobs if X.nnz >= MANY else 1) as threads:
        ends = np.linspace(0, X.shape[0], threads.n + 1).astype(int)
        looks: list[Any] = [partial(getattr, X, "has_canonical_format")]
        looks += [partial(sq_norms_between, X, lo, hi) for lo, hi in pairwise(ends)]
        found, *norms = threads.run(looks)
    if not found:
        X = canonical(X)
        norms = [sq_norms(X)]
    return X, float(np.max([_largest(part) for part in norms]))  # `max` would lose NaN


def _largest(norms: Array) -> float:
    return float(norms.max(initial=0.0))


def _refuse_values(X: Any, names: Sequence[Any] | Array | None) -> None:
    """Say where the first value is that is not finite, if there is one."""
    values = X.data if sp.issparse(X) else X
    bad = np.argwhere(~np.isfinite(values))
    if not len(bad):
        return
    row, feature = bad[0] if not sp.issparse(X) else _place(X, int(bad[0, 0]))
    what = "NaN" if np.isnan(values[tuple(bad[0])]) else "infinity"
    name = f"feature {feature}" if names is None else f"feature {names[feature]!r}"
    fix = "Drop such rows, or fill the gaps, for example with sklearn.impute.SimpleImputer"
    raise ValueError(
        f"X contains {what}: row {row}, {name}. "
        + (f"{fix}." if what == "NaN" else "Finite numbers are expected.")
    )


def _place(X: Any, at: int) -> tuple[int, int]:
    """Row and feature of a stored value."""
    return int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])


def as_csr(X: Any) -> Any:
    """A CSR array, if feature numbers have 32 bits."""
    if X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"X has {X.shape[1]} features; at most 2^31 - 1 are supported")
    return X if isinstance(X, sp.csr_array) else sp.csr_array(X)


def canonical(X: Any) -> Any:
    """A CSR array with sorted 32-bit feature numbers, none of them twice; X itself is not changed."""
    X = as_csr(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_weight(sample_weight: Any, X: Any, *, zero: bool) -> Array:
    """Non-negative finite weights, one per row; a number without a row's memory if there are none.

    All of them may be zero in a later chunk of a stream, which then changes nothing.
    """
    if sample_weight is None:
        return np.broadcast_to(1.0, X.shape[0])
    from sklearn.utils.validation import _check_sample_weight

    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, allow_all_zero_weights=zero)
    return check_weights(np.asarray(weight))


def check_weights(weight: Array, name: str = "sample_weight") -> Array:
    """Weights that can be learned with."""
    bad = np.flatnonzero(~((weight >= 0) & (weight < inf)))
    if len(bad):
        raise ValueError(
            f"{name} must be finite and must not be negative; {name}[{bad[0]}] = {weight[bad[0]]:g}"
        )
    if weight.max(initial=0.0) > MAX_WEIGHT:
        raise ValueError(
            f"{name} may be at most {MAX_WEIGHT:g}; got {weight.max():g}: "
            "divide all weights by a constant"
        )
    return weight


def check_targets(y: Any) -> Array:
    """Real targets of shape (rows, outputs)."""
    from sklearn.utils.validation import check_array

    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    if np.abs(y).max(initial=0.0) > MAX_TARGET:
        raise ValueError(f"y must not exceed {MAX_TARGET:g} in magnitude; got {np.abs(y).max():g}")
    return np.ascontiguousarray(y.reshape(len(y), -1))


def check_counts(Y: Array, loss: str) -> None:
    """Counts: targets that are not negative."""
    bad = np.argwhere(Y < 0)
    if len(bad):
        row, output = bad[0]
        where = f"y[{row}]" if Y.shape[1] == 1 else f"y[{row}, {output}]"
        raise ValueError(
            f"the {loss} loss is for counts, which are not negative; {where} = {Y[row, output]:g}. "
            "Use loss='squared_error' for means of other targets"
        )


def check_gram(X: Any, columns: slice | None = None) -> None:
    """A precomputed kernel: square and symmetric, or rows of one in which `columns` are their own."""
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
    plain = value is None or isinstance(value, str | bool)
    if not plain or value not in choices:
        given = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {given}; got {value!r}")
