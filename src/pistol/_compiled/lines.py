"""Lines of kernel values: inner products of rows in panels, and what kernels make of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp, ldexp
from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from ..kernels import Kernel
from .cache import plain
from .lanes import across, lanes
from .panels import DEEP, multiply
from .sums import GAUSSIAN, KINDS, POLYNOMIAL, exponentials, gaussians
from .types import Array, indices, loop, read_only

PRODUCT = -1  # the kind of a kernel that is left as inner products
COLUMNS = 32  # panels whose products with a line of panels stay in a core's cache


def kinds_of(kernels: Sequence[Kernel], dtype: Any) -> tuple[Array, Array]:
    """What `fill_lines` makes of inner products for each kernel, and with which numbers."""
    kinds = np.array([KINDS.get(kernel.map, PRODUCT) for kernel in kernels], np.int64)
    return read_only(kinds), read_only(np.array([kernel.theta for kernel in kernels], dtype))


@plain(fastmath={"contract"})
def _shrink(sq, gamma, most, out):
    """What inner products with each row are multiplied by, if rows longer than √most are shortened."""
    one = sq.dtype.type(1.0)
    for i in range(len(out)):
        out[i] = gamma * (np.sqrt(most / sq[i]) if sq[i] > most else one)


@plain(fastmath={"contract"})
def _polynomials(k, size, shrunk, degree, v):
    """(size · shrunk · k)^degree, for degrees from 1 to 3."""
    for i in range(len(v)):
        v[i] = k[i] * size * shrunk[i]
    if degree == 2:
        for i in range(len(v)):
            v[i] *= v[i]
    elif degree == 3:
        for i in range(len(v)):
            v[i] *= v[i] * v[i]


@plain
def _map_line(k, s, sq, shrunk, kinds, theta, line, first, out):
    """The values of all kernels between one row and those from `first` on."""
    for q in range(len(kinds)):
        v, gamma, most = out[q, line, first : first + len(k)], theta[q, 0], theta[q, 2]
        if kinds[q] == POLYNOMIAL:
            size = np.sqrt(most / s) if s > most else k.dtype.type(1.0)
            _polynomials(k, size, shrunk[q, first:], int(theta[q, 1]), v)
        elif kinds[q] == GAUSSIAN:
            gaussians(k, s, sq[first:], gamma, v)
        elif kinds[q] == PRODUCT:
            for i in range(len(v)):
                v[i] = k[i]
        else:
            exponentials(k, s, sq[first:], gamma, v)


def _signature(data: Any) -> Any:
    real, n = from_dtype(np.dtype(data)), types.int64
    numbers = types.Array(real, 1, "C", readonly=True)
    theta = types.Array(real, 2, "C", readonly=True)
    out = types.Array(real, 3, "C")
    return types.void(out, numbers, numbers, indices, theta, n, n, n, types.boolean, out)


@plain
def _copy_across(K, first, lines, start, columns):
    """K[start + j, first + i] = K[first + i, start + j] for whole vectors of lines."""
    flat, step, square = K.reshape(-1), K.shape[1], lanes(K)
    whole = columns // square * square
    for j in range(start, start + whole, square):
        for i in range(first, first + lines, square):
            across(flat, i * step + j, step, j * step + i)
    for j in range(start + whole, start + columns):
        to = K[j]
        for i in range(first, first + lines):
            to[i] = K[i, j]


@plain
def _pack(panel, first, packed, order, cuts):
    """Set `order` to the features in which some rows are not all zero, and `packed` to their values.

    `cuts` tells where in the order sums of DEEP features begin and end.
    """
    n = 0
    for k in range(len(panel)):
        if k % DEEP == 0:
            cuts[k // DEEP] = n
        some = False
        for i in range(packed.shape[1]):
            packed[n, i] = panel[k, first + i]
            some |= packed[n, i] != 0.0
        order[n] = k
        n += some
    cuts[-1] = n


@plain
def _multiply_packed(packed, order, cuts, panels, other, lines, tile, out, at):
    """Products of packed rows with those of a panel. Zeros that are left out change no bit."""
    (_, d, w), (_, m), width = panels.shape, packed.shape, out.shape[1]
    b, flat = other * d * w, out.reshape(-1)
    for part in range(len(cuts) - 1):
        some = order[cuts[part] : cuts[part + 1]]
        if part == 0:
            multiply(packed, 0, m, 1, panels, b, w, some, lines, out, at, width)
        elif len(some):
            multiply(packed, cuts[part] * m, m, 1, panels, b, w, some, lines, tile, 0, w)
            for i in range(lines):
                line, new = flat[at + i * width : at + i * width + w], tile[i]
                for x in range(w):
                    line[x] += new[x]


@plain
def _shift(k, own, others):
    """Inner products of rows from those of rows without their usual values."""
    for x in range(len(k)):
        k[x] += own + others[x]


@loop(_signature)
def fill_lines(panels, sq, shift, kinds, theta, together, first, last, half, out):
    """out[q, i, j] = k_q(row i, row j) for the rows i of some panels, and for all rows j.

    ⟨row i, row j⟩ is the product of the rows in panels, plus the numbers that `shift` has for both, if
    it has any. `sq` has the squared norms of all rows. So many rows as `together` says are multiplied
    at a time, without the features in which all of them are zero. With `half`, values with rows of
    earlier panels are not computed; they are copied from the lines of these.
    """
    (Q, m, _), (_, d, w), n = out.shape, panels.shape, len(sq)
    groups, parts = w // together, -(-d // DEEP)
    packed, order = np.empty((groups, d, together), out.dtype), np.empty((groups, d), np.int64)
    cuts = np.empty((groups, parts + 1), np.int64)
    tile, base = np.empty((w, w), out.dtype), np.empty((w, COLUMNS * w), out.dtype)
    shrunk = np.empty((Q, n), out.dtype)
    for q in range(Q):
        _shrink(sq, theta[q, 0], theta[q, 2], shrunk[q])
    for p in range(first, last):
        top, lines = p * w, min(w, m - p * w)
        for g in range(groups):
            _pack(panels[p], g * together, packed[g], order[g], cuts[g])
        for start in range(p if half else 0, len(panels), COLUMNS):
            end = min(start + COLUMNS, len(panels))
            for other in range(start, end):
                for g in range(-(-lines // together)):
                    at = g * together * COLUMNS * w + (other - start) * w
                    rows = packed[g], order[g], cuts[g]
                    _multiply_packed(*rows, panels, other, together, tile, base, at)
            columns, left = min(end * w, n) - start * w, start * w
            for i in range(top, top + lines):
                k = base[i - top, :columns]
                if len(shift):
                    _shift(k, shift[i], shift[left:])
                _map_line(k, sq[i], sq, shrunk, kinds, theta, i, left, out)
                if left <= i < left + columns:
                    for q in range(Q):
                        if kinds[q] > POLYNOMIAL:
                            out[q, i, i] = 1.0
            if half:
                for other in range(max(start, p + 1) * w, min(end * w, m), w):
                    for q in range(Q):
                        _copy_across(out[q], top, w, other, min(w, m - other))


@plain
def _raise(sizes, k):
    """Sizes of numbers that are at least those of k."""
    for x in range(len(k)):
        size = abs(k[x])
        sizes[x] = size if size > sizes[x] else sizes[x]


@loop(lambda data: types.void(types.Array(from_dtype(np.dtype(data)), 3, "C")))
def drop_last_bits(out):
    """Round the values of each kernel to multiples of 2^-36 of about the largest.

    Numbers next to 1.5 · 2^52 have no bits behind the point.
    """
    for q in range(len(out)):
        K, sizes = out[q], np.zeros(out.shape[2], out.dtype)
        for i in range(len(K)):
            _raise(sizes, K[i])
        largest = 0.0
        for size in sizes:
            largest = max(largest, size)
        shift = ldexp(1.5, max(frexp(largest)[1] - 36, -1000) + 52)
        for i in range(len(K)):
            k = K[i]
            for x in range(len(k)):
                k[x] = (k[x] + shift) - shift
