"""Learners with river's interface: one event at a time, as a dict of numbers and words.

Features and classes are not declared: they may appear at any time, and be absent at any time. An event
costs the same time however many came before it. The linear learners cost a few microseconds, the kernel
learners keep at most `max_support` rows.

>>> from pistol.river import LinearPistolClassifier
>>> model = LinearPistolClassifier()
>>> for _ in range(20):
...     model.learn_one({"city": "Rome", "age": 41}, "cat")
...     model.learn_one({"city": "Oslo", "age": 23}, "dog")
>>> model.predict_one({"city": "Rome"}), model.predict_one({"age": 22.0})
('cat', 'dog')
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from math import exp, inf, isfinite
from typing import Any

try:
    from river import base
except ImportError:  # pragma: no cover (where river is not installed)
    raise ImportError("pistol.river needs river: pip install 'pistol[river]'") from None

from ._data.validation import MAX_TARGET, check_count
from ._estimators.recipes import KERNEL_ANYTIME, SHARED_ANYTIME
from ._estimators.rules import pistol_rule
from ._learners.named import NamedCoordinates
from ._training.drift import STEP, Challengers
from ._training.named import NamedKernels
from .losses import LOSSES, MULTINOMIAL, Loss

__all__ = ["LinearPistolClassifier", "LinearPistolRegressor", "PistolClassifier", "PistolRegressor"]


def _linear(loss: Loss, anytime: float, outputs: int) -> NamedCoordinates:
    rule = pistol_rule(1.0, "anytime", None, anytime, True)(loss, None, 1.0)
    return NamedCoordinates(rule, outputs)


def _kernels(loss: Loss, anytime: float, most: int | None, outputs: int) -> NamedKernels:
    rule = pistol_rule(1.0, "anytime", None, anytime)(loss, None, 1.0)
    return NamedKernels(rule, outputs, most)


class _Follower:
    """A learner, and the younger ones that challenge it where a stream may drift."""

    def __init__(self, learner: Any, drift: bool) -> None:
        self.learner, self.drift, self.n, self.drifts = learner, drift, 0, 0
        self.challengers: Any = Challengers()

    def learn(self, x: Any, y: tuple[float, ...]) -> None:
        """Learn an event; a challenger that does better takes over."""
        lost, self.n = self.learner.learn(x, y), self.n + 1
        if self.drift:
            self._challenge(x, y, lost)

    def _challenge(self, x: Any, y: tuple[float, ...], lost: float) -> None:
        complete = self.n % STEP == 0
        known: Any = self.challengers.duels
        duels = tuple([duel.then(lost - duel.learner.learn(x, y), complete) for duel in known])
        found = Challengers(self.challengers.age, duels)
        if complete:
            winner = found.winner()
            if winner is not None:
                self.learner, self.drifts, found = (
                    winner.learner,
                    self.drifts + 1,
                    found.after(winner),
                )
            found = found.renewed(self.n, self.learner.fresh)
        self.challengers = found

    def add_outputs(self, outputs: int, first: int) -> None:
        """Go on with more outputs."""
        known: Any = self.challengers.duels
        for learner in (self.learner, *(duel.learner for duel in known)):
            learner.add_outputs(outputs, first)


def _bytes(model: Any) -> int:
    """The size of what was learned. River would follow references into numba, where some are dead."""
    return len(pickle.dumps(model))


class _Classifier(base.Classifier):
    """What the classifiers have in common."""

    drift: bool

    _raw_memory_usage = property(_bytes)

    @property
    def _multiclass(self) -> bool:
        return True

    def _begin(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._labels: dict[Any, int] = {}
        self._stream: _Follower | None = None

    @property
    def n_drifts(self) -> int:
        """How many times a change of the stream was found; needs ``drift=True``."""
        return 0 if self._stream is None else self._stream.drifts

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn one event.

        Parameters
        ----------
        x : dict
            Features: numbers and words. What is missing, None or NaN is absent.
        y : hashable
            The class, which may be a new one.
        """
        labels = self._labels
        number = labels.get(y, len(labels))
        if number == len(labels):
            self._prepare(number + 1)
        assert self._stream is not None
        outputs = max(len(labels), number + 1)
        if outputs <= 2:
            targets: tuple[float, ...] = (2.0 * number - 1.0,)
        else:
            targets = tuple([1.0 if j == number else -1.0 for j in range(outputs)])
        self._stream.learn(x, targets)
        labels[y] = number

    def _prepare(self, classes: int) -> None:
        """Room for so many classes: two have one output, more have one each."""
        if self._stream is None:
            self._stream = _Follower(self._make(), self.drift)
        outputs = 1 if classes <= 2 else classes
        if outputs > len(self._stream.learner.scores):
            self._stream.add_outputs(outputs, 1 if classes == 3 else 0)

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Probabilities of all classes seen so far.

        Parameters
        ----------
        x : dict
            Features; those that were never learned are left out.
        **kwargs : object
            Not used.

        Returns
        -------
        probabilities : dict
            From class to probability; empty before the first event.
        """
        labels = list(self._labels)
        if len(labels) < 2:
            return dict.fromkeys(labels, 1.0)
        assert self._stream is not None
        scores = self._stream.learner.predict(x).tolist()
        if len(labels) == 2:
            p = scores[0]
            low = exp(-abs(p)) / (1.0 + exp(-abs(p)))
            return dict(zip(labels, (low, 1.0 - low) if p > 0 else (1.0 - low, low), strict=True))
        best = max(scores)
        odds = [exp(p - best) for p in scores]
        total = sum(odds)
        return {label: odd / total for label, odd in zip(labels, odds, strict=False)}

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The class with the largest probability; None before the first event.

        Parameters
        ----------
        x : dict
            Features; those that were never learned are left out.
        **kwargs : object
            Not used.
        """
        labels = list(self._labels)
        if len(labels) < 2:
            return labels[0] if labels else None
        assert self._stream is not None
        scores = self._stream.learner.predict(x)
        if len(labels) == 2:
            return labels[1] if scores[0] > 0 else labels[0]
        return labels[int(scores[: len(labels)].argmax())]


class _Regressor(base.Regressor):
    """What the regressors have in common.

    Targets are learned in units of their own spread, which is looked at again each time the number of
    events has doubled.
    """

    drift: bool

    _raw_memory_usage = property(_bytes)

    def _begin(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._stream: _Follower | None = None
        self._center, self._scale = 0.0, 1.0  # in use
        self._mean, self._square = 0.0, 0.0  # of all targets so far
        self._low, self._high = inf, -inf

    @property
    def n_drifts(self) -> int:
        """How many times a change of the stream was found; needs ``drift=True``."""
        return 0 if self._stream is None else self._stream.drifts

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn one event.

        Parameters
        ----------
        x : dict
            Features: numbers and words. What is missing, None or NaN is absent.
        y : float
            The target.
        """
        y = float(y)
        if not abs(y) <= MAX_TARGET:
            raise ValueError(f"y must be finite and at most {MAX_TARGET:g} in magnitude; got {y!r}")
        if self._stream is None:
            self._stream = _Follower(self._make(), self.drift)
            self._center = y
        n = self._stream.n
        if n and n & (n - 1) == 0:
            self._rescale()
        self._stream.learn(x, ((y - self._center) / self._scale,))
        self._low, self._high = min(self._low, y), max(self._high, y)
        before, self._mean = self._mean, self._mean + (y - self._mean) / (n + 1)
        self._square += ((y - before) * (y - self._mean) - self._square) / (n + 1)

    def _rescale(self) -> None:
        spread = self._square**0.5
        if not (isfinite(spread) and spread > 1e-12 * abs(self._mean)):
            return
        moved = abs(self._mean - self._center) > 0.25 * spread
        if moved or not 0.8 < spread / self._scale < 1.25:
            self._center, self._scale = self._mean, spread

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> float:
        """The predicted target, no farther out than one range of the targets; zero at first.

        Parameters
        ----------
        x : dict
            Features; those that were never learned are left out.
        **kwargs : object
            Not used.
        """
        if self._stream is None:
            return 0.0
        y = self._center + self._scale * float(self._stream.learner.predict(x)[0])
        reach = self._high - self._low
        return max(self._low - reach, min(self._high + reach, y))


class LinearPistolClassifier(_Classifier):
    """Linear classifier for events, with river's interface and nothing to set.

    One PiSTOL learner per feature, each in the scale of its own feature, with numbers relative to their
    mean so far: no scaler is needed before it. Words are one feature each. Three and more classes share
    the multinomial logistic loss.

    Parameters
    ----------
    drift : bool, default=False
        Follow a stream that changes: younger learners run beside the one that predicts, and one that
        does better takes over. `n_drifts` counts these changes.

    Examples
    --------
    >>> from pistol.river import LinearPistolClassifier
    >>> model = LinearPistolClassifier()
    >>> for x in range(40):
    ...     model.learn_one({"x": x % 7}, x % 7 > 3)
    >>> model.predict_one({"x": 6}), model.predict_one({"x": 0})
    (True, False)
    """

    def __init__(self, drift: bool = False) -> None:
        self.drift = drift
        self._begin(partial(_linear, MULTINOMIAL, SHARED_ANYTIME[0], 1))


class LinearPistolRegressor(_Regressor):
    """Linear regressor for events, with river's interface and nothing to set.

    The learner of :class:`LinearPistolClassifier` with the Huber loss; targets are scaled.

    Parameters
    ----------
    drift : bool, default=False
        Follow a stream that changes, as in :class:`LinearPistolClassifier`.

    Examples
    --------
    >>> from pistol.river import LinearPistolRegressor
    >>> model = LinearPistolRegressor()
    >>> for t in range(400):
    ...     model.learn_one({"x": t % 10}, 1000.0 + 5 * (t % 10))
    >>> abs(model.predict_one({"x": 4}) - 1020.0) < 5
    True
    """

    def __init__(self, drift: bool = False) -> None:
        self.drift = drift
        self._begin(partial(_linear, LOSSES["huber"], SHARED_ANYTIME[1], 1))


class PistolClassifier(_Classifier):
    """Kernel classifier for events, with river's interface, in bounded memory.

    The sum of kernels that :class:`pistol.PistolClassifier` uses for streams, on standardised features.

    Parameters
    ----------
    max_support : int, default=256
        Events that are kept. Until there are so many nothing is approximated; from then on what is
        learned is projected on the span of those, and an event costs the same forever.
    drift : bool, default=False
        Follow a stream that changes, as in :class:`LinearPistolClassifier`.

    Examples
    --------
    >>> from pistol.river import PistolClassifier
    >>> model = PistolClassifier()
    >>> for x in range(60):
    ...     model.learn_one({"x": x % 7}, x % 7 in (2, 3))
    >>> [model.predict_one({"x": x}) for x in (0, 2, 6)]
    [False, True, False]
    """

    def __init__(self, max_support: int = 256, drift: bool = False) -> None:
        check_count("max_support", max_support)
        self.max_support, self.drift = max_support, drift
        self._begin(partial(_kernels, MULTINOMIAL, KERNEL_ANYTIME[0], self.max_support, 1))


class PistolRegressor(_Regressor):
    """Kernel regressor for events, with river's interface, in bounded memory.

    Parameters
    ----------
    max_support : int, default=256
        Events that are kept, as in :class:`PistolClassifier`.
    drift : bool, default=False
        Follow a stream that changes, as in :class:`LinearPistolClassifier`.

    Examples
    --------
    >>> from pistol.river import PistolRegressor
    >>> model = PistolRegressor()
    >>> for t in range(100):
    ...     model.learn_one({"x": t % 10}, (t % 10 - 5) ** 2)
    >>> model.predict_one({"x": 0}) > model.predict_one({"x": 5})
    True
    """

    def __init__(self, max_support: int = 256, drift: bool = False) -> None:
        check_count("max_support", max_support)
        self.max_support, self.drift = max_support, drift
        self._begin(partial(_kernels, LOSSES["huber"], KERNEL_ANYTIME[0], self.max_support, 1))
