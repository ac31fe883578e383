"""The compiled loops: one per representation of g, no checks, no allocation.

All predict with f_t = c_t g_{t-1}. `order` names the row played in each round and `r` its size
(1, or the fraction that is left of a sample weight). P receives the predictions f_t(x_t). The line
numbers are those of Algorithm 3.

The average needs no second pass: with C_t = Σ_{i≤t} ω_i c_i and Δ_t = -s_t k(x_t, ·),
Σ_t ω_t c_t g_{t-1} = C_T g_T - Σ_t C_t Δ_t, so u = Σ_t C_t Δ_t is all that is kept beside g.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba import njit
from numba.core import types

from ._plugs import call_loss, call_potential
from ._types import (
    cube,
    indices,
    loop,
    matrix,
    numbers,
    plug,
    real,
    rows_type,
    scalars,
    table,
    vector,
)
from .potentials import multiplier
from .rows import add, dot, feature, row, square

W_MAX = 1e150  # its square, and its product with any feature, stay finite


@njit(cache=True)
def tick(S, r, power):
    """Start a round: time moves on by its size r and f_t is given the weight ω_t = r t^power."""
    S.t[0, 0] += r
    omega = r * S.t[0, 0] ** power
    S.weight[0, 0] += omega
    return omega


@njit(cache=True)
def line_8(S, q, j, s, g_x, k_xx, a):
    """‖g‖² and α after g -= s k(x, ·), for kernel q and column j."""
    S.g_norm_sq[q, j] = max(S.g_norm_sq[q, j] + s * (s * k_xx - 2.0 * g_x), 0.0)
    S.alpha[q, j] += a * abs(s) * sqrt(k_xx)


@loop(
    lambda data: types.void(
        rows_type(data), table, indices, numbers, plug, numbers, plug,
        real, real, real, real, matrix, matrix, scalars, matrix,
    )
)  # fmt: skip
def learn_primal(X, Y, order, r, grad, theta, potential, a, b, power, bias, g, u, S, P):
    """Play rounds with g as a vector a column; the last entry belongs to the constant `bias`."""
    d = g.shape[1] - 1
    period = max(d, 1024)
    for k in range(len(order)):
        i = order[k]
        cols, vals = row(X, i)
        x_sq = square(vals) + bias * bias
        t = S.t[0, 0]
        omega = tick(S, r[k], power)
        for j in range(g.shape[0]):
            c = multiplier(call_potential(potential, S.g_norm_sq[0, j], S.alpha[0, j], t, b))
            g_x = dot(g[j], cols, vals) + g[j, d] * bias
            P[k, j] = c * g_x  # lines 4-6
            S.c_sum[0, j] += omega * c
            s = r[k] * call_loss(grad, Y[i, j], P[k, j], theta[j])  # line 7
            if s != 0.0:
                add(g[j], -s, cols, vals)  # line 8
                add(u[j], -s * S.c_sum[0, j], cols, vals)
                g[j, d] -= s * bias
                u[j, d] -= s * S.c_sum[0, j] * bias
                line_8(S, 0, j, s, g_x, x_sq, a)
            if t // period != S.t[0, 0] // period:  # drift of ‖g‖² ends here
                S.g_norm_sq[0, j] = np.dot(g[j], g[j])


@loop(
    lambda data: types.void(
        cube, cube, matrix, table, indices, numbers, plug, numbers, plug,
        real, real, real, scalars, matrix, matrix, cube,
    )
)  # fmt: skip
def learn_dual(G, K, k_xx, Y, order, r, grad, theta, potential, a, b, power, S, P, coef, u):
    """Play a block of rounds. G[q] holds g(x) of the support so far, K[q] the block's own values.

    The rounds' coefficients -s_t go to `coef`, their share of u to `u`; who stores them does not
    matter here. All kernels q learn from one s_t, taken at the sum of their predictions.
    """
    for k in range(len(order)):
        i = order[k]
        t = S.t[0, 0]
        omega = tick(S, r[k], power)
        for j in range(P.shape[1]):
            p = 0.0
            for q in range(len(G)):
                c = multiplier(call_potential(potential, S.g_norm_sq[q, j], S.alpha[q, j], t, b))
                p += c * G[q, j, k]  # lines 4-6
                S.c_sum[q, j] += omega * c
            P[k, j] = p
            s = r[k] * call_loss(grad, Y[i, j], p, theta[j])  # line 7
            coef[k, j] = -s
            if s != 0.0:
                for q in range(len(G)):
                    u[q, k, j] = -s * S.c_sum[q, j]
                    line_8(S, q, j, s, G[q, j, k], k_xx[q, k], a)
                    for later in range(k + 1, len(order)):  # line 8, seen by the rest of the block
                        G[q, j, later] -= s * K[q, k, later]


@njit(cache=True)
def coordinate_weight(theta, G, m, potential, a, b, L, t):
    """w_i: line 4 of Algorithm 3 for one coordinate, measured in units of m."""
    h = theta / m
    w = multiplier(call_potential(potential, h * h, a * (L + G / m), t, b)) * h / m
    return max(-W_MAX, min(W_MAX, w))


@loop(
    lambda data: types.void(
        rows_type(data), table, indices, numbers, plug, numbers, plug,
        real, real, real, real, real, vector, matrix, matrix, matrix, matrix, matrix, scalars,
        matrix,
    )
)  # fmt: skip
def learn_coordinates(
    X, Y, order, r, grad, loss_theta, potential, a, b, L, power, bias,
    m, theta, G, w, w_sum, seen, S, P,
):  # fmt: skip
    """Play rounds with one scalar learner a coordinate (Appendix A); the last one is the bias.

    `w` holds the current weights; a weight moves only when its feature is seen, so its share of the
    average, Σ ω_t w_t, is brought up to date then: `seen` is Σ ω_t at that time.
    """
    d = w.shape[1] - 1
    for k in range(len(order)):
        i = order[k]
        cols, vals = row(X, i)
        t, weight = S.t[0, 0], S.weight[0, 0]
        for n in range(len(cols) + 1):
            f, x = feature(cols, vals, n, d, bias)
            if abs(x) > m[f]:  # a new largest magnitude changes the unit before it is used
                m[f] = abs(x)
                for j in range(len(w)):
                    w_sum[j, f] += w[j, f] * (weight - seen[j, f])
                    seen[j, f] = weight
                    w[j, f] = coordinate_weight(theta[j, f], G[j, f], m[f], potential, a, b, L, t)
        tick(S, r[k], power)
        for j in range(len(w)):
            P[k, j] = dot(w[j], cols, vals) + w[j, d] * bias
            s = r[k] * call_loss(grad, Y[i, j], P[k, j], loss_theta[j])
            if s != 0.0:
                for n in range(len(cols) + 1):
                    f, x = feature(cols, vals, n, d, bias)
                    if x != 0.0:
                        theta[j, f] -= s * x
                        G[j, f] += abs(s * x)
                        w_sum[j, f] += w[j, f] * (S.weight[0, 0] - seen[j, f])
                        seen[j, f] = S.weight[0, 0]
                        w[j, f] = coordinate_weight(
                            theta[j, f], G[j, f], m[f], potential, a, b, L, S.t[0, 0]
                        )


@loop(lambda data: real(table, table, indices, numbers, plug, numbers))
def total_loss(P, Y, order, r, value, theta):
    """Σ over rounds of r ℓ(y, p), averaged over the columns."""
    total = 0.0
    for k in range(len(order)):
        for j in range(P.shape[1]):
            total += r[k] * call_loss(value, Y[order[k], j], P[k, j], theta[j])
    return total / P.shape[1]
