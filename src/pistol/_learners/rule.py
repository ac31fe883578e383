"""What all learners have in common: the rule they follow, and rounds in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from .._compiled import loops as _loops
from .._compiled.coordinates import GROWTHS
from .._compiled.plugs import address, comparison, potentials
from .._compiled.types import Array, Plugs, Scalars, read_only
from ..kernels import Kernel
from ..losses import Loss
from ..potentials import POTENTIALS

AVERAGES: dict[str | None, float] = {"uniform": 0.0, "linear": 1.0, None: 0.0}


@dataclass(frozen=True)
class Rule:
    """What a learner follows: the loss, how c_t is chosen, and how the f_t are averaged.

    `average` is "uniform" (the paper), "linear" (weight t on f_t) or None (the last f).
    """

    loss: Loss
    potential: str
    a: float
    b: float
    average: str | None

    def plugs(self, outputs: int) -> Plugs:
        """This rule for one vector per output."""
        return self._plugs(outputs, None, address(self._c, 4), 0)

    def plugs_of_sum(self, outputs: int, b: Array) -> Plugs:
        """The same for a sum of kernels, with the b of each: c of all kernels is computed at once."""
        return self._plugs(outputs, b, potentials(self._c), 0)

    def plugs_per_coordinate(self, outputs: int) -> Plugs:
        """The same for one learner per coordinate: all it needs of the potential is how b_t grows."""
        return self._plugs(outputs, None, 0, GROWTHS[self.potential])

    def _plugs(self, outputs: int, b: Array | None, potential: Any, growth: int) -> Plugs:
        return Plugs(
            grad=address(self.loss.grad, 3),
            theta=self.theta(outputs),
            coupled=self.coupled,
            potential=potential,
            growth=growth,
            a=float(self.a),
            b=read_only(np.array([self.b], float) if b is None else b),
            L=float(self.loss.L),
            power=self.power,
        )

    @property
    def _c(self) -> Any:
        if self.potential == "pistol_vowpal":
            raise ValueError(
                "b='vowpal' makes b_t of a coordinate's own gradients, so it needs per-coordinate "
                "learning; otherwise use b='anytime' or a number"
            )
        return POTENTIALS[self.potential]

    def turned(self, loss: Loss, size: float) -> Rule:
        """The rule with a loss of another L and unit; L is that of a round of size 1."""
        ratio = loss.unit / self.loss.unit
        b = self.b * {"pistol": ratio, "pistol_vowpal": sqrt(ratio)}.get(self.potential, 1.0)
        return replace(self, loss=replace(loss, L=loss.L * size), a=self.a * ratio, b=b)

    @property
    def alpha_0(self) -> float:
        """a L."""
        return max(self.a * self.loss.L, 1e-300)

    @property
    def value(self) -> Any:
        """The loss's value, as the loops take it."""
        return address(self.loss.value, 3)

    @property
    def coupled(self) -> Any:
        """What compares the outputs with each other, if the loss does."""
        return comparison(_loops.compare) if self.loss.coupled else 0

    @property
    def power(self) -> float:
        """ω_t = t^power."""
        return AVERAGES[self.average]

    def scalars(self, kernels: int, outputs: int) -> Scalars:
        """Line 2 of Algorithm 3: g_0 = 0, α_0 = a L."""
        shape = (kernels, outputs)
        return Scalars(
            g_norm_sq=np.zeros(shape),
            alpha=np.full(shape, self.alpha_0),
            c_sum=np.zeros(shape),
            t=np.zeros((1, 1)),
            weight=np.zeros((1, 1)),
        )

    def next_c(self, S: Scalars, b: Array) -> Array:
        """c of the round to come, for each kernel and output."""
        potential, t = self._c, float(S.t[0, 0])
        cells = zip(
            S.g_norm_sq.ravel(), S.alpha.ravel(), np.repeat(b, S.alpha.shape[1]), strict=True
        )
        c = [potential(g, alpha, t, b_q) for g, alpha, b_q in cells]
        return np.reshape(c, S.alpha.shape)

    def multipliers(self, S: Scalars, b: Array) -> tuple[Array, float]:
        """What f̄ = (C g - u) / Σ ω is made of: C and Σ ω; c and 0 where it is the f to come, c g."""
        total = 0.0 if self.average is None else float(S.weight[0, 0])
        return (S.c_sum, total) if total > 0.0 else (self.next_c(S, b), 0.0)

    def read_out(self, S: Scalars, g: Array, u: Array, last: bool, b: Array, since: Array) -> Array:
        """Coefficients of f̄, or of the f to come, from those of g and u (kernel, output, …).

        The average of each output began when Σ ω_t was `since`; an empty average is the f to come.
        """
        shape = S.c_sum.shape + (1,) * (g.ndim - 2)
        total = (S.weight[0, 0] - since).reshape(-1, *shape[2:])
        if last or self.average is None or not total.any():
            return self.next_c(S, b).reshape(shape) * g
        mean = S.c_sum.reshape(shape) * g
        mean -= u  # in place: new memory would take longer
        mean /= np.maximum(total, 1e-300)
        return (
            mean if total.all() else np.where(total > 0, mean, self.next_c(S, b).reshape(shape) * g)
        )

    def shares(self, kernels: Sequence[Kernel]) -> Array:
        """b of every kernel."""
        return read_only(np.array([self.b * kernel.share for kernel in kernels], float))

    def theta(self, outputs: int) -> Array:
        """The loss's own parameter for every output."""
        levels = self.loss.levels
        return read_only(
            np.array(levels, float) if levels else np.full(outputs, float(self.loss.theta))
        )


class Chunk(NamedTuple):
    """Rounds that were learned together: their rows, their sizes, and what was predicted."""

    rows: Array
    r: Array
    P: Array


def chunks(order: Array, size: int) -> Iterator[slice]:
    """Slices of the rounds."""
    for lo in range(0, len(order), size):
        yield slice(lo, min(lo + size, len(order)))


def step_by_step(
    run: Any, V: Array, order: Array, r: Array, ends: Array, marks: Array, at: Array
) -> tuple[Array, Array]:
    """What a run predicted in these rounds, and its f̄ at some rows after so many passes each."""
    P, scores, done, start = [], [], 0, 0
    for mark in marks:
        own = slice(start, ends[mark - 1])
        P.append(run.learn(V, order[own], r[own], read_only(ends[done:mark] - start)))
        scores.append(run.scores(at))
        done, start = mark, own.stop
    return np.concatenate(P), np.array(scores)
