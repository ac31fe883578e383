"""The compiled loops: one per representation of g, without checks.

All predict with f_t = f_0 + c_t g_{t-1}. P comes in with f_0(x_t), zero for most, and goes out with
f_t(x_t). `Rounds` says which rows are played, `Plugs` by what rule. The line numbers are those of
Algorithm 3.

The average needs no second pass: with C_t = Σ_{i≤t} ω_i c_i and Δ_t = -s_t k(x_t, ·),
Σ_t ω_t c_t g_{t-1} = C_T g_T - Σ_t C_t Δ_t, so u = Σ_t C_t Δ_t is all that is kept beside g.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
from numba.core import types

from ..potentials import C_MAX, LOG_MAX
from .cache import helper, jit, plain
from .exp import prompt_exp
from .plugs import call_comparison, call_loss, call_potential, call_potentials
from .prefetch import ask_for_next, ask_for_rest, ask_for_rows
from .rows import add, dot, longest, row, square
from .types import (
    Array,
    block_values,
    cube,
    indices,
    loop,
    matrix,
    numbers,
    plug,
    plugs,
    real,
    rounds,
    rows_type,
    scalars,
    table,
)

LANES = 8  # numbers that are computed at once
W_MAX = 1e150  # its square, and its product with any feature, stay finite


@plain
def tick(S, r, power):
    """Start a round: time moves on by its size r and f_t is given the weight ω_t = r t^power."""
    S.t[0, 0] += r
    omega = r if power == 0.0 else r * S.t[0, 0]  # a general power would cost as much as a loss
    S.weight[0, 0] += omega
    return omega


@plain
def line_8(S, q, j, s, g_x, k_xx, a):
    """‖g‖² and α after g -= s k(x, ·), for kernel q and column j."""
    g_norm_sq = S.g_norm_sq[q, j] + s * (s * k_xx - 2.0 * g_x)
    S.g_norm_sq[q, j] = 0.0 if g_norm_sq < 0.0 else g_norm_sq  # `max` would be compiled on its own
    S.alpha[q, j] += a * abs(s) * sqrt(k_xx)


@jit
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


@plain(forceinline=True)
def gradients(rounds, rule, k, P, z, s):
    """Line 7 of round k: s_j = r ∂ℓ(y_j, p_j) per output, beside the others' scores if coupled."""
    i, r = rounds.order[k], rounds.r[k]
    if rule.coupled:
        call_comparison(rule.coupled, P[k], z)
    for j in range(len(s)):
        p = z[j] if rule.coupled else P[k, j]
        s[j] = r * call_loss(rule.grad, rounds.Y[i, j], p, rule.theta[j])


@loop(
    lambda data: types.void(rows_type(data), rounds, plugs, scalars, matrix, matrix, real, matrix)
)
def learn_primal(X, rounds, rule, S, g, u, bias, P):
    """Play rounds with g as one vector per output; the last entry belongs to the constant `bias`."""
    order, r, b = rounds.order, rounds.r, rule.b
    d = g.shape[1] - 1
    period = max(d, 1024)
    g_x, z, s = np.empty(len(g)), np.empty(len(g)), np.empty(len(g))
    for k in range(len(order)):
        i = order[k]
        cols, vals = row(X, i)
        x_sq = square(vals) + bias * bias
        t = S.t[0, 0]
        omega = tick(S, r[k], rule.power)
        for j in range(len(g)):
            c = call_potential(rule.potential, S.g_norm_sq[0, j], S.alpha[0, j], t, b[0])
            g_x[j] = dot(g[j], cols, vals) + g[j, d] * bias
            P[k, j] += c * g_x[j]  # lines 4-6
            S.c_sum[0, j] += omega * c
        gradients(rounds, rule, k, P, z, s)
        for j in range(len(g)):
            if s[j] != 0.0:
                add(g[j], -s[j], cols, vals)  # line 8
                add(u[j], -s[j] * S.c_sum[0, j], cols, vals)
                g[j, d] -= s[j] * bias
                u[j, d] -= s[j] * S.c_sum[0, j] * bias
                line_8(S, 0, j, s[j], g_x[j], x_sq, rule.a)
            if t // period != S.t[0, 0] // period:  # drift of ‖g‖² ends here
                S.g_norm_sq[0, j] = np.dot(g[j], g[j])


class Desk(NamedTuple):
    """What `play` works with; the content does not matter.

    Scalars of an output and all kernels stand side by side, so that they are computed at once.
    """

    scalars: Array  # ‖g‖², α, Σ ω c and c, of shape (4, outputs, kernels)
    p: Array  # predictions of the rest of a block, of shape (outputs, rounds)
    outputs: Array  # four numbers of every output

    @classmethod
    def of(cls, kernels: int, outputs: int, rounds: int) -> Desk:
        """For blocks of so many rounds."""
        return cls(
            np.zeros((4, outputs, kernels)), np.zeros((outputs, rounds)), np.zeros((4, outputs))
        )


desk = types.NamedTuple((cube, matrix, matrix), Desk)
NORM, ALPHA, C_SUM, C = 0, 1, 2, 3


@plain
def changes_in_time(rule, work):
    """Whether c changes from round to round where g does not."""
    norm, alpha, c = work.scalars[NORM, 0], work.scalars[ALPHA, 0], work.scalars[C, 0]
    for q in range(len(c)):
        norm[q] = alpha[q] = 1.0
    call_potentials(rule.potential, norm, alpha, 1.0, rule.b, c)
    first = c[0]
    call_potentials(rule.potential, norm, alpha, 2.0, rule.b, c)
    return first != c[0]


@plain(fastmath={"contract"})
def _add_scaled(p, c, g):
    """p += c g."""
    for k in range(len(p)):
        p[k] += c * g[k]


@plain
def _take_up(S, scalars):
    """Put the scalars of each output side by side."""
    for j in range(scalars.shape[1]):
        for q in range(scalars.shape[2]):
            scalars[NORM, j, q] = S.g_norm_sq[q, j]
            scalars[ALPHA, j, q] = S.alpha[q, j]
            scalars[C_SUM, j, q] = S.c_sum[q, j]


@plain
def _put_back(scalars, S):
    for j in range(scalars.shape[1]):
        for q in range(scalars.shape[2]):
            S.g_norm_sq[q, j] = scalars[NORM, j, q]
            S.alpha[q, j] = scalars[ALPHA, j, q]
            S.c_sum[q, j] = scalars[C_SUM, j, q]


@plain(forceinline=True, fastmath={"contract"})
def _lines_5_and_6(c, g, j, k):
    """What output j predicts in round k of the block."""
    p = 0.0
    for q in range(len(c)):
        p += c[q] * g[q, j, k]
    return p


@plain
def _lines_5_and_6_later(c, g, j, k, m, p):
    """What output j predicts in the rounds of the block after round k, as long as it does not move."""
    for n in range(k + 1, m):
        p[j, n] = 0.0
    for q in range(len(g)):
        _add_scaled(p[j, k + 1 : m], c[q], g[q, j, k + 1 : m])


@plain(forceinline=True)
def _settle_sums(c_sum, c, passed):
    """Give c its share of Σ ω c, for all rounds since it was set."""
    for q in range(len(c)):
        c_sum[q] += passed * c[q]


@plain(forceinline=True)
def _line_8_of_sum(norm, alpha, c_sum, g, k_xx, j, k, s, a, u):
    """‖g‖² and α of all kernels after g -= s k(x, ·), and the share of u."""
    size = a * abs(s)
    for q in range(len(norm)):
        u[q, k, j] = -s * c_sum[q]
        g_norm_sq = norm[q] + s * (s * k_xx[q, k] - 2.0 * g[q, j, k])
        norm[q] = 0.0 if g_norm_sq < 0.0 else g_norm_sq
        alpha[q] += size * sqrt(k_xx[q, k])


@plain
def _move(values, j, k, m, s):
    """Line 8 of round k for output j, at the rest of the block."""
    g, K, _ = values
    first = (k + 1) // LANES * LANES  # whole vectors: g of rounds before is not needed any more
    for q in range(len(g)):
        _add_scaled(g[q, j, first:m], -s, K[q, k, first:m])


@plain
def play(values, m, rounds, first, rule, timed, S, coef, u, P, work):
    """Play m rounds from the first on, given g of their rows before and their kernel values.

    `u` is set where a round has a gradient. While an output has no gradient, neither its g nor its c
    changes: its predictions for the rest of the block are known, and its share of Σ ω c is added when
    it moves next.
    """
    g, k_xx, J, p = values.g, values.k_xx, P.shape[1], work.p
    norm, alpha = work.scalars[NORM], work.scalars[ALPHA]
    c_sum, c = work.scalars[C_SUM], work.scalars[C]
    z, s, since, known = work.outputs[0], work.outputs[1], work.outputs[2], work.outputs[3]
    _take_up(S, work.scalars)
    for j in range(J):
        since[j], known[j] = S.weight[0, 0], 0.0  # rounds up to which predictions are known
    for k in range(m):
        n = first + k
        for j in range(J):
            if known[j] <= k:
                call_potentials(
                    rule.potential, norm[j], alpha[j], S.t[0, 0], rule.b, c[j]
                )  # line 4
                p[j, k] = _lines_5_and_6(c[j], g, j, k)
            P[n, j] += p[j, k]
        tick(S, rounds.r[n], rule.power)
        gradients(rounds, rule, n, P, z, s)
        for j in range(J):
            coef[k, j] = -s[j]
            if timed or s[j] != 0.0:
                _settle_sums(c_sum[j], c[j], S.weight[0, 0] - since[j])
                since[j], known[j] = S.weight[0, 0], 0.0
            elif known[j] <= k:
                _lines_5_and_6_later(c[j], g, j, k, m, p)
                known[j] = m
            if s[j] != 0.0:
                _line_8_of_sum(norm[j], alpha[j], c_sum[j], g, k_xx, j, k, s[j], rule.a, u)
                _move(values, j, k, m, s[j])
    for j in range(J):
        _settle_sums(c_sum[j], c[j], S.weight[0, 0] - since[j])
    _put_back(work.scalars, S)


@loop(lambda data: types.void(block_values, rounds, plugs, scalars, matrix, cube, matrix, desk))
def learn_dual(values, rounds, rule, S, coef, u, P, work):
    """Play a block of rounds.

    The rounds' coefficients -s_t go to `coef`, their share of u to `u`; who stores them does not
    matter here. All kernels q learn from one s_t, taken at the sum of their predictions, each with
    its own b[q].
    """
    timed = changes_in_time(rule, work)
    play(values, len(rounds.r), rounds, 0, rule, timed, S, coef, u, P, work)


# What a coordinate remembers, in one cache line: its weight w, θ = Σ -s x, G = Σ |s x|, its unit m
# and 1/m, its share Σ ω w of the average, and Σ ω at the time that share was brought up to date. The
# last field is used by one coordinate alone, the constant: Σ r k, with k the entries of a row.
W, THETA, G_SUM, M, INVERSE_M, W_SUM, SEEN, ENTRIES, FIELDS = 0, 1, 2, 3, 4, 5, 6, 7, 8

LARGE = 2**13  # coordinates that do not fit into a core's own cache

# How b_t of a coordinate grows: not at all, with √(2α), with √(2α/k), or with √G in the feature's
# own unit. k is the mean number of entries of a row: so many coordinates move at a time.
FIXED, ANYTIME, VOWPAL, SHARED = 0, 1, 2, 3
GROWTHS = {
    "pistol": FIXED,
    "pistol_anytime": ANYTIME,
    "pistol_vowpal": VOWPAL,
    "pistol_shared": SHARED,
}


@helper(inline="always")
def _settle(Z, f, weight):
    """Give the weight of coordinate f so far its share of the average."""
    Z[f, W_SUM] += Z[f, W] * (weight - Z[f, SEEN])
    Z[f, SEEN] = weight


@helper(inline="always")
def _line_4(theta, G, unit, growth, a, b, L):
    """Line 4 of Algorithm 3 for one coordinate, measured in units of m: w = c h / m.

    c is that of the potentials `pistol` or `pistol_anytime`.
    """
    h, inverse = theta * unit, 1.0 / (a * (L + G * unit))
    scale = b * sqrt(2.0 * inverse) if growth in (ANYTIME, SHARED) else b * inverse
    exponent = 0.5 * (h * h) * inverse
    c = scale * prompt_exp(LOG_MAX if exponent > LOG_MAX else exponent)
    c = C_MAX if c > C_MAX else c
    if growth == VOWPAL:
        c *= sqrt(G)
    w = c * h * unit
    w = w if w < W_MAX else W_MAX
    return w if w > -W_MAX else -W_MAX


@helper(inline="always")
def _line_8(Z, f, x, s):
    """Line 8 for coordinate f, with s x in place of s."""
    Z[f, THETA] -= s * x
    Z[f, G_SUM] += abs(s * x)


@plain(forceinline=True, fastmath={"contract"})
def _weigh(theta, G, unit, growth, a, b, L, w, m):
    """Line 4 for m coordinates at once, as SIMD code.

    m is rounded up, so that no coordinate is left for code that takes one at a time.
    """
    for n in range((m + LANES - 1) // LANES * LANES):
        w[n] = _line_4(theta[n], G[n], unit[n], growth, a, b, L)


@plain(fastmath={"contract"})
def set_unit(Z, f, x, weight, growth, a, b, L):
    """Measure coordinate f in units of |x| from now on."""
    Z[f, M] = abs(x)
    Z[f, INVERSE_M] = 1.0 / abs(x)
    if Z[f, THETA] == 0.0:  # it has no weight
        return
    _settle(Z, f, weight)
    Z[f, W] = _line_4(Z[f, THETA], Z[f, G_SUM], Z[f, INVERSE_M], growth, a, b, L)


@plain
def _share(entries, vals, bias, r, t):
    """1/√k, with k the mean number of entries of a row up to this one, the constant included."""
    k = 0 if bias == 0.0 else 1
    for n in range(len(vals)):
        k += vals[n] != 0.0
    entries[ENTRIES] += r * k
    return sqrt(t / entries[ENTRIES]) if entries[ENTRIES] > 0.0 else 1.0


@helper(inline="always")
def _gather(Z, f, theta, G, unit, n):
    """Put what the weight of coordinate f is made of beside that of a row's other coordinates."""
    theta[n], G[n], unit[n] = Z[f, THETA], Z[f, G_SUM], Z[f, INVERSE_M]


@plain(forceinline=True)  # uncontracted: an addition is waited for, a product is not
def _dot_weights(Z, cols, vals, later, bias, weight, growth, a, b, L, lanes, at):
    """⟨w, x⟩ of one output; a feature that is larger than its unit so far has a new unit first.

    No processor could guess which ones are, so there is no jump: their share is left out, and added
    when all have their new weights. Features of the `later` row are asked for on the way.
    """
    d, p, m = np.uintp(len(Z) - 1), 0.0, 0
    if bias > Z[d, M]:
        set_unit(Z, d, bias, weight, growth, a, b, L)
    for n in range(len(cols)):
        ask_for_next(Z, later, n)
        f, x = np.uintp(cols[n]), float(vals[n])
        at[m] = n
        m += abs(x) > Z[f, M]
        p += Z[f, W] * (x if abs(x) <= Z[f, M] else 0.0)
    ask_for_rest(Z, later, len(cols))
    if m > 0:
        p += _dot_larger(Z, cols, vals, at[:m], weight, growth, a, b, L, lanes)
    return p + Z[d, W] * bias


@plain(fastmath={"contract"})
def _dot_larger(Z, cols, vals, at, weight, growth, a, b, L, lanes):
    """The share of those entries of a row that are larger than the units of their features so far.

    A feature that has no weight yet gets none here: `at` keeps the places of the others.
    """
    theta, G, unit, w = lanes[0], lanes[1], lanes[2], lanes[3]
    p, m = 0.0, np.intp(0)  # a plain 0 would have `_weigh` compiled twice
    for k in range(len(at)):
        n = np.uintp(at[k])
        f, size = np.uintp(cols[n]), abs(float(vals[n]))
        Z[f, M], Z[f, INVERSE_M] = size, 1.0 / size
        _settle(Z, f, weight)
        _gather(Z, f, theta, G, unit, m)
        at[m] = n
        m += Z[f, THETA] != 0.0
    _weigh(theta, G, unit, growth, a, b, L, w, m)
    for k in range(m):
        n = np.uintp(at[k])
        Z[np.uintp(cols[n]), W] = w[k]
        p += w[k] * float(vals[n])
    return p


@plain(forceinline=True, fastmath={"contract"})
def _move_weights(Z, cols, vals, later, bias, s, now, growth, a, b, L, lanes):
    """Line 8 of one output, and line 4 of the round in which each feature is seen next.

    Features of the `later` row are asked for here, too: all of them at once would have to wait.
    """
    theta, G, unit, w = lanes[0], lanes[1], lanes[2], lanes[3]
    d, m = np.uintp(len(Z) - 1), len(cols)
    for n in range(m):
        ask_for_next(Z, later, n)
        f = np.uintp(cols[n])
        _settle(Z, f, now)
        _line_8(Z, f, float(vals[n]), s)
        _gather(Z, f, theta, G, unit, n)
    ask_for_rest(Z, later, m)
    _settle(Z, d, now)
    _line_8(Z, d, bias, s)
    _gather(Z, d, theta, G, unit, m)
    _weigh(theta, G, unit, growth, a, b, L, w, m + 1)
    for n in range(m):
        if vals[n] != 0.0:  # a zero is no entry, as in sparse rows
            Z[np.uintp(cols[n]), W] = w[n]
    Z[d, W] = w[m]


@plain(forceinline=True, fastmath={"contract"})
def _round(X, rounds, k, rule, S, state, bias, P, lanes, at, z, s):
    """Round k of `learn_coordinates`."""
    r, growth, a, b, L = rounds.r[k], rule.growth, rule.a, rule.b[0], rule.L
    ask_for_rows(X, rounds, k)
    cols, vals = row(X, rounds.order[k])
    later = cols[:0]
    if (state.shape[1] - 1) * len(state) > LARGE and k + 1 < len(rounds.order):
        later, _ = row(X, rounds.order[k + 1])
    half = len(later) // 2
    weight = S.weight[0, 0]
    tick(S, r, rule.power)
    if growth == SHARED:
        b *= _share(state[0, -1], vals, bias, r, S.t[0, 0])
    for j in range(len(state)):
        P[k, j] += _dot_weights(
            state[j], cols, vals, later[:half], bias, weight, growth, a, b, L, lanes, at
        )
    gradients(rounds, rule, k, P, z, s)
    now = S.weight[0, 0]
    for j in range(len(state)):
        if s[j] != 0.0:
            rest = later[half:]
            _move_weights(state[j], cols, vals, rest, bias, s[j], now, growth, a, b, L, lanes)
        else:
            ask_for_rest(state[j], later, half)


@loop(
    lambda data: types.void(rows_type(data), rounds, plugs, scalars, cube, real, matrix),
    fastmath={"contract"},
)
def learn_coordinates(X, rounds, rule, S, state, bias, P):
    """Play rounds with one scalar learner per coordinate (Appendix A); the last one is the bias.

    A weight moves only when its feature is seen, so its share of the average is brought up to date
    then. The weights of a row's coordinates are computed together.
    """
    room = longest(X, rounds.order) + LANES
    lanes, outputs = np.empty((5, room)), np.empty((2, len(state)))  # few: an event waits for each
    lanes[:] = 1.0
    z, s, at = outputs[0], outputs[1], lanes[4].view(np.int64)
    for k in range(len(rounds.order)):
        _round(X, rounds, k, rule, S, state, bias, P, lanes, at, z, s)


@loop(lambda data: real(table, table, indices, numbers, plug, numbers, types.int64))
def total_loss(P, Y, order, r, value, theta, coupled):
    """Σ over rounds of r ℓ(y, p), averaged over the columns; if coupled, that of the class's own."""
    J, total = P.shape[1], 0.0
    z, own = np.empty(J), coupled != 0 and J > 1
    for k in range(len(order)):
        i = order[k]
        if coupled:
            call_comparison(coupled, P[k], z)
        for j in range(J):
            if not own or Y[i, j] > 0.0:
                p = z[j] if coupled else P[k, j]
                total += r[k] * call_loss(value, Y[i, j], p, theta[j])
    return total if own else total / J
