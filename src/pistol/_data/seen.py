"""Very wide sparse rows, restricted to the features that have been seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.slots import Slots
from .._compiled.types import Array

WIDE = 2**16  # sparse rows of more features are restricted to those seen …
OFTEN = 4  # … unless so many values are stored per feature


@dataclass(frozen=True, eq=False)
class Seen:
    """Rows keep the first `features` features that were seen, in the order of their slots.

    The table of slots only grows, so an earlier value stays valid beside a later one.
    """

    slots: Slots
    width: int  # features of unrestricted rows
    features: int

    def transform(self, X: Any) -> Any:
        """The restricted rows."""
        X = X if sp.issparse(X) else sp.csr_array(X)
        Z = self.slots.compress(X, grow=False)
        later = Z.indices >= self.features
        if later.any():
            indptr = np.append(0, np.cumsum(~later))[Z.indptr]
            Z = (Z.data[~later], Z.indices[~later], indptr)
        else:
            Z = (Z.data, Z.indices, Z.indptr)
        return sp.csr_array(Z, shape=(X.shape[0], self.features), copy=False)

    def grown(self, X: Any) -> Seen:
        """With the features of more rows."""
        self.slots.compress(X if sp.issparse(X) else sp.csr_array(X), grow=True)
        same = len(self.slots) == self.features
        return self if same else Seen(self.slots, self.width, len(self.slots))

    def to_raw(self, weights: Array) -> Array:
        """Weights of unrestricted rows; the last column is the intercept."""
        raw = np.zeros((len(weights), self.width + 1))
        raw[:, self.slots.features[: self.features]] = weights[:, : self.features]
        raw[:, -1] = weights[:, -1]
        return raw


def sparsely_wide(X: Any) -> bool:
    """Whether many features of these sparse rows may never occur."""
    return sp.issparse(X) and X.shape[1] > max(WIDE, X.nnz // OFTEN)


def restricted(X: Any) -> tuple[Any, Array]:
    """The rows without features that do not occur, if there may be many, and what remains."""
    if not sparsely_wide(X):
        return X, np.arange(X.shape[1])
    slots = Slots()
    return slots.compress(X, grow=True), slots.features


def seen_in(X: Any) -> Seen:
    """The features that occur in these rows."""
    return Seen(Slots(), X.shape[1], 0).grown(X)
