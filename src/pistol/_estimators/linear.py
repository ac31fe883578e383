"""The linear estimators."""

from __future__ import annotations

from typing import Any

from ..losses import Loss
from . import recipes, views
from .base import Estimator, table_tags
from .tasks import Classifier, Regressor


def linear_tags(tags: Any) -> Any:
    """Tags of an estimator whose X may be sparse."""
    tags.input_tags.sparse = True
    return table_tags(tags)


class LinearPistolClassifier(Classifier, Estimator):
    """Linear classifier for dense or sparse rows and millions of features, with nothing to tune.

    By default one PiSTOL learner per feature, each in its own scale (Orabona 2014, Appendix A, made
    scale-free): multiplying a feature by a constant does not change the predictions.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        "logistic" (multinomial with more than two classes), "smooth_hinge", "hinge",
        "modified_huber", "perceptron", or a :class:`pistol.losses.Loss` of your own.
    a : float, default=1.0
        The paper's a. Its theorem asks for a ≥ 2.25 L, its experiments use 0.25; with several passes
        1 does better.
    b : "anytime", "horizon", "vowpal" or float, default="anytime"
        The paper's b: 1.5√(2α_t/k) with k the mean number of non-zero features of a row (½√(2α_t)
        where `per_coordinate` is False), which needs no horizon; √(2aLT), with T known in `fit`;
        Vowpal Wabbit's ½√G, for per-coordinate learning; or a number.
    per_coordinate : bool, default=True
        False is the paper's Hilbert-space form: one multiplier for all features, made for rows of
        norm at most 1 (an intercept adds 1 to the squared norm).
    fit_intercept : bool, default=True
        Learn a constant beside the features.
    average : "linear", "uniform" or None, default="linear"
        Weight t on f_t, the paper's equal weights, or the last f.
    passes : int or "auto", default="auto"
        How many times `fit` goes over the rows. "auto": the best of 1, 2, 4, … on held-out rows; up
        to 256 passes, 64 with more than 600 rows, 4 with more than 30,000, 1 with more than 200,000; 8
        with more than 100,000 features.
    orders : int, "auto" or None, default="auto"
        `fit` learns this many shuffled orders of the rows and averages their models. "auto": 5; 1
        with more than 600 rows, or with more than 100,000 features. None learns the rows in the
        order given, which `partial_fit` always does.
    scaling : bool, default=True
        Centre and scale dense rows; sparse rows are taken as they are. False takes all rows as they
        are, as the paper does.
    drift : bool, default=False
        `partial_fit` follows a stream that changes: younger learners run beside the one that
        predicts, and one that does better takes over.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns that hold categories, for tables. "from_dtype": those of categories, enums and
        strings. A list of names or numbers of columns, or a mask: these as well, such as codes that
        are numbers. None: only words are categories; categories that are numbers are numbers.
    random_state : int, RandomState or None, default=None
        Seeds the shuffled orders. They depend on the content of the rows, not on how X is sorted.
    class_weight : dict, "balanced" or None, default=None
        Factors on the sample weights.
    verbose : bool, default=False
        Print online loss and error each time the number of rounds has doubled.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    coef_ : array of shape (1, n_features_in_) or (n_classes, n_features_in_)
        Weights of the features; for a table, of the columns that it was encoded as.
    intercept_ : array of shape (1,) or (n_classes,)
        The learned constants.
    feature_importances_ : array of shape (n_features_in_,)
        How much the model depends on each feature: squares of the weights of the scaled features.
        They sum to 1.
    passes_ : int
        How many times the rows were learned.
    t_ : float
        Rounds learned.
    online_loss_, online_error_ : float
        Mean loss and error on each row before it was learned, in the first pass: an honest estimate
        at no cost.
    held_out_error_ : float
        Mean error on held-out rows (absolute error in regression), where `fit` had any. The same
        rows chose kernels and passes, so it is slightly too small.
    norm_ : float or array
        ‖f‖ of the model.
    n_features_in_ : int
        Number of features, or of the columns of a table.
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
        scaling: bool = True,
        drift: bool = False,
        categorical_features: Any = "from_dtype",
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
        self.scaling = scaling
        self.drift = drift
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.class_weight = class_weight
        self.verbose = verbose

    coef_ = views.coef_
    intercept_ = views.intercept_
    norm_ = views.linear_norm_
    feature_importances_ = views.feature_importances_

    _recipe = staticmethod(recipes.linear_classifier)

    def __sklearn_tags__(self) -> Any:
        return linear_tags(super().__sklearn_tags__())


class LinearPistolRegressor(Regressor, Estimator):
    """Linear regressor for dense or sparse rows and millions of features, with nothing to tune.

    The algorithm of :class:`LinearPistolClassifier` on a Lipschitz regression loss.

    Parameters
    ----------
    loss : str or Loss, default="huber"
        What is predicted. "huber": a typical value, between the median and the mean. For means and
        totals use "squared_error", and "poisson" for counts, whose logarithm of the mean is learned.
        "absolute" and "quantile" predict the median, "epsilon_insensitive" and "log_cosh" a typical
        value. Or a :class:`pistol.losses.Loss`, such as ``quantile_loss(0.9)`` or, for several
        quantiles at once, ``quantile_loss([0.1, 0.5, 0.9])``. Targets are scaled first.
    a : float, default=1.0
        The paper's a. Its theorem asks for a ≥ 2.25 L, its experiments use 0.25; with several passes
        1 does better.
    b : "anytime", "horizon", "vowpal" or float, default="anytime"
        The paper's b: 6√(2α_t/k) with k the mean number of non-zero features of a row (2√(2α_t)
        where `per_coordinate` is False), which needs no horizon; √(2aLT), with T known in `fit`;
        Vowpal Wabbit's ½√G, for per-coordinate learning; or a number.
    per_coordinate : bool, default=True
        False is the paper's Hilbert-space form: one multiplier for all features, made for rows of
        norm at most 1 (an intercept adds 1 to the squared norm).
    fit_intercept : bool, default=True
        Learn a constant beside the features.
    average : "linear", "uniform" or None, default="linear"
        Weight t on f_t, the paper's equal weights, or the last f.
    passes : int or "auto", default="auto"
        How many times `fit` goes over the rows. "auto": the best of 1, 2, 4, … on held-out rows; up
        to 256 passes, 64 with more than 600 rows, 4 with more than 30,000, 1 with more than 200,000; 8
        with more than 100,000 features.
    orders : int, "auto" or None, default="auto"
        `fit` learns this many shuffled orders of the rows and averages their models. "auto": 5; 1
        with more than 600 rows, or with more than 100,000 features. None learns the rows in the
        order given, which `partial_fit` always does.
    scaling : bool, default=True
        Centre and scale dense rows; sparse rows are taken as they are. False takes all rows as they
        are, as the paper does.
    drift : bool, default=False
        `partial_fit` follows a stream that changes: younger learners run beside the one that
        predicts, and one that does better takes over.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns that hold categories, for tables. "from_dtype": those of categories, enums and
        strings. A list of names or numbers of columns, or a mask: these as well, such as codes that
        are numbers. None: only words are categories; categories that are numbers are numbers.
    random_state : int, RandomState or None, default=None
        Seeds the shuffled orders. They depend on the content of the rows, not on how X is sorted.
    verbose : bool, default=False
        Print online loss and error each time the number of rounds has doubled.

    Attributes
    ----------
    coef_ : array of shape (n_features_in_,) or (n_outputs, n_features_in_)
        Weights of the features; for a table, of the columns that it was encoded as. With "poisson"
        those of the logarithm of the mean.
    intercept_ : float or array of shape (n_outputs,)
        The learned constant.
    feature_importances_ : array of shape (n_features_in_,)
        How much the model depends on each feature: squares of the weights of the scaled features.
        They sum to 1.
    passes_ : int
        How many times the rows were learned.
    t_ : float
        Rounds learned.
    online_loss_, online_error_ : float
        Mean loss and absolute error on each row before it was learned, in the first pass.
    held_out_error_ : float
        Mean error on held-out rows (absolute error in regression), where `fit` had any. The same
        rows chose kernels and passes, so it is slightly too small.
    norm_ : float or array
        ‖f‖ of the model.
    n_features_in_ : int
        Number of features, or of the columns of a table.
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
        passes: int | str = "auto",
        orders: int | str | None = "auto",
        scaling: bool = True,
        drift: bool = False,
        categorical_features: Any = "from_dtype",
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
        self.scaling = scaling
        self.drift = drift
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.verbose = verbose

    coef_ = views.target_coef_
    intercept_ = views.target_intercept_
    norm_ = views.linear_norm_
    feature_importances_ = views.feature_importances_

    _recipe = staticmethod(recipes.linear_regressor)

    def __sklearn_tags__(self) -> Any:
        return linear_tags(super().__sklearn_tags__())
