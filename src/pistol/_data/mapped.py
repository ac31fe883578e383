"""Rows that are made when they are asked for: not all scaled rows need be in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._compiled.types import Array

PART = 2**16  # rows that are made together


@dataclass(frozen=True, eq=False)
class Mapped:
    """Dense rows as some steps make them, one after the other; each makes a row from a row."""

    X: Array
    steps: tuple[Callable[[Array], Array], ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self[:1].shape[1]

    @property
    def dtype(self) -> Any:
        return self[:1].dtype

    def __getitem__(self, rows: Any) -> Array:
        Z = self.X[rows]
        for step in self.steps:
            Z = step(Z)
        return Z

    def take(self, rows: Array, axis: int = 0) -> Array:
        """The rows with these numbers."""
        return self[rows]

    def then(self, step: Callable[[Array], Array]) -> Mapped:
        """With one step more."""
        return replace(self, steps=(*self.steps, step))

    def in_parts(self) -> Array:
        """All rows, made a part at a time: what lies between the steps takes little memory."""
        first = self[:PART]
        if len(first) == len(self.X):
            return first.copy() if np.may_share_memory(first, self.X) else first
        out = np.empty((len(self.X), first.shape[1]), first.dtype)
        out[:PART] = first
        for lo in range(PART, len(out), PART):
            out[lo : lo + PART] = self[lo : lo + PART]
        return out
