"""Rounds on rows whose kernel values are all known, block by block.

A matrix of values has one line per row and one column per row that is learned; these rows come first.

Values of all kernels of a sum are made from two matrices, for a block of rows at a time, and used at
once.
"""

from __future__ import annotations

from math import frexp, ldexp
from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from .cache import helper, plain
from .exp import LEAST, fourth_power
from .loops import play
from .types import (
    BlockValues,
    cube,
    gram_type,
    indices,
    loop,
    matrix,
    plugs,
    rounds,
    scalars,
)

BLOCK, WIDTH = 32, 1024  # rows and columns whose values are made together


@helper(inline="always")
def _plain(x):
    """x without its last bits, which depend on how rows are sorted and many passes would enlarge."""
    fraction, power = frexp(x)
    return ldexp(round(fraction * 2.0**24), power - 24)


@helper(inline="always")
def _next_kernel(v, width, product, e, steps, q):
    """From values v of kernel q - 1 to those of kernel q, in place.

    They are powers of `product` or, if radial, of the widest kernel's values e. Polynomials come first,
    then radial kernels, each kind in ascending order.
    """
    step = steps[q]
    first = q == 0 or (step < 0 and steps[q - 1] >= 0)
    done = 0 if first else steps[q - 1]
    zero, one, least = v.dtype.type(0.0), v.dtype.type(1.0), v.dtype.type(LEAST)
    if step >= 0:
        if first:
            done = 1 if step > 0 else 0
            for x in range(width):
                v[x] = product[x] if done else one
        for _ in range(step - done):
            for x in range(width):
                v[x] *= product[x]
    else:  # e to the power of 4^(-step - 1)
        if first:
            done = -1
            for x in range(width):
                v[x] = e[x]
        for _ in range(done - step):
            for x in range(width):
                v[x] = fourth_power(v[x], zero, least)


@helper(inline="always")
def _add(g, width, coef, V, used, count):
    """g += Σ coef[k] V[k] over the k in `used`, in this order."""
    whole = count - count % 4
    for i in range(0, whole, 4):
        k, h, m, n = used[i], used[i + 1], used[i + 2], used[i + 3]
        kind = g.dtype.type
        a, b, c, d = kind(coef[k]), kind(coef[h]), kind(coef[m]), kind(coef[n])
        v, w, y, z = V[k], V[h], V[m], V[n]
        for x in range(width):
            total = g[x] + a * v[x]
            total += b * w[x]
            total += c * y[x]
            g[x] = total + d * z[x]
    for i in range(whole, count):
        a, v = g.dtype.type(coef[used[i]]), V[used[i]]
        for x in range(width):
            g[x] += a * v[x]


@helper(inline="always")
def _kernel_values(values, q, rows, m, lo, width, V):
    """From values of kernel q - 1 to those of kernel q: V[k, x] at rows[k] and lo + x."""
    for k in range(m):
        product, e = values.inner[rows[k], lo:], values.widest[rows[k], lo:]
        _next_kernel(V[k], width, product, e, values.steps, q)


@helper(inline="always")
def _spread(values, rows, m, coef, g, V):
    """Line 8 at every row, for a block of rounds: g[q, j] += Σ coef[k, j] k_q(rows[k], ·)."""
    n, used = g.shape[2], np.empty(BLOCK + 1, np.int64)
    for lo in range(0, n, WIDTH):
        width = min(WIDTH, n - lo)
        for q in range(len(values.steps)):
            _kernel_values(values, q, rows, m, lo, width, V)
            for j in range(coef.shape[1]):
                count = 0
                for k in range(m):
                    used[count] = k
                    count += coef[k, j] != 0.0
                _add(g[q, j, lo:], width, coef[:, j], V, used, count)


@helper(inline="always")
def _fill(block, values, rows, m, g):
    """Set g of these rows, their own kernel values and k(x, x), of a whole sum."""
    at, K, k_xx = block
    steps = values.steps
    for k in range(m):
        for later in range(k, m):
            product = float(values.inner[rows[k], rows[later]])
            value, done = 1.0, 0
            for q in range(len(steps)):
                if steps[q] < 0 and done >= 0:  # the first radial kernel
                    value, done = float(values.widest[rows[k], rows[later]]), -1
                while done < steps[q]:
                    value *= product
                    done += 1
                while done > steps[q] and done < 0:
                    value = fourth_power(value, 0.0, LEAST)
                    done -= 1
                K[q, k, later] = value
        for q in range(len(steps)):
            k_xx[q, k] = K[q, k, k]
            for j in range(g.shape[1]):
                at[q, j, k] = g[q, j, rows[k]]


def _state(data: Any) -> Any:
    return types.Array(from_dtype(np.dtype(data)), 3, "C")


@loop(
    lambda data: types.void(
        gram_type(data), rounds, plugs, scalars, _state(data), matrix, cube, matrix
    ),
    fastmath={"contract"},
)
def learn_gram(values, rounds, rule, S, g, coef, u, P):
    """Play rounds on rows whose kernel values are all known.

    g[q, j] is that of kernel q and output j, at every row. It is kept up to date block by block, so
    that rounds without a gradient cost next to nothing.
    """
    n, Q, J = g.shape[2], len(values.steps), P.shape[1]
    block = BlockValues(np.empty((Q, J, BLOCK)), np.empty((Q, BLOCK, BLOCK)), np.empty((Q, BLOCK)))
    new, share, rows = np.empty((BLOCK, J)), np.empty((Q, BLOCK, J)), np.empty(BLOCK, np.int64)
    V = np.empty((BLOCK, min(n, WIDTH)), g.dtype)
    for first in range(0, len(rounds.order), BLOCK):
        m = min(BLOCK, len(rounds.order) - first)
        for k in range(m):
            rows[k] = rounds.order[first + k]
        _fill(block, values, rows, m, g)
        play(block, m, rounds, first, rule, S, new, share, P)
        moved = 0
        for k in range(m):
            i, some = rows[k], False
            for j in range(J):
                some |= new[k, j] != 0.0
                coef[i, j] += new[k, j]
                new[moved, j] = new[k, j]
                for q in range(Q):
                    u[i, q, j] += share[q, k, j]
            rows[moved] = i
            moved += some
        _spread(values, rows, moved, new, g, V)
    for q in range(Q):  # drift of ‖g‖² ends here: it is Σ coef g
        for j in range(J):
            total = 0.0
            for x in range(n):
                total += coef[x, j] * g[q, j, x]
            S.g_norm_sq[q, j] = _plain(0.0 if total < 0.0 else total)


@plain(fastmath={"contract", "reassoc"})
def _sums(c, width, V, m, out):
    """out[k] += Σ_x c[x] V[k, x], for k up to m."""
    whole = m - m % 4
    for k in range(0, whole, 4):
        v, w, y, z = V[k], V[k + 1], V[k + 2], V[k + 3]
        a = b = d = e = c.dtype.type(0.0)
        for x in range(width):
            a += c[x] * v[x]
            b += c[x] * w[x]
            d += c[x] * y[x]
            e += c[x] * z[x]
        out[k] += a
        out[k + 1] += b
        out[k + 2] += d
        out[k + 3] += e
    for k in range(whole, m):
        v, a = V[k], c.dtype.type(0.0)
        for x in range(width):
            a += c[x] * v[x]
        out[k] += a


@loop(lambda data: types.void(gram_type(data), _state(data), indices, matrix))
def expand_gram(values, coef, at, out):
    """out[j, k] = Σ_q Σ_n coef[q, j, n] k_q(n, at[k])."""
    n, Q = coef.shape[2], len(values.steps)
    V, rows = np.empty((BLOCK, min(n, WIDTH)), coef.dtype), np.empty(BLOCK, np.int64)
    for first in range(0, len(at), BLOCK):
        m = min(BLOCK, len(at) - first)
        for k in range(m):
            rows[k] = at[first + k]
        for lo in range(0, n, WIDTH):
            width = min(WIDTH, n - lo)
            for q in range(Q):
                _kernel_values(values, q, rows, m, lo, width, V)
                for j in range(len(out)):
                    _sums(coef[q, j, lo:], width, V, m, out[j, first:])
