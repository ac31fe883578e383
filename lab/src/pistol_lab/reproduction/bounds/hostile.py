"""Sequences that mean harm, and the learners of the library that have to play them.

An opponent yields one (x, y) a round. It may ask the learner what it predicts before it chooses.
Everything about a sequence follows from its number, so each can be played again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pistol.losses import CLASSIFICATION_LOSSES, LOSSES, REGRESSION_LOSSES, Loss
from pistol.online import Learner

from ... import learners
from ...protocol import Array

A_OVER_L = (2.25, 2.5, 3.0, 4.0, 10.0)
GAMMA = 2.0  # of the Gaussian kernel
MOST_ROUNDS = {"PiSTOL": 200, "kernel": 30, "per coordinate": 200, "Perceptron": 200}


@njit(cache=True)
def linear_value(y, p, theta):
    return y * p


@njit(cache=True)
def linear_grad(y, p, theta):
    return y


# Convex and 1-Lipschitz for |y| ≤ 1, and the worst of all: no loss has a larger regret for its s_t.
LINEAR = Loss("linear", linear_value, linear_grad, L=1.0)
BOUNDED = [loss for loss in REGRESSION_LOSSES.values() if not loss.ranged]  # for all targets
PLAYED = (*CLASSIFICATION_LOSSES.values(), *BOUNDED, LINEAR)


class Arena(NamedTuple):
    """What an opponent knows: all but the random numbers that are still to come."""

    rng: np.random.Generator
    T: int
    d: int
    cube: bool  # points with max |x_i| = 1 rather than ‖x‖ = 1
    gaussian: bool  # the kernel, linear otherwise
    learner: Any  # with `predict`
    loss: Loss
    a: float
    b: float

    def points(self, n: int) -> Array:
        """Random directions of length 1."""
        X = self.rng.normal(size=(n, self.d))
        if self.cube:
            X *= self.rng.random(X.shape) < self.rng.uniform(0.2, 1.0)  # some coordinates are rare
            X[:, self.rng.integers(self.d)] += 1e-9
        return X / np.linalg.norm(X, ord=np.inf if self.cube else 2, axis=1, keepdims=True)

    def labels(self, n: int) -> Array:
        """Random targets: ±1, or anything between for the losses that take it."""
        signs = self.rng.choice([-1.0, 1.0], n)
        between = self.loss.name not in CLASSIFICATION_LOSSES and self.rng.random() < 0.5
        return self.rng.uniform(-1.0, 1.0, n) if between else signs

    def worst(self, X: Array, Y: Any = (-1.0, 1.0)) -> tuple[Array, float]:
        """The point and target with the largest loss at f_t."""
        ell, P = self.loss, [self.learner.predict(x) for x in X]
        losses = [[ell.value(y, p, ell.theta) for y in Y] for p in P]
        i, j = np.unravel_index(np.argmax(losses), (len(X), len(Y)))
        return X[i], Y[j]


Moves = Iterator[tuple[Array, float]]


def random(arena: Arena) -> Moves:
    """Random directions, random targets."""
    yield from zip(arena.points(arena.T), arena.labels(arena.T).tolist())


def alternating(arena: Arena) -> Moves:
    """One point, and a target that always changes its sign."""
    x = arena.points(1)[0]
    yield from ((x, (-1.0) ** t) for t in range(arena.T))


def reversal(arena: Arena) -> Moves:
    """One point and target, over and over; then, when ‖g‖ is large, the opposite."""
    x, turn = arena.points(1)[0], arena.rng.integers(1, arena.T + 1)
    yield from ((x, 1.0 if t < turn else -1.0) for t in range(arena.T))


def drifting(arena: Arena) -> Moves:
    """The sign of ⟨w, x⟩, where w wanders."""
    w, pace = arena.rng.normal(size=arena.d), arena.rng.uniform(0.0, 0.5)
    for x in arena.points(arena.T):
        w += pace * arena.rng.normal(size=arena.d)
        yield x, 1.0 if w @ x > 0 else -1.0


def rare(arena: Arena) -> Moves:
    """Tiny points with random targets; now and then a large one that says something."""
    w, often = arena.rng.normal(size=arena.d), arena.rng.uniform(0.02, 0.3)
    for x, y in zip(arena.points(arena.T), arena.labels(arena.T).tolist()):
        if arena.rng.random() < often:
            yield x, 1.0 if w @ x > 0 else -1.0
        else:
            yield 0.02 * x, y


def spiteful(arena: Arena) -> Moves:
    """Random points, each with the sign that costs f_t more."""
    for x in arena.points(arena.T):
        yield arena.worst(x[None])


def worst_of_several(arena: Arena) -> Moves:
    """The worst of four points and two signs."""
    for _ in range(arena.T):
        yield arena.worst(arena.points(4))


def separable(arena: Arena) -> Moves:
    """Some h is right about all points; of four, the one that f_t gets wrong most."""
    w = arena.points(1)[0]
    for _ in range(arena.T):
        X = arena.points(4)
        X = np.where((X @ w >= 0)[:, None], X, -X)  # then y = 1 for all
        x, _ = arena.worst(X, (1.0,))
        y = arena.rng.choice([-1.0, 1.0])
        yield y * x, y


def orthogonal(arena: Arena) -> Moves:
    """Points at right angles to g, where f_t is zero and ‖g‖ grows most for what is lost."""
    g, ell = np.zeros(arena.d), arena.loss
    for x, y in zip(arena.points(arena.T), arena.labels(arena.T).tolist()):
        if arena.d > 1 and g.any():
            x = x - (x @ g) / (g @ g) * g
            x /= max(np.linalg.norm(x, ord=np.inf if arena.cube else 2), 1e-9)
        g -= ell.grad(y, arena.learner.predict(x), ell.theta) * x
        yield x, y


def sparse(arena: Arena) -> Moves:
    """One coordinate a round, some often and some rarely, each with a mind of its own."""
    share = 1.0 / np.arange(1, arena.d + 1)
    often = arena.rng.choice(arena.d, arena.T, p=share / share.sum())
    lean = arena.rng.uniform(0.0, 1.0, arena.d)
    for i in often:
        yield np.eye(arena.d)[i], 1.0 if arena.rng.random() < lean[i] else -1.0


def fresh(arena: Arena) -> Moves:
    """A new direction every round, as long as there are any."""
    for t, y in enumerate(arena.labels(arena.T).tolist()):
        yield np.eye(arena.d)[t % arena.d], y


def greedy(arena: Arena) -> Moves:
    """The round that adds most to the potential of the proof, for the share of the bound it takes."""
    ell, (a, b, L) = arena.loss, (arena.a, arena.b, arena.loss.L)
    g, S = np.zeros(arena.d), np.zeros(arena.d if arena.cube else 1)
    sizes = (-1.0, -0.3, 0.3, 1.0) if ell.name not in CLASSIFICATION_LOSSES else (-1.0, 1.0)

    def potential(g: Array, S: Array) -> Array:
        sq = g * g if arena.cube else (g * g).sum(axis=-1, keepdims=True)
        return b * np.exp(np.minimum(sq / (2 * a * (L + S)), 300.0)).sum(axis=-1)

    for _ in range(arena.T):
        X = arena.points(3)
        if g.any():
            X[0] = np.sign(g) if arena.cube else g / np.linalg.norm(g)
        P, tried = [arena.learner.predict(x) for x in X], list(product(range(len(X)), sizes))
        xs, p = X[[i for i, _ in tried]], np.array([P[i] for i, _ in tried])
        s = np.array([[ell.grad(y, P[i], ell.theta)] for i, y in tried])
        more = np.abs(s * xs) if arena.cube else np.abs(s) * np.linalg.norm(xs, axis=1)[:, None]
        gain = potential(g - s * xs, S + more) - potential(g, S) + s[:, 0] * p
        cost = b * np.log1p(more / (L + S)).sum(axis=1)
        best = int(np.argmax(np.where(cost > 0, gain / np.maximum(cost, 1e-300), -np.inf)))
        g, S = g - s[best] * xs[best], S + more[best]
        yield xs[best], tried[best][1]


Opponent = Callable[[Arena], Moves]
ANY: tuple[Opponent, ...] = (
    random, alternating, reversal, drifting, spiteful, worst_of_several
)  # fmt: skip
OPPONENTS: dict[str, tuple[Opponent, ...]] = {
    "PiSTOL": (*ANY, rare, separable, sparse, fresh, orthogonal, greedy),
    "kernel": ANY,
    "per coordinate": (*ANY, rare, separable, sparse, fresh, greedy),
    "Perceptron": (*ANY, rare, separable, sparse, fresh, orthogonal),
}


class Game(NamedTuple):
    """A sequence and what the learner made of it."""

    opponent: str
    learner: Any
    arena: Arena
    X: Array
    y: Array
    p: Array  # f_t(x_t)
    s: Array  # subgradients there

    def gram(self) -> Array:
        """k(x_t, x_i)."""
        K = self.X @ self.X.T
        sq = K.diagonal()
        return np.exp(-GAMMA * (sq[:, None] + sq - 2 * K)) if self.arena.gaussian else K


def arena_of(kind: str, number: int) -> tuple[Arena, Opponent]:
    """Who plays whom in sequence `number` of this kind of learner."""
    rng = np.random.default_rng((sorted(OPPONENTS).index(kind), number))
    opponent = OPPONENTS[kind][rng.integers(len(OPPONENTS[kind]))]
    T = int(np.exp(rng.uniform(0.0, np.log(MOST_ROUNDS[kind] + 0.999))))
    d = min(T, 30) if opponent is fresh else int(rng.integers(1, 7))
    if kind == "Perceptron":
        loss, a, b = LOSSES["perceptron"], 1.0, 1.0
        gaussian = opponent in ANY and rng.random() < 0.02
        rule = learners.rule(loss, "constant", a, b, None)
        learner: Any = learners.events(rule, d, GAMMA if gaussian else None)
    else:
        gaussian = kind == "kernel"
        loss = PLAYED[rng.integers(len(PLAYED))]
        a = loss.L * A_OVER_L[rng.integers(len(A_OVER_L))]
        b = 1.0 / d if kind == "per coordinate" else float(10 ** rng.uniform(-3.0, 3.0))
        learner = Learner.theorem(
            loss, a=a, b=b, record=True, gamma=GAMMA,
            kernel="rbf" if gaussian else "linear", per_coordinate=kind == "per coordinate",
        )  # fmt: skip
    return Arena(rng, T, d, kind == "per coordinate", gaussian, learner, loss, a, b), opponent


def play(arena: Arena, opponent: Opponent) -> Game:
    """Play a sequence to its end."""
    rounds, (learner, ell) = [], (arena.learner, arena.loss)
    for x, y in opponent(arena):
        p = learner.predict(x)
        learner.step(x, y)
        rounds.append((x, y, p, ell.grad(y, p, ell.theta)))
    columns = [np.array(column, np.float64) for column in zip(*rounds)]
    return Game(opponent.__name__.replace("_", " "), learner, arena, *columns)
