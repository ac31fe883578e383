"""One event at a time: predict, then learn.

By default a linear learner with nothing to set: features of any scale and offset, an intercept, no
learning rate and no number of rounds.

>>> import numpy as np
>>> from pistol.online import Learner
>>> learner = Learner()
>>> for x, y in [([1000.0, 0.2], 1), ([1001.0, 0.1], -1), ([1002.0, 0.3], 1)] * 10:
...     p = learner.predict(x)         # a score, before y is known; its sign is the class
...     suffered = learner.learn(x, y)
>>> learner.t, learner.predict([1001.0, 0.1]) < 0 < learner.predict([1002.0, 0.3])
(30, True)

The setting of the paper's Theorem 1, in which the regret is bounded on any sequence of events, has a
constructor of its own, `Learner.theorem`. It takes the events as they are, of norm at most 1:

>>> learner = Learner.theorem("logistic", record=True)
>>> for x, y in [([1.0, 0.0], 1), ([0.0, 1.0], -1), ([0.6, 0.8], -1)]:
...     suffered = learner.learn(x, y)
>>> h = np.array([1.0, -2.0])          # the predictor ⟨h, x⟩
>>> 0 < learner.regret(h) < learner.bound(h)
True
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any, Self

import numpy as np

from ._compiled.types import MAX_NORM_SQ, Array
from ._data.validation import MAX_TARGET, check_choice, check_count, check_number
from ._learners import AVERAGES, Rule
from ._learners import regret as _regret
from ._learners.events import KernelEvents, LinearEvents
from ._learners.regret import Comparator, Round
from .kernels import get_kernel
from .losses import CLASSIFICATION_LOSSES, LOSSES, Loss, get_loss
from .potentials import pistol_choice

Events = LinearEvents | KernelEvents
_RANGED = {
    "mean": "Use squared_error_loss(limit) of pistol.losses, with the largest |y - p| to be squared",
    "log": "Use the partial_fit of LinearPistolRegressor, which learns the scale of counts",
}


class Learner:
    """PiSTOL, one event at a time (Orabona 2014, Algorithm 3).

    In each round: `predict` x with the current f_t, then `learn` x and y, which suffers the loss at
    f_t(x) and updates.

    The defaults are for use: one learner per feature, each in the scale of its feature; events are
    centred; there is an intercept; b grows by itself. No theorem covers them. `Learner.theorem` is
    the setting of Theorem 1, for `bound`.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        The loss of the rounds that name none of their own.
    kernel : str or callable, default="linear"
        "linear" keeps g as a vector; any other kernel of
        :class:`~pistol.PistolClassifier` (except "precomputed") keeps the rows with a gradient. It
        takes the events as they are: scale them yourself, or use the classifier's `partial_fit`.
    gamma, degree, coef0 : float, default=1.0, 3 and 0.0
        Parameters of the kernel.
    per_coordinate : bool or None, default=None
        One learner per feature (Appendix A). None is True for the linear kernel, the only one that
        can.
    center : bool or None, default=None
        Subtract from each event the mean of all events so far, itself included. None is True for the
        linear kernel, the only one that can.
    fit_intercept : bool or None, default=None
        Learn a constant beside the features. None is True for the linear kernel, the only one that
        can.
    x_max : float, default=0.0
        With `per_coordinate`: a bound on all |x_i| known beforehand. 0 learns the scale of each
        feature, its largest magnitude so far: then multiplying a feature by a constant changes no
        prediction.
    L : float or None, default=None
        Lipschitz constant of all losses to come; None takes that of `loss`.
    a : float or None, default=None
        The paper's a. None is L for the linear kernel and L/4, as in the paper's experiments, for
        others.
    b : "anytime", "vowpal" or float, default="anytime"
        The paper's b: ½√(2α_t), which needs no number of rounds; Vowpal Wabbit's ½√G, for
        `per_coordinate`; or a number.
    average : "linear", "uniform" or None, default="linear"
        Which average `decide` evaluates: weight t on f_t, the paper's equal weights, or the last f.
    max_support : int or None, default=None
        How many rows another kernel than "linear" keeps. Until there are so many nothing changes;
        from then on gradients are projected on the span of the kept rows, and an event costs the same
        time and memory forever. None keeps all.
    record : bool, default=False
        Keep all rounds, which `regret` and `bound` need.

    Attributes
    ----------
    t : int
        Rounds learned.
    cumulative_loss : float
        Σ ℓ_t(f_t(x_t)).
    s_sum : float
        Σ |s_t|, the sum of the magnitudes of the subgradients.
    """

    def __init__(
        self,
        loss: str | Loss = "logistic",
        *,
        kernel: Any = "linear",
        gamma: float = 1.0,
        degree: float = 3,
        coef0: float = 0.0,
        per_coordinate: bool | None = None,
        center: bool | None = None,
        fit_intercept: bool | None = None,
        x_max: float = 0.0,
        L: float | None = None,
        a: float | None = None,
        b: str | float = "anytime",
        average: str | None = "linear",
        max_support: int | None = None,
        record: bool = False,
    ) -> None:
        self.loss = get_loss(loss, LOSSES)
        self.L = self.loss.L if L is None else check_number("L", L)
        usual = self.L if kernel == "linear" else self.L / 4
        self.a = usual if a is None else check_number("a", a)
        check_choice("average", average, AVERAGES)
        if kernel == "precomputed":
            raise ValueError(
                "a learner of single events has no precomputed kernel; give a function"
            )
        self.per_coordinate = _linear_only("per_coordinate", per_coordinate, kernel)
        self.center = _linear_only("center", center, kernel)
        self.fit_intercept = _linear_only("fit_intercept", fit_intercept, kernel)
        potential, b = pistol_choice(b, self.a, self.L, None)
        self._rule = Rule(replace(self.loss, L=self.L), potential, self.a, b, average)
        self._kernel = get_kernel(
            kernel,
            check_number("gamma", gamma),
            check_number("degree", degree),
            check_number("coef0", coef0, closed=True),
        )
        self.x_max = check_number("x_max", x_max, closed=True)
        check_count("max_support", max_support, none="all")
        self.max_support, self.record = max_support, record
        self._events: Events | None = None
        self._rounds: list[Round] = []
        self._set_loss(self.loss)

    @classmethod
    def theorem(
        cls,
        loss: str | Loss = "smooth_hinge",
        *,
        kernel: Any = "linear",
        gamma: float = 1.0,
        degree: float = 3,
        coef0: float = 0.0,
        per_coordinate: bool = False,
        L: float | None = None,
        a: float | None = None,
        b: float = 1.0,
        record: bool = False,
    ) -> Self:
        """The setting of Theorem 1: events as they are, a = 3 L, b = 1, the uniform average.

        The theorem asks for ‖k(x, ·)‖ ≤ 1; with `per_coordinate` its corollary in Appendix A asks for
        |x_i| ≤ 1.

        Parameters
        ----------
        loss : str or Loss, default="smooth_hinge"
            The loss of the rounds that name none of their own.
        kernel : str or callable, default="linear"
            As in the constructor.
        gamma, degree, coef0 : float, default=1.0, 3 and 0.0
            Parameters of the kernel.
        per_coordinate : bool, default=False
            One learner per feature (Appendix A, which takes b = 1/d), for the linear kernel.
        L : float or None, default=None
            Lipschitz constant of all losses to come; None takes that of `loss`.
        a : float or None, default=None
            The paper's a; None is 3 L. Theorem 1 asks for a ≥ 2.25 L, and its constant explodes near
            2.25 L.
        b : float, default=1.0
            The paper's b, a constant.
        record : bool, default=False
            Keep all rounds, which `regret` and `bound` need.

        Returns
        -------
        learner : Learner
            A learner whose regret `bound` bounds.
        """
        loss = get_loss(loss, LOSSES)
        if a is None:
            a = 3.0 * (loss.L if L is None else check_number("L", L))
        return cls(
            loss, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0,
            per_coordinate=per_coordinate, center=False, fit_intercept=False, x_max=1.0,
            L=L, a=a, b=b, average="uniform", record=record,
        )  # fmt: skip

    def __repr__(self) -> str:
        how = repr(self._kernel)
        if self._kernel.source == "linear":
            names = "per_coordinate", "center", "fit_intercept"
            how = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        return f"Learner({self.loss.name!r}, {how}, a={self.a:g}, t={self.t})"

    @property
    def t(self) -> int:
        """Rounds learned."""
        return 0 if self._events is None else int(self._events.learner.S.t[0, 0])

    @property
    def cumulative_loss(self) -> float:
        """Σ ℓ_t(f_t(x_t))."""
        return 0.0 if self._events is None else self._events.loss_sum

    @property
    def s_sum(self) -> float:
        """Σ abs(s_t), the sum of the magnitudes of the subgradients."""
        return 0.0 if self._events is None else self._events.s_sum

    def predict(self, x: Any) -> float:
        """f_t(x) with the current f_t = c_t g_{t-1}; zero before the first round."""
        events = self._events or self._new_events(_row(x))
        try:
            p = events.predict(x)
        except (TypeError, AttributeError, ValueError):  # not a vector of float64, or not yet
            p = events.predict(_row(x))
        if p == inf and (p := events.predict(_row(x))) == inf:
            raise _refusal(events, _row(x), 0.0)
        return p

    def learn(self, x: Any, y: float, loss: str | Loss | None = None) -> float:
        """Suffer ℓ_t(f_t(x)), which is returned, and update.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The event.
        y : float
            Its target; ±1 for the classification losses.
        loss : str, Loss or None, default=None
            ℓ_t, where it differs from the learner's own loss. Its Lipschitz constant must not exceed
            the learner's L.

        Returns
        -------
        suffered : float
            ℓ_t(f_t(x)).
        """
        if loss is not None or self._current is not self.loss:
            self._set_loss(self.loss if loss is None else get_loss(loss, LOSSES))
        if self._margin and y != 1 and y != -1:
            raise self._no_sign(y)
        self._play(x, y)
        return self._events.suffered  # type: ignore[union-attr]

    def _play(self, x: Any, y: float) -> float:
        """Learn an event; what was predicted before."""
        events = self._events or self._new_events(_row(x))
        try:
            p = events.step(x, y)
        except (TypeError, AttributeError, ValueError):  # not a vector of float64, or not yet
            p = events.step(_row(x), float(y))
        if p == inf and (p := events.step(_row(x), float(y))) == inf:
            raise _refusal(events, _row(x), y)
        self._events = events
        if self.record:
            x, suffered = _row(x).copy(), events.suffered
            self._rounds.append(Round(x, float(y), self._current, suffered, events.s_sum))
        return p

    def step(self, x: Any, y: float) -> float:
        """Predict x, which is returned, and learn it: `predict` and `learn` in one call.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The event.
        y : float
            Its target, which the prediction does not depend on.

        Returns
        -------
        p : float
            f_t(x), as `predict` would have returned it before the event was learned.

        Examples
        --------
        >>> learner = Learner()
        >>> learner.step([1.0, 2.0], 1), learner.t
        (0.0, 1)
        """
        if self._current is not self.loss:
            self._set_loss(self.loss)
        if self._margin and y != 1 and y != -1:
            raise self._no_sign(y)
        return self._play(x, y)

    def learn_many(self, X: Any, y: Any) -> Array:
        """Predict and learn events one after the other, in one call: the fastest way from Python.

        Parameters
        ----------
        X : array-like of shape (n_events, n_features)
            The events, in order.
        y : array-like of shape (n_events,)
            Their targets. The prediction of an event depends on those before it alone.

        Returns
        -------
        p : array of shape (n_events,)
            f_t(x_t), each made before its event was learned.

        Examples
        --------
        >>> import numpy as np
        >>> one, other = Learner(), Learner()
        >>> X, y = np.random.default_rng(0).normal(size=(9, 2)), np.array([1, -1, 1] * 3)
        >>> bool((one.learn_many(X, y) == [other.step(*event) for event in zip(X, y)]).all())
        True
        """
        X = np.ascontiguousarray(X, np.float64)
        y = np.ascontiguousarray(y, np.float64)
        if X.ndim != 2 or y.shape != (len(X),):
            raise ValueError(
                f"X must be rows and y one number per row; got shapes {X.shape} and {y.shape}"
            )
        if self._current is not self.loss:
            self._set_loss(self.loss)
        if not len(X):
            return np.zeros(0)
        events = self._events or self._new_events(X[0])
        with np.errstate(all="ignore"):
            far = ~(np.einsum("ij,ij->i", X, X) <= MAX_NORM_SQ) | ~(np.abs(y) <= MAX_TARGET)
        bad = np.flatnonzero(far | (self._margin & (np.abs(y) != 1)))
        if X.shape[1] != events.features or len(bad):
            i = int(bad[0]) if len(bad) else 0
            if self._margin and abs(y[i]) != 1:
                raise self._no_sign(y[i])
            raise _refusal(events, X[i], float(y[i]))
        self._events = events
        if self.record:
            return np.array([self.step(*event) for event in zip(X, y.tolist(), strict=True)])
        return events.learn_many(X, y)

    def decide(self, X: Any) -> Array:
        """The averaged predictor f̄ at the rows of X (statistical setting, line 10).

        With `center`, rows are taken relative to the mean of all events so far.
        """
        X = np.ascontiguousarray(np.atleast_2d(np.asarray(X, np.float64)))
        if self._events is None:
            return np.zeros(len(X))
        return self._events.decide(X)

    def regret(self, h: Comparator) -> float:
        """Σ ℓ_t(f_t(x_t)) - Σ ℓ_t(h(x_t)) over all rounds so far, the last of `regrets`.

        Parameters
        ----------
        h : array of shape (n_features,), pair (coef, points), or callable
            The comparator: a weight vector, an expansion Σ coef_i k(point_i, ·) in the learner's
            kernel, or a function from rows to values.
        """
        return _last(self.regrets(h))

    def regrets(self, h: Comparator) -> Array:
        """R_1, …, R_t: the regret against h after each round.

        Parameters
        ----------
        h : array of shape (n_features,), pair (coef, points), or callable
            As in `regret`.
        """
        return _regret.regrets(self._recorded(), self._kernel, h)

    def bound(self, h: Comparator, h_norm: float | None = None) -> float:
        """What the regret against h cannot exceed, the last of `bounds`.

        Parameters
        ----------
        h : array of shape (n_features,), pair (coef, points), or callable
            As in `regret`.
        h_norm : float or None, default=None
            ‖h‖ in the RKHS, where h is a function.
        """
        return _last(self.bounds(h, h_norm))

    def bounds(self, h: Comparator, h_norm: float | None = None) -> Array:
        """What the regret against h could not exceed after each round, on any sequence of events.

        Parameters
        ----------
        h : array of shape (n_features,), pair (coef, points), or callable
            As in `regret`; with `per_coordinate` no function.
        h_norm : float or None, default=None
            ‖h‖ in the RKHS, where h is a function.

        Returns
        -------
        bounds : array of shape (t,)
            :func:`~pistol.theory.regret_bound` of ‖h‖ and the Σ|s_t| so far; with `per_coordinate`
            :func:`~pistol.theory.per_coordinate_bound`. What no theorem covers is refused.
        """
        rounds, kernel, rule = self._recorded(), self._kernel, self._rule
        _regret.check_events(self.center, self.fit_intercept)
        if isinstance(self._events, KernelEvents) and self._events.learner.projected is not None:
            raise ValueError(
                "rows were projected because there are max_support others; the bound holds for the "
                "projected kernel only. Use max_support=None"
            )
        if self.per_coordinate:
            return _regret.bounds_per_coordinate(rounds, kernel, rule, self.x_max, h, h_norm)
        return _regret.bounds(rounds, kernel, rule, h, h_norm)

    def _no_sign(self, y: Any) -> ValueError:
        return ValueError(f"y must be -1 or +1 for the {self._current.name} loss; got {y!r}")

    def _recorded(self) -> list[Round]:
        if not self.record:
            raise ValueError("this needs all rounds; create the learner with record=True")
        return self._rounds

    def _set_loss(self, loss: Loss) -> None:
        if loss.coupled or loss.levels:
            raise ValueError(
                f"{loss!r} is about several scores per round; this learner has one. Use 'logistic' "
                "or another loss of one score"
            )
        if loss.targets == "log" or loss.ranged:
            raise ValueError(
                f"the {loss.name} loss is bounded by the range of all targets, which this learner does "
                f"not know. {_RANGED[loss.targets]}"
            )
        if loss.L > self.L * (1 + 1e-12):
            raise ValueError(
                f"this learner was promised losses with L ≤ {self.L:g}; {loss.name!r} has {loss.L:g}"
            )
        self._current, self._margin = loss, loss.name in CLASSIFICATION_LOSSES
        if self._events is not None:
            self._events.set_loss(loss)

    def _new_events(self, x: Array) -> Events:
        """A learner for events like x; it is kept when it has learned one."""
        events: Events
        if self._kernel.source == "linear":
            bias = 1.0 if self.fit_intercept else 0.0
            how = self.per_coordinate, self.x_max, self.center, bias
            events = LinearEvents(self._rule, len(x), *how)
        else:
            events = KernelEvents(self._rule, len(x), self._kernel, self.max_support)
        events.set_loss(self._current)
        return events


def _linear_only(name: str, asked: bool | None, kernel: Any) -> bool:
    """What only the linear kernel can have, and has unless told otherwise."""
    linear = isinstance(kernel, str) and kernel == "linear"
    if asked and not linear:
        raise ValueError(f"{name} needs kernel='linear'; got {kernel!r}")
    return linear if asked is None else asked


def _refusal(events: Events, x: Array, y: float) -> ValueError:
    """Why an event was refused."""
    if len(x) != events.features:
        return ValueError(f"x must be one event of {events.features} features; got {len(x)}")
    if not abs(y) <= MAX_TARGET:
        return ValueError(f"y must be finite and at most {MAX_TARGET:g} in magnitude; got {y!r}")
    return ValueError(f"x must be finite and of moderate size; got {x!r}")


def _row(x: Any) -> Array:
    """One event as a vector of float64."""
    try:
        row = np.ascontiguousarray(x, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"x must be one event, a vector of numbers; got {x!r}") from None
    row = row[0] if row.ndim == 2 and len(row) == 1 else row
    if row.ndim != 1:
        raise ValueError(f"x must be one event, a vector of features; got shape {row.shape}")
    return row


def _last(values: Array) -> float:
    """The last value, and zero before the first round."""
    return float(values[-1]) if len(values) else 0.0
