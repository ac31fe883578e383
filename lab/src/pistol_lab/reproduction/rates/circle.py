"""A problem on the circle whose every quantity is known: spectrum, target, risk, approximation.

x is uniform on [0, 1). The eigenfunctions of the kernel are √2 cos 2πjx and √2 sin 2πjx with one
eigenvalue λ_j ∝ j^-1.25 for both, so that a function Σ_j √2 Re(z_j exp(2πijx)) is known by its
complex numbers z_j: its square norm is Σ|z_j|² in L² and Σ|z_j|²/λ_j in the RKHS.

Frequencies are 1, …, J, and from there on one an octave, which carries what the target has in the
whole octave. The latter are never learned at the sample sizes we play, but a target without them
would end at J, and its error would fall too fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from ...protocol import Array

DECAY = 1.25  # λ_j ∝ j^-DECAY; 1 would be the paper's capacity-independent case
OCTAVES = 8  # beyond J
STEP = 32  # J is a multiple of it
CHUNK = 2048  # rows of features in memory at once
HEIGHT = 0.9  # sup |f*|
DELTA = 2.0  # of the Huber loss: |y - p| ≤ DELTA wherever |y| ≤ 1 and |p| ≤ 1
L, H = 1.0, 1.0 / DELTA  # its Lipschitz constant and its smoothness


class Problem(NamedTuple):
    """Where examples come from: all that a sample depends on, but for its size and seed."""

    J: int
    beta: float  # f* lies in the range of L_K^β′ for all β′ < beta
    sigma: float | None = None  # y = f*(x) ± sigma; None is a label ±1 with the mean f*(x)
    hold: int = 1  # rounds that an x stays, in the mean; 1 is independent examples
    wrong: float = 0.0  # share of rounds where an adversary sets y = -sign f*(x)


def frequencies(J: int) -> Array:
    """1, …, J, 2J, 4J, …"""
    return np.concatenate([np.arange(1, J + 1), J * 2 ** np.arange(1, OCTAVES + 1)])


@cache
def eigenvalues(J: int) -> Array:
    """λ_j, such that k(x, x) = Σ λ_j |√2 exp(2πijx)|² = 1."""
    decay = frequencies(J) ** -DECAY
    return _fixed(decay / (2 * decay.sum()))


def features(x: Array, J: int) -> Array:
    """√λ_j φ_j(x), one row per x: their inner product is the kernel. J is a multiple of 32."""
    low, high = _waves(x, np.arange(1, STEP + 1)), _waves(x, np.arange(0, J, STEP))
    dense = (high[:, :, None] * low[:, None, :]).reshape(len(x), J)  # 32 times fewer cosines
    waves = np.concatenate([dense, _waves(x, frequencies(J)[J:])], axis=1)
    waves *= np.sqrt(2 * eigenvalues(J))
    return np.concatenate([waves.real, waves.imag], axis=1)


def from_weights(w: Array, J: int) -> Array:
    """z of the function ⟨w, features(x)⟩."""
    cosines, sines = np.split(w, 2)
    return (cosines - 1j * sines) * np.sqrt(eigenvalues(J))


def to_weights(z: Array, J: int) -> Array:
    """w of the function z."""
    w = z / np.sqrt(eigenvalues(J))
    return np.concatenate([w.real, -w.imag])


@cache
def target(J: int, beta: float) -> Array:
    """z of f*, which is in the range of L_K^β′ exactly for β′ < beta, were there no end to it.

    |z_j|² = λ_j^(2β)/j, so that Σ|z_j|² λ_j^(-2β′) is Σ λ_j^(2β-2β′)/j, and the phase j log j keeps
    f* bounded: in phase, the sum would have a peak that grows with J.
    """
    j = frequencies(J)
    share = np.where(j > J, np.log(2.0), 1.0 / j)  # Σ 1/j over an octave is log 2
    z = eigenvalues(J) ** beta * np.sqrt(share) * np.exp(1j * j * np.log(j))
    return _fixed(z * HEIGHT / np.abs(on_grid(z, J)).max())


def _fixed(x: Array) -> Array:
    """An array that is remembered, and so must not be written to."""
    x.flags.writeable = False
    return x


def on_grid(z: Array, J: int) -> Array:
    """The values of a function at so many points that the mean of a product of three is exact."""
    j = frequencies(J)
    n = 4 * int(j[-1])
    half = np.zeros(n // 2 + 1, np.complex128)
    half[j] = z * (n / np.sqrt(2))
    return np.fft.irfft(half, n)


def stream(problem: Problem, seed: int, stops: Sequence[int]) -> Iterator[tuple[Array, Array]]:
    """Examples as rows of features and targets, in chunks that end at the stops."""
    rng, T = np.random.default_rng(seed), max(stops)
    fresh, x, coin, bad = rng.random((4, T))
    x = x[np.maximum.accumulate(np.where(fresh < 1 / problem.hold, np.arange(T), 0))]
    w = to_weights(target(problem.J, problem.beta), problem.J)
    edges = sorted({0, *stops, *range(0, T, CHUNK)})
    for at in map(slice, edges, edges[1:]):
        X = features(x[at], problem.J)
        f = X @ w
        if problem.sigma is None:
            y = np.where(coin[at] < (1 + f) / 2, 1.0, -1.0)
        else:
            y = f + np.where(coin[at] < 0.5, problem.sigma, -problem.sigma)
        yield X, np.where(bad[at] < problem.wrong, -np.sign(f), y)


def risk(f: Array, problem: Problem) -> float:
    """The expected Huber loss of a function given by its values on the grid; no sampling."""
    best = on_grid(target(problem.J, problem.beta), problem.J)
    if problem.sigma is None:
        up = (1 + best) / 2
        return float(np.mean(up * _huber(1 - f) + (1 - up) * _huber(1 + f)))
    error = f - best
    return float(np.mean(_huber(error - problem.sigma) + _huber(error + problem.sigma)) / 2)


def best_risk(problem: Problem) -> float:
    """The risk of f*, that of the noise alone: E (y - f*(x))²/2δ."""
    if problem.sigma is not None:
        return problem.sigma**2 / (2 * DELTA)
    return (1 - float(np.sum(np.abs(target(problem.J, problem.beta)) ** 2))) / (2 * DELTA)


def excess(z: Array, problem: Problem) -> float:
    """The risk of a function above that of f*: `distance`/2δ unless |y - f(x)| > δ somewhere."""
    f = on_grid(z, problem.J)
    reach = DELTA - (1.0 if problem.sigma is None else HEIGHT + problem.sigma)
    if np.abs(f).max() <= reach:
        return distance(z, problem) / (2 * DELTA)
    return risk(f, problem) - best_risk(problem)


def distance(z: Array, problem: Problem) -> float:
    """‖f - f*‖² in L² by Parseval, which is the excess risk in terms of the square loss."""
    return float(np.sum(np.abs(z - target(problem.J, problem.beta)) ** 2))


class Compromise(NamedTuple):
    """The minimiser h of ‖h - f*‖² + γ ‖h‖²_K."""

    distance: float  # ‖h - f*‖²
    norm_sq: float  # ‖h‖²_K
    z: Array


def compromise(problem: Problem, gamma: float) -> Compromise:
    """The best regularised function: z_j λ_j/(λ_j + γ)."""
    best, lam = target(problem.J, problem.beta), eigenvalues(problem.J)
    z = best * lam / (lam + gamma)
    return Compromise(distance(z, problem), float(np.sum(np.abs(z) ** 2 / lam)), z)


def source_norm(problem: Problem) -> float:
    """‖g‖ in L², where f* = L_K^β g."""
    best, lam = target(problem.J, problem.beta), eigenvalues(problem.J)
    return float(np.sqrt(np.sum(np.abs(best) ** 2 * lam ** (-2 * problem.beta))))


def l1_exponent(problem: Problem, gammas: Array) -> float:
    """β of Theorem 3, fitted: min_h ‖h - f*‖₁ + γ ‖h‖²_K falls as γ^β, among the compromises."""
    best = on_grid(target(problem.J, problem.beta), problem.J)
    family = [compromise(problem, g) for g in np.geomspace(gammas.min() / 100, 1.0, 60)]
    near = np.array([np.abs(on_grid(h.z, problem.J) - best).mean() for h in family])
    norm_sq = np.array([h.norm_sq for h in family])
    least = (near + gammas[:, None] * norm_sq).min(axis=1)
    return float(np.polyfit(np.log(gammas), np.log(least), 1)[0])


def _waves(x: Array, j: Array) -> Array:
    """exp(2πijx), with whole turns taken off first."""
    turns = np.outer(x, j)
    return np.exp(2j * np.pi * (turns - np.floor(turns)))


def _huber(error: Array) -> Array:
    size = np.abs(error)
    return np.where(size < DELTA, size**2 / (2 * DELTA), size - DELTA / 2)
