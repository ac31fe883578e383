"""What learns: kernel machines, or linear models. A family makes learners and scales their rows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from .._compiled.threads import Workers
from .._compiled.types import Array, pick
from .._data.bends import Bent, bent_scaler
from .._data.fences import fences_of, within_stored
from .._data.layout import Layout
from .._data.metric import Weighted
from .._data.ordering import content, mix
from .._data.origin import OriginScaler, origin_scaler
from .._data.scaling import (
    Moments,
    Scaler,
    Unscaled,
    moments_of,
    near,
    scaler_of,
    stays_sparse,
    typical_square,
)
from .._data.seen import seen_in, sparsely_wide
from .._data.sums import MIXED, SUMS
from .._data.validation import check_choice, check_gram, check_number
from .._learners import Coordinates, Dual, Gram, GramRun, Learner, Primal, RowsRun, Rule
from .._learners.models import Expansion
from ..kernels import NAMES, Kernel, get_kernel, scale_gamma
from .plan import Limits
from .race import Run

METRICS = 4  # rounds of the metric, at most
CELL = 2500  # rounds of a cell, at most
MANY = 1000  # support rows from which on predictions are computed in float32
WIDEST = 4096  # features: with more of them there is no metric
Sample = tuple[Array, Array]  # numbers of some rows, and how many rounds each stands for
Candidate = tuple[Kernel, ...]  # the kernels of a sum; none for linear models


class Data(NamedTuple):
    """Rows, targets and weights: as given or scaled, never both under one name."""

    X: Any
    Y: Array
    weight: Array
    ids: Array  # numbers of the rows, counted over all rows seen


class Known(NamedTuple):
    """What is known of the rows of a stream when its scaling is looked at."""

    moments: Moments
    typical_sq: float  # the mean squared distance of two rows, as they are scaled now
    row: Any  # the next one, which is there before its target is learned
    metric: Array | None = None  # weights of the features, where a new metric was found

    def statistics(self) -> Moments:
        """Those of all rows so far, with the next one."""
        moments = copy.copy(self.moments)
        moments.add(self.row, np.ones(1))
        return moments


class Revision(NamedTuple):
    """A new scaler for a stream, and what each learner does to go on with it."""

    scaler: Any
    typical_sq: float
    carry: Callable[[Any], None]


class Family(Protocol):
    """What training asks of a family. It knows nothing of tasks."""

    @property
    def n_jobs(self) -> int | None:
        """Threads."""

    @property
    def limits(self) -> Limits:
        """What it can afford."""

    def check(self, X: Any, own: slice | None) -> None:
        """Refuse rows that are no rows for it; `own` are the numbers of a chunk's rows."""

    def content(self, data: Data) -> Array:
        """A hash of every row."""

    def fenced(self, X: Any, weight: Array, sample: Sample) -> Any:
        """The rows of a data set as they are learned, but for their scale."""

    def scaler(self, X: Any, weight: Array, sample: Sample) -> Any:
        """How the rows of a data set are scaled."""

    def candidates(self, Z: Any, weight: Array, scaler: Any) -> list[Candidate]:
        """What a race is between."""

    def usual(self, Z: Any, weight: Array, scaler: Any) -> Candidate:
        """The candidate where there is no race."""

    def learner(self, candidate: Candidate, features: int, outputs: int, rule: Rule) -> Learner:
        """A learner that has learned nothing yet."""

    def runs(
        self, candidates: list[Candidate], data: Data, rule: Rule, threads: Workers
    ) -> list[Callable[[], Run]]:
        """Makers of runs for a race between candidates."""

    scout: ClassVar[int]  # the number of the candidate whose gradients say which features matter

    def laid_out(self, layout: Layout) -> Family:
        """The family for rows in which some columns belong together."""

    def metrics(self, Z: Any) -> int:
        """How many times a race may find a metric for these scaled rows."""

    def pooled(self, squares: Array, Z: Any) -> Array:
        """Mean squared derivatives, alike for columns of scaled rows that belong together."""

    def compact(self, Z: Any) -> Any:
        """Scaled rows as they are kept where there are many."""

    def compact_model(self, model: Any) -> Any:
        """A model as it predicts."""

    def stream_scaler(self, X: Any) -> tuple[Any, Moments | None]:
        """The scaler of a stream before its first row, and statistics if it will be revised."""

    def touched(self, X: Any, scaler: Any) -> Any:
        """Numbers of the scaled features that learning from these rows may change."""

    def revise(self, known: Known, scaler: Any) -> Revision | None:
        """Another scaler for a stream, if what is known by now differs from what is used."""


@dataclass(frozen=True)
class KernelFamily:
    """f as an expansion over support rows, with one kernel or with sums of several."""

    kernel: Any
    gamma: Any = "scale"
    degree: float = 3
    coef0: float = 0.0
    scaling: bool | str = True
    n_jobs: int | None = None
    metric: bool = True
    layout: Layout | None = None  # of encoded tables

    @classmethod
    def checked(cls, *parameters: Any) -> KernelFamily:
        """The family with these parameters, if they are valid."""
        family = cls(*parameters)
        if not callable(family.kernel):
            pick(dict.fromkeys(("auto", *NAMES)), "kernel", family.kernel)
        if isinstance(family.gamma, str):
            check_choice("gamma", family.gamma, ("scale", "auto"))
        else:
            check_number("gamma", family.gamma)
        check_number("degree", family.degree)
        check_number("coef0", family.coef0, closed=True)
        check_choice("scaling", family.scaling, (True, False, "standard"))
        if not family.auto:
            get_kernel(family.kernel, 1.0, family.degree, family.coef0)
        return family

    @property
    def auto(self) -> bool:
        """Whether the kernels are ours to choose."""
        return isinstance(self.kernel, str) and self.kernel == "auto"

    @property
    def precomputed(self) -> bool:
        """Whether X is a Gram matrix."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def limits(self) -> Limits:
        """A race on a sample chooses for many rows, but not for a Gram matrix."""
        if self.precomputed:
            return Limits(few=4096)
        if self.auto:
            return Limits(few=4096, sample=2048, cell=CELL)
        return Limits(few=4096, sample=2048, most_repeats=10, repeated=50_000)

    def check(self, X: Any, own: slice | None) -> None:
        """A Gram matrix must be one."""
        if self.precomputed:
            check_gram(X, own)

    def content(self, data: Data) -> Array:
        """Hashes of the rows; those of a Gram matrix are told apart by their numbers."""
        if self.precomputed:
            return mix((data.ids + 1).astype(np.uint64))
        return content(data.X, data.Y, data.weight)

    def fenced(self, X: Any, weight: Array, sample: Sample) -> Any:
        """The rows as they are."""
        return X

    def scaler(self, X: Any, weight: Array, sample: Sample) -> Bent | Scaler | Unscaled:
        """Only sums of kernels take scaled rows."""
        if not (self.auto and self.scaling):
            return Unscaled(X.shape[1])
        standard = self.scaling == "standard"
        scaler = scaler_of(X, weight) if standard else bent_scaler(X, weight, *sample)
        return (
            scaler
            if self.layout is None
            else self.layout.levelled(scaler, self.layout.means(X, weight))
        )

    def laid_out(self, layout: Layout) -> KernelFamily:
        """One-hot columns of a category count as one feature."""
        return replace(self, layout=layout)

    def pooled(self, squares: Array, Z: Any) -> Array:
        """The mean over one-hot columns of a category."""
        return squares if self.layout is None else self.layout.pooled(squares, Z)

    def _varying(self, scaler: Any) -> float:
        """In how many features the rows differ, as if all of these counted the same."""
        if self.layout is not None and self.layout.hot.any():
            return max(self.layout.count(scaler.varies), 1)
        return _varying(scaler)

    def candidates(self, Z: Any, weight: Array, scaler: Any) -> list[Candidate]:
        """All sums of kernels, or the one kernel that was named."""
        if not self.auto:
            return [self.usual(Z, weight, scaler)]
        square = typical_square(Z, weight)
        return [each.kernels(square, self._varying(scaler)) for each in SUMS]

    def usual(self, Z: Any, weight: Array, scaler: Any) -> Candidate:
        """The mixed sum, or the one kernel that was named."""
        if self.auto:
            return MIXED.kernels(typical_square(Z, weight), self._varying(scaler))
        gamma = self.gamma
        if isinstance(gamma, str):
            gamma = scale_gamma(Z, weight) if gamma == "scale" else 1.0 / Z.shape[1]
        return (get_kernel(self.kernel, gamma, self.degree, self.coef0),)

    def learner(self, candidate: Candidate, features: int, outputs: int, rule: Rule) -> Learner:
        """A learner with coefficients of support rows."""
        return Dual(rule, candidate, outputs, self.n_jobs)

    def runs(
        self, candidates: list[Candidate], data: Data, rule: Rule, threads: Workers
    ) -> list[Callable[[], Run]]:
        """Runs on kernel values that are computed once for all of them."""
        square = data.X[:, data.ids] if self.precomputed else data.X
        gram = Gram(square, [kernel for kernels in candidates for kernel in kernels], threads)
        return [
            partial(GramRun, gram, kernels, rule, data.Y.shape[1], data.X, data.ids, self.n_jobs)
            for kernels in candidates
        ]

    scout: ClassVar[int] = SUMS.index(MIXED)

    def metrics(self, Z: Any) -> int:
        """Some, unless there is one feature, or more of them than can be looked at."""
        asked = self.auto and self.metric and bool(self.scaling)
        return METRICS if asked and 1 < Z.shape[1] <= WIDEST else 0

    def compact(self, Z: Any) -> Any:
        """Scaled rows in float32, which loses nothing that matters."""
        return Z.astype(np.float32) if self.auto else Z

    def compact_model(self, model: Any) -> Any:
        """With many scaled support rows in float32, in which predictions are then computed."""
        many = isinstance(model, Expansion) and self.scaling and len(model.ids) >= MANY
        return replace(model, rows=self.compact(model.rows)) if many else model

    def stream_scaler(self, X: Any) -> tuple[Any, Moments | None]:
        """Rows as they are, until the first look."""
        d = X.shape[1]
        if not self.auto:
            return Unscaled(d), None
        if not self.scaling:
            return Unscaled(d), Moments(d)
        scaler = Scaler(np.zeros(d), np.ones(d), not stays_sparse(X, whole=False))
        return scaler if self.scaling == "standard" else Bent(scaler), Moments(d)

    def touched(self, X: Any, scaler: Any) -> Any:
        """All: support rows are added, none is changed."""
        return slice(None)

    def revise(self, known: Known, scaler: Any) -> Revision | None:
        """Another scaler and other kernels, made for it."""
        moments = known.statistics()
        now = self._rescaled(moments, scaler)
        if known.metric is not None:
            now = Weighted(now.scaler if isinstance(now, Weighted) else now, known.metric)
        square = _typical_square(moments, now)
        if (now is scaler or scaler.near(now)) and near(known.typical_sq, square):
            return None
        kernels = MIXED.kernels(square, self._varying(now))

        def carry(learner: Dual) -> None:
            learner.rescale(lambda Z: now.transform(scaler.inverse_transform(Z)), kernels)

        return Revision(now, square, carry)

    def _rescaled(self, moments: Moments, scaler: Any) -> Any:
        """The scaler that statistics suggest, with the metric that a fit may have found."""
        if not self.scaling:
            return scaler
        if isinstance(scaler, Weighted):
            return Weighted(self._rescaled(moments, scaler.scaler), scaler.weight)
        if isinstance(scaler, Bent):
            return Bent(self._rescaled(moments, scaler.scaler))
        now = moments.scaler(scaler.centred).faintly()
        return now if self.layout is None else self.layout.levelled(now, moments.mean)


@dataclass(frozen=True)
class LinearFamily:
    """f as one weight per feature, learned as a whole or one coordinate at a time."""

    per_coordinate: bool = True
    fit_intercept: bool = True
    scaling: bool = True
    n_jobs: int | None = None

    @property
    def limits(self) -> Limits:
        """Rows are cheap; learners with very many features are large."""
        return Limits(
            few=30_000, sample=8192, most_repeats=4, repeated=400_000, only_passes=True,
            wide=100_000, wide_passes=8, full=1,
        )  # fmt: skip

    def check(self, X: Any, own: slice | None) -> None:
        """Nothing more than what all rows must fulfil."""

    def content(self, data: Data) -> Array:
        """Hashes of the rows."""
        return content(data.X, data.Y, data.weight)

    def fenced(self, X: Any, weight: Array, sample: Sample) -> Any:
        """Values far out are moved to the fences of their feature."""
        if not self.scaling or not len(sample[0]):
            return X
        if sp.issparse(X):
            return within_stored(X, weight)
        rows, each = sample
        return fences_of(X[rows], each).within(X)

    def scaler(self, X: Any, weight: Array, sample: Sample) -> Any:
        """Dense rows are centred, because per-coordinate learning needs it; sparse rows stay."""
        if not self.scaling or sp.issparse(X):
            return _unscaled(X)
        moments = moments_of(X, weight)
        return moments.scaler() if self.fit_intercept else origin_scaler(moments)

    def candidates(self, Z: Any, weight: Array, scaler: Any) -> list[Candidate]:
        """One."""
        return [()]

    def usual(self, Z: Any, weight: Array, scaler: Any) -> Candidate:
        """The only one."""
        return ()

    def learner(self, candidate: Candidate, features: int, outputs: int, rule: Rule) -> Learner:
        """A learner with one weight per feature."""
        make = Coordinates if self.per_coordinate else Primal
        return make(rule, features, outputs, bias=1.0 if self.fit_intercept else 0.0)

    def runs(
        self, candidates: list[Candidate], data: Data, rule: Rule, threads: Workers
    ) -> list[Callable[[], Run]]:
        """Learners that go over the rows again and again."""
        features, outputs = data.X.shape[1], data.Y.shape[1]
        return [lambda: RowsRun(self.learner((), features, outputs, rule), data.X)]

    scout: ClassVar[int] = 0

    def laid_out(self, layout: Layout) -> LinearFamily:
        """The same: each column has a scale of its own."""
        return self

    def metrics(self, Z: Any) -> int:
        """Never: the weights of a linear model say it all."""
        return 0

    def pooled(self, squares: Array, Z: Any) -> Array:
        """The squares themselves."""
        return squares

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


def _typical_square(moments: Moments, scaler: Any) -> float:
    """The mean squared distance of two rows in this scaling, from statistics of unscaled rows."""
    scale: Any = 1.0
    if isinstance(scaler, Weighted):
        scale, scaler = scaler.weight, scaler.scaler
    if isinstance(scaler, Bent):
        scaler = scaler.scaler
    return moments.typical_square(scale * scaler.scale if isinstance(scaler, Scaler) else scale)


def _varying(scaler: Any) -> float:
    """In how many features the rows differ, as if all of these counted the same."""
    return scaler.effective if isinstance(scaler, Weighted) else max(int(scaler.varies.sum()), 1)
