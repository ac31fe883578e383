"""Linear models: one weight per feature."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .._compiled.threads import Workers, workers
from .._compiled.types import Array
from .._data.fences import fences_of, within_stored
from .._data.layout import Layout
from .._data.ordering import content
from .._data.origin import OriginScaler, origin_scaler
from .._data.overview import Overview
from .._data.scaling import (
    Moments,
    Scaler,
    Unscaled,
    moments_of,
)
from .._data.seen import seen_in, sparsely_wide
from .._learners import Coordinates, Learner, Primal, RowsRun, Rule
from .families import Candidate, Data, Known, Revision, Sample
from .plan import Limits
from .race import Run


@dataclass(frozen=True)
class LinearFamily:
    """f as one weight per feature, learned as a whole or one coordinate at a time."""

    per_coordinate: bool = True
    fit_intercept: bool = True
    scaling: bool = True
    n_jobs: int | None = None

    @property
    def limits(self) -> Limits:
        """Rows are cheap; learners with very many features are large. The race chooses passes alone."""
        return Limits(
            few=30_000, sample=8192, most_repeats=4, repeated=400_000, only_passes=True,
            wide=100_000, wide_passes=8, full=1, single=2048,
        )  # fmt: skip

    def check(self, X: Any, own: slice | None) -> None:
        """Nothing more than what all rows must fulfil."""

    def content(self, data: Data) -> tuple[Array, Overview]:
        """Hashes of the rows."""
        with workers(self.n_jobs) as threads:
            return content(data.X, data.Y, data.weight, threads)

    def fenced(self, X: Any, seen: Overview, sample: Sample) -> Any:
        """Values far out are moved to the fences of their feature."""
        if not self.scaling:
            return X
        if sp.issparse(X):
            with workers(self.n_jobs) as threads:
                return within_stored(X, seen, threads)
        rows, each = sample()
        return fences_of(X[rows], each).within(X) if len(rows) else X

    def scaler(self, X: Any, weight: Array, sample: Sample) -> Any:
        """Dense rows are centred, because per-coordinate learning needs it; sparse rows stay."""
        if not self.scaling or sp.issparse(X):
            return _unscaled(X)
        moments = moments_of(X, weight)
        return moments.scaler() if self.fit_intercept else origin_scaler(moments)

    def candidates(
        self,
        Z: Any,
        weight: Array,
        scaler: Any,
        numbers: Iterable[int] | None = None,
        square: float | None = None,
    ) -> dict[int, Candidate]:
        """One."""
        return {0: ()}

    def usual(self, Z: Any, weight: Array, scaler: Any) -> Candidate:
        """The only one."""
        return ()

    def learner(self, candidate: Candidate, features: int, outputs: int, rule: Rule) -> Learner:
        """A learner with one weight per feature."""
        bias = 1.0 if self.fit_intercept else 0.0
        if self.per_coordinate:
            return Coordinates(rule, features, outputs, bias, n_jobs=self.n_jobs)
        return Primal(rule, features, outputs, bias)

    def runs(
        self,
        candidates: list[Candidate],
        data: Data,
        rule: Rule,
        threads: Workers,
        rows: Array | None = None,
        m: int | None = None,
    ) -> list[Callable[[], Run]]:
        """Learners that go over the rows again and again, in one thread each."""
        alone, features, outputs = replace(self, n_jobs=1), data.X.shape[1], data.Y.shape[1]
        return [lambda: RowsRun(alone.learner((), features, outputs, rule), data.X)]

    numbers: ClassVar[range] = range(1)
    scout: ClassVar[int] = 0

    def laid_out(self, layout: Layout) -> LinearFamily:
        """The same: each column has a scale of its own."""
        return self

    @property
    def settled(self) -> LinearFamily:
        """The same family: it has one scaling and no metric."""
        return self

    def metrics(self, Z: Any) -> int:
        """Never: the weights of a linear model say it all."""
        return 0

    def pooled(self, squares: Array, Z: Any, weight: Array, scaler: Any) -> Array:
        """The squares themselves."""
        return squares

    def scalings(self, Z: Any, weight: Array, scaler: Any, rows: int) -> list[Any]:
        """As scaled."""
        return [scaler]

    def compact(self, Z: Any) -> Any:
        """The rows as they are."""
        return Z

    def compact_model(self, model: Any) -> Any:
        """The model as it is."""
        return model

    def stream_scaler(self, X: Any) -> tuple[Any, Moments | None]:
        """Rows as they are, until the first look."""
        d = X.shape[1]
        if not self.scaling or sp.issparse(X):
            return _unscaled(X), None
        if self.fit_intercept:
            return Scaler(np.zeros(d), np.ones(d)), Moments(d)
        return OriginScaler(np.zeros(d), np.ones(d)), Moments(d)

    def touched(self, X: Any, scaler: Any) -> Any:
        """Those that occur in sparse rows; all in dense ones."""
        if not sp.issparse(X):
            return slice(None)
        Z = scaler.transform(X)
        if not sp.issparse(Z):
            return slice(None)
        if 4 * Z.shape[1] <= Z.nnz:  # to copy all takes less time than to find them
            return slice(None)
        if Z.shape[1] > 4 * Z.nnz:
            return np.unique(Z.indices)
        found = np.zeros(Z.shape[1], bool)  # faster than sorting
        found[Z.indices] = True
        return np.flatnonzero(found)

    def revise(self, known: Known, scaler: Any) -> Revision | None:
        """Another scaler; what was learned is the same function of unscaled rows."""
        moments = known.statistics()
        now = moments.scaler().faintly() if self.fit_intercept else origin_scaler(moments)
        if scaler.near(now):
            return None

        def carry(learner: Primal | Coordinates) -> None:
            weights = now.from_raw(scaler.to_raw(learner.model().weights))
            learner.start_from(weights, _ratio(now.per_feature(), scaler.per_feature()))

        return Revision(now, known.typical_sq, carry)


def _ratio(new: Array, old: Array) -> Array:
    """What features are multiplied by; beyond 1e±150 a feature is as good as new."""
    with np.errstate(over="ignore"):
        return np.clip(new / old, 1e-150, 1e150)


def _unscaled(X: Any) -> Any:
    """Rows as they are; of very wide sparse rows the features seen."""
    return seen_in(X) if sparsely_wide(X) else Unscaled(X.shape[1])
