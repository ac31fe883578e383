"""What all estimators share: checking, ordering, playing, reporting. No formulas live here."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ._loops import total_loss
from ._orders import Rounds, as_given, content, shuffled
from ._plugs import address
from ._types import Array, read_only
from .learners import AVERAGES, Learner, Rule, part
from .losses import Loss
from .models import Model
from .potentials import pistol_choice
from .validation import (
    check_choice,
    check_count,
    check_number,
    check_rows,
    check_weight,
    restore,
    unchanged_on_error,
)


class Machine(CallbackSupportMixin, BaseEstimator):
    """An estimator that learns in rounds; subclasses say how X and y become learners and columns."""

    learners_: list[Learner]

    @abstractmethod
    def _encode(self, y: Any, first: bool, classes: Any = None) -> Array:
        """Targets of shape (rows, columns) from y; on the first call sets what y looks like."""

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss to descend on."""

    @abstractmethod
    def _new_learner(self, X: Any, weight: Array, columns: int, rule: Rule) -> Learner:
        """A learner that has played no round."""

    @abstractmethod
    def _mistakes(self, P: Array, Y: Array) -> Array:
        """For each round whether the prediction P was wrong (or by how much)."""

    def _rule(self, T: float | None) -> Rule:
        """Loss, multiplier and average from the constructor's parameters; T rounds if known."""
        loss, a = self._loss(), check_number("a", self.a)
        check_choice("average", self.average, AVERAGES)
        potential, b = pistol_choice(self.b, a, loss.L, T)
        return Rule(loss, potential, a, b, self.average)

    def _check_more(self, X: Any, whole: bool) -> None:
        """What else X must fulfil; `whole` where it is all of the data, not a chunk of a stream."""

    def _row_weight(self, y: Any, weight: Array) -> Array:
        return weight

    def _content(self, X: Any, Y: Array, weight: Array) -> Array:
        """What a random order depends on."""
        return content(X, Y, weight)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from all rows, forgetting what was learned before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of k counts as k rounds with that row, a weight of 0 as none. Weights are
            counts: scale them to a mean of 1, or few rounds are played.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with unchanged_on_error(self) as before:
            check_count("passes", self.passes)
            check_count("orders", self.orders, none="the rows as they come")
            self._n_rows = 0
            X, y, Y, weight = self._prepare(X, y, sample_weight, first=True, whole=True)
            rule = self._rule(float(weight.sum()) * self.passes)
            learners = [
                self._new_learner(X, weight, Y.shape[1], rule) for _ in range(self.orders or 1)
            ]
            schedule = self._schedule(X, Y, weight)
            self.learners_, self._online = learners, np.zeros(3)
        try:
            return self._play(X, y, Y, schedule, self.passes)
        except Exception:
            restore(self, before)
            raise

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        first = not hasattr(self, "learners_")
        with unchanged_on_error(self) as before:
            self._n_rows = 0 if first else self._n_rows
            X, y, Y, weight = self._prepare(X, y, sample_weight, first, False, classes)
            if first:
                rule = self._rule(None)
                learner = self._new_learner(X, weight, Y.shape[1], rule)
                self.learners_, self._online = [learner], np.zeros(3)
        marks = [learner.mark() for learner in self.learners_]
        try:
            return self._play(X, y, Y, [[as_given(weight)]] * len(marks), passes=1)
        except Exception:  # of a kernel function or a callback: undo what can be undone
            pairs = zip(self.learners_, marks, strict=True)
            undone = [learner.roll_back(mark) for learner, mark in pairs]
            if first or all(undone):
                restore(self, before)
            raise

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

    def _schedule(self, X: Any, Y: Array, weight: Array) -> list[Iterable[Rounds]]:
        """The rounds of every pass of every learner; a random order is drawn when its turn comes."""
        if self.orders is None:
            return [[as_given(weight)] * self.passes]
        hashes = self._content(X, Y, weight)
        seeds = check_random_state(self.random_state).randint(
            2**31 - 1, size=(self.orders, self.passes)
        )
        return [map(partial(shuffled, hashes, weight), row) for row in seeds]

    def _play(
        self, X: Any, y: Any, Y: Array, schedule: Sequence[Iterable[Rounds]], passes: int
    ) -> Self:
        """Let each learner play its passes; callbacks may look on, or stop it between two chunks."""
        root = self._init_callback_context(max_subtasks=passes * len(schedule))
        root.call_on_fit_task_begin(estimator=self, X=X, y=y)
        first, self._n_rows = self._n_rows, self._n_rows + X.shape[0]
        for learner, rounds in zip(self.learners_, schedule, strict=True):
            for number, (order, r) in enumerate(rounds):
                task = root.subcontext(task_name="pass", max_subtasks=None)
                task.call_on_fit_task_begin(estimator=self)
                for at, P in learner.play(X, Y, order, r, first):
                    if number == 0:
                        self._report(learner, Y, order[at], part(r, at), P)
                    chunk = task.subcontext(task_name="rows").call_on_fit_task_begin(estimator=self)
                    if self._end(chunk, X, y):
                        break
                if self._end(task, X, y):
                    break
        self._end(root, X, y)
        return self

    def _end(self, context: Any, X: Any, y: Any) -> bool:
        return context.call_on_fit_task_end(
            estimator=self,
            X=X,
            y=y,
            reconstruction_attributes=lambda: {"learners_": copy.deepcopy(self.learners_)},
        )

    def _report(self, learner: Learner, Y: Array, order: Array, r: Array, P: Array) -> None:
        """Add a chunk of first-pass predictions to the online loss and error."""
        loss = learner.rule.loss
        theta = learner.rule.theta(P.shape[1])
        before = self._online[0]
        self._online = self._online + (
            r.sum(),
            total_loss(read_only(P), Y, order, r, address(loss.value, 3), theta),
            r @ self._mistakes(P, Y[order]),
        )
        if self.verbose and np.log2(self._online[0] + 1) // 1 > np.log2(before + 1) // 1:
            print(
                f"[{type(self).__name__}] {self._online[0]:.0f} rounds, "
                f"online loss {self.online_loss_:.4f}, online error {self.online_error_:.4f}",
                flush=True,
            )

    def _model(self) -> Model:
        check_is_fitted(self, "learners_")
        played = [learner for learner in self.learners_ if learner.S.t[0, 0] > 0]
        models: list[Any] = [learner.model() for learner in played or self.learners_]
        return type(models[0]).mean(models)

    def _decide(self, X: Any) -> Array:
        check_is_fitted(self, "learners_")
        return self._model().decide(check_rows(self, X, reset=False))

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
        norm = self._fitted()._model().norm()
        return float(norm[0]) if len(norm) == 1 else norm

    def _fitted(self) -> Self:
        if not hasattr(self, "learners_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self
