"""The compiled loop with one scalar learner per coordinate (Appendix A), without checks.

`Rounds` says which rows are played, `Plugs` by what rule. The line numbers are those of Algorithm 3.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba.core import types

from ..potentials import C_MAX, LOG_MAX
from .cache import helper, plain
from .exp import prompt_exp
from .loops import LANES, gradients, tick
from .prefetch import ask_for_next, ask_for_rest, ask_for_rows
from .rows import longest, row
from .types import cube, loop, matrix, plugs, real, rounds, rows_type, scalars

W_MAX = 1e150  # its square, and its product with any feature, stay finite

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
def count_entries(vals, bias):
    """The entries of a row, the constant included."""
    k = 0 if bias == 0.0 else 1
    for n in range(len(vals)):
        k += vals[n] != 0.0
    return k


@plain
def share(entries, k, r, t):
    """1/√k, for the mean number k of entries of a row up to this one, which has k."""
    entries[ENTRIES] += r * k
    return sqrt(t / entries[ENTRIES]) if entries[ENTRIES] > 0.0 else 1.0


@helper(inline="always")
def _gather(Z, f, theta, G, unit, n):
    """Put what the weight of coordinate f is made of beside that of a row's other coordinates."""
    theta[n], G[n], unit[n] = Z[f, THETA], Z[f, G_SUM], Z[f, INVERSE_M]


@plain(forceinline=True)  # uncontracted: an addition is waited for, a product is not
def dot_weights(Z, cols, vals, later, constant, bias, weight, growth, a, b, L, lanes, at):
    """⟨w, x⟩ of one output; a feature that is larger than its unit so far has a new unit first.

    No processor could guess which ones are, so there is no jump: their share is left out, and added
    when all have their new weights. Features of the `later` row are asked for on the way. Coordinates
    from `constant` on, one or none, are the constant.
    """
    p, m = 0.0, 0
    for d in range(np.uintp(constant), np.uintp(len(Z))):
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
    for d in range(np.uintp(constant), np.uintp(len(Z))):
        p += Z[d, W] * bias
    return p


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
def move_weights(Z, cols, vals, later, constant, bias, s, now, growth, a, b, L, lanes):
    """Line 8 of one output, and line 4 of the round in which each feature is seen next.

    Features of the `later` row are asked for here, too: all of them at once would have to wait.
    """
    theta, G, unit, w = lanes[0], lanes[1], lanes[2], lanes[3]
    m = len(cols)
    for n in range(m):
        ask_for_next(Z, later, n)
        f = np.uintp(cols[n])
        _settle(Z, f, now)
        _line_8(Z, f, float(vals[n]), s)
        _gather(Z, f, theta, G, unit, n)
    ask_for_rest(Z, later, m)
    for d in range(np.uintp(constant), np.uintp(len(Z))):
        _settle(Z, d, now)
        _line_8(Z, d, bias, s)
        _gather(Z, d, theta, G, unit, m)
    _weigh(theta, G, unit, growth, a, b, L, w, m + 1)
    for n in range(m):
        if vals[n] != 0.0:  # a zero is no entry, as in sparse rows
            Z[np.uintp(cols[n]), W] = w[n]
    for d in range(np.uintp(constant), np.uintp(len(Z))):
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
    half, constant = len(later) // 2, state.shape[1] - 1
    weight = S.weight[0, 0]
    tick(S, r, rule.power)
    if growth == SHARED:
        b *= share(state[0, -1], count_entries(vals, bias), r, S.t[0, 0])
    for j in range(len(state)):
        P[k, j] += dot_weights(
            state[j], cols, vals, later[:half], constant, bias, weight, growth, a, b, L, lanes, at
        )
    gradients(rounds, rule, k, P, z, s)
    now = S.weight[0, 0]
    for j in range(len(state)):
        if s[j] != 0.0:
            rest = later[half:]
            move_weights(
                state[j], cols, vals, rest, constant, bias, s[j], now, growth, a, b, L, lanes
            )
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
