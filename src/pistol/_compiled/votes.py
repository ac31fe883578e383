"""The value that most rows have in common, feature by feature, in one pass.

Boyer and Moore's vote: a value loses one vote for each row that has another one, and is replaced when
it has none left. A value that more than half of the rows have is never replaced for good.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from .cache import helper
from .rows import row
from .types import loop, numbers, rows_type, vector


@helper(inline="always")
def _vote(usual, votes, f, x, w):
    """Count w rows whose feature f is x."""
    if x == usual[f]:
        votes[f] += w
    else:
        votes[f] -= w
        if votes[f] < 0.0:
            usual[f], votes[f] = x, -votes[f]


@loop(lambda data: types.void(rows_type(data), numbers, vector, vector))
def vote(X, weight, usual, votes):
    """Count the rows of X: `usual` is the leading value of every feature, `votes` are its votes.

    The zeros between two entries of a sparse row's feature are counted at once.
    """
    counted, total = np.zeros(len(usual)), 0.0
    for i in range(len(weight)):
        cols, vals = row(X, i)
        for n in range(len(cols)):
            f = np.int64(cols[n])
            if total > counted[f]:
                _vote(usual, votes, f, 0.0, total - counted[f])
            _vote(usual, votes, f, float(vals[n]), weight[i])
            counted[f] = total + weight[i]
        total += weight[i]
    for f in range(len(usual)):
        if total > counted[f]:
            _vote(usual, votes, f, 0.0, total - counted[f])
