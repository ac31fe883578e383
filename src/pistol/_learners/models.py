"""What learning leaves behind: a function f with one value per output, ready to be evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.rows import like, sq_norms
from .._compiled.threads import one_blas_thread, workers
from .._compiled.tiles import BLOCK, laid_out, scores, total_scores
from .._compiled.types import Array
from ..kernels import Kernel, precomputed_base
from .polynomials import Polynomial, polynomial_of

IDLE = 1e-6  # a kernel of a smaller share is dropped
VALUE = 64  # features that cost as much as what is made of a product of rows
LITTLE = 2**26  # work that is done before another thread has started


@dataclass(frozen=True, eq=False)
class Linear:
    """f_j(x) = ⟨w_j, x⟩ + w_j0; one row of weights per output, the intercept last."""

    weights: Array

    def decide(self, X: Any) -> Array:
        """Scores of shape (rows, outputs)."""
        weights = self.weights[:, : X.shape[1]]  # of a wide learner there may be more
        return np.asarray(X @ weights.T) + self.weights[:, -1]

    def norm(self) -> Array:
        """‖f_j‖, the intercept included."""
        size = np.maximum(np.abs(self.weights).max(axis=1, initial=0.0), 1e-300)
        return _product(size, np.linalg.norm(self.weights / size[:, None], axis=1))

    @staticmethod
    def mean(models: Sequence[Linear]) -> Linear:
        """The average of the models."""
        return Linear(np.mean([model.weights for model in models], axis=0))


@dataclass(frozen=True, eq=False)
class Expansion:
    """f_j = offset_j + Σ_q Σ_n coef[q, j, n] k_q(s_n, ·), over support rows s_n with numbers `ids`."""

    kernels: tuple[Kernel, ...]
    ids: Array
    rows: Any
    sq: Array
    coef: Array
    n_jobs: int | None = None
    offset: Array | None = None

    def decide(self, X: Any) -> Array:
        """Scores of shape (rows, outputs)."""
        out = self._values(X)
        return out if self.offset is None else out + self.offset

    def _values(self, X: Any) -> Array:
        out = np.zeros((X.shape[0], self.coef.shape[1]))
        if len(self.ids) == 0:
            return out
        if self._polynomial is not None:
            return self._polynomial.decide(X)
        coef, few = (
            np.ascontiguousarray(self.coef.transpose(0, 2, 1)),
            self.work(X.shape[0]) <= LITTLE,
        )
        many, rows = X.shape[0] >= BLOCK, self.rows
        if many and not sp.issparse(rows):
            rows = rows[:]  # one copy, should they be copied when they are asked for
        layout = laid_out(self.kernels, rows, coef.shape[2]) if many else None
        with workers(1 if few else self.n_jobs) as threads, one_blas_thread():
            for lo in range(0, X.shape[0], BLOCK):
                A = X[lo : lo + BLOCK] if self.precomputed else like(rows, X[lo : lo + BLOCK])
                a_sq = np.zeros(A.shape[0]) if self.precomputed else sq_norms(A)
                total = total_scores(self.kernels, rows, self.sq, coef, A, a_sq, threads, layout)
                out[lo : lo + BLOCK] = total.T
        return out

    def work(self, rows: float) -> float:
        """About how many operations it takes to decide so many rows."""
        if len(self.ids) == 0:
            return 0.0
        d = self.rows.shape[1]
        each = d if self._polynomial is not None else len(self.ids)
        return rows * each * (d + VALUE)

    @property
    def is_polynomial(self) -> bool:
        """Whether it is evaluated without its support rows."""
        return self._polynomial is not None

    @cached_property
    def _polynomial(self) -> Polynomial | None:
        """The same function without support rows, where that is faster."""
        return polynomial_of(self.kernels, self.rows, self.sq, self.coef)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_polynomial"}

    @property
    def precomputed(self) -> bool:
        """Whether the rows are columns of a Gram matrix rather than points."""
        return self.kernels[0].base is precomputed_base

    def norm(self) -> Array:
        """‖f_j‖ = √Σ coef f_j(s_n), for a single kernel whose points are known."""
        if self.precomputed or len(self.kernels) > 1:
            raise AttributeError("the norm is known only for a single kernel with known points")
        if len(self.ids) == 0:
            return np.zeros(self.coef.shape[1])
        size = np.maximum(np.abs(self.coef).max(axis=(0, 2)), 1e-300)  # products may overflow
        unit = replace(self, coef=self.coef / size[:, None])
        f = unit._values(self.rows).T
        return _product(size, np.sqrt(np.maximum((f * unit.coef[0]).sum(axis=1), 0.0)))

    def shares(self) -> Array:
        """What each kernel contributes: the size of its part of f at support rows; they sum to 1."""
        if len(self.ids) == 0 or len(self.kernels) == 1:
            return np.full(len(self.kernels), 1.0 / len(self.kernels))
        size = self.sizes()
        return size / max(size.sum(), 1e-300)

    def sizes(self) -> Array:
        """The root mean square of each kernel's part of f at support rows."""
        if len(self.ids) == 0:
            return np.zeros(len(self.kernels))
        some = self.rows[:: max(1, len(self.ids) // BLOCK)]
        coef = np.ascontiguousarray(self.coef.transpose(0, 2, 1))
        with workers(self.n_jobs) as threads, one_blas_thread():
            parts, _ = scores(self.kernels, self.rows, self.sq, coef, some, sq_norms(some), threads)
        largest = max(float(np.abs(parts).max()), 1e-300)
        return _product(largest, np.sqrt(np.square(parts / largest).mean(axis=(1, 2))))

    def without_idle(self) -> Expansion:
        """The same function without kernels that contribute next to nothing."""
        keep = np.flatnonzero(self.shares() > IDLE)
        if len(keep) in (0, len(self.kernels)):
            return self
        kernels = tuple(self.kernels[q] for q in keep)
        return replace(self, kernels=kernels, coef=self.coef[keep])

    def without_zeros(self) -> Expansion:
        """The same function without the rows whose coefficients are all zero."""
        keep = np.flatnonzero(self.coef.any(axis=(0, 1)))
        coef, ids = self.coef[:, :, keep], self.ids[keep]
        return replace(self, ids=ids, rows=self.rows[keep], sq=self.sq[keep], coef=coef)

    @staticmethod
    def mean(models: Sequence[Expansion]) -> Expansion:
        """The average of the models; a row that several of them use is kept once."""
        if len(models) == 1:
            return models[0]
        all_ids = np.concatenate([model.ids for model in models])
        ids, at, place = np.unique(all_ids, return_index=True, return_inverse=True)
        stack = sp.vstack if sp.issparse(models[0].rows) else np.vstack
        rows = stack([model.rows for model in models])
        if sp.issparse(rows):
            rows = sp.csr_array(rows)
        coef = np.zeros((len(ids), *models[0].coef.shape[:2]))
        np.add.at(coef, place, np.concatenate([m.coef.transpose(2, 0, 1) for m in models]))
        sq = np.concatenate([model.sq for model in models])
        coef = coef.transpose(1, 2, 0) / len(models)
        offsets = [model.offset for model in models if model.offset is not None]
        offset = np.sum(offsets, axis=0) / len(models) if offsets else None
        return replace(models[0], ids=ids, rows=rows[at], sq=sq[at], coef=coef, offset=offset)


def _product(a: Any, b: Array) -> Array:
    """a · b, or as large as a number can be."""
    with np.errstate(over="ignore"):
        return np.minimum(a * b, np.finfo(float).max)


Model = Any  # Linear, Expansion or, in cells, Patchwork


def mean_model(models: Sequence[Any]) -> Model:
    """The average of models of one kind."""
    mean = type(models[0]).mean(models)
    return mean.without_idle() if isinstance(mean, Expansion) else mean
