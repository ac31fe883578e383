"""Two kinds of task: labels become ±1 columns, targets are columns as they are."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, column_or_1d

from ._compiled.loops import total_loss
from ._compiled.plugs import address
from ._compiled.types import Array, read_only
from ._data.scaling import MOST, Moments, Units, as_it_is, typical
from ._data.validation import MAX_TARGET, check_rounds, check_targets
from ._fit import Fit
from ._training.calibration import log_loss, probabilities, temperature
from .losses import CLASSIFICATION_LOSSES, MULTINOMIAL, REGRESSION_LOSSES, Loss, get_loss

TEMPERATURES = 2.0 ** np.arange(-1.5, 4.5, 0.5)


class Classifier(ClassifierMixin, Fit):
    """Labels as ±1 columns: one for two classes, one against the rest for each of more."""

    def _loss(self) -> Loss:
        loss = get_loss(self.loss, CLASSIFICATION_LOSSES)
        several = len(getattr(self, "classes_", ())) > 2
        return MULTINOMIAL if several and loss is CLASSIFICATION_LOSSES["logistic"] else loss

    def _encode(self, y: Any, first: bool, classes: Any = None) -> Array:
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        if first:
            self.classes_ = np.unique(y if classes is None else classes)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"{type(self).__name__} needs at least 2 classes; "
                    f"got {len(self.classes_)} class(es): {list(self.classes_)}"
                )
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes must be those of the first call, {list(self.classes_)}; got {classes!r}"
            )
        codes = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        unknown = np.unique(y[self.classes_[codes] != y])
        if len(unknown):
            raise ValueError(
                f"y has labels {list(unknown)} that are not among the classes "
                f"{list(self.classes_)}; name all classes in the first call of partial_fit"
            )
        columns = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return np.where(codes[:, None] == np.array(columns), 1.0, -1.0)

    def _row_weight(self, y: Any, weight: Array) -> Array:
        if self.class_weight is None:
            return weight
        y = column_or_1d(y)
        per_class = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y, sample_weight=weight
        )
        rounds = weight * per_class[np.searchsorted(self.classes_, y)]
        return check_rounds(rounds, "class_weight times sample_weight")

    def _groups(self, Y: Array) -> Array:
        return _codes(Y)

    def _left_out_loss(self, Y: Array, weight: Array) -> Callable[[Array], float]:
        """Share of mistakes, and a fifth of the log-loss, which is less coarse, at the best T."""
        codes, total = _codes(Y), max(weight.sum(), 1e-300)

        def loss(scores: Array) -> float:
            likely = min(log_loss(scores, codes, weight, T) for T in TEMPERATURES)
            return float(weight @ self._mistakes(scores, Y)) / total + 0.2 * likely

        return loss

    def _calibrate(self, scores: Array, Y: Array, weight: Array) -> None:
        self._calibration = temperature(scores, _codes(Y), weight)

    def _mistakes(self, P: Array, Y: Array) -> Array:
        if P.shape[1] == 1:
            return (P[:, 0] > 0) != (Y[:, 0] > 0)
        return P.argmax(axis=1) != Y.argmax(axis=1)

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, in the order given.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like, default=None
            All labels that will ever occur; needed in the first call if y does not show them all.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of k counts as k rounds with that row, a weight of 0 as none.

        Returns
        -------
        self : object
            The estimator, further trained.
        """
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all labels at once, which only fit has; "
                "for partial_fit give a dictionary from label to weight"
            )
        return self._partial_fit(X, y, classes, sample_weight)

    def decision_function(self, X: Any) -> Array:
        """Raw scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : array of shape (n_samples,) or (n_samples, n_classes)
            Positive means the second of two classes; of several the largest wins.
        """
        scores = self._decide(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The most likely label of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to label.

        Returns
        -------
        labels : array of shape (n_samples,)
            Elements of ``classes_``.
        """
        scores = self._decide(X)
        codes = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
        return self.classes_[codes]

    def _trained_loss(self) -> Loss:
        """The loss the model was trained with, or will be."""
        return self.learners_[0].rule.loss if hasattr(self, "learners_") else self._loss()

    def _has_link(self) -> bool:
        loss = self._trained_loss()
        if loss.link is None:
            raise AttributeError(f"the {loss.name} loss has no link from scores to probabilities")
        return True

    @available_if(_has_link)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes: calibrated on rows left out, or by the link of the loss.

        Where `fit` chose the number of passes by rows that were left out, P ∝ exp(T f) with the T that
        suits these best; otherwise, as after `partial_fit` alone, it is the link of the loss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
            Each row sums to 1. With more than two classes the one-vs-rest probabilities are
            normalised; a row that all columns refuse gets equal ones.
        """
        link = self._trained_loss().link
        assert link is not None
        scores = self._decide(X)
        if self._calibration is not None or self._trained_loss().coupled:
            return probabilities(scores, self._calibration or 1.0)
        P = link(scores)
        if P.shape[1] == 1:
            return np.hstack([1.0 - P, P])
        total = P.sum(axis=1, keepdims=True)
        P = np.where(total > 0, P / np.where(total > 0, total, 1.0), 1.0 / P.shape[1])
        first = np.arange(P.shape[1]) == scores.argmax(axis=1)[:, None]
        return (1 - 1e-9) * P + 1e-9 * first  # links that saturate leave ties: the score decides


def _codes(Y: Array) -> Array:
    """Numbers of the classes from ±1 columns."""
    return (Y[:, 0] > 0).astype(np.int64) if Y.shape[1] == 1 else Y.argmax(axis=1)


class Regressor(RegressorMixin, Fit):
    """Targets as columns, one an output, in a unit of their own: half their mean deviation."""

    _anytime = 8.0
    _targets: Units
    _y_moments: Moments | None = None

    @property
    def _centred(self) -> bool:
        """Whether targets are measured around their middle."""
        return True

    def _loss(self) -> Loss:
        return get_loss(self.loss, REGRESSION_LOSSES)

    def _encode(self, y: Any, first: bool, classes: Any = None) -> Array:
        y = _check_y(y, multi_output=True, y_numeric=True)
        outputs = 0 if y.ndim == 1 else y.shape[1]
        if first:
            self._outputs = outputs
        elif outputs != self._outputs:
            raise ValueError(
                f"y must have {self._outputs or 1} output(s) as in the first call; "
                f"got {outputs or 1}"
            )
        levels = self._loss().levels
        if not levels:
            return check_targets(y)
        if outputs:
            raise ValueError(f"several quantiles are of one target; y has {outputs} outputs")
        return np.repeat(check_targets(y), len(levels), axis=1)

    def _mistakes(self, P: Array, Y: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.minimum(np.abs(P - Y) * self._targets.unit, MAX_TARGET).mean(axis=1)

    def _left_out_loss(self, Y: Array, weight: Array) -> Callable[[Array], float]:
        """The loss itself."""
        loss, order = self._loss(), np.arange(len(Y))
        theta, value = self._rule(1.0).theta(Y.shape[1]), address(loss.value, 3)
        total = max(weight.sum(), 1e-300)
        r = read_only(np.ascontiguousarray(weight))
        return lambda P: total_loss(read_only(P), Y, order, r, value, theta, 0) / total

    def _content(self, X: Any, Y: Array, weight: Array) -> Array:
        """Targets tell rows apart in steps of a thousandth of their unit, whatever the user's is."""
        units = typical(Y, weight, self._centred)
        with np.errstate(over="ignore"):
            V = (Y - units.center) * units.scale
        steps = np.rint(1024.0 * np.clip(V, -(2.0**40), 2.0**40))
        return super()._content(X, steps, weight)

    def _measure_all(self, X: Any, Y: Array, weight: Array) -> tuple[Any, Array]:
        X, Y = super()._measure_all(X, Y, weight)
        self._targets = typical(Y, weight, self._centred)
        self._y_moments = None  # these units stay
        return X, self._measure_targets(Y)

    def _measure_none(self, X: Any, Y: Array) -> None:
        super()._measure_none(X, Y)
        self._y_moments, self._targets = Moments(Y.shape[1]), as_it_is(Y.shape[1])

    def _look_again(self, X: Any, Y: Array, weight: Array, due: bool) -> None:
        super()._look_again(X, Y, weight, due)
        if self._y_moments is None:
            return
        moments, seen = copy.copy(self._y_moments), self._y_moments.weight > 0
        if due:
            one = np.ones(1)
            now = moments.spread(self._centred) if seen else typical(Y[:1], one, self._centred)
            if not seen or not self._targets.near(now):
                self._targets = now
                for learner in self._everyone():
                    learner.restart()
        moments.add(Y, weight)
        self._y_moments = moments

    def _in_targets(self, coef: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.clip(coef * self._targets.unit[:, None], -MOST, MOST)

    def _offset(self) -> Array:
        return self._targets.center

    def _measure_targets(self, Y: Array) -> Array:
        with np.errstate(over="ignore"):
            V = (Y - self._targets.center) * self._targets.scale
        return read_only(np.ascontiguousarray(np.clip(V, -MAX_TARGET, MAX_TARGET)))

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from more rows, in the order given.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of k counts as k rounds with that row, a weight of 0 as none.

        Returns
        -------
        self : object
            The estimator, further trained.
        """
        return self._partial_fit(X, y, None, sample_weight)

    def predict(self, X: Any) -> Array:
        """Predicted targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        targets : array of shape (n_samples,) or (n_samples, n_outputs)
            Targets; with several quantiles, a column for each, in ascending order.
        """
        scores = self._in_targets(self._decide(X).T).T + self._offset()
        if self.learners_[0].rule.loss.levels:
            return np.sort(scores, axis=1)  # quantiles that cross are never closer to the truth
        return scores if self._outputs else scores[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
