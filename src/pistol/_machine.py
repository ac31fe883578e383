"""What all estimators share: checking, ordering, playing, reporting. No formulas live here."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ._choice import (
    FOLDS,
    MOST_PASSES,
    SOME,
    SOME_FOLDS,
    SOME_PASSES,
    SOME_WHOLE,
    WHOLE,
    Choice,
    Play,
    choose,
    folds,
)
from ._drift import FIRST, STEP, Challengers, steps
from ._loops import total_loss
from ._orders import Rounds, as_given, content, shuffled
from ._plugs import address
from ._tiles import Workers, one_blas_thread, workers
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

Way = Callable[[], Play]


class Machine(CallbackSupportMixin, BaseEstimator):
    """An estimator that learns in rounds; subclasses say how X and y become learners and columns."""

    learners_: list[Learner]
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
            self._check_counts()
            self._n_rows, self._n_rounds, self._online = 0, 0, np.zeros(3)
            self._calibration, self._challengers = None, None
            X, y, Y, weight = self._prepare(X, y, sample_weight, first=True, whole=True)
        try:
            if self.orders is None:
                return self._fit_stream(X, y, Y, weight)
            hashes = self._content(X, Y, weight)  # before rounding in other units
            X, Y = self._measure_all(X, Y, weight)
            if self.passes == "auto" or self.orders == "auto":
                self._fit_auto(X, y, Y, weight, hashes)
                return self
            return self._fit_orders(
                X, y, Y, weight, hashes, self._kernels(X, weight), self.orders, self.passes
            )
        except Exception:
            restore(self, before)
            raise

    def _fit_orders(
        self,
        X: Any,
        y: Any,
        Y: Array,
        weight: Array,
        hashes: Array,
        kernels: Any,
        orders: int,
        passes: int,
    ) -> Self:
        """A learner for each of some random orders."""
        rule, self.passes_ = self._rule(float(weight.sum()) * passes), passes
        self._made = []
        self.learners_ = [self._new_learner(X, Y.shape[1], rule, kernels) for _ in range(orders)]
        return self._play(X, y, Y, self._schedule(weight, hashes, orders, passes), passes)

    def _check_counts(self) -> None:
        check_count("passes", self.passes, auto=True)
        check_count("orders", self.orders, auto=True, none="the rows as they come")

    def _fit_auto(self, X: Any, y: Any, Y: Array, weight: Array, hashes: Array) -> Self:
        """Passes, orders or both are ours to choose; with many rows, by a sample of them."""
        n = X.shape[0]
        if self.passes != "auto":
            orders = FOLDS if n <= self._few else 1
            return self._fit_orders(
                X, y, Y, weight, hashes, self._kernels(X, weight), orders, self.passes
            )
        if self.orders == 1:  # nobody would be left to say how many passes are right
            return self._fit_orders(X, y, Y, weight, hashes, self._kernels(X, weight), 1, 1)
        if n <= self._few:
            root = self._init_callback_context(max_subtasks=None)
            root.call_on_fit_task_begin(estimator=self, X=X, y=y)
            choice = self._choose(X, Y, weight, hashes, root)
            self.learners_, self._n_rows, self._made = choice.learners, n, []
            self.passes_ = choice.passes
            self._end(root, X, y)
            return self
        return self._fit_many(X, y, Y, weight, hashes)

    def _choose(self, X: Any, Y: Array, weight: Array, hashes: Array, root: Any = None) -> Choice:
        """The best way to learn these rows, by the rounds that each order leaves out."""
        rows, r = shuffled(hashes, weight, 0)
        k, whole, most = FOLDS, WHOLE, MOST_PASSES
        if len(rows) > SOME:
            k, whole, most = SOME_FOLDS, SOME_WHOLE, SOME_PASSES
        if self.orders != "auto":
            k, whole = self.orders, 0
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rule, fold = self._rule(float(weight.sum())), folds(self._groups(Y)[rows], r, k)
        targets = read_only(Y[rows])

        def stop(now: Callable[[], list[Learner]]) -> bool:
            if not getattr(self, "_skl_callbacks", None):
                return False
            self.learners_, self._made = now(), []
            task = root.subcontext(task_name="pass", max_subtasks=0)
            task.call_on_fit_task_begin(estimator=self)
            return self._end(task, X, None)

        with workers(getattr(self, "n_jobs", 1)) as threads, one_blas_thread():
            choice = choose(
                self._ways(X, weight, Y.shape[1], rule, threads),
                Y,
                (rows, r),
                fold,
                k,
                seed,
                self._left_out_loss(targets, r),
                threads,
                most=most,
                whole=whole if root else 0,
                seen=lambda learner, order, r, P: self._report(learner, Y, order, r, P),
                stop=stop if root else lambda now: False,
            )
        self._calibrate(choice.left_out, targets, r)
        return choice

    def _fit_many(self, X: Any, y: Any, Y: Array, weight: Array, hashes: Array) -> Self:
        """One order of many rows, if it is ours to say."""
        kernels, orders = self._kernels(X, weight), self._orders(1)
        return self._fit_orders(X, y, Y, weight, hashes, kernels, orders, 1)

    def _orders(self, ours: int) -> int:
        """The number of orders that was asked for, or ours."""
        return ours if self.orders == "auto" else int(self.orders)

    def _calibrate(self, scores: Array, Y: Array, weight: Array) -> None:
        """Make use of scores by models that have not seen their rows."""

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

    def _schedule(
        self, weight: Array, hashes: Array, orders: int, passes: int
    ) -> list[Iterable[Rounds]]:
        """The rounds of every pass of every learner; a random order is drawn when its turn comes."""
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=(orders, passes))
        return [map(partial(shuffled, hashes, weight), row) for row in seeds]

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


def doublings(first: int, n: int) -> Iterator[slice]:
    """n rounds that follow `first` others, cut where the number of all rounds has doubled."""
    lo, end = first, first + n
    while lo < end:
        hi = min(1 << max(lo, 0).bit_length(), end)
        yield slice(lo - first, hi - first)
        lo = hi
