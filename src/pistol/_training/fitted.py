"""`Fitted`: all that training leaves behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.rows import like
from .._compiled.types import Array
from .._data.duplicates import Remembered
from .._data.intake import Columns
from .._data.scaling import Moments
from .._data.targets import LogScaler, Recent, TargetScaler
from .._learners import Chunk, Learner, Rule
from .._learners.models import Model, mean_model
from .drift import Challengers
from .tasks import Task, summed_loss

ROWS = 3840  # rows that are scaled and scored together: a multiple of the block of the tiles
ENTRIES = 2**22  # more rows are, as long as they have so many entries at most
POINTS = 4  # of the learning curve, for each doubling of the rounds


class Online(NamedTuple):
    """Sums over first-pass rounds: sizes, losses and errors of predictions made before learning.

    `curve` has sums of sizes and errors by how many rounds came before: entry i is of rounds before
    which from 2^(i/4) - 1 up to 2^((i+1)/4) - 1 were learned.
    """

    rounds: float = 0.0
    loss: float = 0.0
    error: float = 0.0
    curve: Array = np.zeros((0, 2))

    @property
    def mean_loss(self) -> float:
        """Mean loss on each row before it was learned."""
        return self.loss / max(self.rounds, 1e-300)

    @property
    def mean_error(self) -> float:
        """Mean error on each row before it was learned."""
        return self.error / max(self.rounds, 1e-300)

    def then(
        self,
        chunk: Chunk,
        V: Array,
        task: Task,
        targets: TargetScaler,
        rule: Rule,
        before: Array,
    ) -> Online:
        """The sums with one chunk more; `before` says how much was learned before each round."""
        errors = task.errors(chunk.P, V[chunk.rows], targets)
        return Online(
            self.rounds + float(chunk.r.sum()),
            self.loss + summed_loss(rule, chunk, V),
            self.error + float(chunk.r @ errors),
            _added(self.curve, before, chunk.r, errors),
        )


def _added(curve: Array, before: Array, r: Array, errors: Array) -> Array:
    """The sums of a learning curve with some rounds more; as `before` ascends, each has a range."""
    if not len(before):
        return curve
    before = np.maximum(before, 0.0)  # a difference of large weights may be slightly less
    first, last = np.floor(POINTS * np.log2(1.0 + before[[0, -1]])).astype(np.int64)
    sums = np.zeros((max(len(curve), last + 1), 2))
    sums[: len(curve)] = curve
    ends = 2.0 ** (np.arange(first + 1, last + 1) / POINTS) - 1.0
    place = first + np.searchsorted(ends, before, side="right")
    for column, values in zip(sums.T, (r, r * errors), strict=True):
        column += np.bincount(place, values, len(sums))
    return sums


def joined(parts: Sequence[Online]) -> Online:
    """The sums over parts that were learned beside each other."""
    curve = np.zeros((max(len(part.curve) for part in parts), 2))
    for part in parts:
        curve[: len(part.curve)] += part.curve
    rounds, loss, error = (sum(each) for each in list(zip(*parts, strict=True))[:3])
    return Online(rounds, loss, error, curve)


def learned_before(r: Array, start: float = 0.0) -> Array:
    """How much was learned before each of some rounds, given what was before the first of them."""
    return start + np.cumsum(r) - r


WINDOW = 1024  # rounds of a stream from which its metric is learned


@dataclass(frozen=True, eq=False)
class Window:
    """The last rounds of a stream: rows, targets and sizes, as given."""

    X: Any
    Y: Array
    r: Array

    def then(self, X: Any, Y: Array, r: Array) -> Window:
        """After more rounds."""
        stack = sp.vstack if sp.issparse(X) else np.vstack
        rows = stack([like(X, self.X), X[-WINDOW:]])[-WINDOW:]
        rows = sp.csr_array(rows) if sp.issparse(rows) else rows
        parts = zip((self.Y, self.r), (Y, r), strict=True)
        Y, r = (np.concatenate([a, b[-WINDOW:]])[-WINDOW:] for a, b in parts)
        return Window(rows, Y, r)


class Stream(NamedTuple):
    """What a stream remembers beside its learners."""

    moments: Moments | None = None  # of the features; None where their scaling stays
    typical_sq: float = 0.0  # the mean squared distance of two scaled rows
    recent: Recent | None = None  # targets; None where their scaling stays
    challengers: Challengers | None = None
    window: Window | None = None  # None where no metric is learned


class Counts(NamedTuple):
    """Rows and rounds so far, and the size of a whole round."""

    rows: int = 0
    rounds: int = 0
    size: float = 1.0


@dataclass(frozen=True, eq=False)
class Fitted:
    """All that training leaves behind: arrays, numbers and words."""

    task: Any
    family: Any
    columns: Columns
    scaler: Any
    targets: TargetScaler
    learners: list[Learner]
    passes: int
    online: Online
    counts: Counts
    temperature: float | None = None
    held_out_error: float | None = None  # of the race that chose it; None where there was none
    stream: Stream = field(default_factory=Stream)
    settings: dict[str, Any] = field(default_factory=dict)  # parameters that shaped it
    remembered: Remembered | None = field(default=None, repr=False)  # not kept in files
    writing: Any = field(default_factory=RLock, repr=False)
    _made: list[Model] = field(default_factory=list, init=False, repr=False)

    @property
    def made(self) -> bool:
        """Whether the model is made."""
        return bool(self._made)

    def model(self) -> Model:
        """The average over the learners' models; made when first needed."""
        if not self._made:
            with self.writing:  # no half-way model of a stream that is learning right now
                played = [learner for learner in self.learners if learner.t > 0]
                models: list[Any] = [learner.model() for learner in played or self.learners]
                self._made.append(self.family.compact_model(mean_model(models)))
        return self._made[0]

    def forget_model(self) -> None:
        """The model has to be made again."""
        self._made.clear()

    def scores(self, X: Any) -> Iterator[Array]:
        """Scores of blocks of rows, each of shape (rows, outputs)."""
        model, step = self.model(), ROWS * max(1, ENTRIES // (ROWS * X.shape[1]))
        for lo in range(0, X.shape[0], step):
            yield model.decide(self.scaler.transform(X[lo : lo + step]))

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_made": [], "writing": None, "remembered": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"_made": [], "writing": RLock()})


def calibrated(fitted: Fitted, X: Any, weight: Array) -> Fitted:
    """With expected counts that add up on these rows, unless they came as a stream."""
    if not isinstance(fitted.targets, LogScaler) or fitted.stream.recent is not None:
        return fitted
    if not fitted.task.centred:
        return fitted
    scores = np.concatenate(list(fitted.scores(X)))
    share = weight / max(weight.sum(), 1e-300)
    return replace(fitted, targets=fitted.targets.calibrated(scores, share))


def marked(fitted: Fitted, X: Any) -> list[tuple[Learner, Any]]:
    """The learners of a stream, and what each needs to undo what is learned from the rows of X."""
    everyone = [*fitted.learners, *challenging(fitted.stream)]
    touched = fitted.family.touched(X, fitted.scaler)
    return [(learner, (learner.rule, learner.mark(touched))) for learner in everyone]


def roll_back(marks: list[tuple[Learner, Any]]) -> None:
    """Put the learners back to where they were."""
    for learner, (rule, mark) in marks:
        learner.rule = rule
        learner.roll_back(mark)


def challenging(stream: Stream) -> list[Learner]:
    """The younger learners of a stream with drift."""
    return [duel.learner for duel in stream.challengers.duels] if stream.challengers else []
