"""Thousands of hostile sequences at a time, each judged by the comparator that is worst for a bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pistol import theory

from ...protocol import Array
from .hostile import Game, arena_of, play
from .worst import ROUNDING, Judged, Stakes, judge, minimise, printed, proved

EVERY = 25  # of these, one is judged by its true regret, too
BINS = 50  # of regret / bound, from 0 to 1
MAX_FEATURES = 6  # that a comparator is searched in


def batch(kind: str, first: int, n: int) -> dict[str, Any]:
    """Sequences first, …, first + n - 1 against PiSTOL: how near its bounds they come, over all h."""
    games = [play(*arena_of(kind, number)) for number in range(first, first + n)]
    stakes = stakes_of(games)
    as_proved, as_printed = (judge(b(stakes), stakes.suffered) for b in (proved, printed))
    a_over_L, opponents = np.round(stakes.a / stakes.L, 6), np.array([g.opponent for g in games])
    true = [_true(game) if i % EVERY == 0 else None for i, game in enumerate(games)]
    found: dict[str, Any] = {"a": {}, "opponent": {}}
    for a in np.unique(a_over_L):
        at = np.flatnonzero(a_over_L == a)
        rows = [(first + int(i), row) for i in at if (row := true[i]) is not None]
        broken = [number for number, row in rows if row.violated]
        found["a"][f"{a:g}"] = {
            "sequences": len(at),
            "proved": _summary(as_proved, at, first),
            "printed": _summary(as_printed, at, first),
            "true": {
                "sequences": len(rows),
                "violations": len(broken),
                "numbers": broken[:5],
                "ratio": max((row.ratio for _, row in rows), default=0.0),
            },
        }
    for opponent in np.unique(opponents):
        at = np.flatnonzero((opponents == opponent) & (a_over_L >= 3.0))
        found["opponent"][str(opponent)] = _counts(as_proved.ratio[at])
    return found


def mistakes(first: int, n: int) -> dict[str, Any]:
    """Sequences first, …, first + n - 1 against the Perceptron: its mistakes beside equation (5)."""
    ratios, violated, opponents = [], [], []
    for number in range(first, first + n):
        game = play(*arena_of("Perceptron", number))
        made, bound = int((game.y * game.p <= 0).sum()), mistake_bound(game, number % EVERY == 0)
        opponents.append(game.opponent)
        ratios.append(made / bound)
        if made > bound * (1 + ROUNDING):
            violated.append(number)
    split = {
        str(name): _counts(np.array(ratios)[np.array(opponents) == name])
        for name in np.unique(opponents)
    }
    return {
        "sequences": n, "violations": len(violated), "numbers": violated[:5],
        "ratio": max(ratios), "opponent": split,
    }  # fmt: skip


def stakes_of(games: Sequence[Game]) -> Stakes:
    """What the comparators are judged by, for games of one kind of learner."""
    arenas = [game.arena for game in games]
    rows = [_per_coordinate(g) if g.arena.cube else _hilbert(g) for g in games]
    width = max(len(row[0]) for row in rows)
    pad = [[np.pad(v, (0, width - len(v))) for v in row] for row in rows]
    g, s_sum, s_before = (np.array(column) for column in zip(*pad))
    suffered = np.array([game.s @ game.p for game in games])
    a, b, L, T, d = np.array([(r.a, r.b, r.loss.L, r.T, r.d if r.cube else 1) for r in arenas]).T
    return Stakes(g, suffered, s_sum, s_before, a, b, L, T, d)


def _hilbert(game: Game) -> tuple[Array, Array, Array]:
    """‖g_T‖, Σ|s_t| and Σ|s_t| of all rounds but the last."""
    K, size = game.gram(), np.abs(game.s)
    g = np.sqrt(np.maximum([game.s @ K @ game.s], 0.0))
    return g, np.array([size.sum()]), np.array([size[:-1].sum()])


def _per_coordinate(game: Game) -> tuple[Array, Array, Array]:
    """The same for each coordinate."""
    sX = game.s[:, None] * game.X
    return np.abs(sX.sum(axis=0)), np.abs(sX).sum(axis=0), np.abs(sX[:-1]).sum(axis=0)


class _True(NamedTuple):
    ratio: float
    violated: bool


def _true(game: Game) -> _True | None:
    """Regret and bound, as the learner reports them, against the h that is worst for the bound."""
    if game.arena.gaussian or game.arena.d > MAX_FEATURES or game.arena.loss.name == "linear":
        return None
    h = hindsight(game)
    regret, bound = game.learner.regret(h), game.learner.bound(h)
    size = game.learner.cumulative_loss + bound
    return _True(regret / bound if bound > 0 else 0.0, regret > bound + ROUNDING * size)


def hindsight(game: Game) -> Array:
    """The h that minimises Σ ℓ_t(h(x_t)) plus the bound."""
    X, Y, ell = game.X, game.y.tolist(), game.arena.loss
    bound = proved(stakes_of([game]))
    alpha, kappa = bound.alpha[0], np.sqrt(bound.alpha[0]) / bound.b[0]

    def value_and_slope(h: Array) -> tuple[float, Array]:
        r = np.abs(h) if game.arena.cube else np.array([np.linalg.norm(h)])
        V = (X @ h).tolist()
        losses = sum(ell.value(y, v, ell.theta) for y, v in zip(Y, V))
        s = np.array([ell.grad(y, v, ell.theta) for y, v in zip(Y, V)])
        inside = np.sqrt(np.maximum(np.log1p(r * kappa), 1e-300))
        d_bound = np.sqrt(2 * alpha) * (inside + r * kappa / (1 + r * kappa) / (2 * inside))
        return losses + float(bound.first(r[None])[0]), s @ X + d_bound * h / np.maximum(r, 1e-300)

    at_zero = sum(ell.value(y, 0.0, ell.theta) for y in Y)
    radius = np.full(len(alpha), 1e-6)  # beyond it the bound alone exceeds what h = 0 costs
    while (short := radius * np.sqrt(2 * alpha * np.log1p(radius * kappa)) < at_zero).any():
        radius[short] *= 2
    return minimise(value_and_slope, game.arena.d, float(np.linalg.norm(radius)))


def mistake_bound(game: Game, search: bool) -> float:
    """The right-hand side of equation (5), the least over the h that were tried."""
    K, y = game.gram(), game.y
    tried = [y * (y * game.p <= 0), y]  # the Perceptron's own sum, and the mean of all
    search = search and game.arena.d <= MAX_FEATURES and not game.arena.gaussian
    H = [_margins(game, weight) for weight in np.geomspace(0.05, 20.0, 8)] if search else []
    values = np.array([K @ c for c in tried] + [game.X @ h for h in H])
    squares = [c @ K @ c for c in tried] + [h @ h for h in H]
    norms = np.sqrt(np.maximum(squares, 1e-300))
    scales = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 150)])
    r = np.concatenate([scales[:, None] / norms * np.sqrt(len(y)), np.ones((1, len(norms)))])
    D = np.maximum(1 - r[:, :, None] * y * values, 0.0).sum(axis=2)
    return float(theory.perceptron_mistake_bound(r * norms, D).min())


def _margins(game: Game, weight: float) -> Array:
    """The minimiser of (1 + weight/2) ‖h‖² + (1 + 1/(2 weight)) D, which is never below (5)."""
    ridge, slope, yX = 1 + weight / 2, 1 + 1 / (2 * weight), game.y[:, None] * game.X

    def value_and_slope(h: Array) -> tuple[float, Array]:
        margin = 1 - yX @ h
        value = ridge * h @ h + slope * np.maximum(margin, 0.0).sum()
        return float(value), 2 * ridge * h - slope * yX[margin > 0].sum(axis=0)

    return minimise(value_and_slope, game.arena.d, np.sqrt(slope * len(yX) / ridge))


def _summary(judged: Judged, at: Array, first: int) -> dict[str, Any]:
    """What is told of some of the sequences; a slack of infinity is left out."""
    slack, needed = judged.slack[at], judged.needed[at]
    slack, needed = slack[np.isfinite(slack)], needed[np.isfinite(needed)]
    violated = at[judged.violated[at]]
    return {
        "violations": len(violated),
        "numbers": [first + int(i) for i in violated[:5]],
        "ratio": float(judged.ratio[at].max()),
        "slack": float(slack.min()) if len(slack) else None,
        "needed": float(needed.max()) if len(needed) else None,
    }


def _counts(ratios: Array) -> list[int]:
    """How many ratios there are in each of the bins; what is beyond 1 is in the last."""
    return np.histogram(np.clip(ratios, 0.0, 1.0), BINS, (0.0, 1.0))[0].tolist()


def together(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What several batches found: counts are added, of the rest the worst is told."""
    worst: dict[str, Any] = {"slack": min, "ratio": max, "needed": max}
    found: dict[str, Any] = {}
    for key in dict.fromkeys(key for part in parts for key in part):
        values = [part[key] for part in parts if part.get(key) is not None]
        if not values:
            found[key] = None
        elif isinstance(values[0], dict):
            found[key] = together(values)
        elif key == "numbers":
            found[key] = [number for value in values for number in value][:5]
        elif isinstance(values[0], list):
            found[key] = np.sum(values, axis=0).tolist()
        else:
            found[key] = worst.get(key, sum)(values)
    return found
