"""Slopes of a sum of kernels: what the gradients of its predictions are made of.

The gradient of k(s, a) with respect to a is P s, or P (s - a) if the kernel is radial. P is the slope.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from ..kernels import Kernel, bounded_poly, exponential, gaussian_value
from .cache import plain
from .exp import fast_exp
from .panels import product
from .rows import add_four
from .sums import FOUR, GAUSSIAN, POLYNOMIAL, Groups, fourth_powers
from .types import Array, indices, loop, read_only

APART = 1e-3  # of the length of the longest support row; shorter distances are mostly rounding


def slope_coefficients(kernels: Sequence[Kernel], groups: Groups, coef: Array) -> Array:
    """Coefficients of shape (support rows, outputs, lines of values), times what slopes have in front.

    `coef` is of shape (kernels, outputs, support rows). The slope of a degree is made of the power
    below it, so it takes the place before its own; that of a constant is zero.
    """
    out = np.zeros((coef.shape[2], coef.shape[1], FOUR * len(groups.kinds)), coef.dtype)
    for q, kernel in enumerate(kernels):
        (_, gamma, degree, _), at = kernel.key, groups.slots[q]
        if kernel.map is bounded_poly:
            at, front = at - 1, degree
        else:
            front = gamma if kernel.map is exponential else 2.0 * gamma
        if front:
            out[:, :, at] = front * coef[q].T
    return read_only(out)


@plain(fastmath={"contract"})
def _poly_slopes(k, size, shrunk, v, w, y):
    """1, p and p², with p = size · shrunk · k, all times size · shrunk."""
    for i in range(len(v)):
        t = size * shrunk[i]
        p = t * k[i]
        v[i] = t
        w[i] = t * p
        y[i] = t * (p * p)


@plain(fastmath={"contract"})
def _gaussian_slopes(k, s, a_sq, gamma, v):
    """Values of a Gaussian: its slope is 2γ times as large."""
    zero = k.dtype.type(0.0)
    for i in range(len(v)):
        v[i] = gaussian_value(k[i], s, a_sq[i], gamma, zero)


@plain(fastmath={"contract"})
def _exponential_values(k, s, a_sq, gamma, least, v, inverse):
    """exp(-γ ‖s - a‖), and 1 / ‖s - a‖; zero where that is mostly rounding."""
    zero, one = k.dtype.type(0.0), k.dtype.type(1.0)
    for i in range(len(v)):
        square = s + a_sq[i] - (k[i] + k[i])
        distance = np.sqrt(square if square > least else one)
        v[i] = fast_exp(-gamma * distance)
        inverse[i] = one / distance if square > least else zero


@plain(fastmath={"contract"})
def _times(v, w, y, z, factor):
    """All four lines, multiplied by the factors."""
    for i in range(len(v)):
        v[i] *= factor[i]
        w[i] *= factor[i]
        y[i] *= factor[i]
        z[i] *= factor[i]


@plain
def _make_lines(k, s, a_sq, kinds, theta, least, lines, shrunk, inverse):
    """The slopes of all kernels between one support row and all rows, but for numbers in front."""
    for group in range(len(kinds)):
        gamma, most, at = theta[group, 0], theta[group, 2], FOUR * group
        v, w, y, z = lines[at], lines[at + 1], lines[at + 2], lines[at + 3]
        if kinds[group] == POLYNOMIAL:
            size = gamma * (np.sqrt(most / s) if s > most else k.dtype.type(1.0))
            _poly_slopes(k, size, shrunk[group], v, w, y)
        elif kinds[group] == GAUSSIAN:
            _gaussian_slopes(k, s, a_sq, gamma, v)
            fourth_powers(v, w, y, z)
        else:
            _exponential_values(k, s, a_sq, gamma, least, v, inverse)
            fourth_powers(v, w, y, z)
            _times(v, w, y, z, inverse)


@plain(fastmath={"contract"})
def _add_own(h, own):
    """What radial kernels take from the row itself."""
    for i in range(len(h)):
        own[i] += h[i]


@plain(fastmath={"contract"})
def _add_part(part, k, short, h, own):
    """What a polynomial adds; where it shortens a row, the length of the row has no effect."""
    for i in range(len(h)):
        h[i] += part[i]
        own[i] += part[i] * k[i] * short[i]


@plain
def _add_row(k, n, kinds, coef, lines, exact, short, part, order, ends, at, H, own):
    """What support row n counts in the gradients of all outputs that it has a coefficient for."""
    for j in range(len(at)):
        if at[j] == ends[j] or order[at[j]] != n:
            continue
        c, h = coef[j], H[at[j]]
        at[j] += 1
        _clear(h)
        for group in range(len(kinds)):
            if kinds[group] != POLYNOMIAL:
                _add_group(FOUR * group, c, lines, h)
        _add_own(h, own[j])
        for group in range(len(kinds)):
            if kinds[group] == POLYNOMIAL and exact:
                _clear(part)
                _add_group(FOUR * group, c, lines, part)
                _add_part(part, k, short[group], h, own[j])
            elif kinds[group] == POLYNOMIAL:
                _add_group(FOUR * group, c, lines, h)


@plain
def _clear(h):
    for i in range(len(h)):
        h[i] = 0.0


@plain
def _add_group(at, c, lines, h):
    """h += the lines of a group, each times its coefficient."""
    v, w, y, z = lines[at], lines[at + 1], lines[at + 2], lines[at + 3]
    add_four(v, w, y, z, c[at], c[at + 1], c[at + 2], c[at + 3], h)


def _numbers(data: Any) -> Any:
    return types.Array(from_dtype(np.dtype(data)), 1, "C", readonly=True)


def _matrix(data: Any) -> Any:
    return types.Array(from_dtype(np.dtype(data)), 2, "C")


def _cube(data: Any) -> Any:
    return types.Array(from_dtype(np.dtype(data)), 3, "C")


def _signature(data: Any) -> Any:
    real, numbers = from_dtype(np.dtype(data)), _numbers(data)
    theta, coef = (types.Array(real, n, "C", readonly=True) for n in (2, 3))
    rule = numbers, numbers, indices, theta, coef, types.boolean
    return types.void(_matrix(data), *rule, indices, indices, _matrix(data), _matrix(data))


@loop(_signature)
def add_slopes(K, s_sq, a_sq, kinds, theta, coef, exact, order, starts, H, own):
    """H[x, i] = Σ_q coef[n, j, q] P_q(s_n, a_i) with n = order[x], for x from starts[j] to the next.

    K has ⟨s_n, a_i⟩, maybe for more rows. The gradient of f_j at a_i is the sum of H[x, i] s_n over
    these x without own[j, i] a_i. At rows that polynomials shorten it is as if only their slope were
    smaller, unless it is to be exact.
    """
    m, one, largest = len(a_sq), K.dtype.type(1.0), K.dtype.type(0.0)
    lines, rest = np.zeros((FOUR * len(kinds), m), K.dtype), np.empty((2, m), K.dtype)
    shrunk, short = np.ones((len(kinds), m), K.dtype), np.zeros((len(kinds), m), K.dtype)
    for group in range(len(kinds)):
        most = theta[group, 2]
        for i in range(m):
            if a_sq[i] > most:
                shrunk[group, i] = np.sqrt(most / a_sq[i])
                short[group, i] = one / a_sq[i]
    for n in range(len(s_sq)):
        largest = s_sq[n] if s_sq[n] > largest else largest
    least = K.dtype.type(APART * APART) * largest
    at, ends, inverse, part = starts[:-1].copy(), starts[1:], rest[0], rest[1]
    for n in range(len(s_sq)):
        k = K[n]
        _make_lines(k, s_sq[n], a_sq, kinds, theta, least, lines, shrunk, inverse)
        _add_row(k, n, kinds, coef[n], lines, exact, short, part, order, ends, at, H, own)


@loop(lambda data: types.void(_matrix(data), _cube(data), _matrix(data)))
def inner_products(S, panels, out):
    """⟨s_n, a_i⟩ of support rows with rows in panels."""
    (_, d, w), step = panels.shape, S.shape[1]
    order, tile = np.arange(d), np.empty((w, w), S.dtype)
    for lo in range(0, len(S), w):
        lines = min(w, len(S) - lo)
        for p in range(len(panels)):
            a, b, at = lo * step, p * d * w, lo * out.shape[1] + p * w
            product(S, a, 1, step, panels, b, w, order, lines, tile, out, at, out.shape[1])


@plain
def _gradient(S, H, A, tile, order, own, first, out):
    """`gradient` of one output at the rows of A from one of them on, as many as `out` has room for."""
    (_, m), d, w = H.shape, S.shape[1], len(tile)
    last = min(first + len(out), m)
    for c in range(0, d, w):
        for i in range(first, last, w):
            lines, to = min(w, last - i), (i - first) * d + c
            product(H, i, m, 1, S, c, d, order, lines, tile, out, to, d)
    for i in range(first, min(last, len(A))):
        a, to = A[i], out[i - first]
        for x in range(len(a)):
            to[x] -= own[i] * a[x]


@plain
def _add_squares(G, weight, total):
    """`add_slope_squares` of one output."""
    for i in range(len(weight)):
        g, w = G[i], weight[i]
        for x in range(len(total)):
            slope = np.float64(g[x])
            total[x] += w * (slope * slope)


@loop(lambda data: types.void(*[_matrix(data)] * 4, indices, _numbers(data), _matrix(data)))
def gradient(S, H, A, tile, order, own, out):
    """out[i] = Σ_x H[x, i] s_n - own[i] a_i with n = order[x].

    `tile` has the size of a panel. There are whole panels of features in S and `out`, and as many rows
    in H and `out` as fill the lines of a tile.
    """
    _gradient(S, H, A, tile, order, own, 0, out)


@loop(lambda data: types.void(_matrix(data), types.float64[::1], types.float64[::1]))
def add_slope_squares(G, weight, total):
    """total[x] += Σ_i weight[i] G[i, x]², where G may have more rows and columns."""
    _add_squares(G, weight, total)


def _squares_signature(data: Any) -> Any:
    real, sums = _matrix(data), (types.float64[::1], types.float64[::1])
    rows, place = (real, real, real), (indices, indices)
    return types.void(*rows, real, *place, real, types.int64, real, *sums)


@loop(_squares_signature)
def add_gradient_squares(S, H, A, tile, order, starts, own, first, out, weight, total):
    """total[x] += Σ_j Σ_i weight[i] (∂f_j/∂x)² at so many rows of A, from one of them on.

    `out` has room for these rows.
    """
    for j in range(len(own)):
        lo, hi = starts[j], starts[j + 1]
        _gradient(S, H[lo:hi], A, tile, order[lo:hi], own[j], first, out)
        _add_squares(out, weight, total)
