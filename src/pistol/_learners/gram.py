"""Rounds on rows whose kernel values are all in memory.

g of all rows is kept up to date: a round without a gradient then costs next to nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.gram import Workspace, expand_gram, learn_gram
from .._compiled.lanes import whole
from .._compiled.rows import sq_norms
from .._compiled.types import Array, Rounds, Scalars, read_only
from ..kernels import Kernel
from .dual import Dual
from .gram_matrix import PRECISE, Gram, pieces
from .models import Expansion
from .rule import Rule, step_by_step
from .storage import Picked

COPIED = 2**16  # values that are copied at once, or more with few rows
NO_MARKS = read_only(np.empty(0, np.int64))


class GramRun:
    """A sum of kernels that learns one order of the rows of a Gram matrix, pass after pass.

    Z and ids are the rows that the matrix was given, and their numbers. `start` has values of a
    function of the rows that is added to f and stays as it is.
    """

    def __init__(
        self,
        gram: Gram,
        kernels: tuple[Kernel, ...],
        rule: Rule,
        outputs: int,
        Z: Any,
        ids: Array,
        n_jobs: int | None = None,
        start: Array | None = None,
        max_support: int | None = None,
    ) -> None:
        self.max_support = max_support
        self.gram, self.kernels, self.rule = gram, kernels, rule
        self.Z, self.ids, self.n_jobs, self.start = Z, ids, n_jobs, start
        self.values, n = gram.values(kernels), len(gram.learned)
        self.S = rule.scalars(len(kernels), outputs)
        self.plugs = rule.plugs_of_sum(outputs, rule.shares(kernels))
        dtype = gram.matrices.dtype
        # of rows that are learned
        self.g = np.zeros((len(kernels), outputs, whole(n, dtype)), dtype)
        self.space = Workspace.of(self.g, self.plugs.b)
        self.coef = np.zeros((n, outputs))
        self.u = np.zeros((n, outputs, whole(len(kernels), np.float64)))

    @property
    def alpha(self) -> Array:
        """Sums of the sizes of gradients."""
        return self.S.alpha

    def learn(self, V: Array, order: Array, r: Array, ends: Array | None = None) -> Array:
        """Learn these rounds; what was predicted in them. Several passes end at `ends`."""
        ends = np.array([len(order)]) if ends is None else ends
        return self._play(V, order, r, ends, NO_MARKS, 0, self._out(0, 0))[0]

    def learn_and_score(
        self, V: Array, order: Array, r: Array, ends: Array, marks: Array, at: Array
    ) -> tuple[Array, Array]:
        """The same; and f̄ at the rows with numbers `at`, after as many passes as each of `marks`."""
        if self.rule.average is None:
            return step_by_step(self, V, order, r, ends, marks, at)
        first, places = self._columns(at)
        out = self._out(len(marks), int(places.max(initial=-1)) + 1)
        P, sizes = self._play(V, order, r, ends, marks, first, out)
        scores = out.take(places, axis=2).transpose(0, 2, 1)
        return P, self._started(at) + scores * sizes[:, None, None]

    def _play(
        self, V: Array, order: Array, r: Array, ends: Array, marks: Array, first: int, out: Array
    ) -> tuple[Array, Array]:
        """Predictions of these rounds, and what the scores in `out` have to be multiplied by."""
        rounds = Rounds.of(V[self.gram.learned], self.gram.place[order], r)
        P, sizes = self._started(order), np.empty(len(marks))
        state = self.plugs, self.S, self.g, self.coef, self.u, P, self.space
        learn_gram(
            self.values, rounds, read_only(ends), *state, read_only(marks), first, out, sizes
        )
        return P, sizes

    def _started(self, rows: Array) -> Array:
        """Values of the start at some rows; zeros without one."""
        shape = len(rows), self.coef.shape[1]
        return np.zeros(shape) if self.start is None else self.start[rows]

    def _out(self, marks: int, columns: int) -> Array:
        """Room for scores."""
        dtype = self.gram.matrices.dtype
        return np.zeros((marks, self.coef.shape[1], whole(columns, dtype)), dtype)

    def _columns(self, at: Array) -> tuple[int, Array]:
        """The columns of some rows, counted from the beginning of a cache line, and this."""
        places = self.gram.place[at]
        least = int(places.min(initial=len(self.gram.place)))
        first = least - least % whole(1, self.gram.matrices.dtype)
        return first, places - first

    def model(self) -> Array:
        """Coefficients of f̄ so far, of shape (kernels, outputs, rows)."""
        u, b = self._u().transpose(1, 2, 0), self.rule.shares(self.kernels)
        return self.rule.read_out(self.S, self.coef.T[None], u, False, b, np.zeros(1))

    def scores(self, at: Array) -> Array:
        """f̄ at the rows with these numbers, the start included."""
        first, places = self._columns(at)
        (out,) = self._out(1, int(places.max(initial=-1)) + 1)
        c, total = self.rule.multipliers(self.S, self.rule.shares(self.kernels))
        size = expand_gram(self.values, c, total, self.coef, self.u, first, self.space.room, out)
        return self._started(at) + np.multiply(out.T[places], size, dtype=np.float64)

    def expansion(self) -> Expansion:
        """f̄ so far as a function of scaled rows, for gradients, which copy few rows at a time."""
        at, d = self.gram.learned, self.Z.shape[1]
        sparse = sp.issparse(self.Z)
        rows = self.Z[at] if sparse else Picked(self.Z, at, np.zeros(d, self.Z.dtype))
        few = max(PRECISE, COPIED // max(d, 1))
        sq = np.concatenate([sq_norms(rows[part]) for part in pieces(len(at), few)])
        return Expansion(self.kernels, self.ids[at], rows, sq, self.model(), self.n_jobs)

    def _learned(self) -> tuple[Any, Array]:
        """The rows that are learned, and their numbers."""
        return self.Z[self.gram.learned], self.ids[self.gram.learned]

    def _u(self) -> Array:
        """u of shape (rows, kernels, outputs)."""
        return self.u[:, :, : len(self.kernels)].swapaxes(1, 2)

    def snapshot(self) -> tuple[Array, Array, Scalars]:
        """What has been learned so far."""
        return self.coef.copy(), self._u().copy(), Scalars(*(x.copy() for x in self.S))

    def learner(self, kept: Any = None) -> Dual:
        """A learner that can go on with other rows, from a snapshot if one is given."""
        coef, u, S = kept or self.snapshot()
        Z, ids = self._learned()
        return Dual.resume(
            self.rule, self.kernels, Z, ids, coef, u, S, self.n_jobs, self.max_support
        )
