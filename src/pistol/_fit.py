"""`fit`: random orders of all rows, as many and as often as asked for or as rows left out suggest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state

from ._compiled.threads import one_blas_thread, workers
from ._compiled.types import Array, read_only
from ._data.ordering import Rounds, shuffled
from ._data.validation import (
    check_count,
    restore,
    unchanged_on_error,
)
from ._learners import Learner
from ._streams import Stream
from ._training.race import (
    FOLDS,
    MOST_PASSES,
    SOME,
    SOME_FOLDS,
    SOME_PASSES,
    SOME_WHOLE,
    WHOLE,
    Choice,
    choose,
    folds,
)


class Fit(Stream):
    """An estimator that learns all rows at once."""

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

    def _schedule(
        self, weight: Array, hashes: Array, orders: int, passes: int
    ) -> list[Iterable[Rounds]]:
        """The rounds of every pass of every learner; a random order is drawn when its turn comes."""
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=(orders, passes))
        return [map(partial(shuffled, hashes, weight), row) for row in seeds]
