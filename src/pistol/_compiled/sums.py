"""Predictions of a sum of kernels with few outputs, in one call per tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from .gram import add_four
from .types import Array, indices, loop, read_only

FOUR = 4  # kernels whose values are added up together

# How values of a kernel are made: as a polynomial of a degree from zero to three, as fourth powers of
# those of the kernel before, or as an exponential.
CONSTANT, FOURTH, GAUSSIAN, EXPONENTIAL = 0, 4, 5, 6


def parts_of(kernels: Sequence[Kernel]) -> Array | None:
    """How the values of each kernel are made; None if there is another way for one of them."""
    return (
        read_only(np.array([_part(kernels, q) for q in range(len(kernels))], np.int64))
        if all(kernel.map in (bounded_poly, gaussian, exponential) for kernel in kernels)
        else None
    )


def _part(kernels: Sequence[Kernel], q: int) -> int:
    kernel = kernels[q]
    if kernel.map is bounded_poly:
        return int(kernel.theta[1])
    if q > 0 and kernel.follows(kernels[q - 1]):
        return FOURTH
    return GAUSSIAN if kernel.map is gaussian else EXPONENTIAL


@plain(fastmath={"contract"})
def _values(part, k, s, a_sq, shrunk, theta, before, out):
    """out[i] = k_q(s, a_i), given ⟨s, a_i⟩ and values of the kernel before."""
    gamma, most, kind = theta[0], theta[2], k.dtype.type
    zero, least = kind(0.0), kind(LEAST)
    if part == FOURTH:
        for i in range(len(k)):
            out[i] = fourth_power(before[i], least)
    elif part == GAUSSIAN:
        for i in range(len(k)):
            out[i] = gaussian_value(k[i], s, a_sq[i], gamma, zero)
    elif part == EXPONENTIAL:
        near = grain(k)
        for i in range(len(k)):
            out[i] = exponential_value(k[i], s, a_sq[i], gamma, zero, near)
    else:
        size = gamma * (np.sqrt(most / s) if s > most else kind(1.0))
        for i in range(len(k)):
            out[i] = k[i] * size * shrunk[i]
        for _ in range(part - 1):
            for i in range(len(k)):
                out[i] *= k[i] * size * shrunk[i]


def _signature(data: Any) -> Any:
    real = from_dtype(np.dtype(data))
    tile, numbers = types.Array(real, 2, "C"), types.Array(real, 1, "C", readonly=True)
    coef = types.Array(real, 3, "C", readonly=True)
    theta = types.Array(real, 2, "C", readonly=True)
    return types.void(tile, numbers, numbers, indices, theta, coef, tile)


@loop(_signature)
def expand_tile(K, s_sq, a_sq, parts, theta, coef, G):
    """G[j, i] += Σ_n Σ_q coef[n, j, q] k_q(s_n, a_i), given ⟨s_n, a_i⟩ in K.

    The coefficients have a multiple of four kernels, those beyond the last are zero.
    """
    m, Q, one = K.shape[1], len(parts), K.dtype.type(1.0)
    lines, shrunk = np.zeros((coef.shape[2], m), K.dtype), np.empty((Q, m), K.dtype)
    for q in range(Q):
        most = theta[q, 2]
        for i in range(m):
            lines[q, i] = one  # all there is to say of a constant
            shrunk[q, i] = np.sqrt(most / a_sq[i]) if a_sq[i] > most else one
    for n in range(len(K)):
        for q in range(Q):
            if parts[q] != CONSTANT:
                _values(parts[q], K[n], s_sq[n], a_sq, shrunk[q], theta[q], lines[q - 1], lines[q])
        for j in range(len(G)):
            for q in range(0, coef.shape[2], FOUR):
                v, w, y, z = lines[q], lines[q + 1], lines[q + 2], lines[q + 3]
                c = coef[n, j, q : q + FOUR]
                add_four(v, w, y, z, c[0], c[1], c[2], c[3], G[j])
