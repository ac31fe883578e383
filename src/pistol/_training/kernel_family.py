"""Kernel machines: one kernel, or sums of several whose bandwidths need not be chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from .._compiled.threads import Workers, workers
from .._compiled.types import Array, pick
from .._data.bends import Bent, bent_scaler
from .._data.layout import Layout, pooled
from .._data.metric import Weighted
from .._data.ordering import content, mix
from .._data.overview import Overview
from .._data.scaling import (
    Moments,
    Scaler,
    Unscaled,
    near,
    scaler_of,
    stays_sparse,
    typical_square,
)
from .._data.steps import feature_of, stepped
from .._data.sums import MIXED, SUMS
from .._data.validation import check_choice, check_count, check_gram, check_number
from .._learners import Dual, Gram, GramRun, Learner, Rule
from .._learners.models import Expansion
from ..kernels import NAMES, get_kernel, scale_gamma
from .families import Candidate, Data, Known, Revision, Sample
from .plan import Limits
from .race import Run

METRICS = 4  # rounds of the metric, at most
CELL = 5000  # rounds of a cell, at most; fewer are learned together
PRECISE = 1024  # support rows up to which predictions in float64 cost next to nothing
WIDEST = 4096  # features: with more of them there is no metric, and there are no steps
ENTRIES = 2**27  # of all rows with steps, at most


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
    max_support: int | None = None  # support rows of a learner of a stream
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
        check_choice("scaling", family.scaling, (True, False, "robust", "standard"))
        if not family.auto:
            get_kernel(family.kernel, 1.0, family.degree, family.coef0)
        if family.max_support is not None:
            check_count("max_support", family.max_support, none="as many as there are")
            if family.precomputed:
                raise ValueError(
                    "max_support needs the kernel values of kept rows with each other, which a stream "
                    "with kernel='precomputed' does not give; use max_support=None or another kernel"
                )
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
            return Limits(
                few=CELL, sample=2048, cell=CELL, trial=self.metric and bool(self.scaling)
            )
        return Limits(few=4096, sample=2048, most_repeats=10, repeated=50_000)

    def check(self, X: Any, own: slice | None) -> None:
        """A Gram matrix must be one."""
        if self.precomputed:
            check_gram(X, own)

    def content(self, data: Data) -> tuple[Array, Overview | None]:
        """Hashes of the rows; those of a Gram matrix are told apart by their numbers."""
        if self.precomputed:
            return mix((data.ids + 1).astype(np.uint64)), None
        with workers(self.n_jobs) as threads:
            return content(data.X, data.Y, data.weight, threads)

    def fenced(self, X: Any, seen: Overview | None, sample: Sample) -> Any:
        """The rows as they are."""
        return X

    def scaler(self, X: Any, weight: Array, sample: Sample) -> Bent | Scaler | Unscaled:
        """Only sums of kernels take scaled rows."""
        if not (self.auto and self.scaling):
            return Unscaled(X.shape[1])
        standard = self.scaling == "standard"
        scaler = scaler_of(X, weight) if standard else bent_scaler(X, weight, *sample())
        return (
            scaler
            if self.layout is None
            else self.layout.levelled(scaler, self.layout.means(X, weight))
        )

    def laid_out(self, layout: Layout) -> KernelFamily:
        """One-hot columns of a category count as one feature."""
        return replace(self, layout=layout)

    def pooled(self, squares: Array, Z: Any, weight: Array, scaler: Any) -> Array:
        """The mean over a feature and its ramps, and over one-hot columns of a category."""
        group = feature_of(scaler)
        group = group if self.layout is None else self.layout.group[group]
        return pooled(squares, group, Z, weight)

    def scalings(self, Z: Any, weight: Array, scaler: Any, rows: int) -> list[Any]:
        """As scaled, and with steps where so many rows with steps fit into memory."""
        most = min(WIDEST, ENTRIES // max(rows, 1))
        steps = stepped(scaler, Z, weight, most) if self.auto and self.scaling is True else None
        return [scaler] if steps is None else [scaler, steps]

    def _varying(self, scaler: Any) -> float:
        """In how many features the rows differ, as if all of these counted the same."""
        if self.layout is not None and self.layout.hot.any():
            return max(self.layout.count(scaler.varies), 1)
        return _varying(scaler)

    def candidates(
        self,
        Z: Any,
        weight: Array,
        scaler: Any,
        numbers: Iterable[int] | None = None,
        square: float | None = None,
    ) -> dict[int, Candidate]:
        """Sums of kernels, all or some, or the one kernel that was named."""
        if not self.auto:
            return {0: self.usual(Z, weight, scaler)}
        square = typical_square(Z, weight) if square is None else square
        features = self._varying(scaler)
        some = self.numbers if numbers is None else numbers
        return {number: SUMS[number].kernels(square, features) for number in some}

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
        return Dual(rule, candidate, outputs, self.n_jobs, self.max_support)

    def runs(
        self,
        candidates: list[Candidate],
        data: Data,
        rule: Rule,
        threads: Workers,
        rows: Array | None = None,
        m: int | None = None,
    ) -> list[Callable[[], Run]]:
        """Runs on kernel values that are computed once for all of them."""
        square = data.X[:, data.ids] if self.precomputed else data.X
        kernels = [kernel for candidate in candidates for kernel in candidate]
        gram = Gram(square, kernels, threads, rows, m)
        return [
            partial(
                GramRun,
                gram,
                candidate,
                rule,
                data.Y.shape[1],
                data.X,
                data.ids,
                self.n_jobs,
                max_support=self.max_support,
            )
            for candidate in candidates
        ]

    @property
    def settled(self) -> KernelFamily:
        """The family for rows whose scaling and metric are chosen already."""
        return replace(self, metric=False, scaling="robust")

    numbers: ClassVar[range] = range(len(SUMS))  # of the candidates
    scout: ClassVar[int] = SUMS.index(MIXED)

    def metrics(self, Z: Any) -> int:
        """Some, unless there is one feature, or more of them than can be looked at."""
        asked = self.auto and self.metric and bool(self.scaling)
        return METRICS if asked and 1 < Z.shape[1] <= WIDEST else 0

    def compact(self, Z: Any) -> Any:
        """Scaled rows in float32, which loses nothing that matters."""
        return Z.astype(np.float32) if self.auto else Z

    def compact_model(self, model: Any) -> Any:
        """With scaled support rows in float32 where there are many; predictions are computed in it."""
        many = isinstance(model, Expansion) and len(model.ids) > PRECISE
        return replace(model, rows=self.compact(model.rows)) if many and self.scaling else model

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
