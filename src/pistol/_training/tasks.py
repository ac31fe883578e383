"""What is asked: labels or real targets. A task turns y into targets and scores into answers.

scikit-learn is imported where y is checked: answers do without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from .._compiled.loops import total_loss
from .._compiled.types import Array, read_only
from .._data.targets import SCALINGS, TargetScaler, unscaled
from .._data.validation import check_counts, check_targets, check_weights
from .._learners import Chunk, Rule
from ..losses import CLASSIFICATION_LOSSES, MULTINOMIAL, REGRESSION_LOSSES, Loss, get_loss
from .calibration import log_loss, probabilities, temperature

TEMPERATURES = 2.0 ** np.arange(-1.5, 4.5, 0.5)


class Task(Protocol):
    """What training asks of a task. It knows nothing of scikit-learn's estimators."""

    scaled: ClassVar[bool]  # whether targets are scaled

    @property
    def loss(self) -> Loss:
        """The loss to learn with."""

    @property
    def centred(self) -> bool:
        """Whether targets are scaled around their centre."""

    def encode(self, y: Any) -> Array:
        """Targets of shape (rows, outputs)."""

    def scaler(self, Y: Array, weight: Array, ends: Array | None = None) -> TargetScaler:
        """How targets are scaled; `ends` are the least and the largest, if Y is but a sample."""

    def suited(self, Y: Array, weight: Array, ends: Array | None = None) -> Task:
        """The task with the loss that suits these targets."""

    def content(self, Y: Array, weight: Array) -> Array:
        """What tells rows with these targets apart when their order is shuffled."""

    def groups(self, Y: Array) -> Array:
        """Groups of rows of which every fold gets its share."""

    def errors(self, P: Array, V: Array, targets: TargetScaler) -> Array:
        """The error of each prediction, in the user's units."""

    def held_out_loss(self, V: Array, r: Array, rule: Rule) -> Callable[[Array], float]:
        """From scores of held-out rounds to the loss by which candidates are compared."""

    def temperature(self, scores: Array, V: Array, r: Array) -> float | None:
        """How probabilities follow from scores, given scores of rounds not learned."""

    def answers(self, scores: Array, targets: TargetScaler) -> Array:
        """Labels or targets from scores."""


@dataclass(frozen=True, eq=False)
class Classification:
    """Labels as ±1: one output for two classes, one output per class for more."""

    loss: Loss
    classes: Array
    zero_is_wrong: bool = False  # the Perceptron counts a score of zero as a mistake
    scaled: ClassVar[bool] = False  # labels have no scale
    centred: ClassVar[bool] = False

    def encode(self, y: Any) -> Array:
        """+1 for the output of the row's class, -1 for others; one output for two classes."""
        codes = self.codes(y)
        outputs = [1] if len(self.classes) == 2 else range(len(self.classes))
        return np.where(codes[:, None] == np.array(outputs), 1.0, -1.0)

    def codes(self, y: Any) -> Array:
        """The number of each label's class."""
        if isinstance(y, np.ndarray) and y.ndim == 1 and _alike(y.dtype, self.classes.dtype):
            codes = np.searchsorted(self.classes, y).clip(max=len(self.classes) - 1)
            if (self.classes[codes] == y).all():  # known labels need no other check
                return codes
        y = labels(y)
        codes = np.searchsorted(self.classes, y).clip(max=len(self.classes) - 1)
        unknown = np.unique(y[self.classes[codes] != y])
        if len(unknown):
            raise ValueError(
                f"y has labels {unknown.tolist()} that are not among the classes "
                f"{self.classes.tolist()}; name all classes in the first call of partial_fit"
            )
        return codes

    def check_classes(self, classes: Any) -> None:
        """Refuse classes that differ from those of the first call."""
        if classes is not None and not np.array_equal(np.unique(classes), self.classes):
            raise ValueError(
                f"classes must be those of the first call, {self.classes.tolist()}; got {classes!r}"
            )

    def row_weight(self, class_weight: Any, y: Any, weight: Array) -> Array:
        """Sample weights times class weights."""
        from sklearn.utils import compute_class_weight

        per_class = compute_class_weight(
            class_weight, classes=self.classes, y=labels(y), sample_weight=weight
        )
        return check_weights(weight * per_class[self.codes(y)], "class_weight times sample_weight")

    def scaler(self, Y: Array, weight: Array, ends: Array | None = None) -> TargetScaler:
        """Labels are not scaled."""
        return unscaled(Y.shape[1])

    def suited(self, Y: Array, weight: Array, ends: Array | None = None) -> Classification:
        """The same: no loss depends on how many labels there are."""
        return self

    def content(self, Y: Array, weight: Array) -> Array:
        """The encoded labels."""
        return Y

    def groups(self, Y: Array) -> Array:
        """The classes."""
        return _codes(Y)

    def errors(self, P: Array, V: Array, targets: TargetScaler) -> Array:
        """Whether each prediction is wrong."""
        return self._wrong(P, V, _codes(V))

    def _wrong(self, P: Array, V: Array, codes: Array) -> Array:
        """The same, given the numbers of the true classes."""
        if P.shape[1] == 1 and self.zero_is_wrong:
            return P[:, 0] * V[:, 0] <= 0
        return _codes(P) != codes

    def held_out_loss(self, V: Array, r: Array, rule: Rule) -> Callable[[Array], float]:
        """The share of errors plus a fifth of the log-loss, which is less coarse."""
        some = np.flatnonzero(r)  # held out by some fold; others count nothing
        V, r = V[some], r[some]
        codes, total = _codes(V), max(r.sum(), 1e-300)

        def loss(scores: Array) -> float:
            scores = scores[some]
            likely = log_loss(scores, codes, r).least(TEMPERATURES)
            wrong = self._wrong(scores, V, codes)
            return float(r @ wrong) / total + 0.2 * likely

        return loss

    def temperature(self, scores: Array, V: Array, r: Array) -> float | None:
        """The T of P ∝ exp(T f) with the smallest log-loss."""
        return temperature(scores, _codes(V), r)

    def answers(self, scores: Array, targets: TargetScaler) -> Array:
        """The most likely label of each row."""
        return self.classes[_codes(scores)]

    def probabilities(self, scores: Array, T: float | None) -> Array:
        """Probabilities of the classes: by the temperature if there is one, else by the link."""
        if T is not None or self.loss.coupled:
            return probabilities(scores, T or 1.0)
        assert self.loss.link is not None
        P = self.loss.link(scores)
        if P.shape[1] == 1:
            return np.hstack([1.0 - P, P])
        total = P.sum(axis=1, keepdims=True)
        P = np.where(total > 0, P / np.where(total > 0, total, 1.0), 1.0 / P.shape[1])
        first = np.arange(P.shape[1]) == scores.argmax(axis=1)[:, None]
        return (
            1 - 1e-9
        ) * P + 1e-9 * first  # links that saturate leave ties: the score breaks them


@dataclass(frozen=True, eq=False)
class Regression:
    """Real targets, one output each; or several quantiles of one target, one output each."""

    loss: Loss
    outputs: int = 0  # targets per row; 0 where y is a vector
    centred: bool = True
    scaled: ClassVar[bool] = True

    def encode(self, y: Any) -> Array:
        """The targets, repeated for each quantile."""
        from sklearn.utils.validation import _check_y

        y = _check_y(y, multi_output=True, y_numeric=True)
        outputs = 0 if y.ndim == 1 else y.shape[1]
        if outputs != self.outputs:
            raise ValueError(
                f"y must have {self.outputs or 1} output(s) as in the first call; "
                f"got {outputs or 1}"
            )
        levels = self.loss.levels
        if levels and outputs:
            raise ValueError(f"several quantiles are of one target; y has {outputs} outputs")
        Y = check_targets(y)
        if self.loss.targets == "log":
            check_counts(Y, self.loss.name)
        return np.repeat(Y, max(len(levels), 1), axis=1)

    def scaler(self, Y: Array, weight: Array, ends: Array | None = None) -> Any:
        """As the loss asks for: around the median, around the mean, or as multiples of the mean."""
        low, high = (Y.min(axis=0), Y.max(axis=0)) if ends is None else ends
        return SCALINGS[self.loss.targets][0](Y, weight, self.centred, low, high)

    def suited(self, Y: Array, weight: Array, ends: Array | None = None) -> Regression:
        """With the loss bounded by the range of the targets, where it has to be."""
        if not self.loss.ranged:
            return self
        return replace(self, loss=self.scaler(Y, weight, ends).bounded(self.loss))

    def content(self, Y: Array, weight: Array) -> Array:
        """Scaled targets in steps of a thousandth, so that the user's units do not matter."""
        V = self.scaler(Y, weight).transform(Y)
        return np.rint(1024.0 * np.clip(V, -(2.0**40), 2.0**40))

    def groups(self, Y: Array) -> Array:
        """One group."""
        return np.zeros(len(Y), np.int64)

    def errors(self, P: Array, V: Array, targets: TargetScaler) -> Array:
        """Absolute errors, averaged over the outputs."""
        return targets.gaps(P, V).mean(axis=1)

    def held_out_loss(self, V: Array, r: Array, rule: Rule) -> Callable[[Array], float]:
        """The mean loss."""
        rows, total = np.arange(len(V)), max(r.sum(), 1e-300)
        return lambda P: summed_loss(rule, Chunk(rows, r, P), V) / total

    def temperature(self, scores: Array, V: Array, r: Array) -> float | None:
        """None: there are no probabilities."""
        return None

    def answers(self, scores: Array, targets: TargetScaler) -> Array:
        """Targets from scores, of shape (rows,) or (rows, outputs)."""
        Y = targets.inverse_transform(scores)
        if self.loss.levels:
            return np.sort(Y, axis=1)  # quantiles that cross are never closer to the truth
        return Y if self.outputs else Y[:, 0]


def mean_error(task: Task, P: Array, V: Array, r: Array, targets: TargetScaler) -> float | None:
    """The mean error of predictions, each counted r times; None where none counts."""
    total = float(r.sum())
    return float(r @ task.errors(P, V, targets)) / total if total > 0 else None


def summed_loss(rule: Rule, chunk: Chunk, V: Array) -> float:
    """Σ r ℓ(y, p) over the rounds of a chunk."""
    P, rounds = read_only(chunk.P), (chunk.rows, read_only(np.ascontiguousarray(chunk.r)))
    return total_loss(P, V, *rounds, rule.value, rule.theta(P.shape[1]), rule.coupled)


def labels(y: Any) -> Array:
    """Labels as a vector."""
    if _few_whole_numbers(y):
        return y
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import column_or_1d

    check_classification_targets(y)
    return column_or_1d(y, warn=True)


def _few_whole_numbers(y: Any) -> bool:
    """Whether y is a vector of whole numbers, fewer than half as many as rows: scikit-learn agrees."""
    if not (type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuf" and len(y)):
        return False
    least, most = float(y.min()), float(y.max())
    return 2.0 * (most - least + 1.0) < len(y) and bool((np.rint(y) == y).all())


def _alike(one: Any, other: Any) -> bool:
    """Whether values of these types can be compared: both are numbers, or they are of one type."""
    return one == other or (one.kind in "biuf" and other.kind in "biuf")


def _codes(Y: Array) -> Array:
    """Numbers of the classes from ±1 targets or from scores."""
    return (Y[:, 0] > 0).astype(np.int64) if Y.shape[1] == 1 else Y.argmax(axis=1)


def classification(
    loss: str | Loss, y: Any, classes: Any, zero_is_wrong: bool = False
) -> Classification:
    """The task of telling these classes apart."""
    found = np.unique(labels(y) if classes is None else classes)
    if len(found) < 2:
        raise ValueError(
            f"a classifier needs at least 2 classes; got {len(found)} class(es): {list(found)}"
        )
    loss = get_loss(loss, CLASSIFICATION_LOSSES)
    several = len(found) > 2 and loss is CLASSIFICATION_LOSSES["logistic"]
    return Classification(MULTINOMIAL if several else loss, found, zero_is_wrong)


def regression(loss: str | Loss, y: Any, centred: bool = True) -> Regression:
    """The task of predicting targets of this shape."""
    ndim = np.ndim(y)
    return Regression(get_loss(loss, REGRESSION_LOSSES), np.shape(y)[1] if ndim > 1 else 0, centred)
