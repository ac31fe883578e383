"""The paper's baselines, Algorithms 1 and 2: other choices of c_t on the same loops."""

from __future__ import annotations

from typing import Any

from ..losses import Loss
from . import recipes, views
from .base import Estimator
from .kernel import kernel_tags
from .tasks import Classifier


class AveragedSGDClassifier(Classifier, Estimator):
    """Averaged stochastic gradient descent in a kernel space: the paper's Algorithm 1.

    The baseline that PiSTOL removes the step size from: c_t = η on the same loop.

    Parameters
    ----------
    eta : "anytime", "horizon" or float, default="anytime"
        Step size: 1/√t (lazily, f_t = g_{t-1}/√t); 1/√T, with T known in `fit`; or a number, which
        is Algorithm 1 to the letter.
    kernel : str or callable, default="rbf"
        As in :class:`PistolClassifier`.
    gamma : "scale", "auto" or float, default="scale"
        Bandwidth of rbf and laplacian, factor of poly: 1/(features × variance), 1/features, or a
        number. In a stream its first chunk sets "scale". The kernel "auto" does not use it.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial kernel.
    loss : str or Loss, default="smooth_hinge"
        As in :class:`PistolClassifier`.
    average : "linear", "uniform" or None, default="uniform"
        Weight t on f_t, the paper's equal weights, or the last f.
    passes : int, default=1
        How many times `fit` goes over the rows.
    orders : int or None, default=1
        Shuffled orders whose models are averaged; None learns the rows in the order given.
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
        The model's expansion.
    t_ : float
        Rounds learned.
    online_loss_, online_error_ : float
        Mean loss and error on each row before it was learned.
    norm_ : float or array
        ‖f‖ of the model.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pistol import AveragedSGDClassifier
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> AveragedSGDClassifier(random_state=0).fit(X, y).score(X, y) > 0.8
    True
    """

    def __init__(
        self,
        *,
        eta: str | float = "anytime",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        loss: str | Loss = "smooth_hinge",
        average: str | None = "uniform",
        passes: int = 1,
        orders: int | None = 1,
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.eta = eta
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.average = average
        self.passes = passes
        self.orders = orders
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
    norm_ = views.kernel_norm_
    neighbours = views.neighbours

    _recipe = staticmethod(recipes.averaged_sgd)

    def __sklearn_tags__(self) -> Any:
        return kernel_tags(self, super().__sklearn_tags__())


class KernelPerceptron(Classifier, Estimator):
    """The kernel Perceptron: the paper's Algorithm 2.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        As in :class:`PistolClassifier`.
    gamma : "scale", "auto" or float, default="scale"
        Bandwidth of rbf and laplacian, factor of poly: 1/(features × variance), 1/features, or a
        number. In a stream its first chunk sets "scale". The kernel "auto" does not use it.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial kernel.
    average : "linear", "uniform" or None, default=None
        The algorithm returns its last f; an average makes it the averaged Perceptron.
    passes : int, default=1
        How many times `fit` goes over the rows.
    orders : int or None, default=1
        Shuffled orders whose models are averaged; None learns the rows in the order given.
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
        The model's expansion.
    t_ : float
        Rounds learned.
    online_loss_, online_error_ : float
        Mean loss and share of mistakes on each row before it was learned.
    norm_ : float or array
        ‖f‖ of the model.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pistol import KernelPerceptron
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> KernelPerceptron(gamma=2.0, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        average: str | None = None,
        passes: int = 1,
        orders: int | None = 1,
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
        self.average = average
        self.passes = passes
        self.orders = orders
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
    norm_ = views.kernel_norm_
    neighbours = views.neighbours

    _recipe = staticmethod(recipes.kernel_perceptron)

    def __sklearn_tags__(self) -> Any:
        return kernel_tags(self, super().__sklearn_tags__())
