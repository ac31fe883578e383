"""Rows that are made when they are asked for: not all scaled rows need be in memory.

Ramps make rows up to nine times as wide. So even where all rows are read again and again, only what the
ramps are made from is in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._compiled.types import Array
from .steps import Onwards

PART = 2**14  # rows that are made together


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

    def __getitem__(self, which: Any) -> Array:
        """Some rows; or some columns of them, without the others where these are apart."""
        if isinstance(which, tuple):
            rows, columns = which
            only = self.steps[0] if len(self.steps) == 1 else None
            if isinstance(only, Onwards):
                return only.columns(self.X, rows, columns)
            return self[rows][:, columns]
        Z = self.X[which]
        for step in self.steps:
            Z = step(Z)
        return Z

    def take(self, rows: Array, axis: int = 0) -> Array:
        """The rows with these numbers."""
        return self[rows]

    def among(self, rows: Array) -> Mapped:
        """The same for these rows alone; they are still made when they are asked for."""
        return replace(self, X=self.X[rows])

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

    def narrow(self) -> Any:
        """All rows in memory, but for columns that the last step adds: they are made when asked for."""
        *first, last = self.steps or (None,)
        if isinstance(last, Onwards) and last.adds_columns:
            return Mapped(replace(self, steps=tuple(first)).in_parts(), (last,))
        return self.in_parts()


def among(X: Any, rows: Array) -> Any:
    """Some rows; of those that are made when they are asked for, none is made yet."""
    return X.among(rows) if isinstance(X, Mapped) else X[rows]
