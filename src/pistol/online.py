"""One event at a time: the paper's adversarial setting.

>>> import numpy as np
>>> from pistol.online import Learner
>>> learner = Learner("logistic", record=True)
>>> for x, y in [([1.0, 0.0], 1), ([0.0, 1.0], -1), ([0.6, 0.8], -1)]:
...     p = learner.predict(x)       # f_t(x_t), before y is known
...     suffered = learner.learn(x, y)
>>> learner.t, learner.predict([0.0, 1.0]) < 0
(3, True)
>>> learner.regret(np.array([1.0, -2.0])) > 0  # against the predictor ⟨h, x⟩
True
>>> learner.regret(np.array([1.0, -2.0])) < learner.bound(np.array([1.0, -2.0]))  # Theorem 1
True
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from ._compiled.rows import sq_norms
from ._compiled.types import Array
from ._data.validation import MAX_NORM_SQ, MAX_TARGET, check_choice, check_number
from ._learners import AVERAGES, Rule
from ._learners import regret as _regret
from ._learners.events import KernelEvents, LinearEvents
from ._learners.regret import Comparator, Round
from .kernels import get_kernel
from .losses import CLASSIFICATION_LOSSES, LOSSES, Loss, get_loss
from .potentials import pistol_choice


class Learner:
    """PiSTOL against any sequence of losses (Orabona 2014, Algorithm 3, adversarial setting).

    In each round: `predict` x with the current f_t, then `learn` x and y, which suffers the loss at
    f_t(x) and updates. The defaults are a setting that Theorem 1 covers.

    Parameters
    ----------
    loss : str or Loss, default="smooth_hinge"
        The loss of the rounds that name none of their own.
    kernel : str or callable, default="linear"
        "linear" keeps g as a vector; any other kernel of
        :class:`~pistol.PistolClassifier` (except "precomputed") keeps the rows with a gradient.
    gamma, degree, coef0 : float, default=1.0, 3 and 0.0
        Parameters of the kernel.
    per_coordinate : bool, default=False
        One learner a coordinate (Appendix A), for the linear kernel.
    x_max : float, default=1.0
        With `per_coordinate`: a bound on all |x_i|. 0 learns each feature's unit instead.
    L : float or None, default=None
        Lipschitz constant of all losses to come; None takes that of `loss`.
    a : float or None, default=None
        The paper's a; None is 3 L. Theorem 1 asks for a ≥ 2.25 L and ‖k(x, ·)‖ ≤ 1, and its constant
        explodes near 2.25 L.
    b : "anytime" or float, default=1.0
        The paper's b. Appendix A takes 1/d for `per_coordinate`.
    average : "uniform", "linear" or None, default="uniform"
        Which average `decide` evaluates.
    record : bool, default=False
        Keep all rounds, which `regret` and `bound` need.

    Attributes
    ----------
    t : int
        Rounds played.
    cumulative_loss : float
        Σ ℓ_t(f_t(x_t)).
    s_sum : float
        Σ |s_t|, the sum of the magnitudes of the subgradients.
    """

    def __init__(
        self,
        loss: str | Loss = "smooth_hinge",
        *,
        kernel: Any = "linear",
        gamma: float = 1.0,
        degree: float = 3,
        coef0: float = 0.0,
        per_coordinate: bool = False,
        x_max: float = 1.0,
        L: float | None = None,
        a: float | None = None,
        b: str | float = 1.0,
        average: str | None = "uniform",
        record: bool = False,
    ) -> None:
        self.loss = get_loss(loss, LOSSES)
        self.L = self.loss.L if L is None else check_number("L", L)
        self.a = 3.0 * self.L if a is None else check_number("a", a)
        check_choice("average", average, AVERAGES)
        if kernel == "precomputed":
            raise ValueError(
                "a learner of single events has no precomputed kernel; give a function"
            )
        if per_coordinate and kernel != "linear":
            raise ValueError(f"per_coordinate needs kernel='linear'; got {kernel!r}")
        potential, b = pistol_choice(b, self.a, self.L, None)
        self._rule = Rule(replace(self.loss, L=self.L), potential, self.a, b, average)
        self._kernel = get_kernel(
            kernel,
            check_number("gamma", gamma),
            check_number("degree", degree),
            check_number("coef0", coef0, closed=True),
        )
        self.per_coordinate = per_coordinate
        self.x_max = check_number("x_max", x_max, closed=True)
        self.record = record
        self._events: LinearEvents | KernelEvents | None = None
        self._rounds: list[Round] = []
        self._set_loss(self.loss)

    def __repr__(self) -> str:
        kernel = "per_coordinate=True" if self.per_coordinate else repr(self._kernel)
        return f"Learner({self.loss.name!r}, {kernel}, a={self.a:g}, t={self.t})"

    @property
    def t(self) -> int:
        """Rounds played."""
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
        if p == inf:
            p = events.predict(self._not_refused(events, _row(x), 0.0))
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
            raise ValueError(f"y must be -1 or +1 for the {self._current.name} loss; got {y!r}")
        events = self._events or self._new_events(_row(x))
        try:
            suffered = events.learn(x, y)
        except (TypeError, AttributeError, ValueError):  # not a vector of float64, or not yet
            suffered = events.learn(_row(x), float(y))
        if suffered == inf:
            suffered = events.learn(self._not_refused(events, _row(x), y), float(y))
        self._events = events
        if self.record:
            x = _row(x).copy()
            self._rounds.append(Round(x, float(y), self._current, suffered, events.s_sum))
        return suffered

    def decide(self, X: Any) -> Array:
        """The averaged predictor f̄ at the rows of X (statistical setting, line 10)."""
        X = np.ascontiguousarray(np.atleast_2d(np.asarray(X, np.float64)))
        if self._events is None:
            return np.zeros(len(X))
        return self._events.learner.model().decide(X)[:, 0]

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
        """What the regret against h could not exceed after each round, whatever was played.

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
        if self.per_coordinate:
            return _regret.bounds_per_coordinate(rounds, kernel, rule, self.x_max, h, h_norm)
        return _regret.bounds(rounds, kernel, rule, h, h_norm)

    def _recorded(self) -> list[Round]:
        if not self.record:
            raise ValueError("this needs all rounds; create the learner with record=True")
        return self._rounds

    def _set_loss(self, loss: Loss) -> None:
        if loss.coupled or loss.levels:
            raise ValueError(
                f"{loss!r} is about several scores a round; this learner has one. Use 'logistic' "
                "or another loss of one score"
            )
        if loss.L > self.L * (1 + 1e-12):
            raise ValueError(
                f"this learner was promised losses with L ≤ {self.L:g}; {loss.name!r} has {loss.L:g}"
            )
        self._current, self._margin = loss, loss.name in CLASSIFICATION_LOSSES
        if self._events is not None:
            self._events.set_loss(loss)

    def _new_events(self, x: Array) -> LinearEvents | KernelEvents:
        """A learner for events like x; it is kept when it has learned one."""
        events: LinearEvents | KernelEvents
        if self._kernel.source == "linear":
            events = LinearEvents(self._rule, len(x), self.per_coordinate, self.x_max)
        else:
            events = KernelEvents(self._rule, len(x), self._kernel)
        events.set_loss(self._current)
        return events

    def _not_refused(self, events: LinearEvents | KernelEvents, x: Array, y: float) -> Array:
        """The event, if nothing is wrong with it but its form; an error that says why otherwise."""
        if len(x) != events.features:
            raise ValueError(f"x must be one event of {events.features} features; got {len(x)}")
        if not abs(y) <= MAX_TARGET:
            raise ValueError(f"y must be finite and at most {MAX_TARGET:g} in magnitude; got {y!r}")
        if not sq_norms(x[None])[0] <= MAX_NORM_SQ:
            raise ValueError(f"x must be finite and of moderate size; got {x!r}")
        return x


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
