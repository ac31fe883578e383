"""Rows as they come: streams, the units they are measured in, and forgetting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from ._compiled.loops import total_loss
from ._compiled.plugs import address
from ._compiled.types import Array, read_only
from ._data.ordering import Rounds, as_given
from ._data.validation import (
    restore,
    unchanged_on_error,
)
from ._learners import Learner, part
from ._machine import Machine
from ._training.drift import FIRST, STEP, Challengers, steps


class Stream(Machine):
    """An estimator that learns rows in the order given."""

    def _fit_stream(self, X: Any, y: Any, Y: Array, weight: Array) -> Self:
        """The rows as they come: what `partial_fit` would do with them, for each pass."""
        passes = self.passes_ = 1 if self.passes == "auto" else self.passes
        self._begin_stream(X, Y, weight, float(weight.sum()) * passes)
        return self._play_stream(X, y, Y, weight, passes)

    def _begin_stream(self, X: Any, Y: Array, weight: Array, T: float | None) -> None:
        """Learners and units before the first row."""
        rule = self._rule(T)
        self._measure_none(X, Y)
        kernels = self._kernels(X, weight)
        self.learners_, self._made = [self._new_learner(X, Y.shape[1], rule, kernels)], []

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        first = not hasattr(self, "learners_")
        with unchanged_on_error(self) as before:
            self._n_rows = 0 if first else self._n_rows
            X, y, Y, weight = self._prepare(X, y, sample_weight, first, False, classes)
            if first:
                self._n_rounds, self._online = 0, np.zeros(3)
                self._calibration, self.passes_ = None, 1
                self._begin_stream(X, Y, weight, None)
        learners, marks = self.learners_, [learner.mark() for learner in self.learners_]
        try:
            return self._play_stream(X, y, Y, weight, passes=1)
        except Exception:  # of a kernel function or a callback: undo what can be undone
            self.learners_ = learners
            pairs = zip(learners, marks, strict=True)
            undone = [learner.roll_back(mark) for learner, mark in pairs]
            if first or all(undone):
                restore(self, before)
            if self._challengers is not None:
                self._challengers = None  # they begin anew
            raise

    def _play_stream(self, X: Any, y: Any, Y: Array, weight: Array, passes: int) -> Self:
        """Play rows as they come; units are looked at again each time the rounds have doubled."""
        first, self._n_rows = self._n_rows, self._n_rows + X.shape[0]
        order, r = as_given(weight)
        root = self._init_callback_context(max_subtasks=passes * len(self.learners_))
        root.call_on_fit_task_begin(estimator=self, X=X, y=y)
        for number in range(passes):
            task = root.subcontext(task_name="pass", max_subtasks=None)
            task.call_on_fit_task_begin(estimator=self)
            for at in self._pieces(self._n_rounds, len(order)):
                piece = order[at], part(r, at)
                if self._play_piece(task, X, y, Y, piece, first, number == 0):
                    break
            if self._end(task, X, y):
                break
        self._end(root, X, y)
        return self

    def _pieces(self, first: int, n: int) -> Iterator[slice]:
        pieces = doublings(first, n)
        return steps(first, pieces) if self.drift else pieces

    def _play_piece(
        self, task: Any, X: Any, y: Any, Y: Array, rounds: Rounds, first: int, new: bool
    ) -> bool:
        """Play rounds between two looks at the units; whether a callback asked to stop."""
        order, r = rounds
        lo, seen = int(order[0]), self._n_rounds
        rows = slice(lo, int(order[-1]) + 1)
        order, first = read_only(order - lo), first + lo
        self._look_again(X[rows], Y[rows], np.bincount(order, r), seen & (seen - 1) == 0)
        Z, V = self._measure_rows(X[rows]), self._measure_targets(Y[rows])
        report, before = self._report if new else None, self._online[1]
        for learner in self.learners_:
            if self._play_rounds(task, learner, X, y, (Z, V), (order, r), first, report):
                return True
        self._n_rounds = seen + len(order)
        if self.drift and new:
            lost = (self._online[1] - before) / len(self.learners_)
            self._challenge(Z, V, (order, r), first, lost)
        return False

    def _challenge(self, Z: Any, V: Array, rounds: Rounds, first: int, lost: float) -> None:
        """Let younger learners play the same rows; one that does better takes over."""
        (order, r), seen = rounds, self._n_rounds
        challengers = self._challengers = self._challengers or Challengers()
        for duel in challengers.duels:
            rule = duel.learner.rule
            value, theta = address(rule.loss.value, 3), rule.theta(V.shape[1])
            for at, P in duel.learner.play(Z, V, order, r, first):
                chunk = order[at], part(r, at), value, theta, rule.coupled
                duel.pending -= total_loss(read_only(P), V, *chunk)
            duel.note(lost, seen % STEP == 0)
        if seen % STEP:
            return
        winner = challengers.winner()
        if winner is not None:
            self.learners_, self._made, self._calibration = [winner], [], None
        if seen % FIRST == 0:
            for learner in self._everyone():
                learner.restart()
        challengers.begin(seen, lambda: self._another(Z, V.shape[1]))

    def _another(self, X: Any, columns: int) -> Learner:
        """A learner like the one that predicts, that has played no round."""
        like = self.learners_[0]
        return self._new_learner(X, columns, like.rule, getattr(like, "kernels", ()))

    def _everyone(self) -> list[Learner]:
        """Who predicts, and who would like to."""
        duels = self._challengers.duels if self._challengers else []
        return [*self.learners_, *(duel.learner for duel in duels)]


def doublings(first: int, n: int) -> Iterator[slice]:
    """n rounds that follow `first` others, cut where the number of all rounds has doubled."""
    lo, end = first, first + n
    while lo < end:
        hi = min(1 << max(lo, 0).bit_length(), end)
        yield slice(lo - first, hi - first)
        lo = hi
