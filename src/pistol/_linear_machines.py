"""Linear machines: scikit-learn shells around the primal and the per-coordinate learner."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ._compiled.threads import Workers
from ._compiled.types import Array
from ._data.scaling import Units, measure
from ._fit import Fit
from ._learners import Coordinates, Learner, Primal, Rule
from ._learners.models import Linear
from ._machine import Way
from ._tasks import Classifier, Regressor
from .losses import Loss

WIDE, WIDE_PASSES = 100_000, 8  # features, and passes over rows that have more of them


class RowsPlay:
    """A learner that plays one order of the rows of X, pass after pass."""

    def __init__(self, learner: Any, X: Any) -> None:
        self.playing, self.X = learner, X

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients."""
        return self.playing.alpha

    def learn(self, Y: Array, order: Array, r: Array) -> Array:
        """Play these rounds; what was predicted in them."""
        parts = [P for _, P in self.playing.play(self.X, Y, order, r)]
        return np.concatenate(parts) if parts else np.empty((0, Y.shape[1]))

    def scores(self, at: Array) -> Array:
        """f̄ at the rows with these numbers."""
        return self.playing.model().decide(self.X[at])

    def snapshot(self) -> Any:
        """What has been learned so far."""
        return copy.deepcopy(self.playing)

    def learner(self, kept: Any = None) -> Learner:
        """The learner, as it was at a snapshot if one is given."""
        return kept or self.playing


class LinearMachine(Fit):
    """f as a vector of weights and an intercept."""

    _few = 30_000
    _units: Units | None = None

    @property
    def _centred(self) -> bool:
        return self.fit_intercept

    def _measure_all(self, X: Any, Y: Array, weight: Array) -> tuple[Any, Array]:
        """Dense rows are centred, which learning one feature at a time is in need of."""
        X, Y = super()._measure_all(X, Y, weight)
        self._units = None if sp.issparse(X) or not self.fit_intercept else measure(X, weight)
        return self._measure_rows(X), Y

    def _measure_none(self, X: Any, Y: Array) -> None:
        super()._measure_none(X, Y)
        self._units = None

    def _measure_rows(self, X: Any) -> Any:
        return X if self._units is None else self._units.measure(X)

    def _new_learner(self, X: Any, columns: int, rule: Rule, kernels: Any = ()) -> Learner:
        learner = Coordinates if self.per_coordinate else Primal
        return learner(rule, X.shape[1], columns, bias=1.0 if self.fit_intercept else 0.0)

    def _fit_auto(self, X: Any, y: Any, Y: Array, weight: Array, hashes: Array) -> Self:
        """Of very many features a learner is large: one order, and passes by experience."""
        if X.shape[1] > WIDE and self.passes == "auto":
            return self._fit_orders(X, y, Y, weight, hashes, (), 1, WIDE_PASSES)
        return super()._fit_auto(X, y, Y, weight, hashes)

    def _ways(self, X: Any, weight: Array, columns: int, rule: Rule, threads: Workers) -> list[Way]:
        return [lambda: RowsPlay(self._new_learner(X, columns, rule), X)]

    def _weights(self) -> Array:
        """Weights and intercepts of rows and targets as they come."""
        model = self._fitted()._model()
        assert isinstance(model, Linear)
        weights = model.weights.copy()
        if self._units is not None:
            center, scale = self._units.measured()
            weights[:, :-1] *= scale
            weights[:, -1] -= weights[:, :-1] @ center
        weights = self._in_targets(weights)
        weights[:, -1] += self._offset()
        return weights

    def _shown(self) -> Linear:
        return Linear(self._weights())

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
        "logistic" (multinomial with more than two classes), "smooth_hinge", "hinge",
        "modified_huber", "perceptron", or a :class:`pistol.losses.Loss` of your own.
    a : float, default=1.0
        The paper's a. Its theorem asks for a ≥ 2.25 L.
    b : "anytime", "horizon", "vowpal" or float, default="anytime"
        The paper's b: ½√(2α_t), which needs no horizon; √(2aLT), with T known in `fit`; Vowpal
        Wabbit's ½√G, for one learner a feature; or a number.
    per_coordinate : bool, default=True
        False is the paper's Hilbert-space form: one multiplier for all features, made for rows of
        norm at most 1 (an intercept adds 1 to the squared norm).
    fit_intercept : bool, default=True
        Learn a constant beside the features.
    average : "linear", "uniform" or None, default="linear"
        Weight t on f_t, the paper's equal weights, or the last f.
    passes : int or "auto", default="auto"
        How often `fit` plays the rows. "auto": of 1, 2, 4, … what is best on rows that each order
        leaves out; up to 256 passes, 64 with more than 600 rows, 1 with more than 30,000; 8 with more
        than 100,000 features.
    orders : int, "auto" or None, default="auto"
        `fit` plays this many random orders of the rows and averages their models. "auto": 5 that
        leave out a fifth each and 3 of all rows; 2 of all rows with more than 600; 1 with more than
        30,000, or than 100,000 features. None plays the rows as they come, which `partial_fit`
        always does.
    drift : bool, default=False
        `partial_fit` follows a stream that changes: younger learners challenge the one that predicts,
        and one that does better takes over.
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
    passes_ : int
        How often the rows were played.
    t_ : float
        Rounds played.
    online_loss_, online_error_ : float
        Mean loss and error on each row before it was learned, in the first pass: an honest estimate
        at no cost.
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
        passes: int | str = "auto",
        orders: int | str | None = "auto",
        drift: bool = False,
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
        self.drift = drift
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
        :class:`pistol.losses.Loss`, such as ``quantile_loss(0.9)`` or, for several quantiles at once,
        ``quantile_loss([0.1, 0.5, 0.9])``. Targets come to it in units of half their mean deviation.
    a : float, default=1.0
        The paper's a. Its theorem asks for a ≥ 2.25 L.
    b : "anytime", "horizon", "vowpal" or float, default="anytime"
        The paper's b: 2√(2α_t), which needs no horizon; √(2aLT), with T known in `fit`; Vowpal
        Wabbit's ½√G, for one learner a feature; or a number.
    per_coordinate : bool, default=True
        False is the paper's Hilbert-space form: one multiplier for all features, made for rows of
        norm at most 1 (an intercept adds 1 to the squared norm).
    fit_intercept : bool, default=True
        Learn a constant beside the features.
    average : "linear", "uniform" or None, default="linear"
        Weight t on f_t, the paper's equal weights, or the last f.
    passes : int or "auto", default="auto"
        How often `fit` plays the rows. "auto": of 1, 2, 4, … what is best on rows that each order
        leaves out; up to 256 passes, 64 with more than 600 rows, 1 with more than 30,000; 8 with more
        than 100,000 features.
    orders : int, "auto" or None, default="auto"
        `fit` plays this many random orders of the rows and averages their models. "auto": 5 that
        leave out a fifth each and 3 of all rows; 2 of all rows with more than 600; 1 with more than
        30,000, or than 100,000 features. None plays the rows as they come, which `partial_fit`
        always does.
    drift : bool, default=False
        `partial_fit` follows a stream that changes: younger learners challenge the one that predicts,
        and one that does better takes over.
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
    passes_ : int
        How often the rows were played.
    t_ : float
        Rounds played.
    online_loss_, online_error_ : float
        Mean loss and absolute error on each row before it was learned, in the first pass.
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

    _anytime = 2.0

    def __init__(
        self,
        *,
        loss: str | Loss = "huber",
        a: float = 1.0,
        b: str | float = "anytime",
        per_coordinate: bool = True,
        fit_intercept: bool = True,
        average: str | None = "linear",
        passes: int | str = "auto",
        orders: int | str | None = "auto",
        drift: bool = False,
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
        self.drift = drift
        self.random_state = random_state
        self.verbose = verbose

    @property
    def coef_(self) -> Array:
        """Weights of the features: a vector for one target, a row an output for several."""
        weights = self._weights()[:, :-1]
        return weights if len(weights) > 1 or self._outputs else weights[0]

    @property
    def intercept_(self) -> Any:
        """The learned constant: a number for one target, an array for several."""
        intercept = self._weights()[:, -1]
        return intercept if len(intercept) > 1 or self._outputs else float(intercept[0])
