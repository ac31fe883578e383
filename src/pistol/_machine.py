"""What all estimators share: checking, ordering, playing, reporting. No formulas live here."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted

from ._compiled.loops import total_loss
from ._compiled.plugs import address
from ._compiled.threads import Workers
from ._compiled.types import Array, read_only
from ._data.ordering import Rounds, content
from ._data.validation import (
    check_choice,
    check_number,
    check_rows,
    check_weight,
)
from ._learners import AVERAGES, Learner, Rule, part
from ._learners.models import Model
from ._training.drift import Challengers
from ._training.race import Play
from .losses import Loss
from .potentials import pistol_choice

Way = Callable[[], Play]


class Machine(CallbackSupportMixin, BaseEstimator):
    """An estimator that learns in rounds; subclasses say how X and y become learners and columns."""

    learners_: list[Learner]
    _n_rows: int
    _online: Array
    _few = 4096  # rows up to which several orders are played
    drift = False
    _made: list[Model]  # the model, once it was asked for and until something more is learned
    _challengers: Challengers | None = None
    _calibration: float | None = None  # the temperature of `predict_proba`
    _anytime = 0.5  # b_t = _anytime √(2α_t) where b is "anytime"

    @abstractmethod
    def _encode(self, y: Any, first: bool, classes: Any = None) -> Array:
        """Targets of shape (rows, columns) from y; on the first call sets what y looks like."""

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss to descend on."""

    @abstractmethod
    def _new_learner(self, X: Any, columns: int, rule: Rule, kernels: Any) -> Learner:
        """A learner that has played no round."""

    @abstractmethod
    def _ways(self, X: Any, weight: Array, columns: int, rule: Rule, threads: Workers) -> list[Way]:
        """What there is to choose from when `passes="auto"`."""

    @abstractmethod
    def _left_out_loss(self, Y: Array, weight: Array) -> Callable[[Array], float]:
        """From scores of rows that were left out to what decides between ways to learn."""

    def _groups(self, Y: Array) -> Array:
        """Rows that have to be spread evenly when some are left out."""
        return np.zeros(len(Y), np.int64)

    def _kernels(self, X: Any, weight: Array) -> Any:
        """The kernels, for those who have any."""
        return ()

    # Units: by default rows and targets are taken as they are.

    def _measure_all(self, X: Any, Y: Array, weight: Array) -> tuple[Any, Array]:
        """Rows and targets in the units that all of them suggest."""
        return X, Y

    def _measure_none(self, X: Any, Y: Array) -> None:
        """Units of a stream before its first row."""

    def _look_again(self, X: Any, Y: Array, weight: Array, due: bool) -> None:
        """Take note of rows of a stream before they are played; if due, are the units still right?"""

    def _measure_rows(self, X: Any) -> Any:
        return X

    def _measure_targets(self, Y: Array) -> Array:
        return Y

    def _shown(self) -> Model:
        """The model of rows and targets as they come, where there is one; see `_in_targets`."""
        return self._model()

    def _in_targets(self, coef: Array) -> Array:
        """Coefficients, a row a column, for targets as they come."""
        return coef

    def _offset(self) -> Any:
        """What is added to predictions of targets as they come."""
        return 0.0

    @abstractmethod
    def _mistakes(self, P: Array, Y: Array) -> Array:
        """For each round whether the prediction P was wrong (or by how much)."""

    def _rule(self, T: float | None) -> Rule:
        """Loss, multiplier and average from the constructor's parameters; T rounds if known."""
        loss, a = self._loss(), check_number("a", self.a)
        check_choice("average", self.average, AVERAGES)
        potential, b = pistol_choice(self.b, a, loss.L, T, self._anytime)
        return Rule(loss, potential, a, b, self.average)

    def _check_more(self, X: Any, whole: bool) -> None:
        """What else X must fulfil; `whole` where it is all of the data, not a chunk of a stream."""

    def _row_weight(self, y: Any, weight: Array) -> Array:
        return weight

    def _content(self, X: Any, Y: Array, weight: Array) -> Array:
        """What a random order depends on."""
        return content(X, Y, weight)

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, first: bool, whole: bool, classes: Any = None
    ) -> tuple[Any, Any, Array, Array]:
        """Everything that can fail, before anything is learned."""
        if y is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None")
        X, y = check_rows(self, X, y, reset=first, multi_output=True)
        self._check_more(X, whole)
        weight = check_weight(sample_weight, X, zero=not first)
        Y = self._encode(y, first, classes)
        return X, y, read_only(Y), self._row_weight(y, weight)

    def _play(
        self, X: Any, y: Any, Y: Array, schedule: Sequence[Iterable[Rounds]], passes: int
    ) -> Self:
        """Let each learner play its passes; callbacks may look on, or stop it between two chunks."""
        root = self._init_callback_context(max_subtasks=passes * len(schedule))
        root.call_on_fit_task_begin(estimator=self, X=X, y=y)
        first, self._n_rows = self._n_rows, self._n_rows + X.shape[0]
        for learner, rounds in zip(self.learners_, schedule, strict=True):
            for number, played in enumerate(rounds):
                task = root.subcontext(task_name="pass", max_subtasks=None)
                task.call_on_fit_task_begin(estimator=self)
                report = self._report if number == 0 else None
                self._play_rounds(task, learner, X, y, (X, Y), played, first, report)
                if self._end(task, X, y):
                    break
        self._end(root, X, y)
        return self

    def _play_rounds(
        self,
        task: Any,
        learner: Learner,
        X: Any,
        y: Any,
        measured: tuple[Any, Array],
        rounds: Rounds,
        first: int,
        report: Any,
    ) -> bool:
        """Play rounds chunk by chunk; whether a callback asked to stop."""
        (Z, V), (order, r) = measured, rounds
        self._made = []  # the model is out of date
        for at, P in learner.play(Z, V, order, r, first):
            if report:
                report(learner, V, order[at], part(r, at), P)
            chunk = task.subcontext(task_name="rows").call_on_fit_task_begin(estimator=self)
            if self._end(chunk, X, y):
                return True
        return False

    def _end(self, context: Any, X: Any, y: Any) -> bool:
        return context.call_on_fit_task_end(
            estimator=self,
            X=X,
            y=y,
            reconstruction_attributes=lambda: {
                "learners_": copy.deepcopy(self.learners_),
                "_made": [],
            },
        )

    def _report(self, learner: Learner, Y: Array, order: Array, r: Array, P: Array) -> None:
        """Add a chunk of first-pass predictions to the online loss and error."""
        loss = learner.rule.loss
        theta = learner.rule.theta(P.shape[1])
        before = self._online[0]
        self._online = self._online + (
            r.sum(),
            total_loss(
                read_only(P), Y, order, r, address(loss.value, 3), theta, learner.rule.coupled
            ),
            r @ self._mistakes(P, Y[order]),
        )
        if self.verbose and np.log2(self._online[0] + 1) // 1 > np.log2(before + 1) // 1:
            print(
                f"[{type(self).__name__}] {self._online[0]:.0f} rounds, "
                f"online loss {self.online_loss_:.4f}, online error {self.online_error_:.4f}",
                flush=True,
            )

    def _model(self) -> Model:
        """The average over the learners' models; kept until something more is learned."""
        check_is_fitted(self, "learners_")
        if not self._made:  # a list, so that `predict` changes no attribute
            played = [learner for learner in self.learners_ if learner.S.t[0, 0] > 0]
            models: list[Any] = [learner.model() for learner in played or self.learners_]
            self._made.append(self._mean(models))
        return self._made[0]

    def _mean(self, models: list[Any]) -> Model:
        return type(models[0]).mean(models)

    def __getstate__(self) -> Any:
        state = super().__getstate__()  # without the model, which can be made again
        return state | {"_made": []} if "_made" in state else state

    def _decide(self, X: Any) -> Array:
        check_is_fitted(self, "learners_")
        return self._model().decide(self._measure_rows(check_rows(self, X, reset=False)))

    @property
    def t_(self) -> float:
        """Rounds played (by each order): the sum of the sample weights, for every pass."""
        return float(self._fitted().learners_[0].S.t[0, 0])

    @property
    def online_loss_(self) -> float:
        """Mean loss on each row before it was learned: an honest estimate that costs nothing."""
        return float(self._fitted()._online[1] / max(self._online[0], 1e-300))

    @property
    def online_error_(self) -> float:
        """Mean error on each row before it was learned (absolute error in regression)."""
        return float(self._fitted()._online[2] / max(self._online[0], 1e-300))

    @property
    def norm_(self) -> Any:
        """‖f‖ of the model: a number, or one an output."""
        norm = self._fitted()._shown().norm()
        return float(norm[0]) if len(norm) == 1 else norm

    def _fitted(self) -> Self:
        if not hasattr(self, "learners_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self
