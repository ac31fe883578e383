"""Rounds on rows whose kernel values are all known, block by block.

Values of all kernels of a sum are made from two matrices, for a block of rows at a time, and used at
once.
"""

from __future__ import annotations

from math import frexp, ldexp
from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from .cache import helper
from .exp import LEAST, fourth_power
from .loops import play
from .types import (
    BlockValues,
    Rounds,
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


@helper
def _plain(x):
    """x without its last bits, which depend on how rows are sorted and many passes would enlarge."""
    fraction, power = frexp(x)
    return ldexp(round(fraction * 2.0**24), power - 24)


@helper
def _next_kernel(v, product, e, steps, q):
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
            for x in range(len(v)):
                v[x] = product[x] if done else one
        for _ in range(step - done):
            for x in range(len(v)):
                v[x] *= product[x]
    else:  # e to the power of 4^(-step - 1)
        if first:
            done = -1
            for x in range(len(v)):
                v[x] = e[x]
        for _ in range(done - step):
            for x in range(len(v)):
                v[x] = fourth_power(v[x], zero, least)


@helper(fastmath={"contract"})
def _add(g, coef, V, used):
    """g += Σ coef[k] V[k] over the k in `used`, in this order."""
    whole = len(used) - len(used) % 4
    for i in range(0, whole, 4):
        k, h, m, n = used[i], used[i + 1], used[i + 2], used[i + 3]
        a, b, c, d = coef[k], coef[h], coef[m], coef[n]
        v, w, y, z = V[k], V[h], V[m], V[n]
        for x in range(len(g)):
            total = g[x] + a * v[x]
            total += b * w[x]
            total += c * y[x]
            g[x] = total + d * z[x]
    for i in range(whole, len(used)):
        a, v = coef[used[i]], V[used[i]]
        for x in range(len(g)):
            g[x] += a * v[x]


@helper
def _kernel_values(values, q, rows, lo, V):
    """From values of kernel q - 1 to those of kernel q: V[k, x] at rows[k] and lo + x."""
    for k in range(len(V)):
        _next_kernel(V[k], values.inner[rows[k], lo:], values.widest[rows[k], lo:], values.steps, q)


@helper
def _spread(values, rows, coef, g, V, used):
    """Line 8 at every row, for a block of rounds: g[q, j] += Σ coef[j, k] k_q(rows[k], ·)."""
    n = len(values.inner)
    for lo in range(0, n, WIDTH):
        width = min(WIDTH, n - lo)
        part = V[: len(rows) * width].reshape(len(rows), width)
        for q in range(len(values.steps)):
            _kernel_values(values, q, rows, lo, part)
            for j in range(len(coef)):
                m = 0
                for k in range(len(rows)):
                    used[m] = k
                    m += coef[j, k] != 0.0
                _add(g[q, j, lo : lo + width], coef[j], part, used[:m])


@helper
def _block_values(values, rows, g):
    """g of these rows, their own kernel values and k(x, x), of a whole sum."""
    m, Q, J = len(rows), len(values.steps), g.shape[1]
    at, K, k_xx = np.empty((Q, J, m)), np.empty((Q, m, m)), np.empty((Q, m))
    product, e = np.empty(m), np.empty(m)
    for k in range(m):
        for later in range(k, m):
            product[later] = values.inner[rows[k], rows[later]]
            e[later] = values.widest[rows[k], rows[later]]
        for q in range(Q):
            v = K[q, k, k:]
            if q > 0:
                v[:] = K[q - 1, k, k:]
            _next_kernel(v, product[k:], e[k:], values.steps, q)
            k_xx[q, k] = v[0]
            for j in range(J):
                at[q, j, k] = g[q, j, rows[k]]
    return BlockValues(at, K, k_xx)


def _state(data: Any) -> Any:
    return types.Array(from_dtype(np.dtype(data)), 3, "C")


@loop(
    lambda data: types.void(
        gram_type(data), rounds, plugs, scalars, _state(data), matrix, cube, matrix
    )
)
def learn_gram(values, rounds, rule, S, g, coef, u, P):
    """Play rounds on rows whose kernel values are all known.

    g[q, j] is that of kernel q and output j, at every row. It is kept up to date block by block, so
    that rounds without a gradient cost next to nothing.
    """
    Y, order, r = rounds
    n, Q, J = len(values.inner), len(values.steps), P.shape[1]
    V, used = np.empty(BLOCK * min(n, WIDTH), g.dtype), np.empty(BLOCK + 1, np.int64)
    for lo in range(0, len(order), BLOCK):
        rows = order[lo : lo + BLOCK]
        m = len(rows)
        new, share = np.empty((m, J)), np.zeros((Q, m, J))
        block = _block_values(values, rows, g)
        part = Rounds(Y, rows, r[lo : lo + BLOCK])
        play(block, part, rule, S, new, share, P[lo : lo + BLOCK])
        moved = 0
        steps, at = np.empty((J, m), g.dtype), np.empty(m, np.int64)
        for k in range(m):
            some = False
            for j in range(J):
                steps[j, moved] = new[k, j]
                some |= new[k, j] != 0.0
                coef[rows[k], j] += new[k, j]
                for q in range(Q):
                    u[rows[k], q, j] += share[q, k, j]
            at[moved] = rows[k]
            moved += some
        _spread(values, at[:moved], steps, g, V, used)
    for q in range(Q):  # drift of ‖g‖² ends here: it is Σ coef g
        for j in range(J):
            total = 0.0
            for x in range(n):
                total += coef[x, j] * g[q, j, x]
            S.g_norm_sq[q, j] = _plain(0.0 if total < 0.0 else total)


@helper(fastmath={"contract", "reassoc"})
def _sums(c, V, out):
    """out[k] += Σ_x c[x] V[k, x]."""
    whole = len(V) - len(V) % 4
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
    for k in range(whole, len(V)):
        v, a = V[k], c.dtype.type(0.0)
        for x in range(len(c)):
            a += c[x] * v[x]
        out[k] += a


@loop(lambda data: types.void(gram_type(data), _state(data), indices, matrix))
def expand_gram(values, coef, at, out):
    """out[j, k] = Σ_q Σ_n coef[q, j, n] k_q(n, at[k])."""
    n, Q = len(values.inner), len(values.steps)
    V = np.empty(BLOCK * min(n, WIDTH), values.inner.dtype)
    out[:] = 0.0
    for first in range(0, len(at), BLOCK):
        rows = at[first : first + BLOCK]
        for lo in range(0, n, WIDTH):
            width = min(WIDTH, n - lo)
            part = V[: len(rows) * width].reshape(len(rows), width)
            for q in range(Q):
                _kernel_values(values, q, rows, lo, part)
                for j in range(len(out)):
                    _sums(coef[q, j, lo : lo + width], part, out[j, first : first + BLOCK])
