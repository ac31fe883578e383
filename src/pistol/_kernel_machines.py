"""Kernel machines: scikit-learn shells around the dual learner."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from ._compiled.threads import Workers
from ._compiled.types import Array, read_only
from ._data.ordering import mix
from ._data.scaling import MOST, Moments, Units, as_it_is, measure, near, typical_square
from ._data.sums import MIXED, SUMS
from ._data.validation import check_choice, check_gram, check_number
from ._fit import Fit
from ._learners import Dual, Learner, Rule
from ._learners.gram import Gram, GramPlay
from ._learners.models import Expansion
from ._machine import Way
from ._tasks import Classifier, Regressor
from .kernels import Kernel, get_kernel, scale_gamma
from .losses import Loss

SAMPLE = 2048  # rows that speak for many
MOST_REPEATS, REPEATED = 10, 50_000  # passes over many rows, and how many rows they may add up to


class KernelMachine(Fit):
    """f as an expansion over support rows."""

    scaling = True
    _units: Units
    _x_moments: Moments | None = None
    _typical_sq = 0.0
    _predicted: list[Any] | None = None

    def _check_more(self, X: Any, whole: bool) -> None:
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ("scale", "auto"))
        else:
            check_number("gamma", self.gamma)
        check_number("degree", self.degree)
        check_number("coef0", self.coef0, closed=True)
        if self.kernel == "precomputed":
            own = slice(self._n_rows, self._n_rows + X.shape[0])
            check_gram(X, None if whole else own)

    def _content(self, X: Any, Y: Array, weight: Array) -> Array:
        if self.kernel == "precomputed":  # the rows of a Gram matrix are told apart by number
            return mix(np.arange(1, len(X) + 1, dtype=np.uint64))
        return super()._content(X, Y, weight)

    @property
    def _auto(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "auto"

    def _kernels(self, X: Any, weight: Array) -> tuple[Kernel, ...]:
        """One kernel, or the sum that a stream plays."""
        if self._auto:
            return MIXED.kernels(*self._anchor(X, weight))
        return (self._kernel(X, weight),)

    def _kernel(self, X: Any, weight: Array) -> Kernel:
        """The kernel that was asked for."""
        gamma = self.gamma
        if isinstance(gamma, str):
            gamma = scale_gamma(X, weight) if gamma == "scale" else 1.0 / X.shape[1]
        return get_kernel(self.kernel, gamma, self.degree, self.coef0)

    def _anchor(self, Z: Any, weight: Array) -> tuple[float, int]:
        """Mean squared distance of measured rows, and in how many features they differ."""
        return typical_square(Z, weight), max(int(self._units.varies.sum()), 1)

    def _new_learner(self, X: Any, columns: int, rule: Rule, kernels: Any) -> Learner:
        return Dual(rule, kernels, columns, self.n_jobs)

    def _ways(self, X: Any, weight: Array, columns: int, rule: Rule, threads: Workers) -> list[Way]:
        if self._auto:
            anchor = self._anchor(X, weight)
            sums = [each.kernels(*anchor) for each in SUMS]
        else:
            sums = [(self._kernel(X, weight),)]
        gram = Gram(X, [kernel for kernels in sums for kernel in kernels], threads)
        return [partial(GramPlay, gram, kernels, rule, columns, X, self.n_jobs) for kernels in sums]

    def _fit_many(self, X: Any, y: Any, Y: Array, weight: Array, hashes: Array) -> Self:
        """A sample of the rows says by which sum, and whether more than one pass is worth it."""
        if self.kernel == "precomputed":
            return super()._fit_many(X, y, Y, weight, hashes)
        sample = np.argsort(np.where(weight > 0, mix(hashes), np.uint64(2**64 - 1)), kind="stable")
        sample = sample[: int(SAMPLE / Y.shape[1] ** 0.25)]
        online, self._online = self._online, np.zeros(3)
        choice = self._choose(X[sample], read_only(Y[sample]), weight[sample], hashes[sample])
        self._online = online
        passes = max(1, min(choice.passes, MOST_REPEATS, REPEATED // X.shape[0]))
        if self._auto:  # in units of their own rows lose nothing that matters
            X = X.astype(np.float32)
        chosen = choice.learners[0]
        assert isinstance(chosen, Dual)
        kernels = chosen.kernels
        self._predicted = []
        try:
            self._fit_orders(X, y, Y, weight, hashes, kernels, self._orders(1), passes)
            late = self._predicted[len(self._predicted) // 2 :]
        finally:
            self._predicted = None
        order, P = (np.concatenate(parts) for parts in zip(*late, strict=True))
        self._calibrate(P, Y[order], weight[order])
        return self

    def _report(self, learner: Learner, Y: Array, order: Array, r: Array, P: Array) -> None:
        super()._report(learner, Y, order, r, P)
        if self._predicted is not None:
            self._predicted.append((order, P))

    # Units of the rows, for kernel="auto"

    def _measure_all(self, X: Any, Y: Array, weight: Array) -> tuple[Any, Array]:
        X, Y = super()._measure_all(X, Y, weight)
        self._x_moments = None  # these units stay
        if self._auto:
            self._units = measure(X, weight) if self.scaling else as_it_is(X.shape[1])
            X = self._units.measure(X)
        return X, Y

    def _measure_none(self, X: Any, Y: Array) -> None:
        super()._measure_none(X, Y)
        self._x_moments, self._units = Moments(X.shape[1]), as_it_is(X.shape[1])
        self._typical_sq = 0.0

    def _look_again(self, X: Any, Y: Array, weight: Array, due: bool) -> None:
        super()._look_again(X, Y, weight, due)
        if self._x_moments is None or not self._auto:
            return
        moments = copy.copy(self._x_moments)
        if due:
            self._remeasure(moments, X[:1])
        moments.add(X, weight)
        self._x_moments = moments

    def _remeasure(self, moments: Moments, row: Any) -> None:
        """Other units and kernels for all learners, if what is known by now asks for them."""
        known = copy.copy(moments)
        known.add(row, np.ones(1))  # the next row is there before its label
        now = known.units().faintly() if self.scaling else self._units
        typical_sq = known.typical_square(now)
        if self._units.near(now) and near(self._typical_sq, typical_sq):
            return
        kernels = MIXED.kernels(typical_sq, max(int(now.varies.sum()), 1))
        for learner in self._everyone():
            assert isinstance(learner, Dual)
            rows = learner.store.rows
            if rows.shape[0]:
                rows = now.measure(self._units.recover(rows))
            learner.remeasure(rows, kernels)
        self._units, self._typical_sq = now, typical_sq

    def _measure_rows(self, X: Any) -> Any:
        return self._units.measure(X) if self._auto else X

    def _mean(self, models: list[Any]) -> Expansion:
        return Expansion.mean(models).without_idle()

    def _shown(self) -> Expansion:
        model = self._model()
        assert isinstance(model, Expansion)
        coef = [self._in_targets(part) for part in model.coef]
        return replace(model, coef=np.stack(coef))

    @property
    def kernel_weights_(self) -> dict[str, float]:
        """What each kernel contributes to the model: shares of its size that sum to 1."""
        model = self._fitted()._shown()
        pairs = zip(model.kernels, model.shares(), strict=True)
        return {kernel.name: float(share) for kernel, share in pairs}

    def _expansion(self) -> Expansion:
        return self._fitted()._shown().without_zeros()

    @property
    def support_(self) -> Array:
        """Numbers of the rows the model is expanded on, counted over all rows seen."""
        return self._expansion().ids

    @property
    def support_vectors_(self) -> Any:
        """The rows the model is expanded on."""
        model = self._expansion()
        if model.precomputed:
            return np.empty((0, 0))
        return self._units.recover(model.rows) if self._auto else model.rows

    @property
    def dual_coef_(self) -> Array:
        """Coefficients of the support rows, of shape (columns, support rows)."""
        coef = self._expansion().coef
        most = MOST / len(coef)  # what is clipped has no sum
        return np.clip(coef, -most, most).sum(axis=0)

    @property
    def n_support_(self) -> int:
        """Number of support rows."""
        return len(self.support_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


class PistolClassifier(KernelMachine, Classifier):
    """Kernel classifier that optimises and regularises at once, with nothing to tune.

    PiSTOL (Orabona 2014, Algorithm 3) predicts with f_t = c_t g_{t-1}, where g collects the negative
    subgradients and c_t = (b/α) exp(‖g‖²/2α) takes the place of a step size; the model is the
    average of the f_t. More than two classes are learned one against the rest on shared kernel
    values.

    Parameters
    ----------
    kernel : str or callable, default="auto"
        "auto": a sum of kernels, one learner each; rows left out choose between four sums, from
        linear to local, and a stream plays the mixed one. Or "rbf", "laplacian", "poly", "linear",
        "cosine", "precomputed", or a function of two blocks of rows that returns the matrix of their
        kernel values.
    gamma : "scale", "auto" or float, default="scale"
        Bandwidth of rbf and laplacian, factor of poly: 1/(features × variance), 1/features, or a
        number. The first chunk of a stream decides. The kernel "auto" has no use for it.
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
        How often `fit` plays the rows. "auto": of 1, 2, 4, … what is best on rows that each order
        leaves out; up to 256 passes, 64 with more than 600 rows, 10 with more than 4,096.
    orders : int, "auto" or None, default="auto"
        `fit` plays this many random orders of the rows and averages their models. "auto": 5 that
        leave out a fifth each and 3 of all rows; 2 of all rows with more than 600; 1 with more than
        4,096. None plays the rows as they come, which `partial_fit` always does.
    scaling : bool, default=True
        Measure every column in a unit of its own, for the kernel "auto"; other kernels take the rows
        as they are.
    drift : bool, default=False
        `partial_fit` follows a stream that changes: younger learners challenge the one that predicts,
        and one that does better takes over.
    random_state : int, RandomState or None, default=None
        Seeds the random orders. They depend on the content of the rows, not on how X is sorted.
    class_weight : dict, "balanced" or None, default=None
        Factors on the sample weights.
    n_jobs : int or None, default=None
        Threads that share the kernel values; None means all cores. Results do not depend on it.
    verbose : bool, default=False
        Print online loss and error each time the number of rounds has doubled.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    support_, support_vectors_, dual_coef_, n_support_ : arrays and int
        The model's expansion: numbers of its rows, the rows, their coefficients, how many.
    kernel_weights_ : dict of str to float
        The share of the model that each kernel has.
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
        scaling: bool = True,
        drift: bool = False,
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
        self.drift = drift
        self.random_state = random_state
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose


class PistolRegressor(KernelMachine, Regressor):
    """Kernel regressor that optimises and regularises in one pass, with nothing to tune.

    The algorithm of :class:`PistolClassifier` on a Lipschitz regression loss. Several targets are
    learned together on shared kernel values.

    Parameters
    ----------
    kernel : str or callable, default="auto"
        "auto": a sum of kernels, one learner each; rows left out choose between four sums, from
        linear to local, and a stream plays the mixed one. Or "rbf", "laplacian", "poly", "linear",
        "cosine", "precomputed", or a function of two blocks of rows that returns the matrix of their
        kernel values.
    gamma : "scale", "auto" or float, default="scale"
        Bandwidth of rbf and laplacian, factor of poly: 1/(features × variance), 1/features, or a
        number. The first chunk of a stream decides. The kernel "auto" has no use for it.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial kernel.
    loss : str or Loss, default="huber"
        "huber", "absolute", "quantile" (the median), "epsilon_insensitive", "log_cosh", or a
        :class:`pistol.losses.Loss`, such as ``quantile_loss(0.9)`` or, for several quantiles at once,
        ``quantile_loss([0.1, 0.5, 0.9])``. Targets come to it in units of half their mean deviation.
    a : float, default=1.0
        The paper's a. Its theorem asks for a ≥ 2.25 L, its experiments use 0.25; with several passes
        1 does better.
    b : "anytime", "horizon" or float, default="anytime"
        The paper's b: 8√(2α_t), which needs no horizon; √(2aLT), with T known in `fit`; or a number.
    average : "linear", "uniform" or None, default="linear"
        Weight t on f_t, the paper's equal weights, or the last f.
    passes : int or "auto", default="auto"
        How often `fit` plays the rows. "auto": of 1, 2, 4, … what is best on rows that each order
        leaves out; up to 256 passes, 64 with more than 600 rows, 10 with more than 4,096.
    orders : int, "auto" or None, default="auto"
        `fit` plays this many random orders of the rows and averages their models. "auto": 5 that
        leave out a fifth each and 3 of all rows; 2 of all rows with more than 600; 1 with more than
        4,096. None plays the rows as they come, which `partial_fit` always does.
    scaling : bool, default=True
        Measure every column in a unit of its own, for the kernel "auto"; other kernels take the rows
        as they are.
    drift : bool, default=False
        `partial_fit` follows a stream that changes: younger learners challenge the one that predicts,
        and one that does better takes over.
    random_state : int, RandomState or None, default=None
        Seeds the random orders. They depend on the content of the rows, not on how X is sorted.
    n_jobs : int or None, default=None
        Threads that share the kernel values; None means all cores. Results do not depend on it.
    verbose : bool, default=False
        Print online loss and error each time the number of rounds has doubled.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, n_support_ : arrays and int
        The model's expansion: numbers of its rows, the rows, their coefficients, how many.
    kernel_weights_ : dict of str to float
        The share of the model that each kernel has.
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
        scaling: bool = True,
        drift: bool = False,
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
        self.drift = drift
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def intercept_(self) -> Any:
        """The centre of the targets, which is added to the expansion: a number, or one an output."""
        center = self._fitted()._offset()
        return center if len(center) > 1 or self._outputs else float(center[0])
