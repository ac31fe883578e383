"""What each feature, and what each support row, contributes to the value of f at a row.

Features: integrated gradients. The contribution of feature i is ∫ ∂f/∂x_i dx_i along the straight line
from a reference to the row, so that all of them add up to f(row) - f(reference). The integral is a sum
over points of the line. What this misses, and the steps of f where the line goes from one cell to
another, is added in proportion to the size of the contributions, so that the sum is exact. A step of a
forest from a node to one below it is a contribution of the feature that the node looks at.

Support rows: f is a sum over them, and a forest, so what each contributes is a term of this sum.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.rows import like, sq_norms
from .._compiled.tiles import kernel_values
from .._compiled.types import Array
from .cells import Patchwork, centred, members
from .forest import Forest
from .gradients import gradients_of
from .models import Expansion

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(16)  # of the integral
PART = 64  # rows that are looked at together


def integrated_gradients(model: Any, Z: Array, start: Array) -> Array:
    """Contributions of shape (rows, outputs, features) from gradients at points between start and Z."""
    way, whole = Z - start, whole_of(model)
    gradients = gradients_of(model, exact=True)
    total = np.zeros((Z.shape[0], whole.coef.shape[1], Z.shape[1]))
    for point, weight in zip(0.5 * (1.0 + POINTS), 0.5 * WEIGHTS, strict=True):
        G = gradients(like(whole.rows, start + point * way)).astype(np.float64)
        total += weight * G.transpose(1, 0, 2) * way[:, None, :]
    return total


def contributions(model: Any, Z: Any, start: Array) -> tuple[Array, Array]:
    """What each feature adds to f(start), of shape (rows, outputs, features), and f(start)."""
    rows = whole_of(model).rows
    first = model.decide(like(rows, start[None]))[0]
    found = []
    for lo in range(0, Z.shape[0], PART):
        A = Z[lo : lo + PART]
        A = (A.toarray() if sp.issparse(A) else A).astype(np.float64)
        parts, last = integrated_gradients(model, A, start), model.decide(like(rows, A))
        parts += _of_forest(model, A, start)
        found.append(_completed(parts, last - first))
    return np.concatenate(found), first


def _of_forest(model: Any, Z: Array, start: Array) -> Any:
    """What the steps of a forest contribute, if there is one."""
    forest = forest_of(model)
    return 0.0 if forest is None else forest.steps(Z) - forest.steps(start[None])


def forest_of(model: Any) -> Forest | None:
    """The trees that all rows share, if there are any."""
    return model.forest if isinstance(model, Patchwork) else None


def whole_of(model: Any) -> Expansion:
    """The part of f that is there in all space."""
    return model.base if isinstance(model, Patchwork) else model


def _completed(parts: Array, total: Array) -> Array:
    """The parts of every row and output, with what they lack of their total."""
    size = np.abs(parts)
    size[size.sum(axis=-1) <= 0.0] = 1.0  # a step of f where it is flat: nobody knows why
    share = size / size.sum(axis=-1, keepdims=True)
    return parts + share * (total - parts.sum(axis=-1))[..., None]


class Terms(NamedTuple):
    """The terms of f at a row: numbers of support rows, ascending, and what each contributes."""

    ids: Array
    values: Array  # of shape (outputs, support rows)


def terms(model: Any, Z: Any) -> list[Terms]:
    """The terms of f at every row of Z; a row that several parts of f use has their sum."""
    found: list[list[Terms]] = [[] for _ in range(Z.shape[0])]
    _collect(found, whole_of(model), Z, np.arange(Z.shape[0]), 1.0)
    for part in model.parts if isinstance(model, Patchwork) else ():
        for cell, at in members(part.tree, Z):
            inside = centred(Z[at], part.centres[cell])
            _collect(found, part.models[cell], inside, at, 1.0 / len(model.parts))
    nothing = Terms(np.zeros(0, np.int64), np.zeros((whole_of(model).coef.shape[1], 0)))
    return [_merged([nothing, *parts]) for parts in found]


def _collect(found: list[list[Terms]], model: Expansion, Z: Any, at: Array, share: float) -> None:
    """Add the terms of one expansion, which counts so much, to those of some rows."""
    for lo in range(0, len(at) if len(model.ids) else 0, PART):
        A = Z[lo : lo + PART]
        A = A if model.precomputed else like(model.rows, A)
        a_sq = np.zeros(A.shape[0]) if model.precomputed else sq_norms(A)
        values = np.stack(kernel_values(model.kernels, model.rows, A, model.sq, a_sq))
        each = share * np.einsum("qjn,qni->ijn", model.coef, values)
        for i, own in zip(at[lo : lo + PART], each, strict=True):
            found[i].append(Terms(model.ids, own))


def _merged(parts: list[Terms]) -> Terms:
    ids, place = np.unique(np.concatenate([part.ids for part in parts]), return_inverse=True)
    values = np.zeros((parts[0].values.shape[0], len(ids)))
    np.add.at(values.T, place, np.concatenate([part.values.T for part in parts]))
    return Terms(ids, values)
