"""Callbacks and messages of one call. They get the user's own X and y."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from math import log2
from typing import Any

from .fitted import Fitted, Online


class Watch:
    """Shows progress to callbacks, which may stop the training, and prints it if asked to."""

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self.estimator, self.given = estimator, {"X": X, "y": y}
        self.printed = 0.0

    @property
    def active(self) -> bool:
        """Whether anybody looks on."""
        return bool(self.estimator.verbose or getattr(self.estimator, "_skl_callbacks", None))

    def begin(self, passes: int | None) -> None:
        """Training begins; it takes so many passes in all, where this is known."""
        self.root = self.estimator._init_callback_context(max_subtasks=passes)
        self.root.call_on_fit_task_begin(estimator=self.estimator, **self.given)

    def begin_pass(self) -> None:
        """A pass begins."""
        self.task = self.root.subcontext(task_name="pass", max_subtasks=None)
        self.task.call_on_fit_task_begin(estimator=self.estimator, **self.given)

    def rows(self, online: Online, now: Callable[[], Fitted]) -> bool:
        """A chunk of rows was learned; whether a callback asks to stop this pass."""
        self._print(online)
        chunk = self.task.subcontext(task_name="rows")
        chunk.call_on_fit_task_begin(estimator=self.estimator, **self.given)
        return self._end(chunk, now)

    def end_pass(self, online: Online, now: Callable[[], Fitted]) -> bool:
        """A pass ends; whether a callback asks to stop."""
        self._print(online)
        return self._end(self.task, now)

    def end(self, fitted: Fitted) -> Fitted:
        """Training ends with this result."""
        self._print(fitted.online)
        self._end(self.root, lambda: fitted)
        return fitted

    def _end(self, context: Any, now: Callable[[], Fitted]) -> bool:
        return context.call_on_fit_task_end(
            estimator=self.estimator,
            **self.given,
            reconstruction_attributes=lambda: {"fitted_": _snapshot(now())},
        )

    def _print(self, online: Online) -> None:
        """Print loss and error each time the number of rounds has doubled."""
        if self.estimator.verbose and log2(online.rounds + 1) // 1 > log2(self.printed + 1) // 1:
            print(
                f"[{type(self.estimator).__name__}] {online.rounds:.0f} rounds, "
                f"online loss {online.mean_loss:.4f}, online error {online.mean_error:.4f}",
                flush=True,
            )
            self.printed = online.rounds


def _snapshot(fitted: Fitted) -> Fitted:
    """A copy whose learners do not learn on."""
    return replace(fitted, learners=copy.deepcopy(fitted.learners))
