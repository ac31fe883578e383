"""Rounds on rows whose kernel values are all known, block by block.

A matrix of values has one line per row that is learned, and one column per row; those that are learned
come first.

The kernels of a sum are a few chains: in each, values of the first kernel are in memory, and those of
the next are made from them by products or by fourth powers, in registers, where they are used at once.
"""

from __future__ import annotations

from math import frexp, ldexp
from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from .cache import helper, plain
from .exp import LEAST, fourth_power
from .loops import Desk, changes_in_time, desk, play
from .types import (
    ALONE,
    CONSTANT,
    PRODUCTS,
    Array,
    BlockValues,
    block_values,
    cube,
    gram_type,
    indices,
    loop,
    matrix,
    plugs,
    real,
    rounds,
    scalars,
    vector,
)

FEW, MANY = 16, 32  # rounds that are played together with one output, and with several


@helper(inline="always")
def _plain(x):
    """x without its last bits, which depend on how rows are sorted and many passes would enlarge."""
    fraction, power = frexp(x)
    return ldexp(round(fraction * 2.0**24), power - 24)


@plain(forceinline=True, fastmath={"contract"})
def _plus(total, a, p, b, q, c, r, d, s):
    """total + ap + bq + cr + ds, from left to right."""
    return (((total + a * p) + b * q) + c * r) + d * s


@plain(fastmath={"contract"})
def add_four(v, w, y, z, a, b, c, d, g):
    """g += av + bw + cy + dz."""
    for x in range(len(g)):
        g[x] = _plus(g[x], a, v[x], b, w[x], c, y[x], d, z[x])


@plain(fastmath={"contract"})
def _add_products(v, w, y, z, a, b, c, d, g, g_2, g_3):
    """The same for values and their squares and cubes."""
    for x in range(len(g)):
        p, q, r, s = v[x], w[x], y[x], z[x]
        g[x] = _plus(g[x], a, p, b, q, c, r, d, s)
        p_2, q_2, r_2, s_2 = p * p, q * q, r * r, s * s
        g_2[x] = _plus(g_2[x], a, p_2, b, q_2, c, r_2, d, s_2)
        g_3[x] = _plus(g_3[x], a, p * p_2, b, q * q_2, c, r * r_2, d, s * s_2)


@plain(fastmath={"contract"})
def _add_powers(v, w, y, z, a, b, c, d, g, g_4, g_16, g_64):
    """The same for values and their fourth, 16th and 64th powers."""
    least = g.dtype.type(LEAST)
    for x in range(len(g)):
        p, q, r, s = v[x], w[x], y[x], z[x]
        g[x] = _plus(g[x], a, p, b, q, c, r, d, s)
        p, q = fourth_power(p, least), fourth_power(q, least)
        r, s = fourth_power(r, least), fourth_power(s, least)
        g_4[x] = _plus(g_4[x], a, p, b, q, c, r, d, s)
        p, q = fourth_power(p, least), fourth_power(q, least)
        r, s = fourth_power(r, least), fourth_power(s, least)
        g_16[x] = _plus(g_16[x], a, p, b, q, c, r, d, s)
        p, q = fourth_power(p, least), fourth_power(q, least)
        r, s = fourth_power(r, least), fourth_power(s, least)
        g_64[x] = _plus(g_64[x], a, p, b, q, c, r, d, s)


@plain
def _add_rounds(values, rows, coef, j, g, spare):
    """Line 8 at every row, for four rounds: g[q, j] += Σ coef[k] k_q(rows[k], ·).

    Chains that are shorter than the longest of their kind write to `spare` what they do not have.
    """
    a, b, c, d = coef
    for chain in range(len(values.chains)):
        q, count, number, kind = values.chains[chain]
        if kind == CONSTANT:
            at, total = g[q, j], ((a + b) + c) + d
            for x in range(len(at)):
                at[x] += total
            continue
        M = values.matrices[number]
        v, w, y, z = M[rows[0]], M[rows[1]], M[rows[2]], M[rows[3]]
        third = g[q + 2, j] if count > 2 else spare[0]
        if kind == ALONE:
            add_four(v, w, y, z, a, b, c, d, g[q, j])
        elif kind == PRODUCTS:
            _add_products(v, w, y, z, a, b, c, d, g[q, j], g[q + 1, j], third)
        else:
            fourth = g[q + 3, j] if count > 3 else spare[1]
            _add_powers(v, w, y, z, a, b, c, d, g[q, j], g[q + 1, j], third, fourth)


@plain
def _spread(values, rows, moved, coef, g, used, spare):
    """Line 8 at every row, for a block of rounds: g[q, j] += Σ coef[k, j] k_q(rows[k], ·).

    Rounds with a gradient are taken four at a time; the last of `coef` is zero and fills up.
    """
    four, kind = used[-4:], g.dtype.type
    for j in range(g.shape[1]):
        count = 0
        for k in range(moved):
            used[count] = k
            count += coef[k, j] != 0.0
        while count % 4 != 0:
            used[count] = len(coef) - 1
            count += 1
        for i in range(0, count, 4):
            k, h, m, n = used[i], used[i + 1], used[i + 2], used[i + 3]
            four[0], four[1], four[2], four[3] = rows[k], rows[h], rows[m], rows[n]
            each = kind(coef[k, j]), kind(coef[h, j]), kind(coef[m, j]), kind(coef[n, j])
            _add_rounds(values, four, each, j, g, spare)


@plain
def _gather(M, rows, V):
    """V[k, x] = M[rows[k], rows[x]] for x from k on."""
    for k in range(len(rows)):
        line, v, later = M[rows[k]], V[k, k:], rows[k:]
        for x in range(len(later)):
            v[x] = line[later[x]]


@plain(fastmath={"contract"})
def _next_values(v, first, kind, out):
    """From values of a kernel of a chain to those of the next."""
    if kind == PRODUCTS:
        for x in range(len(out)):
            out[x] = v[x] * first[x]
    else:
        for x in range(len(out)):
            out[x] = fourth_power(v[x], LEAST)


@plain
def _fill(block, flat, values, rows, g):
    """Set g of these rows, their own kernel values and k(x, x), of a whole sum.

    `flat` has the kernel values of the block with one line per kernel.
    """
    at, K, k_xx = block
    for chain in range(len(values.chains)):
        first, count, number, kind = values.chains[chain]
        if kind == CONSTANT:
            for x in range(flat.shape[1]):
                flat[first, x] = 1.0
        else:
            _gather(values.matrices[number], rows, K[first])
        for q in range(first + 1, first + count):
            _next_values(flat[q - 1], flat[first], kind, flat[q])
    for q in range(len(g)):
        for k in range(len(rows)):
            k_xx[q, k] = K[q, k, k]
        for j in range(g.shape[1]):
            every, some = g[q, j], at[q, j]
            for k in range(len(rows)):
                some[k] = every[rows[k]]


def _state(data: Any) -> Any:
    return types.Array(from_dtype(np.dtype(data)), 3, "C")


def _lines(data: Any) -> Any:
    return types.Array(from_dtype(np.dtype(data)), 2, "C")


class Workspace(NamedTuple):
    """What `learn_gram` works with; the content does not matter but for a last line of zeros."""

    block: BlockValues
    new: Array  # coefficients of a block's rounds, of shape (rounds, outputs), and a last line of zeros
    share: Array  # and their share of u, of shape (kernels, rounds, outputs)
    rows: Array  # of a block, and a last one that is never learned from
    used: Array  # rounds with a gradient, and at the end four rows
    flat: Array  # the kernel values of a block, with one line per kernel
    spare: Array  # lines for kernels that a chain does not have
    four: Array  # coefficients of all kernels at four rows
    desk: Desk

    @classmethod
    def of(cls, g: Array) -> Workspace:
        """For g of shape (kernels, outputs, rows)."""
        Q, J, n = g.shape
        B = FEW if J == 1 else MANY
        K = np.zeros((Q, B, B))
        return cls(
            BlockValues(np.empty((Q, J, B)), K, np.empty((Q, B))),
            np.zeros((B + 1, J)),
            np.empty((Q, B, J)),
            np.zeros(B + 1, np.uintp),
            np.empty(B + 8, np.uintp),
            K.reshape(Q, B * B),
            np.zeros((2, n), g.dtype),
            np.zeros((Q, 4), g.dtype),
            Desk.of(Q, J, B),
        )


def _workspace(data: Any) -> types.NamedTuple:
    numbers = types.Array(types.uintp, 1, "C")
    lines = _lines(data)
    fields = block_values, matrix, cube, numbers, numbers, matrix, lines, lines, desk
    return types.NamedTuple(fields, Workspace)


@plain(forceinline=True, fastmath={"contract"})
def _polynomial(v, f):
    return v * (f[0] + v * (f[1] + v * f[2]))


@plain(fastmath={"contract"})
def _add_polynomials(v, w, y, z, a, b, c, d, out):
    """out += a₀v + a₁v² + a₂v³ + the same of b and w, and so on."""
    for x in range(len(out)):
        near = _polynomial(v[x], a) + _polynomial(w[x], b)
        out[x] += near + (_polynomial(y[x], c) + _polynomial(z[x], d))


@plain(forceinline=True, fastmath={"contract"})
def _fourth_powers(v, least, f):
    v_4 = fourth_power(v, least)
    v_16 = fourth_power(v_4, least)
    return f[0] * v + f[1] * v_4 + f[2] * v_16 + f[3] * fourth_power(v_16, least)


@plain(fastmath={"contract"})
def _add_fourth_powers(v, w, y, z, a, b, c, d, out):
    """out += a₀v + a₁v⁴ + a₂v¹⁶ + a₃v⁶⁴ + the same of b and w, and so on."""
    least = out.dtype.type(LEAST)
    for x in range(len(out)):
        near = _fourth_powers(v[x], least, a) + _fourth_powers(w[x], least, b)
        out[x] += near + (_fourth_powers(y[x], least, c) + _fourth_powers(z[x], least, d))


@plain
def _up_to_four(f, q, count, k):
    """The coefficients of up to four kernels from q on, for one of four rows; zeros for no kernel."""
    zero = f.dtype.type(0.0)
    second = f[q + 1, k] if count > 1 else zero
    third = f[q + 2, k] if count > 2 else zero
    return f[q, k], second, third, f[q + 3, k] if count > 3 else zero


@plain
def _add_four_rows(values, rows, f, first, out):
    """out[x] += Σ_q Σ_k f[q, k] k_q(rows[k], first + x), for four rows."""
    last = first + len(out)
    for chain in range(len(values.chains)):
        q, count, number, kind = values.chains[chain]
        a, b = _up_to_four(f, q, count, 0), _up_to_four(f, q, count, 1)
        c, d = _up_to_four(f, q, count, 2), _up_to_four(f, q, count, 3)
        if kind == CONSTANT:
            total = ((a[0] + b[0]) + c[0]) + d[0]
            for x in range(len(out)):
                out[x] += total
            continue
        M = values.matrices[number]
        v, w = M[rows[0], first:last], M[rows[1], first:last]
        y, z = M[rows[2], first:last], M[rows[3], first:last]
        if kind == ALONE:
            add_four(v, w, y, z, a[0], b[0], c[0], d[0], out)
        elif kind == PRODUCTS:
            _add_polynomials(v, w, y, z, a, b, c, d, out)
        else:
            _add_fourth_powers(v, w, y, z, a, b, c, d, out)


@plain
def _mean(c, total, coef, u):
    """A coefficient of f̄, with C_T in c; or of f, with its multiplier in c and no weights in all."""
    return (c * coef - u) / total if total > 0.0 else c * coef


@plain
def _largest(c, total, coef, u):
    """The size of the largest coefficient; 1 where all are zero."""
    most = 0.0
    for n in range(len(coef)):
        for q in range(len(c)):
            for j in range(coef.shape[1]):
                size = abs(_mean(c[q, j], total, coef[n, j], u[n, q, j]))
                most = size if size > most else most
    return most if most > 0.0 else 1.0


@plain
def _expand(values, c, total, coef, u, first, f, rows, out):
    """out[j, x] = f_j(first + x) divided by what is returned; f and rows are for four rows each."""
    kind, size = out.dtype.type, _largest(c, total, coef, u)
    for j in range(len(out)):
        count = 0
        for n in range(len(coef)):
            some = False
            for q in range(len(c)):
                f[q, count] = kind(_mean(c[q, j], total, coef[n, j], u[n, q, j]) / size)
                some |= f[q, count] != 0.0
            rows[count] = n
            count += some
            if count == 4:
                _add_four_rows(values, rows, f, first, out[j])
                count = 0
        if count > 0:
            for q in range(len(f)):
                for k in range(count, 4):
                    f[q, k] = 0.0
            _add_four_rows(values, rows, f, first, out[j])
    return size


@loop(lambda data: real(gram_type(data), matrix, real, matrix, cube, types.int64, _lines(data)))
def expand_gram(values, c, total, coef, u, first, out):
    """out[j, x] += f_j(first + x) divided by what is returned, from g = Σ coef k and u = Σ C Δ.

    f̄ is (C_T g - u) / Σ ω, with C_T in `c` and Σ ω in `total`. Its coefficients may be larger than
    float32 can be, hence the divisor. Four rows are taken at a time; rows without a coefficient cost
    next to nothing.
    """
    f, rows = np.zeros((len(c), 4), out.dtype), np.zeros(4, np.uintp)
    return _expand(values, c, total, coef, u, first, f, rows, out)


@loop(
    lambda data: types.void(
        gram_type(data),
        rounds,
        indices,
        plugs,
        scalars,
        _state(data),
        matrix,
        cube,
        matrix,
        _workspace(data),
        indices,
        types.int64,
        _state(data),
        vector,
    ),
    fastmath={"contract"},
)
def learn_gram(values, rounds, ends, rule, S, g, coef, u, P, space, marks, at, scores, sizes):
    """Play passes on rows whose kernel values are all known; `ends` tells where each one ends.

    g[q, j] is that of kernel q and output j, at every row. It is kept up to date block by block, so
    that rounds without a gradient cost next to nothing. After as many passes as `marks` say, f̄ at
    the columns from `at` on is put into `scores`, divided by a number that goes to `sizes`.
    """
    Q, J, n = g.shape
    block, new, share, rows, used, flat, spare, four, work = space
    timed = changes_in_time(rule, work)
    size = len(rows) - 1
    start, mark = 0, 0
    for number in range(len(ends)):
        end = ends[number]
        for first in range(start, end, size):
            m = min(size, end - first)
            for k in range(m):
                rows[k] = rounds.order[first + k]
            _fill(block, flat, values, rows[:m], g)
            play(block, m, rounds, first, rule, timed, S, new, share, P, work)
            moved = 0
            for k in range(m):
                i, some = rows[k], False
                for j in range(J):
                    some |= new[k, j] != 0.0
                    if new[k, j] != 0.0:
                        coef[i, j] += new[k, j]
                        for q in range(Q):
                            u[i, q, j] += share[q, k, j]
                    new[moved, j] = new[k, j]
                rows[moved] = i
                moved += some
            _spread(values, rows, moved, new, g, used, spare)
        for q in range(Q):  # drift of ‖g‖² ends here: it is Σ coef g
            for j in range(J):
                total = 0.0
                for x in range(n):
                    total += coef[x, j] * g[q, j, x]
                S.g_norm_sq[q, j] = _plain(0.0 if total < 0.0 else total)
        start = end
        if mark < len(marks) and marks[mark] == number + 1:
            sizes[mark] = _expand(
                values, S.c_sum, S.weight[0, 0], coef, u, at, four, used[-4:], scores[mark]
            )
            mark += 1
