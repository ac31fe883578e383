"""What training asks of a family: something that learns. It makes learners and scales their rows.

`kernel_family` and `linear_family` are the two there are. A third one is a module beside them;
docs/adding.md lists the steps.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from .._compiled.threads import Workers
from .._compiled.types import Array, read_only
from .._data.layout import Layout
from .._data.scaling import (
    Moments,
)
from .._learners import Learner, Rule
from ..kernels import Kernel
from .plan import Limits
from .race import Run

# Draws numbers of some rows, and how many rounds each stands for: not all rows need a sample.
Sample = Callable[[], tuple[Array, Array]]
Candidate = tuple[Kernel, ...]  # the kernels of a sum; none for linear models


class Data(NamedTuple):
    """Rows, targets and weights: as given or scaled, never both under one name."""

    X: Any
    Y: Array
    weight: Array
    ids: Array  # numbers of the rows, counted over all rows seen


def stacked(parts: Sequence[Data]) -> Data:
    """The rows of all parts, one part after the other."""
    X, *rest = zip(*parts, strict=True)
    rows = sp.csr_array(sp.vstack(X)) if sp.issparse(X[0]) else np.concatenate(X)
    Y, weight, ids = map(np.concatenate, rest)
    return Data(rows, read_only(Y), weight, ids)


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

    def content(self, data: Data) -> tuple[Array, Any]:
        """A hash of every row, and what was seen on the way."""

    def fenced(self, X: Any, seen: Any, sample: Sample) -> Any:
        """The rows of a data set as they are learned, but for their scale."""

    def scaler(self, X: Any, weight: Array, sample: Sample) -> Any:
        """How the rows of a data set are scaled."""

    def candidates(
        self,
        Z: Any,
        weight: Array,
        scaler: Any,
        numbers: Iterable[int] | None = None,
        square: float | None = None,
    ) -> dict[int, Candidate]:
        """What a race is between, by number: all of them, or those with these numbers.

        `square` is the mean squared distance of two rows, where it is known.
        """

    def usual(self, Z: Any, weight: Array, scaler: Any) -> Candidate:
        """The candidate where there is no race."""

    def learner(self, candidate: Candidate, features: int, outputs: int, rule: Rule) -> Learner:
        """A learner that has learned nothing yet."""

    def runs(
        self,
        candidates: list[Candidate],
        data: Data,
        rule: Rule,
        threads: Workers,
        rows: Array | None = None,
        m: int | None = None,
    ) -> list[Callable[[], Run]]:
        """Makers of runs for a race between candidates.

        `rows` are the numbers of all rows, of which the first `m` are learned; None: all are.
        """

    numbers: ClassVar[range]  # of the candidates
    scout: ClassVar[int]  # the number of the candidate whose gradients say which features matter

    def laid_out(self, layout: Layout) -> Family:
        """The family for rows in which some columns belong together."""

    def metrics(self, Z: Any) -> int:
        """How many times a race may find a metric for these scaled rows."""

    def pooled(self, squares: Array, Z: Any, weight: Array, scaler: Any) -> Array:
        """Mean squared derivatives, alike for columns of scaled rows that belong together."""

    def scalings(self, Z: Any, weight: Array, scaler: Any, rows: int) -> list[Any]:
        """Scalers that a race chooses from for so many rows, of which these are some, scaled."""

    @property
    def settled(self) -> Family:
        """The family for rows whose scaling and metric are chosen already."""

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
