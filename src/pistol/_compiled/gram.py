"""Rounds on rows whose kernel values are all known, block by block.

A matrix of values has one line per row and one column per row that is learned; these rows come first.

Values of all kernels of a sum are made from two matrices, for a block of rows at a time, and used at
once.
"""

from __future__ import annotations

from math import frexp, ldexp
from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from .cache import helper, plain
from .exp import LEAST, fourth_power
from .loops import play
from .types import (
    Array,
    BlockValues,
    block_values,
    cube,
    gram_type,
    indices,
    loop,
    matrix,
    plugs,
    rounds,
    scalars,
)

FEW, MANY = 16, 32  # rounds that are played together with one output, and with several
WIDTH = 256  # columns whose values are made together: those of a block stay in a core's own cache


@helper(inline="always")
def _plain(x):
    """x without its last bits, which depend on how rows are sorted and many passes would enlarge."""
    fraction, power = frexp(x)
    return ldexp(round(fraction * 2.0**24), power - 24)


@plain(fastmath={"contract"})
def _next_power(v, product, step, before):
    """From values of the kernel before to those of this one, in place; see `GramValues.steps`."""
    zero, least = v.dtype.type(0.0), v.dtype.type(LEAST)
    if step > 0 and before == 0:
        for x in range(len(v)):
            v[x] = product[x]
    for _ in range(step - max(before, 1)):
        for x in range(len(v)):
            v[x] *= product[x]
    for _ in range(min(before, -1) - step):
        for x in range(len(v)):
            v[x] = fourth_power(v[x], zero, least)


@plain
def _copy(M, rows, lo, V):
    """V[k, x] = M[rows[k], lo + x]."""
    for k in range(len(rows)):
        v, line = V[k], M[rows[k], lo : lo + V.shape[1]]
        for x in range(len(line)):
            v[x] = line[x]


@plain
def _kernel_values(values, q, rows, lo, room, flat):
    """From values of kernel q - 1 to those of kernel q: room[0, k, x] at rows[k] and lo + x.

    Polynomials come first, then radial kernels, each kind in ascending order. A constant has none.
    """
    step, before = values.steps[q], values.steps[q - 1] if q > 0 else 0
    if step > 0 and before == 0:
        _copy(values.inner, rows, lo, room[1])
    elif step < 0 and before >= 0:
        _copy(values.widest, rows, lo, room[0])
    _next_power(flat[0, : len(rows) * room.shape[2]], flat[1], step, before)


@plain(fastmath={"contract"})
def _add(g, coef, j, V, used):
    """g += Σ coef[k, j] V[k] over the k in `used`, in this order; they are a multiple of four."""
    kind = g.dtype.type
    for i in range(0, len(used), 4):
        k, h, m, n = used[i], used[i + 1], used[i + 2], used[i + 3]
        a, b, c, d = kind(coef[k, j]), kind(coef[h, j]), kind(coef[m, j]), kind(coef[n, j])
        v, w, y, z = V[k], V[h], V[m], V[n]
        for x in range(len(g)):
            total = g[x] + a * v[x]
            total += b * w[x]
            total += c * y[x]
            g[x] = total + d * z[x]


@plain
def _spread(values, rows, coef, g, room, flat, used):
    """Line 8 at every row, for a block of rounds: g[q, j] += Σ coef[k, j] k_q(rows[k], ·)."""
    width, n, nothing = room.shape[2], g.shape[2], room.shape[1] - 1
    for j in range(g.shape[1]):
        count = 0
        for k in range(len(rows)):
            used[j, count] = k
            count += coef[k, j] != 0.0
        while count % 4 != 0:
            used[j, count] = nothing
            count += 1
        used[j, nothing] = count
    for lo in range(0, n if len(rows) else 0, width):
        for q in range(len(values.steps)):
            _kernel_values(values, q, rows, lo, room, flat)
            for j in range(g.shape[1]):
                at = g[q, j, lo : lo + width]
                if values.steps[q] != 0:
                    _add(at, coef, j, room[0], used[j, : used[j, nothing]])
                else:
                    total = g.dtype.type(0.0)
                    for k in range(len(rows)):
                        total += g.dtype.type(coef[k, j])
                    for x in range(len(at)):
                        at[x] += total


@plain
def _gather(M, rows, V):
    """V[k, x] = M[rows[k], rows[x]] for x from k on."""
    for k in range(len(rows)):
        line, v, later = M[rows[k]], V[k, k:], rows[k:]
        for x in range(len(later)):
            v[x] = line[later[x]]


@plain
def _fill(block, values, rows, g, own, flat):
    """Set g of these rows, their own kernel values and k(x, x), of a whole sum."""
    at, K, k_xx = block
    for q in range(len(values.steps)):
        step, before = values.steps[q], values.steps[q - 1] if q > 0 else 0
        if step > 0 and before == 0:
            _gather(values.inner, rows, own[1])
        elif step < 0 and before >= 0:
            _gather(values.widest, rows, own[0])
        _next_power(flat[0], flat[1], step, before)
        for k in range(len(rows)):
            pairs, v = K[q, k], own[0, k]
            for x in range(len(v)):
                pairs[x] = v[x] if step else 1.0
            k_xx[q, k] = pairs[k]
        for j in range(g.shape[1]):
            every, some = g[q, j], at[q, j]
            for k in range(len(rows)):
                some[k] = every[rows[k]]


def _state(data: Any) -> Any:
    return types.Array(from_dtype(np.dtype(data)), 3, "C")


def _flat(data: Any) -> Any:
    return types.Array(from_dtype(np.dtype(data)), 2, "C")


class Workspace(NamedTuple):
    """What `learn_gram` works with; the content does not matter."""

    block: BlockValues
    new: Array  # coefficients of a block's rounds, of shape (rounds, outputs), and a last one of zero
    share: Array  # and their share of u, of shape (kernels, rounds, outputs)
    rows: Array  # of a block
    used: Array  # rounds with a gradient, per output, and at the end how many
    own: Array  # values among a block's rows: those of a kernel, and inner products
    own_flat: Array  # the same memory
    room: Array  # the same at other rows
    flat: Array

    @classmethod
    def of(cls, g: Array) -> Workspace:
        """For g of shape (kernels, outputs, rows)."""
        Q, J, n = g.shape
        B = FEW if J == 1 else MANY
        own, room = np.zeros((2, B, B)), np.zeros((2, B + 1, max(1, min(n, WIDTH))), g.dtype)
        return cls(
            BlockValues(np.empty((Q, J, B)), np.empty((Q, B, B)), np.empty((Q, B))),
            np.zeros((B + 1, J)),
            np.empty((Q, B, J)),
            np.empty(B, np.uintp),
            np.empty((J, B + 1), np.int64),
            own,
            own.reshape(2, -1),
            room,
            room.reshape(2, -1),
        )


def _workspace(data: Any) -> types.NamedTuple:
    rows, used = types.Array(types.uintp, 1, "C"), types.Array(types.int64, 2, "C")
    own, room = (cube, matrix), (_state(data), _flat(data))
    return types.NamedTuple((block_values, matrix, cube, rows, used, *own, *room), Workspace)


@loop(
    lambda data: types.void(
        gram_type(data),
        rounds,
        plugs,
        scalars,
        _state(data),
        matrix,
        cube,
        matrix,
        _workspace(data),
    ),
    fastmath={"contract"},
)
def learn_gram(values, rounds, rule, S, g, coef, u, P, space):
    """Play rounds on rows whose kernel values are all known.

    g[q, j] is that of kernel q and output j, at every row. It is kept up to date block by block, so
    that rounds without a gradient cost next to nothing.
    """
    n, Q, J = g.shape[2], len(values.steps), P.shape[1]
    block, new, share, rows, used, own, own_flat, room, flat = space
    for first in range(0, len(rounds.order), len(rows)):
        m = min(len(rows), len(rounds.order) - first)
        for k in range(m):
            rows[k] = rounds.order[first + k]
        _fill(block, values, rows[:m], g, own, own_flat)
        play(block, m, rounds, first, rule, S, new, share, P)
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
        _spread(values, rows[:moved], new, g, room, flat, used)
    for q in range(Q):  # drift of ‖g‖² ends here: it is Σ coef g
        for j in range(J):
            total = 0.0
            for x in range(n):
                total += coef[x, j] * g[q, j, x]
            S.g_norm_sq[q, j] = _plain(0.0 if total < 0.0 else total)


@plain(fastmath={"contract", "reassoc"})
def _sums(c, V, constant, out):
    """out[k] += Σ_x c[x] V[k, x], or Σ_x c[x] for a constant."""
    total = c.dtype.type(0.0)
    if constant:
        for x in range(len(c)):
            total += c[x]
        for k in range(len(out)):
            out[k] += total
        return
    whole = len(out) - len(out) % 4
    for k in range(0, whole, 4):
        v, w, y, z = V[k], V[k + 1], V[k + 2], V[k + 3]
        a = b = d = e = c.dtype.type(0.0)
        for x in range(len(c)):
            a += c[x] * v[x]
            b += c[x] * w[x]
            d += c[x] * y[x]
            e += c[x] * z[x]
        out[k] += a
        out[k + 1] += b
        out[k + 2] += d
        out[k + 3] += e
    for k in range(whole, len(out)):
        v, a = V[k], c.dtype.type(0.0)
        for x in range(len(c)):
            a += c[x] * v[x]
        out[k] += a


@loop(
    lambda data: types.void(
        gram_type(data), _state(data), indices, matrix, _state(data), _flat(data)
    )
)
def expand_gram(values, coef, at, out, room, flat):
    """out[j, k] = Σ_q Σ_n coef[q, j, n] k_q(n, at[k]); what comes in with `room` does not matter."""
    size, n, width = room.shape[1] - 1, coef.shape[2], room.shape[2]
    for first in range(0, len(at), size):
        rows = at[first : first + size]
        for lo in range(0, n, width):
            for q in range(len(values.steps)):
                _kernel_values(values, q, rows, lo, room, flat)
                for j in range(len(out)):
                    c, to = coef[q, j, lo : lo + width], out[j, first : first + len(rows)]
                    _sums(c, room[0], values.steps[q] == 0, to)
