"""How regret grows with the rounds and with the norm of h, and what a round costs."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from pistol.losses import LOSSES
from pistol.online import Learner

from ... import learners
from ...protocol import Array
from . import hostile

FEATURES = 5
MARGIN = 0.2
NORM = 1 / MARGIN  # of the h that suffers nothing where nothing is flipped
WEIGHTS = np.array([1.0, -1.0, 0.5, -0.5, 0.0])  # of u, times its norm
REPEATS = 15


def over_time(opponent: str, loss: str, T: int, d: int, norm: float, seed: int) -> dict[str, Any]:
    """Regret and bound after each round, against the h of this norm along g_T: a = 3 L, b = 1."""
    learner, ell = Learner.theorem(LOSSES[loss], record=True), LOSSES[loss]
    rng = np.random.default_rng(seed)
    arena = hostile.Arena(rng, T, d, False, False, learner, ell, learner.a, 1.0)
    game = hostile.play(arena, getattr(hostile, opponent))
    g = -game.s @ game.X
    h = norm * g / max(float(np.linalg.norm(g)), 1e-300)
    keep = np.unique(np.geomspace(1, T, 400).astype(int)) - 1
    return {
        "t": (keep + 1).tolist(),
        "regret": learner.regrets(h)[keep].tolist(),
        "bound": learner.bounds(h)[keep].tolist(),
    }


def stream(flipped: float, several: int, T: int, seed: int) -> dict[str, Any]:
    """The paper's smooth loss on points with a margin, some labels flipped.

    Each point is the one of `several` that costs f_t most. Reported at powers of √10: the loss of the
    learner, Σ|s_t|, and the loss of the h of norm 1/margin that is right wherever nothing is flipped.
    """
    rng, ell = np.random.default_rng(seed), LOSSES["smooth_hinge"]
    learner, h_loss = Learner.theorem(ell), 0.0
    marks = np.unique(np.geomspace(10, T, 2 * round(np.log10(T)) - 1).astype(int))
    rows: list[tuple[int, float, float, float]] = []
    for t in range(1, T + 1):
        X = rng.normal(size=(several, FEATURES))
        X[:, 1:] *= np.sqrt((1 - MARGIN**2) / (X[:, 1:] ** 2).sum(axis=1, keepdims=True))
        X[:, 0] = MARGIN  # h = x_0/MARGIN has margin 1
        x = min(X, key=learner.predict) if several > 1 else X[0]
        y = -1.0 if rng.random() < flipped else 1.0
        sign = rng.choice([-1.0, 1.0])
        learner.learn(sign * x, sign * y)
        h_loss += ell.value(y, 1.0, 0.0)
        if t in marks:
            rows.append((t, learner.cumulative_loss, learner.s_sum, h_loss))
    return dict(zip(("t", "loss", "s_sum", "h_loss"), map(list, zip(*rows))))


def scale(norm: float, T: int, seed: int) -> dict[str, Any]:
    """Regret against a u of this largest weight: per-coordinate PiSTOL, and AdaGrad with step 1.

    The target is ⟨u, x⟩ and the loss absolute, so u suffers nothing. Σ|s_t x_{t,i}| is PiSTOL's.
    """
    rng, d = np.random.default_rng(seed), FEATURES
    u = norm * WEIGHTS
    learner = Learner.theorem("absolute", per_coordinate=True, b=1 / d)
    w, squares, adagrad = np.zeros(d), np.full(d, 1e-12), 0.0
    s_sums = np.zeros(d)
    for x in rng.choice([-1.0, 0.0, 1.0], (T, d)):
        y = float(u @ x)
        before = learner.s_sum
        learner.learn(x, y)
        s_sums += (learner.s_sum - before) * np.abs(x)
        error = float(w @ x) - y
        adagrad += abs(error)
        g = np.sign(error) * x
        squares += g * g
        w -= g / np.sqrt(squares)
    return {"pistol": learner.cumulative_loss, "adagrad": adagrad, "s_sums": s_sums.tolist()}


def round_times(rows: int, features: int, kernel: bool) -> dict[str, Any]:
    """Seconds a round of PiSTOL and of averaged SGD on the same loops, the least of a few repeats.

    The logistic loss always has a gradient, so both keep the same rows.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features)) / np.sqrt(features)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    rules = {
        "pistol": learners.rule("logistic", "pistol", 3.0, 1.0),
        "asgd": learners.rule("logistic", "constant", 1.0, 0.1),
    }
    times: dict[str, list[float]] = {name: [] for name in rules}
    for _ in range(REPEATS + 1):  # the first one warms up
        for name, rule in rules.items():
            times[name].append(_play(rule, X, y, kernel) / rows)
    return {name: min(seconds[1:]) for name, seconds in times.items()}


def _play(rule: learners.Rule, X: Array, y: Array, kernel: bool) -> float:
    learner = (
        learners.expansion(rule, 1.0, n_jobs=1) if kernel else learners.vector(rule, X.shape[1])
    )
    start = perf_counter()
    learners.play(learner, X, y)
    return perf_counter() - start
