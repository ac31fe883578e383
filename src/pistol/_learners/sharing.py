"""Rounds that two threads share, where rows are long and features are many."""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .._compiled.divided import Work, follow, lead
from .._compiled.exchange import new_desk
from .._compiled.threads import Workers
from .._compiled.types import Array, Plugs, Rounds, Rows, Scalars

WIDE = 2**16  # features from which the coordinates of a row are anywhere in memory
LONG = 64  # stored values of a row that take longer than an exchange between threads
MANY = 2**18  # stored values that take longer than to start a thread
WHILE = 0.5  # seconds
NEW = 2.0  # stored values that take as long as a feature that is seen for the first time
DRAWN = 2**12  # stored values that say which features occur how often


def border_of(X: Any) -> int | None:
    """The feature from which on the second part of a row begins; None where rows have one part.

    Both parts take about as long. It depends on the rows alone, so results do not depend on the number
    of threads.
    """
    rows, features = X.shape
    stored = X.nnz if sp.issparse(X) else X.size
    if features <= WIDE or stored < max(MANY, LONG * rows):
        return None
    if not sp.issparse(X):
        return features // 2
    if not X.has_sorted_indices:  # as of features in the order in which they were seen
        return None
    drawn = np.sort(X.indices[:: max(1, X.nnz // DRAWN)])
    costs = np.arange(len(drawn)) * (stored / len(drawn)) + NEW * drawn
    return int(drawn[np.searchsorted(costs, 0.5 * (stored + NEW * features))])


class Shared:
    """Rounds of rows in two parts, played by two threads if there are as many.

    Where a thread has waited for long, other programs have the cores. No rounds of this process are
    shared for a while then: threads that lose their cores in turn wait for each other most of the time.
    """

    busy_until: ClassVar[float] = 0.0

    def __init__(self, rows: Rows, border: int, outputs: int, threads: Workers) -> None:
        self.rows, self.border, self.threads = rows, border, threads
        longest = int(np.diff(rows.indptr).max(initial=0))
        self.works = [Work.of(longest, outputs) for _ in range(2)]

    def learn(
        self, rounds: Rounds, plugs: Plugs, S: Scalars, state: Array, bias: float, P: Array
    ) -> None:
        """As `learn_coordinates`."""
        given = self.rows, rounds, self.border, plugs
        own, desk = Scalars(*(x.copy() for x in S)), new_desk(P.shape[1])
        tasks = [
            partial(lead, *given, S, state, bias, P, self.works[0], *desk),
            partial(follow, *given, own, state, bias, P.copy(), self.works[1], *desk),
        ]
        shared = monotonic() > Shared.busy_until
        parted = self.threads.run(tasks if shared else tasks[:1])[0]
        if parted:
            Shared.busy_until = monotonic() + WHILE
