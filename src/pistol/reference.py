"""The paper's algorithms in plain Python: the oracle of all tests, written to be read.

Orabona (2014), *Simultaneous Model Selection and Optimization through Parameter-free Stochastic
Learning*. A function in the RKHS is a list of pairs (weight, point), meaning Σ weight · k(point, ·).
Every algorithm yields one pair (p_t, f_t) a round: the prediction f_t(x_t), made before y_t is
used, and the predictor f_t it was made with. Nothing here is fast and nothing guards against
overflow; the compiled loops do both and must agree with these lines round by round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import exp, sqrt
from typing import Any

Point = Any
Function = list[tuple[float, Point]]
Stream = Iterable[tuple[Point, float]]
Kernel = Callable[[Point, Point], float]
Gradient = Callable[[float, float], float]
Gradients = Callable[[Any, list[float]], list[float]]


def inner(f: Function, h: Function, k: Kernel) -> float:
    """⟨f, h⟩_K = Σ_i Σ_j u_i v_j k(x_i, z_j)."""
    return sum(u * v * k(x, z) for u, x in f for v, z in h)


def averaged_sgd(
    stream: Stream, grad: Gradient, k: Kernel, eta: float
) -> Iterator[tuple[float, Function]]:
    """Algorithm 1. The paper prints `+ η y ℓ'`; descent needs the minus that stands here."""
    f: Function = []  # f_1 = 0
    for x_t, y_t in stream:
        p_t = inner(f, [(1.0, x_t)], k)  # ŷ_t = f_t(x_t)
        yield p_t, f
        s_t = grad(y_t, p_t)  # y_t ℓ'(y_t ŷ_t)
        f = f + [(-eta * s_t, x_t)]  # f_{t+1} = f_t - η s_t k(x_t, ·)


def kernel_perceptron(stream: Stream, k: Kernel) -> Iterator[tuple[float, Function]]:
    """Algorithm 2, for y_t in {-1, +1}. A score of zero has no sign and is a mistake."""
    f: Function = []  # f_1 = 0
    for x_t, y_t in stream:
        p_t = inner(f, [(1.0, x_t)], k)
        yield p_t, f
        if y_t * p_t <= 0:  # sign(f_t(x_t)) ≠ y_t
            f = f + [(y_t, x_t)]  # f_{t+1} = f_t + y_t k(x_t, ·)


def pistol(
    stream: Stream,
    grad: Gradient,
    k: Kernel,
    a: float,
    b: float | Callable[[float], float],
    L: float,
) -> Iterator[tuple[float, Function]]:
    """Algorithm 3. `b` may be a function of α_{t-1}: see `anytime`."""
    g: Function = []  # line 2: g_0 = 0
    alpha = a * L  # line 2: α_0 = a L
    for x_t, y_t in stream:
        b_t = b(alpha) if callable(b) else b
        c_t = b_t / alpha * exp(inner(g, g, k) / (2 * alpha))
        f_t = [(c_t * w, x) for w, x in g]  # line 4: f_t = c_t g_{t-1}
        p_t = inner(f_t, [(1.0, x_t)], k)  # line 6: f_t(x_t)
        yield p_t, f_t
        s_t = grad(y_t, p_t)  # line 7: s_t ∈ ∂ℓ_t(f_t(x_t))
        g = g + [(-s_t, x_t)]  # line 8: g_t = g_{t-1} - s_t k(x_t, ·)
        alpha = alpha + a * abs(s_t) * sqrt(k(x_t, x_t))  # line 8: α_t


def pistol_within(
    stream: Stream,
    grad: Gradient,
    k: Kernel,
    a: float,
    b: float | Callable[[float], float],
    L: float,
    most: int,
) -> Iterator[tuple[float, Function]]:
    """Algorithm 3 with at most so many points (not in the paper).

    The first points with s_t ≠ 0 are kept. In all rounds k(x_t, ·) is projected on the span of the kept
    points, which changes nothing for a point that is kept.
    """
    g: Function = []
    points: list[Point] = []  # kept points; their k(x, ·) are linearly independent
    kept, alpha = 0, a * L
    for x_t, y_t in stream:
        b_t = b(alpha) if callable(b) else b
        c_t = b_t / alpha * exp(inner(g, g, k) / (2 * alpha))
        f_t = [(c_t * w, x) for w, x in g]
        p_t = inner(f_t, [(1.0, x_t)], k)
        yield p_t, f_t
        s_t = grad(y_t, p_t)
        if s_t != 0 and kept < most:
            kept, points = kept + 1, widened(points, x_t, k)
        step = projection(x_t, points, k)
        g = g + [(-s_t * w, x) for w, x in step]
        alpha = alpha + a * abs(s_t) * sqrt(max(inner(step, step, k), 0.0))


def projection(x: Point, points: list[Point], k: Kernel) -> Function:
    """Σ_i d_i k(z_i, ·) nearest to k(x, ·): K d = k(z, x), by the elimination of Gauss."""
    n = len(points)
    rows = [[k(z, other) for other in points] + [k(z, x)] for z in points]
    for i in range(n):
        for j in range(n):
            if j != i:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [u - factor * v for u, v in zip(rows[j], rows[i], strict=True)]
    return [(rows[i][n] / rows[i][i], z) for i, z in enumerate(points)]


def widened(points: list[Point], x: Point, k: Kernel) -> list[Point]:
    """The points with x, unless k(x, ·) is in their span but for rounding."""
    rest = [(1.0, x)] + [(-w, z) for w, z in projection(x, points, k)]
    return [*points, x] if inner(rest, rest, k) > 1e-10 * k(x, x) else points


def anytime(alpha: float) -> float:
    """b_t = ½ √(2 α_{t-1}): the horizon's √(2 a L T) without the horizon (not in the paper)."""
    return 0.5 * sqrt(2 * alpha)


def pistol_per_coordinate(
    stream: Stream,
    grad: Gradient,
    a: float,
    b: float | Callable[[float], float],
    L: float,
    m: list[float],
    shared: bool = False,
) -> Iterator[tuple[float, list[float]]]:
    """Appendix A: a copy of Algorithm 3 for each coordinate i, fed s_{i,t} = s_t x_{t,i}.

    The appendix assumes |x_{t,i}| ≤ 1: start with m = [1, …, 1]. Starting with zeros learns the
    scale of each coordinate instead: coordinate i is divided by its largest magnitude so far.

    With `shared` (not in the paper) b is divided by √k when a weight is set, k being the mean number of
    entries of the rows up to then. A weight is set when its coordinate was seen with s_t ≠ 0, or gets
    another scale.
    """
    d, m = len(m), list(m)
    theta = [0.0] * d  # Σ -s_{i,t}
    G = [0.0] * d  # Σ |s_{i,t}|
    share, entries, t = [1.0] * d, 0, 0
    for x_t, y_t in stream:
        entries, t = entries + sum(x_i != 0 for x_i in x_t), t + 1
        now = sqrt(t / entries) if shared and entries else 1.0
        share = [now if abs(x_t[i]) > m[i] else share[i] for i in range(d)]
        m = [max(m_i, abs(x_i)) for m_i, x_i in zip(m, x_t, strict=True)]
        w_t = [
            share[i] * coordinate_weight(theta[i] / m[i], G[i] / m[i], a, b, L) / m[i]
            if m[i] > 0
            else 0.0
            for i in range(d)
        ]
        p_t = sum(w_i * x_i for w_i, x_i in zip(w_t, x_t, strict=True))
        yield p_t, w_t
        s_t = grad(y_t, p_t)
        for i in range(d):
            theta[i] -= s_t * x_t[i]
            G[i] += abs(s_t * x_t[i])
            share[i] = now if s_t != 0 and x_t[i] != 0 else share[i]


def coordinate_weight(
    theta: float, G: float, a: float, b: float | Callable[[float], float], L: float
) -> float:
    """Line 4 of Algorithm 3 in one dimension: θ (b/α) exp(θ²/2α) with α = a (L + G)."""
    alpha = a * (L + G)
    b_t = b(alpha) if callable(b) else b
    return theta * b_t / alpha * exp(theta * theta / (2 * alpha))


def vowpal(
    stream: Stream, grad: Gradient, a: float, b: float, features: int
) -> Iterator[tuple[float, list[float]]]:
    """Vowpal Wabbit's --pistol with --ftrl_alpha a and --ftrl_beta b, in exact arithmetic.

    Appendix A for L = 1 with coordinates divided by their largest magnitude so far, but
    b_t = b √G: the predictions depend on the scale of a feature.
    """
    m, theta, G = ([0.0] * features for _ in range(3))  # max |x_i|, Σ -s x_i, Σ |s x_i|
    for x_t, y_t in stream:
        m = [max(m_i, abs(x_i)) for m_i, x_i in zip(m, x_t, strict=True)]
        A = [a * m_i * (G_i + m_i) for m_i, G_i in zip(m, G, strict=True)]
        w_t = [
            b * sqrt(G_i) * h / A_i * exp(h * h / (2 * A_i)) if A_i > 0 else 0.0
            for h, G_i, A_i in zip(theta, G, A, strict=True)
        ]
        p_t = sum(w_i * x_i for w_i, x_i in zip(w_t, x_t, strict=True))
        yield p_t, w_t
        s_t = grad(y_t, p_t)
        theta = [h - s_t * x_i for h, x_i in zip(theta, x_t, strict=True)]
        G = [G_i + abs(s_t * x_i) for G_i, x_i in zip(G, x_t, strict=True)]


def product_space(
    play: Callable[[Gradient], Iterator[tuple[float, Any]]], grads: Gradients, columns: int
) -> Iterator[list[tuple[float, Any]]]:
    """One copy of an algorithm per output, all fed the gradient of one loss of all scores.

    `play` starts a copy with its own gradient. A copy takes it when its next round is due, and by
    then the scores of all outputs are known.
    """
    scores = [0.0] * columns

    def own(j: int) -> Gradient:
        return lambda y_t, p_t: grads(y_t, scores)[j]

    for rounds in zip(*(play(own(j)) for j in range(columns)), strict=True):
        scores[:] = [p_t for p_t, _ in rounds]
        yield list(rounds)


def d_multinomial(y: int, scores: list[float]) -> list[float]:
    """Gradient of -log softmax(p)_y, for the class of number y: softmax(p)_j - 1{y = j}."""
    total = sum(exp(p) for p in scores)
    return [exp(p) / total - (j == y) for j, p in enumerate(scores)]


def average(fs: list[Function], weights: list[float]) -> Function:
    """f̄ = Σ_t ω_t f_t / Σ_t ω_t; line 10 of Algorithm 3 when all weights are 1."""
    total = sum(weights)
    return [(omega * w / total, x) for omega, f in zip(weights, fs, strict=True) for w, x in f]
