"""The kernel estimators."""

from __future__ import annotations

from typing import Any

from ..losses import Loss
from . import recipes, views
from .base import Estimator, table_tags
from .tasks import Classifier, Regressor


def kernel_tags(estimator: Any, tags: Any) -> Any:
    """Tags of an estimator whose X may be sparse rows or a Gram matrix."""
    gram = isinstance(estimator.kernel, str) and estimator.kernel == "precomputed"
    tags.input_tags.sparse, tags.input_tags.pairwise = not gram, gram
    own = isinstance(estimator.kernel, str) and estimator.kernel == "auto"
    return tags if gram else table_tags(tags, categorical=own)


class PistolClassifier(Classifier, Estimator):
    """Kernel classifier that optimises and regularises at once, with nothing to tune.

    PiSTOL (Orabona 2014, Algorithm 3) predicts with f_t = c_t g_{t-1}, where g collects the negative
    subgradients and c_t = (b/α) exp(‖g‖²/2α) takes the place of a step size; the model is the
    average of the f_t. More than two classes are learned one against the rest on shared kernel
    values.

    Parameters
    ----------
    kernel : str or callable, default="auto"
        "auto": a sum of kernels, one learner per kernel. Held-out rows choose between five sums,
        from linear to local; a stream uses the mixed one. Or "rbf", "laplacian", "poly", "linear",
        "cosine", "precomputed", or a function of two blocks of rows that returns the matrix of their
        kernel values.
    gamma : "scale", "auto" or float, default="scale"
        Bandwidth of rbf and laplacian, factor of poly: 1/(features × variance), 1/features, or a
        number. In a stream its first chunk sets "scale". The kernel "auto" does not use it.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial kernel.
    loss : str or Loss, default="smooth_hinge"
        "smooth_hinge", "hinge", "logistic" (multinomial with more than two classes),
        "modified_huber", "perceptron", or a :class:`pistol.losses.Loss` of your own.
    a : float, default=1.0
        The paper's a. Its theorem asks for a ≥ 2.25 L, its experiments use 0.25; with several passes
        1 does better.
    b : "anytime", "horizon" or float, default="anytime"
        The paper's b: ½√(2α_t), which needs no horizon; √(2aLT), with T known in `fit`; or a number.
    average : "linear", "uniform" or None, default="linear"
        Weight t on f_t, the paper's equal weights, or the last f.
    passes : int or "auto", default="auto"
        How many times `fit` goes over the rows. "auto": the best of 1, 2, 4, … on held-out rows; up
        to 256 passes, 64 with more than 600 rows.
    orders : int, "auto" or None, default="auto"
        `fit` learns this many shuffled orders of the rows and averages their models. "auto": 3; 2
        with more than 600 rows. With more than 5,000 rows each order has a partition of space into
        cells of its own, for the kernel "auto". None learns the rows in the order given, which
        `partial_fit` always does.
    scaling : bool, "robust" or "standard", default=True
        Scale every feature, for the kernel "auto"; other kernels take the rows as they are. "robust":
        values far out neither set the scale of a feature nor count much. True: robust, and `fit` tries
        columns that rise between quantiles of each feature, for targets with thresholds; held-out rows
        tell whether they help. "standard": mean and standard deviation.
    metric : bool, default=True
        Learn which features matter, for the kernel "auto": features are weighted by the gradients of
        what was learned, and learned again. In `fit` held-out rows tell whether this helps.
        Without scaling there is no metric.
    drift : bool, default=False
        `partial_fit` follows a stream that changes: younger learners run beside the one that
        predicts, and one that does better takes over.
    max_support : int or None, default=None
        `partial_fit` keeps at most this many support rows. Until there are so many nothing changes;
        from then on what is learned is projected on the span of the kept rows, and a row costs the
        same time and memory forever. None keeps all. `fit` keeps to it with ``orders=None`` or a
        number of `passes`. With ``passes="auto"`` it has the kernel values of all rows in memory and
        does not use it; should `partial_fit` follow, no rows are added to a learner that has as many.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns that hold categories, for tables. "from_dtype": those of categories, enums and
        strings. A list of names or numbers of columns, or a mask: these as well, such as codes that
        are numbers. None: only words are categories; categories that are numbers are numbers.
    random_state : int, RandomState or None, default=None
        Seeds the shuffled orders. They depend on the content of the rows, not on how X is sorted.
    class_weight : dict, "balanced" or None, default=None
        Factors on the sample weights.
    n_jobs : int or None, default=None
        Threads that compute kernel values. None means all cores, unlike elsewhere in scikit-learn:
        the threads share one set of rows and cost no memory, as in HistGradientBoosting. Inside
        joblib's workers it means one. Results do not depend on it.
    verbose : bool, default=False
        Print online loss and error each time the number of rounds has doubled.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    support_, support_vectors_, dual_coef_, n_support_ : arrays and int
        The model's expansion: numbers of its rows, the rows, their coefficients (one row per
        output), how many.
    kernel_weights_ : dict of str to float
        What each kernel contributes to the model, and trees of many rows: shares that sum to 1.
    feature_importances_ : array of shape (n_features_in_,)
        How much the model depends on each feature, for the kernel "auto": mean squares of its
        derivatives with respect to the scaled features, and the variance of what trees of many rows
        add for a feature. They sum to 1.
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

    References
    ----------
    F. Orabona, "Simultaneous Model Selection and Optimization through Parameter-free Stochastic
    Learning", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from pistol import PistolClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)  # no scaling needed
    >>> X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    >>> model = PistolClassifier(random_state=0).fit(X, y)
    >>> model.score(X_test, y_test) > 0.94
    True
    """

    def __init__(
        self,
        *,
        kernel: Any = "auto",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        loss: str | Loss = "smooth_hinge",
        a: float = 1.0,
        b: str | float = "anytime",
        average: str | None = "linear",
        passes: int | str = "auto",
        orders: int | str | None = "auto",
        scaling: bool | str = True,
        metric: bool = True,
        drift: bool = False,
        max_support: int | None = None,
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.a = a
        self.b = b
        self.average = average
        self.passes = passes
        self.orders = orders
        self.scaling = scaling
        self.metric = metric
        self.drift = drift
        self.max_support = max_support
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

    support_ = views.support_
    support_vectors_ = views.support_vectors_
    dual_coef_ = views.dual_coef_
    n_support_ = views.n_support_
    kernel_weights_ = views.kernel_weights_
    feature_importances_ = views.feature_importances_
    norm_ = views.kernel_norm_
    neighbours = views.neighbours

    _recipe = staticmethod(recipes.kernel_classifier)

    def __sklearn_tags__(self) -> Any:
        return kernel_tags(self, super().__sklearn_tags__())


class PistolRegressor(Regressor, Estimator):
    """Kernel regressor that optimises and regularises at once, with nothing to tune.

    The algorithm of :class:`PistolClassifier` on a Lipschitz regression loss. Several targets are
    learned together on shared kernel values.

    Parameters
    ----------
    kernel : str or callable, default="auto"
        "auto": a sum of kernels, one learner per kernel. Held-out rows choose between five sums,
        from linear to local; a stream uses the mixed one. Or "rbf", "laplacian", "poly", "linear",
        "cosine", "precomputed", or a function of two blocks of rows that returns the matrix of their
        kernel values.
    gamma : "scale", "auto" or float, default="scale"
        Bandwidth of rbf and laplacian, factor of poly: 1/(features × variance), 1/features, or a
        number. In a stream its first chunk sets "scale". The kernel "auto" does not use it.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial kernel.
    loss : str or Loss, default="huber"
        What is predicted. "huber": a typical value, between the median and the mean. For means and
        totals use "squared_error", and "poisson" for counts, whose logarithm of the mean is learned.
        "absolute" and "quantile" predict the median, "epsilon_insensitive" and "log_cosh" a typical
        value. Or a :class:`pistol.losses.Loss`, such as ``quantile_loss(0.9)`` or, for several
        quantiles at once, ``quantile_loss([0.1, 0.5, 0.9])``. Targets are scaled first.
    a : float, default=1.0
        The paper's a. Its theorem asks for a ≥ 2.25 L, its experiments use 0.25; with several passes
        1 does better.
    b : "anytime", "horizon" or float, default="anytime"
        The paper's b: 8√(2α_t), which needs no horizon; √(2aLT), with T known in `fit`; or a number.
    average : "linear", "uniform" or None, default="linear"
        Weight t on f_t, the paper's equal weights, or the last f.
    passes : int or "auto", default="auto"
        How many times `fit` goes over the rows. "auto": the best of 1, 2, 4, … on held-out rows; up
        to 256 passes, 64 with more than 600 rows.
    orders : int, "auto" or None, default="auto"
        `fit` learns this many shuffled orders of the rows and averages their models. "auto": 3; 2
        with more than 600 rows. With more than 5,000 rows each order has a partition of space into
        cells of its own, for the kernel "auto". None learns the rows in the order given, which
        `partial_fit` always does.
    scaling : bool, "robust" or "standard", default=True
        Scale every feature, for the kernel "auto"; other kernels take the rows as they are. "robust":
        values far out neither set the scale of a feature nor count much. True: robust, and `fit` tries
        columns that rise between quantiles of each feature, for targets with thresholds; held-out rows
        tell whether they help. "standard": mean and standard deviation.
    metric : bool, default=True
        Learn which features matter, for the kernel "auto": features are weighted by the gradients of
        what was learned, and learned again. In `fit` held-out rows tell whether this helps.
        Without scaling there is no metric.
    drift : bool, default=False
        `partial_fit` follows a stream that changes: younger learners run beside the one that
        predicts, and one that does better takes over.
    max_support : int or None, default=None
        `partial_fit` keeps at most this many support rows. Until there are so many nothing changes;
        from then on what is learned is projected on the span of the kept rows, and a row costs the
        same time and memory forever. None keeps all. `fit` keeps to it with ``orders=None`` or a
        number of `passes`. With ``passes="auto"`` it has the kernel values of all rows in memory and
        does not use it; should `partial_fit` follow, no rows are added to a learner that has as many.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns that hold categories, for tables. "from_dtype": those of categories, enums and
        strings. A list of names or numbers of columns, or a mask: these as well, such as codes that
        are numbers. None: only words are categories; categories that are numbers are numbers.
    random_state : int, RandomState or None, default=None
        Seeds the shuffled orders. They depend on the content of the rows, not on how X is sorted.
    n_jobs : int or None, default=None
        Threads that compute kernel values. None means all cores, unlike elsewhere in scikit-learn:
        the threads share one set of rows and cost no memory, as in HistGradientBoosting. Inside
        joblib's workers it means one. Results do not depend on it.
    verbose : bool, default=False
        Print online loss and error each time the number of rounds has doubled.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, n_support_ : arrays and int
        The model's expansion: numbers of its rows, the rows, their coefficients (one row per
        output), how many.
    kernel_weights_ : dict of str to float
        What each kernel contributes to the model, and trees of many rows: shares that sum to 1.
    feature_importances_ : array of shape (n_features_in_,)
        How much the model depends on each feature, for the kernel "auto": mean squares of its
        derivatives with respect to the scaled features, and the variance of what trees of many rows
        add for a feature. They sum to 1.
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
    >>> import numpy as np
    >>> from pistol import PistolRegressor
    >>> X = np.linspace(-3, 3, 400)[:, None]
    >>> model = PistolRegressor(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.score(X, np.sin(X[:, 0])) > 0.8
    True
    """

    def __init__(
        self,
        *,
        kernel: Any = "auto",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        loss: str | Loss = "huber",
        a: float = 1.0,
        b: str | float = "anytime",
        average: str | None = "linear",
        passes: int | str = "auto",
        orders: int | str | None = "auto",
        scaling: bool | str = True,
        metric: bool = True,
        drift: bool = False,
        max_support: int | None = None,
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.a = a
        self.b = b
        self.average = average
        self.passes = passes
        self.orders = orders
        self.scaling = scaling
        self.metric = metric
        self.drift = drift
        self.max_support = max_support
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    support_ = views.support_
    support_vectors_ = views.support_vectors_
    dual_coef_ = views.dual_coef_
    n_support_ = views.n_support_
    kernel_weights_ = views.kernel_weights_
    feature_importances_ = views.feature_importances_
    norm_ = views.kernel_norm_
    neighbours = views.neighbours
    intercept_ = views.center_

    _recipe = staticmethod(recipes.kernel_regressor)

    def __sklearn_tags__(self) -> Any:
        return kernel_tags(self, super().__sklearn_tags__())
