"""A learner that has learned all it will: its model, and for how long it learned."""

from __future__ import annotations

from dataclasses import dataclass

from .models import Model


@dataclass(frozen=True, eq=False)
class Finished:
    """What is left of learners where only predictions are wanted."""

    made: Model
    t: float  # rounds

    def model(self) -> Model:
        """The model."""
        return self.made
