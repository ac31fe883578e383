"""The value that most rows have in common, feature by feature, in one pass.

Boyer and Moore's vote: a value loses one vote for each row that has another one, and is replaced when
it has none left. A value that more than half of the rows have is never replaced for good.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from .cache import plain
from .rows import row
from .types import loop, numbers, rows_type, vector


@plain(inline="always")
def _vote(usual, votes, f, x, w):
    """Count w rows whose feature f is x."""
    left = votes[f] + (w if x == usual[f] else -w)
    votes[f] = left
    if left < 0.0:
        usual[f], votes[f] = x, -left


@loop(lambda data: types.void(rows_type(data), numbers, vector, vector))
def vote(X, weight, usual, votes):
    """Count dense rows: `usual` is the leading value of every feature, `votes` are its votes."""
    for i in range(len(weight)):
        _, vals = row(X, i)
        for at in range(len(vals)):  # `_vote`, as SIMD code
            x = float(vals[at])
            left = votes[at] + (weight[i] if x == usual[at] else -weight[i])
            usual[at] = x if left < 0.0 else usual[at]
            votes[at] = abs(left)


@loop(lambda data: types.void(rows_type(data), numbers, vector, vector, vector))
def vote_stored(X, weight, usual, votes, counted):
    """Count rows of which only some values are stored; `counted` comes in with zeros."""
    total = 0.0  # the zeros since an entry are counted at once
    for i in range(len(weight)):
        cols, vals = row(X, i)
        for n in range(len(cols)):
            f = np.int64(cols[n])
            if total > counted[f]:
                _vote(usual, votes, f, 0.0, total - counted[f])
            _vote(usual, votes, f, float(vals[n]), weight[i])
            counted[f] = total + weight[i]
        total += weight[i]
    for at in range(len(usual)):
        if total > counted[at]:
            _vote(usual, votes, at, 0.0, total - counted[at])
