"""Tables made to be hard for distances: tails, codes, spikes, useless features, rare flags.

z are independent standard normal features. A target is a function of some of them, and then the
table changes: the target stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from ...protocol import Array
from .sources import POOL, Data, Loader

Rng = np.random.Generator
Change = Callable[[Array, Rng], Array]
CODE, CODED = -999.0, 0.03  # what stands for "unknown", and in which share of the cells
SPIKE, SPACING = 1e6, 200  # one cell of the first feature in so many rows
GROUPS, LEVELS = 25, 20  # of the flags


def made(target: Callable[[Array, Rng], Array], features: int, change: Change) -> Loader:
    """Rows of normal features, a target made of them, and then a change of the table."""

    def make() -> Data:
        rng = np.random.default_rng(0)
        z = rng.normal(size=(POOL, features))
        y = target(z, rng)
        return Data(change(z, rng), y)

    return make


# Changes of a table


def plain(z: Array, rng: Rng) -> Array:
    """No change."""
    return z


def skewed(z: Array, rng: Rng) -> Array:
    """exp(2z) in place of each z: long tails, the same order."""
    return np.exp(2.0 * z)


def codes(z: Array, rng: Rng) -> Array:
    """Three of a hundred cells hold −999."""
    return np.where(rng.random(z.shape) < CODED, CODE, z)


def spikes(z: Array, rng: Rng) -> Array:
    """A million in the first feature of one row in 200: about five such cells among 1,000 rows."""
    z = z.copy()
    z[::SPACING, 0] = SPIKE
    return z


def useless(count: int) -> Change:
    """So many features more that the target does not depend on."""
    return lambda z, rng: np.hstack([z, rng.normal(size=(len(z), count))])


# Classes


def product(z: Array, rng: Rng) -> Array:
    """Two classes: the sign of z₀z₁ + z₂."""
    return (z[:, 0] * z[:, 1] + z[:, 2] > 0).astype(int)


def sectors(z: Array, rng: Rng) -> Array:
    """Three classes: sectors of the plane of z₀ + z₁ and 2 z₂z₃, with blurred borders."""
    angle = np.arctan2(z[:, 0] + z[:, 1], 2.0 * z[:, 2] * z[:, 3]) / (2.0 * np.pi)
    return np.floor(3.0 * ((angle + 0.03 * rng.normal(size=len(z))) % 1.0)).astype(int)


def waves(z: Array, rng: Rng) -> Array:
    """Two classes: the sign of sin(2.5 z₀) + z₁² − 1 and a little noise."""
    noise = 0.2 * rng.normal(size=len(z))
    return (np.sin(2.5 * z[:, 0]) + z[:, 1] ** 2 - 1.0 + noise > 0).astype(int)


def flags() -> Data:
    """Two classes from 25 words of 20 levels each, most of them rare, as 500 columns of 0 and 1.

    Every level has an effect of its own, and the first two words one more as a pair.
    """
    rng = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, LEVELS + 1)
    levels = rng.choice(LEVELS, size=(POOL, GROUPS), p=shares / shares.sum())
    effects, pairs = rng.normal(size=(GROUPS, LEVELS)), rng.normal(size=(LEVELS, LEVELS))
    score = effects[np.arange(GROUPS), levels].sum(axis=1) + 2.0 * pairs[levels[:, 0], levels[:, 1]]
    y = rng.random(POOL) < expit(score - np.median(score))
    return Data(np.eye(LEVELS)[levels].reshape(POOL, -1), y.astype(int))


# Targets


def distance(z: Array, rng: Rng) -> Array:
    """|z₀ − z₁| + z₂/2 and a little noise."""
    return np.abs(z[:, 0] - z[:, 1]) + 0.5 * z[:, 2] + 0.2 * rng.normal(size=len(z))


def lognormal(z: Array, rng: Rng) -> Array:
    """exp(1 + z₀ + z₁z₂/2) times log-normal noise."""
    return np.exp(1.0 + z[:, 0] + 0.5 * z[:, 1] * z[:, 2] + 0.3 * rng.normal(size=len(z)))


def pair(z: Array, rng: Rng) -> Array:
    """tanh(4 z₀z₁) and a little noise: each of the two features alone says nothing."""
    return np.tanh(4.0 * z[:, 0] * z[:, 1]) + 0.1 * rng.normal(size=len(z))


def steps(z: Array, rng: Rng) -> Array:
    """Constant pieces with sharp borders: ⌊z₂⌋, and 3 where z₀ > 0 and z₁ > −0.5; some noise."""
    corner = 3.0 * ((z[:, 0] > 0) & (z[:, 1] > -0.5))
    return corner + np.floor(z[:, 2]) + 0.3 * rng.normal(size=len(z))
