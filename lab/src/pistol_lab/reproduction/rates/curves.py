"""Learning curves on the circle: excess risk against examples, and the exponents that they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from pistol.losses import LOSSES

from ... import learners
from ...protocol import Array, Found, Job
from .circle import DELTA, H, L, Problem, distance, excess, frequencies, from_weights, stream

HUBER = replace(LOSSES["huber"], L=L, H=H, theta=DELTA)
WIDE = 1000.0
SQUARE = replace(HUBER, theta=WIDE)  # (y - p)²/(2 · WIDE): no |y - p| comes near WIDE
ETA = 0.25  # c of the step sizes: the largest that equation (3) allows whatever T and β
FIRST = 6  # sample sizes are 2^6, 2^7, …
FIT = 4  # octaves at the upper end that exponents are fitted to

PISTOL = "PiSTOL"  # a setting that the theorem covers
HORIZON = "PiSTOL, b = √(2aLT)"  # so is this one, but its b adds T^(-1/2) to the bound
PAPER = "PiSTOL as in Section 7"  # and this is not
ORACLE = "ASGD, η from β"
AGNOSTIC = "ASGD, η ∝ T^(-1/2)"
LEARNERS = (PISTOL, HORIZON, PAPER, ORACLE, AGNOSTIC)
PISTOL_A = 3.0 * L
PAPER_A = L / 8  # the 0.25 of the paper at its L = 2


def step_size(name: str, T: int, beta: float) -> float:
    """η of averaged SGD with the square loss."""
    return float(ETA * T ** -(2 * beta / (2 * beta + 1) if name == ORACLE else 0.5))


def rule(name: str, T: int, beta: float) -> learners.Rule:
    """What a learner plays by, if it is to see T examples."""
    if name in (ORACLE, AGNOSTIC):
        # η times the gradient of (y - p)² is 2 WIDE η times that of our loss
        return learners.rule(SQUARE, "constant", 1.0, 2 * WIDE * step_size(name, T, beta))
    a = PAPER_A if name == PAPER else PISTOL_A
    b = 1.0 if name == PISTOL else sqrt(2 * a * L * T)
    return learners.rule(HUBER, "pistol", a, b)


def sizes(octaves: int) -> list[int]:
    """The sample sizes of a curve that ends at 2^octaves."""
    return [2**k for k in range(FIRST, octaves + 1)]


def learn(problem: Problem, octaves: int, seed: int, names: Sequence[str]) -> dict[str, Any]:
    """One pass over one sample: the excess risk of each learner's average at every size.

    Learners that know how many examples they will see run once for each size, over the same
    examples; the others go on, and are asked on the way.
    """
    stops = sizes(octaves)
    width = 2 * len(frequencies(problem.J))
    players = {
        (name, T): learners.vector(rule(name, T, problem.beta), width)
        for name in names
        for T in (stops[-1:] if name == PISTOL else stops)
    }
    found: dict[str, Any] = {"excess": {n: [] for n in names}, "distance": {n: [] for n in names}}
    seen = 0
    for X, y in stream(problem, seed, stops):
        seen += len(y)
        for (name, T), player in players.items():
            if seen > T:
                continue
            learners.play(player, X, y)
            if seen == T or (name == PISTOL and seen in stops):
                z = from_weights(learners.weights(player), problem.J)
                found["excess"][name].append(excess(z, problem))
                found["distance"][name].append(distance(z, problem))
    return found


def job(problem: Problem, octaves: int, seed: int, names: Sequence[str] = LEARNERS) -> Job:
    """A curve to be computed."""
    return Job(_name(problem, octaves, seed, names), learn, (problem, octaves, seed, names))


class Curves(NamedTuple):
    """Curves of one problem: one row per seed, one column per sample size."""

    T: Array
    values: Array

    @property
    def mean(self) -> Array:
        """Over seeds."""
        return self.values.mean(axis=0)

    @property
    def error(self) -> Array:
        """Standard errors of the means."""
        return self.values.std(axis=0, ddof=1) / sqrt(len(self.values))


def read(
    found: Found,
    problem: Problem,
    octaves: int,
    seeds: int,
    name: str,
    names: Sequence[str] = LEARNERS,
    what: str = "excess",
) -> Curves:
    """What the jobs of a problem found for one learner."""
    rows = [found[_name(problem, octaves, seed, names)][what][name] for seed in range(seeds)]
    return Curves(np.array(sizes(octaves)), np.array(rows))


class Exponent(NamedTuple):
    """r of T^-r, with its standard error."""

    r: float
    error: float

    @property
    def reach(self) -> float:
        """The most that it may be, two standard errors up."""
        return self.r + 2 * self.error

    def __str__(self) -> str:
        return f"{self.r:.3f} ± {self.error:.3f}"


def exponent(curves: Curves, octaves: int = FIT) -> Exponent:
    """Fitted to the upper end of the mean curve; the error is a jackknife over seeds.

    All sizes of a seed are the same examples, so points of a curve are not independent, but seeds
    are. Sizes count by their precision.
    """
    T, values = curves.T[-octaves - 1 :], curves.values[:, -octaves - 1 :]
    n = len(values)
    relative = values.std(axis=0, ddof=1) / values.mean(axis=0)
    weights = 1 / np.maximum(relative, 1e-3)  # polyfit squares them

    def slope(mean: Array) -> float:
        return -float(np.polyfit(np.log(T), np.log(mean), 1, w=weights)[0])

    without = np.array([slope(np.delete(values, i, axis=0).mean(axis=0)) for i in range(n)])
    error = sqrt((n - 1) / n * float(np.sum((without - without.mean()) ** 2)))
    return Exponent(slope(values.mean(axis=0)), error)


def local_exponents(curves: Curves) -> Array:
    """r of every octave, from one sample size to the next."""
    return np.asarray(-np.diff(np.log2(curves.mean)))


def _name(problem: Problem, octaves: int, seed: int, names: Sequence[str]) -> str:
    """All that a curve depends on."""
    noise = "labels" if problem.sigma is None else f"σ {problem.sigma:g}"
    parts = [
        f"rates/J {problem.J}/β {problem.beta:g}/{noise}",
        f"hold {problem.hold}/wrong {problem.wrong:g}/T 2^{octaves}/{', '.join(names)}/seed {seed}",
    ]
    return "/".join(parts)
