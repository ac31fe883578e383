"""The compiled loops: one per representation of g, without checks.

All predict with f_t = c_t g_{t-1}. `order` names the row played in each round and `r` its size
(1, or the fraction that is left of a sample weight). P receives the predictions f_t(x_t). The line
numbers are those of Algorithm 3.

The average needs no second pass: with C_t = Σ_{i≤t} ω_i c_i and Δ_t = -s_t k(x_t, ·),
Σ_t ω_t c_t g_{t-1} = C_T g_T - Σ_t C_t Δ_t, so u = Σ_t C_t Δ_t is all that is kept beside g.
"""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
from numba import njit
from numba.core import types

from ..potentials import pistol, pistol_anytime
from .plugs import call_loss, call_potential
from .rows import add, dot, row, square
from .types import (
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
)

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


@njit(cache=True)
def compare(p, z):
    """z_j = p_j - log Σ_{k≠j} e^{p_k}: softmax(p)_j is the logistic function of z_j.

    Every sum is divided by its largest term: none overflows, none is zero. A score alone stays as it
    is, as if beside a zero.
    """
    if len(p) == 1:
        z[0] = p[0]
        return
    best = 0
    for j in range(len(p)):
        if p[j] > p[best]:
            best = j
    second, total = p[1] if best == 0 else p[0], 0.0
    for j in range(len(p)):
        z[j] = exp(p[j] - p[best])
        total += z[j]
        if j != best:
            second = max(second, p[j])
    rest = 0.0
    for j in range(len(p)):
        if j != best:
            rest += exp(p[j] - second)
            z[j] = (p[j] - p[best]) - log(total - z[j])
    z[best] = (p[best] - second) - log(rest)


@loop(
    lambda data: types.void(
        rows_type(data), table, indices, numbers, plug, numbers, types.int64, plug,
        real, real, real, real, matrix, matrix, scalars, matrix,
    )
)  # fmt: skip
def learn_primal(X, Y, order, r, grad, theta, coupled, potential, a, b, power, bias, g, u, S, P):
    """Play rounds with g as a vector a column; the last entry belongs to the constant `bias`."""
    d = g.shape[1] - 1
    period = max(d, 1024)
    g_x, z = np.empty((2, len(g)))
    for k in range(len(order)):
        i = order[k]
        cols, vals = row(X, i)
        x_sq = square(vals) + bias * bias
        t = S.t[0, 0]
        omega = tick(S, r[k], power)
        for j in range(g.shape[0]):
            c = call_potential(potential, S.g_norm_sq[0, j], S.alpha[0, j], t, b)
            g_x[j] = dot(g[j], cols, vals) + g[j, d] * bias
            P[k, j] = c * g_x[j]  # lines 4-6
            S.c_sum[0, j] += omega * c
        if coupled:
            compare(P[k], z)
        for j in range(g.shape[0]):
            p = z[j] if coupled else P[k, j]
            s = r[k] * call_loss(grad, Y[i, j], p, theta[j])  # line 7
            if s != 0.0:
                add(g[j], -s, cols, vals)  # line 8
                add(u[j], -s * S.c_sum[0, j], cols, vals)
                g[j, d] -= s * bias
                u[j, d] -= s * S.c_sum[0, j] * bias
                line_8(S, 0, j, s, g_x[j], x_sq, a)
            if t // period != S.t[0, 0] // period:  # drift of ‖g‖² ends here
                S.g_norm_sq[0, j] = np.dot(g[j], g[j])


@loop(
    lambda data: types.void(
        cube, cube, matrix, table, indices, numbers, plug, numbers, types.int64, plug,
        real, numbers, real, scalars, matrix, matrix, cube,
    )
)  # fmt: skip
def learn_dual(
    G, K, k_xx, Y, order, r, grad, theta, coupled, potential, a, b, power, S, P, coef, u
):
    """Play a block of rounds. G[q] holds g(x) of the support so far, K[q] the block's own values.

    The rounds' coefficients -s_t go to `coef`, their share of u to `u`; who stores them does not
    matter here. All kernels q learn from one s_t, taken at the sum of their predictions, each with
    its own b[q].
    """
    z = np.empty(P.shape[1])
    for k in range(len(order)):
        i = order[k]
        t = S.t[0, 0]
        omega = tick(S, r[k], power)
        for j in range(P.shape[1]):
            P[k, j] = 0.0
            for q in range(len(G)):
                c = call_potential(potential, S.g_norm_sq[q, j], S.alpha[q, j], t, b[q])
                P[k, j] += c * G[q, j, k]  # lines 4-6
                S.c_sum[q, j] += omega * c
        if coupled:
            compare(P[k], z)
        for j in range(P.shape[1]):
            p = z[j] if coupled else P[k, j]
            s = r[k] * call_loss(grad, Y[i, j], p, theta[j])  # line 7
            coef[k, j] = -s
            if s != 0.0:
                for q in range(len(G)):
                    u[q, k, j] = -s * S.c_sum[q, j]
                    line_8(S, q, j, s, G[q, j, k], k_xx[q, k], a)
                    for later in range(k + 1, len(order)):  # line 8, seen by the rest of the block
                        G[q, j, later] -= s * K[q, k, later]


# What a coordinate remembers, in one cache line: its weight w, θ = Σ -s x, G = Σ |s x|, its unit m
# and 1/m, its share Σ ω w of the average, and Σ ω at the time that share was brought up to date.
W, THETA, G_SUM, M, INVERSE_M, W_SUM, SEEN, FIELDS = 0, 1, 2, 3, 4, 5, 6, 8

# How b_t of a coordinate grows: not at all, with √(2α), or with √G in the feature's own unit.
FIXED, ANYTIME, VOWPAL = 0, 1, 2
GROWTHS = {"pistol": FIXED, "pistol_anytime": ANYTIME, "pistol_vowpal": VOWPAL}


@njit(inline="always")
def _note(Z, f, weight, a, L, h_sq, alpha, n):
    """Note h² and α of coordinate f, in units of m; its weight so far gets its share."""
    Z[f, W_SUM] += Z[f, W] * (weight - Z[f, SEEN])
    Z[f, SEEN] = weight
    unit = Z[f, INVERSE_M]
    h = Z[f, THETA] * unit
    h_sq[n] = h * h
    alpha[n] = a * (L + Z[f, G_SUM] * unit)


@njit(inline="always")
def _set_weight(Z, f, c):
    """Line 4 of Algorithm 3 for coordinate f, measured in units of m: w = c h / m."""
    unit = Z[f, INVERSE_M]
    Z[f, W] = max(-W_MAX, min(W_MAX, c * (Z[f, THETA] * unit) * unit))


@njit(inline="always")
def _line_8(Z, f, x, s):
    """Line 8 for coordinate f, with s x in place of s."""
    Z[f, THETA] -= s * x
    Z[f, G_SUM] += abs(s * x)


@njit(cache=True, fastmath={"contract"})
def _multipliers(growth, h_sq, alpha, b, c, m):
    """c of m coordinates at once, as SIMD code; all but the √G of VOWPAL."""
    if growth == ANYTIME:
        for n in range(m):
            c[n] = pistol_anytime(h_sq[n], alpha[n], 0.0, b)
    else:
        for n in range(m):
            c[n] = pistol(h_sq[n], alpha[n], 0.0, b)


@njit(cache=True)
def set_unit(Z, f, x, weight, growth, a, b, L):
    """Measure coordinate f in units of |x| from now on."""
    Z[f, M] = abs(x)
    Z[f, INVERSE_M] = 1.0 / abs(x)
    h_sq, alpha, c = np.empty(1), np.empty(1), np.empty(1)
    _note(Z, f, weight, a, L, h_sq, alpha, 0)
    _multipliers(growth, h_sq, alpha, b, c, 1)
    if growth == VOWPAL:
        c[0] *= sqrt(Z[f, G_SUM])
    _set_weight(Z, f, c[0])


@loop(
    lambda data: types.void(
        rows_type(data), table, indices, numbers, plug, numbers, types.int64, types.int64,
        real, real, real, real, real, cube, scalars, matrix,
    ),
    fastmath={"contract"},
)  # fmt: skip
def learn_coordinates(
    X, Y, order, r, grad, theta, coupled, growth, a, b, L, power, bias, state, S, P
):
    """Play rounds with one scalar learner a coordinate (Appendix A); the last one is the bias.

    A weight moves only when its feature is seen, so its share of the average is brought up to date
    then. The multipliers of a row's coordinates are computed together.
    """
    d = state.shape[1] - 1
    h_sq, alpha, c = np.empty(d + 1), np.empty(d + 1), np.empty(d + 1)
    z = np.empty(len(state))
    for k in range(len(order)):
        i = order[k]
        cols, vals = row(X, i)
        m, weight = len(cols), S.weight[0, 0]
        tick(S, r[k], power)
        for j in range(len(state)):
            if bias > state[j, d, M]:
                set_unit(state[j], d, bias, weight, growth, a, b, L)
            p = state[j, d, W] * bias
            for n in range(m):
                f, x = cols[n], float(vals[n])
                if abs(x) > state[j, f, M]:  # a new unit, before it is used
                    set_unit(state[j], f, x, weight, growth, a, b, L)
                p += state[j, f, W] * x
            P[k, j] = p
        if coupled:
            compare(P[k], z)
        for j in range(len(state)):
            Z, p = state[j], z[j] if coupled else P[k, j]
            s = r[k] * call_loss(grad, Y[i, j], p, theta[j])
            if s != 0.0:
                now = S.weight[0, 0]
                for n in range(m):
                    _line_8(Z, cols[n], float(vals[n]), s)
                    _note(Z, cols[n], now, a, L, h_sq, alpha, n)
                _line_8(Z, d, bias, s)
                _note(Z, d, now, a, L, h_sq, alpha, m)
                _multipliers(growth, h_sq, alpha, b, c, m + 1)
                if growth == VOWPAL:
                    for n in range(m):
                        c[n] *= sqrt(Z[cols[n], G_SUM])
                    c[m] *= sqrt(Z[d, G_SUM])
                for n in range(m):
                    _set_weight(Z, cols[n], c[n])
                _set_weight(Z, d, c[m])


@loop(lambda data: real(table, table, indices, numbers, plug, numbers, types.int64))
def total_loss(P, Y, order, r, value, theta, coupled):
    """Σ over rounds of r ℓ(y, p), averaged over the columns; if coupled, that of the class's own."""
    J, total = P.shape[1], 0.0
    z, own = np.empty(J), coupled and J > 1
    for k in range(len(order)):
        i = order[k]
        if coupled:
            compare(P[k], z)
        for j in range(J):
            if not own or Y[i, j] > 0.0:
                p = z[j] if coupled else P[k, j]
                total += r[k] * call_loss(value, Y[i, j], p, theta[j])
    return total if own else total / J
