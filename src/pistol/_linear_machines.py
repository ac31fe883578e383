"""Linear machines: scikit-learn shells around the primal and the per-coordinate learner."""

from __future__ import annotations

from typing import Any

from ._machine import Machine
from ._tasks import Classifier, Regressor
from ._types import Array
from .learners import Coordinates, Learner, Primal, Rule
from .losses import Loss
from .models import Linear


class LinearMachine(Machine):
    """f as a vector of weights and an intercept."""

    def _new_learner(self, X: Any, weight: Array, columns: int, rule: Rule) -> Learner:
        learner = Coordinates if self.per_coordinate else Primal
        return learner(rule, X.shape[1], columns, bias=1.0 if self.fit_intercept else 0.0)

    def _weights(self) -> Array:
        model = self._fitted()._model()
        assert isinstance(model, Linear)
        return model.weights

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LinearPistolClassifier(LinearMachine, Classifier):
    """Linear classifier for dense or sparse rows and millions of features, with nothing to tune.

    By default one PiSTOL learner a feature, each in its own unit (Orabona 2014, Appendix A, made
    scale-free): multiplying a feature by a constant does not change the predictions.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        "logistic", "smooth_hinge", "hinge", "modified_huber", "perceptron", or a
        :class:`pistol.losses.Loss` of your own.
    a : float, default=1.0
        The paper's a.
    b : "anytime", "horizon" or float, default="anytime"
        The paper's b: ½√(2α_t), which needs no horizon; √(2aLT), with T known in `fit`; or a number.
    per_coordinate : bool, default=True
        False is the paper's Hilbert-space form: one multiplier for all features, made for rows of
        norm at most 1 (an intercept adds 1 to the squared norm).
    fit_intercept : bool, default=True
        Learn a constant beside the features.
    average : "linear", "uniform" or None, default="linear"
        Weight t on f_t, the paper's equal weights, or the last f.
    passes : int, default=1
        How often `fit` plays the rows.
    orders : int or None, default=1
        `fit` plays this many random orders of the rows and averages their models; None plays the
        rows as they come, which `partial_fit` always does.
    random_state : int, RandomState or None, default=None
        Seeds the random orders. They depend on the content of the rows, not on how X is sorted.
    class_weight : dict, "balanced" or None, default=None
        Factors on the sample weights.
    verbose : bool, default=False
        Print online loss and error each time the number of rounds has doubled.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    coef_ : array of shape (1, n_features_in_) or (n_classes, n_features_in_)
        Weights of the features.
    intercept_ : array of shape (1,) or (n_classes,)
        The learned constants.
    t_ : float
        Rounds played.
    online_loss_, online_error_ : float
        Mean loss and error on each row before it was learned: an honest estimate at no cost.
    norm_ : float or array
        ‖f‖ of the model.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, where X had any.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from pistol import LinearPistolClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)  # no scaling needed
    >>> model = LinearPistolClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        *,
        loss: str | Loss = "logistic",
        a: float = 1.0,
        b: str | float = "anytime",
        per_coordinate: bool = True,
        fit_intercept: bool = True,
        average: str | None = "linear",
        passes: int = 1,
        orders: int | None = 1,
        random_state: Any = None,
        class_weight: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.a = a
        self.b = b
        self.per_coordinate = per_coordinate
        self.fit_intercept = fit_intercept
        self.average = average
        self.passes = passes
        self.orders = orders
        self.random_state = random_state
        self.class_weight = class_weight
        self.verbose = verbose

    @property
    def coef_(self) -> Array:
        """Weights of the features, a row a column."""
        return self._weights()[:, :-1]

    @property
    def intercept_(self) -> Array:
        """The learned constants."""
        return self._weights()[:, -1]


class LinearPistolRegressor(LinearMachine, Regressor):
    """Linear regressor for dense or sparse rows and millions of features, with nothing to tune.

    The algorithm of :class:`LinearPistolClassifier` on a Lipschitz regression loss.

    Parameters
    ----------
    loss : str or Loss, default="huber"
        "huber", "absolute", "quantile" (the median), "epsilon_insensitive", "log_cosh", or a
        :class:`pistol.losses.Loss`, such as ``quantile_loss(0.9)``.
    a : float, default=1.0
        The paper's a.
    b : "anytime", "horizon" or float, default="anytime"
        The paper's b: ½√(2α_t), which needs no horizon; √(2aLT), with T known in `fit`; or a number.
    per_coordinate : bool, default=True
        False is the paper's Hilbert-space form: one multiplier for all features, made for rows of
        norm at most 1 (an intercept adds 1 to the squared norm).
    fit_intercept : bool, default=True
        Learn a constant beside the features.
    average : "linear", "uniform" or None, default="linear"
        Weight t on f_t, the paper's equal weights, or the last f.
    passes : int, default=1
        How often `fit` plays the rows.
    orders : int or None, default=1
        `fit` plays this many random orders of the rows and averages their models; None plays the
        rows as they come, which `partial_fit` always does.
    random_state : int, RandomState or None, default=None
        Seeds the random orders. They depend on the content of the rows, not on how X is sorted.
    verbose : bool, default=False
        Print online loss and error each time the number of rounds has doubled.

    Attributes
    ----------
    coef_ : array of shape (n_features_in_,) or (n_outputs, n_features_in_)
        Weights of the features.
    intercept_ : float or array of shape (n_outputs,)
        The learned constant.
    t_ : float
        Rounds played.
    online_loss_, online_error_ : float
        Mean loss and absolute error on each row before it was learned.
    norm_ : float or array
        ‖f‖ of the model.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, where X had any.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from pistol import LinearPistolRegressor
    >>> X, y = make_regression(2000, 5, noise=1.0, random_state=0)
    >>> LinearPistolRegressor(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        *,
        loss: str | Loss = "huber",
        a: float = 1.0,
        b: str | float = "anytime",
        per_coordinate: bool = True,
        fit_intercept: bool = True,
        average: str | None = "linear",
        passes: int = 1,
        orders: int | None = 1,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.a = a
        self.b = b
        self.per_coordinate = per_coordinate
        self.fit_intercept = fit_intercept
        self.average = average
        self.passes = passes
        self.orders = orders
        self.random_state = random_state
        self.verbose = verbose

    @property
    def coef_(self) -> Array:
        """Weights of the features: a vector for one target, a row an output for several."""
        weights = self._weights()[:, :-1]
        return weights if self._outputs else weights[0]

    @property
    def intercept_(self) -> Any:
        """The learned constant: a number for one target, an array for several."""
        intercept = self._weights()[:, -1]
        return intercept if self._outputs else float(intercept[0])
