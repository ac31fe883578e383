"""The methods of classifiers and of regressors."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils.metaestimators import available_if

from .._compiled.types import Array
from ..losses import CLASSIFICATION_LOSSES, Loss, get_loss
from .base import fitted, learn_more, scores


def _loss(estimator: Any) -> Loss:
    """The loss that the estimator was trained with, or will be."""
    if hasattr(estimator, "fitted_"):
        return estimator.fitted_.task.loss
    return get_loss(getattr(estimator, "loss", "perceptron"), CLASSIFICATION_LOSSES)


def _has_link(estimator: Any) -> bool:
    loss = _loss(estimator)
    if loss.link is None:
        linked = [name for name, loss in CLASSIFICATION_LOSSES.items() if loss.link is not None]
        raise AttributeError(
            f"predict_proba needs a loss whose scores tell probabilities; the {loss.name} loss has no "
            f"such link. Use loss={' or '.join(map(repr, linked))}"
        )
    return True


class Classifier(ClassifierMixin):
    """What classifiers can do."""

    @property
    def classes_(self) -> Array:
        """The labels."""
        return fitted(self).task.classes

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, in the order given.

        A call that fails or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : table, array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like, default=None
            All labels that will ever occur; needed in the first call if y does not show them all.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of k counts as k copies of the row, one after the other; a weight of 0 as none.

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
        if hasattr(self, "fitted_"):
            self.fitted_.task.check_classes(classes)
        return learn_more(self, X, y, classes, sample_weight)

    def decision_function(self, X: Any) -> Array:
        """Raw scores.

        Parameters
        ----------
        X : table, array-like or sparse matrix of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : array of shape (n_samples,) or (n_samples, n_classes)
            Positive means the second of two classes; of several the largest wins.
        """
        _, found = scores(self, X)
        return found[:, 0] if found.shape[1] == 1 else found

    def predict(self, X: Any) -> Array:
        """The most likely label of each row.

        Parameters
        ----------
        X : table, array-like or sparse matrix of shape (n_samples, n_features)
            Rows to label.

        Returns
        -------
        labels : array of shape (n_samples,)
            Elements of ``classes_``.
        """
        known, found = scores(self, X)
        return known.task.answers(found, known.targets)

    @available_if(_has_link)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes: calibrated on held-out rows, or by the link of the loss.

        Where `fit` chose the number of passes by held-out rows, P ∝ exp(T f) with the T that suits
        these best; otherwise, as after `partial_fit` alone, it is the link of the loss.

        Parameters
        ----------
        X : table, array-like or sparse matrix of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
            Each row sums to 1. With more than two classes the one-vs-rest probabilities are
            normalised; a row whose probabilities are all zero gets equal ones.
        """
        known, found = scores(self, X)
        return known.task.probabilities(found, known.temperature)


class Regressor(RegressorMixin):
    """What regressors can do."""

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from more rows, in the order given.

        A call that fails or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : table, array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of k counts as k copies of the row, one after the other; a weight of 0 as none.

        Returns
        -------
        self : object
            The estimator, further trained.
        """
        return learn_more(self, X, y, None, sample_weight)

    def predict(self, X: Any) -> Array:
        """Predicted targets.

        Parameters
        ----------
        X : table, array-like or sparse matrix of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        targets : array of shape (n_samples,) or (n_samples, n_outputs)
            Targets; with several quantiles, one column per quantile, in ascending order.
        """
        known, found = scores(self, X)
        return known.task.answers(found, known.targets)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
