"""From rows to scores: what `predict` of an estimator and of the shell have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compiled.types import Array
from .._data.intake import check_rows
from .fitted import Fitted


def decide(known: Fitted, X: Any, who: str, n_jobs: int | None) -> Array:
    """Scores of shape (rows, outputs) for rows as they are handed in.

    `who` is the name of the estimator, for messages.
    """
    rows = check_rows(X, known.columns, who, n_jobs)
    if known.remembered is not None:
        known.remembered.look(rows)
    return np.concatenate(list(known.scores(rows)))
