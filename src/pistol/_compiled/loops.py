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

from .cache import jit, plain
from .lanes import LINE, apart, every, filled_up, lanes, larger, load, store, total, whole
from .plugs import call_comparison, call_loss, call_potential, call_potentials
from .rows import add, dot, row, square
from .types import (
    Array,
    BlockValues,
    block_values,
    cube,
    indices,
    loop,
    matrix,
    numbers,
    plug,
    plugs,
    read_only,
    real,
    rounds,
    rows_type,
    scalars,
    table,
)

LANES = LINE // 8  # numbers of a cache line: vectors begin at multiples of it


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


def block_of(g: Array, K: Array, k_xx: Array) -> BlockValues:
    """A block, from g of shape (kernels, outputs, rows), K and k(x, x), both one per kernel."""
    kernels = filled_up(g.transpose(1, 2, 0)).transpose(2, 0, 1)
    return BlockValues(filled_up(kernels), filled_up(K), filled_up(np.sqrt(k_xx.T)))


class Desk(NamedTuple):
    """What `play` works with; the content does not matter, but for b.

    Numbers of all kernels stand side by side, so that they are computed at once. Kernels whose g stays
    zero fill them up to whole vectors.
    """

    scalars: Array  # ‖g‖², α, Σ ω c and c, of shape (4, outputs, kernels)
    b: Array
    p: Array  # predictions of the rest of a block, of shape (outputs, rounds)
    outputs: Array  # four numbers of every output

    @classmethod
    def of(cls, b: Array, outputs: int, rounds: int) -> Desk:
        """For blocks of so many rounds."""
        numbers = np.full(whole(len(b), b.dtype), b[-1])
        numbers[: len(b)] = b
        scalars = np.ones((4, outputs, len(numbers)))
        p = np.zeros((outputs, whole(rounds, b.dtype)))
        return cls(scalars, read_only(numbers), p, np.zeros((4, outputs)))


desk = types.NamedTuple((cube, numbers, matrix, matrix), Desk)
NORM, ALPHA, C_SUM, C = 0, 1, 2, 3


@plain
def changes_in_time(rule, work):
    """Whether c changes from round to round where g does not."""
    norm, alpha, c = work.scalars[NORM, 0], work.scalars[ALPHA, 0], work.scalars[C, 0]
    for q in range(len(c)):
        norm[q] = alpha[q] = 1.0
    call_potentials(rule.potential, norm, alpha, 1.0, work.b, c)
    first = c[0]
    call_potentials(rule.potential, norm, alpha, 2.0, work.b, c)
    return first != c[0]


@plain
def _take_up(S, scalars):
    """Put the scalars of each output side by side."""
    for j in range(scalars.shape[1]):
        for q in range(len(S.alpha)):
            scalars[NORM, j, q] = S.g_norm_sq[q, j]
            scalars[ALPHA, j, q] = S.alpha[q, j]
            scalars[C_SUM, j, q] = S.c_sum[q, j]


@plain
def _put_back(scalars, S):
    for j in range(scalars.shape[1]):
        for q in range(len(S.alpha)):
            S.g_norm_sq[q, j] = scalars[NORM, j, q]
            S.alpha[q, j] = scalars[ALPHA, j, q]
            S.c_sum[q, j] = scalars[C_SUM, j, q]


@plain(forceinline=True)
def _lines_5_and_6(c, g, at, step):
    """What an output predicts; g of its kernels at a row are `step` apart."""
    sums = load(c, 0) * apart(g, at, step)
    for q in range(lanes(c), len(c), lanes(c)):
        sums = sums + load(c, q) * apart(g, at + q * step, step)
    return total(sums)


@plain
def _lines_5_and_6_later(c, g, j, k, kernels, p):
    """What output j predicts in the rounds of the block after round k, as long as it does not move."""
    for x in range((k + 1) // LANES * LANES, g.shape[2], lanes(p)):  # of earlier ones nobody asks
        at = every(load(p, x), 0.0)
        for q in range(kernels):
            at = at + every(at, c[q]) * load(g[q, j], x)
        store(p, x, at)


@plain(forceinline=True)
def _settle_sums(c_sum, c, passed):
    """Give c its share of Σ ω c, for all rounds since it was set."""
    for q in range(0, len(c), lanes(c)):
        at = load(c, q)
        store(c_sum, q, load(c_sum, q) + every(at, passed) * at)


@plain(forceinline=True)
def _line_8_of_sum(norm, alpha, c_sum, g, at, step, size, s, a, u):
    """‖g‖² and α of all kernels after g -= s k(x, ·), and the share of u."""
    for q in range(0, len(norm), lanes(norm)):
        g_x, root, before = apart(g, at + q * step, step), load(size, q), load(norm, q)
        store(u, q, every(g_x, -s) * load(c_sum, q))
        moved = every(g_x, s) * root * root - every(g_x, 2.0) * g_x
        store(norm, q, larger(every(g_x, 0.0), before + every(g_x, s) * moved))
        store(alpha, q, load(alpha, q) + every(g_x, a * abs(s)) * root)


@plain
def _move(values, j, k, s):
    """Line 8 of round k for output j, at the rest of the block."""
    g, K, _ = values
    for q in range(len(K)):
        at, own = g[q, j], K[q, k]
        for x in range((k + 1) // LANES * LANES, len(at), lanes(at)):
            v = load(own, x)  # g of rounds before is not needed any more
            store(at, x, load(at, x) + every(v, -s) * v)


@plain
def play(values, m, rounds, first, rule, timed, S, coef, u, P, work):
    """Play m rounds from the first on, given g of their rows before and their kernel values.

    `u`, of shape (rounds, outputs, kernels), is set where a round has a gradient. While an output has
    no gradient, neither its g nor its c changes: its predictions for the rest of the block are known,
    and its share of Σ ω c is added when it moves next.
    """
    g, size, J, p = values.g, values.size, P.shape[1], work.p
    flat, line, step = g.reshape(-1), g.shape[2], J * g.shape[2]
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
                    rule.potential, norm[j], alpha[j], S.t[0, 0], work.b, c[j]
                )  # line 4
                p[j, k] = _lines_5_and_6(c[j], flat, j * line + k, step)
            P[n, j] += p[j, k]
        tick(S, rounds.r[n], rule.power)
        gradients(rounds, rule, n, P, z, s)
        for j in range(J):
            coef[k, j] = -s[j]
            if timed or s[j] != 0.0:
                _settle_sums(c_sum[j], c[j], S.weight[0, 0] - since[j])
                since[j], known[j] = S.weight[0, 0], 0.0
            elif known[j] <= k:
                _lines_5_and_6_later(c[j], g, j, k, len(values.K), p[j])
                known[j] = m
            if s[j] != 0.0:
                at = flat, j * line + k, step
                _line_8_of_sum(norm[j], alpha[j], c_sum[j], *at, size[k], s[j], rule.a, u[k, j])
                _move(values, j, k, s[j])
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
