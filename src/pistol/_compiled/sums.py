"""Predictions of a sum of kernels with few outputs: all kernels of some support rows in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from ..kernels import (
    Kernel,
    bounded_poly,
    exponential,
    exponential_value,
    gaussian,
    gaussian_value,
    grain,
)
from .cache import plain
from .exp import LEAST, fourth_power
from .panels import product
from .rows import add_four
from .types import Array, indices, loop, read_only

# Kinds of groups of four kernels: powers of a product from 0 to 3, or an exponential and its 4th, 16th
# and 64th powers.
KINDS: dict[Any, int] = {bounded_poly: 0, gaussian: 1, exponential: 2}
POLYNOMIAL, GAUSSIAN = 0, 1
FOUR = 4


class Groups(NamedTuple):
    """Kernels in groups of four, whose values are made together; a group may lack some."""

    kinds: Array
    theta: Array  # that of each group
    slots: Array  # where each kernel is: four times the number of its group, and its place there


def groups_of(kernels: Sequence[Kernel]) -> Groups | None:
    """The kernels in groups; None if one of them is of another kind."""
    if not all(kernel.map in KINDS for kernel in kernels):
        return None
    groups: list[Kernel] = []
    slots = np.empty(len(kernels), np.int64)
    for q in sorted(range(len(kernels)), key=lambda q: kernels[q].key[1]):
        places = (_place(first, kernels[q]) for first in groups)
        known = [(number, place) for number, place in enumerate(places) if place is not None]
        if not known:
            place = int(kernels[q].key[2]) if kernels[q].map is bounded_poly else 0
            known = [(len(groups), place)]
            groups.append(kernels[q])
        slots[q] = FOUR * known[0][0] + known[0][1]
    kinds = np.array([KINDS[kernel.map] for kernel in groups], np.int64)
    return Groups(read_only(kinds), np.array([kernel.theta for kernel in groups]), slots)


def _place(first: Kernel, kernel: Kernel) -> int | None:
    """The place of a kernel in the group of another, if it is there."""
    if kernel.map is not first.map:
        return None
    (_, gamma, degree, most), (_, own, _, limit) = kernel.key, first.key
    if kernel.map is bounded_poly:
        return int(degree) if (gamma, most) == (own, limit) else None
    ratios = [i for i in range(FOUR) if gamma == own * 4.0**i]
    return ratios[0] if ratios else None


@plain(fastmath={"contract"})
def _powers(k, size, shrunk, v, w, y):
    """v = size · shrunk · k, and its square and cube."""
    for i in range(len(k)):
        x = k[i] * size * shrunk[i]
        v[i] = x
        w[i] = x * x
        y[i] = x * x * x


@plain(fastmath={"contract"})
def gaussians(k, s, a_sq, gamma, v):
    """Values of a Gaussian."""
    zero = k.dtype.type(0.0)
    for i in range(len(k)):
        v[i] = gaussian_value(k[i], s, a_sq[i], gamma, zero)


@plain(fastmath={"contract"})
def exponentials(k, s, a_sq, gamma, v):
    """Values of an exponential of the distance."""
    zero, near = k.dtype.type(0.0), grain(k)
    for i in range(len(k)):
        v[i] = exponential_value(k[i], s, a_sq[i], gamma, zero, near)


@plain(fastmath={"contract"})
def fourth_powers(v, w, y, z):
    """The fourth, 16th and 64th powers of v."""
    least = v.dtype.type(LEAST)
    for i in range(len(v)):
        x = fourth_power(v[i], least)
        w[i] = x
        x = fourth_power(x, least)
        y[i] = x
        z[i] = fourth_power(x, least)


@plain(forceinline=True, fastmath={"contract"})
def _sum_of_powers(x, c, least):
    """c₀x + c₁x⁴ + c₂x¹⁶ + c₃x⁶⁴."""
    x_4 = fourth_power(x, least)
    x_16 = fourth_power(x_4, least)
    return (c[0] * x + c[1] * x_4) + (c[2] * x_16 + c[3] * fourth_power(x_16, least))


@plain(fastmath={"contract"})
def _add_polynomial(k, size, shrunk, c, g):
    """g += c₀ + c₁x + c₂x² + c₃x³, with x = size · shrunk · k."""
    for i in range(len(k)):
        x = k[i] * size * shrunk[i]
        g[i] += c[0] + x * (c[1] + x * (c[2] + x * c[3]))


@plain(fastmath={"contract"})
def _add_gaussians(k, s, a_sq, gamma, c, g):
    """g += the sum of a Gaussian and its powers."""
    zero, least = k.dtype.type(0.0), k.dtype.type(LEAST)
    for i in range(len(k)):
        g[i] += _sum_of_powers(gaussian_value(k[i], s, a_sq[i], gamma, zero), c, least)


@plain(fastmath={"contract"})
def _add_exponentials(k, s, a_sq, gamma, c, g):
    """g += the sum of an exponential of the distance and its powers."""
    zero, near, least = k.dtype.type(0.0), grain(k), k.dtype.type(LEAST)
    for i in range(len(k)):
        g[i] += _sum_of_powers(exponential_value(k[i], s, a_sq[i], gamma, zero, near), c, least)


@plain
def _add_row(k, s, a_sq, kinds, theta, shrunk, coef, g):
    """What one support row adds to the predictions of one output: no value leaves the registers."""
    for group in range(len(kinds)):
        gamma, most, at = theta[group, 0], theta[group, 2], FOUR * group
        c = coef[at], coef[at + 1], coef[at + 2], coef[at + 3]
        if kinds[group] == POLYNOMIAL:
            size = gamma * (np.sqrt(most / s) if s > most else k.dtype.type(1.0))
            _add_polynomial(k, size, shrunk[group], c, g)
        elif kinds[group] == GAUSSIAN:
            _add_gaussians(k, s, a_sq, gamma, c, g)
        else:
            _add_exponentials(k, s, a_sq, gamma, c, g)


@plain
def _add_row_to_several(k, s, a_sq, kinds, theta, shrunk, coef, lines, G):
    """The same for several outputs, which share the values."""
    for group in range(len(kinds)):
        gamma, most, at = theta[group, 0], theta[group, 2], FOUR * group
        v, w, y, z = lines[at], lines[at + 1], lines[at + 2], lines[at + 3]
        if kinds[group] == POLYNOMIAL:  # the power of zero is there
            size = gamma * (np.sqrt(most / s) if s > most else k.dtype.type(1.0))
            _powers(k, size, shrunk[group], w, y, z)
        elif kinds[group] == GAUSSIAN:
            gaussians(k, s, a_sq, gamma, v)
            fourth_powers(v, w, y, z)
        else:
            exponentials(k, s, a_sq, gamma, v)
            fourth_powers(v, w, y, z)
        for j in range(len(G)):
            c = coef[j, at : at + FOUR]
            add_four(v, w, y, z, c[0], c[1], c[2], c[3], G[j])


@plain
def _shortened(theta, a_sq, shrunk):
    """What the lengths of rows are multiplied by, for each group: polynomials shorten rows far out."""
    one = a_sq.dtype.type(1.0)
    for group in range(len(theta)):
        most = theta[group, 2]
        for i in range(len(a_sq)):
            shrunk[group, i] = np.sqrt(most / a_sq[i]) if a_sq[i] > most else one


@plain
def _add_lines(K, s_sq, a_sq, kinds, theta, shrunk, coef, lines, G):
    """What support rows add to all predictions, given their inner products. K may be wider."""
    m = len(a_sq)
    for n in range(len(s_sq)):
        if len(G) == 1:
            _add_row(K[n, :m], s_sq[n], a_sq, kinds, theta, shrunk, coef[n, 0], G[0])
        else:
            _add_row_to_several(K[n, :m], s_sq[n], a_sq, kinds, theta, shrunk, coef[n], lines, G)


def _tables(data: Any) -> tuple[Any, ...]:
    """The types of squared norms, kinds and numbers of groups, and coefficients."""
    real = from_dtype(np.dtype(data))
    numbers = types.Array(real, 1, "C", readonly=True)
    coef = types.Array(real, 3, "C", readonly=True)
    theta = types.Array(real, 2, "C", readonly=True)
    return numbers, numbers, indices, theta, coef


def _signature(data: Any) -> Any:
    tile = types.Array(from_dtype(np.dtype(data)), 2, "C")
    return types.void(tile, *_tables(data), tile)


@loop(_signature)
def expand_tile(K, s_sq, a_sq, kinds, theta, coef, G):
    """G[j, i] += Σ_n Σ_q coef[n, j, q] k_q(s_n, a_i), given ⟨s_n, a_i⟩ in K, for groups of kernels."""
    groups, m = len(kinds), K.shape[1]
    lines, shrunk = np.ones((FOUR * groups, m), K.dtype), np.empty((groups, m), K.dtype)
    _shortened(theta, a_sq, shrunk)
    _add_lines(K, s_sq, a_sq, kinds, theta, shrunk, coef, lines, G)


def _panels_signature(data: Any) -> Any:
    real = from_dtype(np.dtype(data))
    panels, out = types.Array(real, 3, "C"), types.Array(real, 2, "C")
    return types.void(panels, panels, *_tables(data), types.int64, types.int64, out)


@loop(_panels_signature)
def expand_panels(S, A, s_sq, a_sq, kinds, theta, coef, first, last, G):
    """The same for the support rows of some panels; their inner products stay in the cache."""
    (_, d, w), groups, m = S.shape, len(kinds), len(a_sq)
    order, tile, K = np.arange(d), np.empty((w, w), S.dtype), np.empty((w, len(A) * w), S.dtype)
    lines, shrunk = np.ones((FOUR * groups, m), S.dtype), np.empty((groups, m), S.dtype)
    _shortened(theta, a_sq, shrunk)
    for p in range(first, last):
        lo, hi = p * w, min(p * w + w, len(s_sq))
        for x in range(len(A)):
            step = K.shape[1]
            product(S, p * d * w, w, 1, A, x * d * w, w, order, hi - lo, tile, K, x * w, step)
        _add_lines(K, s_sq[lo:hi], a_sq, kinds, theta, shrunk, coef[lo:hi], lines, G)
