"""Rounds on rows whose kernel values are all known, block by block.

A matrix of values has one line per row that is learned, and one column per row; those that are learned
come first. Lines are filled up with zeros to whole cache lines.
"""

from __future__ import annotations

from math import frexp, ldexp, sqrt
from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from .cache import helper, plain
from .chains import add_rounds, add_rows, next_values
from .lanes import every, lanes, larger, load, store, whole
from .loops import Desk, changes_in_time, desk, play
from .prefetch import prefetch_once
from .types import (
    CONSTANT,
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
SMALL = 1e-300  # numbers up to it are as good as zero


@helper(inline="always")
def _plain(x):
    """x without its last bits, which depend on how rows are sorted and many passes would enlarge."""
    fraction, power = frexp(x)
    return ldexp(round(fraction * 2.0**24), power - 24)


@plain
def _product(coef, j, g):
    """Σ coef[x, j] g[x], as four sums that do not wait for each other."""
    a, b, c, d, x = 0.0, 0.0, 0.0, 0.0, 0
    while x + 4 <= len(coef):
        a += coef[x, j] * g[x]
        b += coef[x + 1, j] * g[x + 1]
        c += coef[x + 2, j] * g[x + 2]
        d += coef[x + 3, j] * g[x + 3]
        x += 4
    for last in range(x, len(coef)):
        a += coef[last, j] * g[last]
    return (a + b) + (c + d)


@plain
def _spread(values, rows, moved, coef, g, room, spare):
    """Line 8 at every row, for a block of rounds: g[q, j] += Σ coef[k, j] k_q(rows[k], ·)."""
    some, size = room.rows, room.four[0]
    for j in range(g.shape[1]):
        count = 0
        for k in range(moved):
            some[count], size[count] = rows[k], g.dtype.type(coef[k, j])
            count += coef[k, j] != 0.0
        if count > 0:
            add_rounds(values, some[:count], size[:count], j, g, spare)


@plain
def _gather(M, rows, V):
    """V[k, x] = M[rows[k], rows[x]] for x from k on."""
    for k in range(len(rows)):
        line, v, later = M[rows[k]], V[k, k:], rows[k:]
        for x in range(len(later)):
            v[x] = line[later[x]]


@plain
def _ask_for(values, order, first, m):
    """Ask for what `_gather` takes for a block, while the block before it is played."""
    for chain in range(len(values.chains)):
        number, kind = values.chains[chain, 2], values.chains[chain, 3]
        if kind != CONSTANT:
            M = values.matrices[number]
            for k in range(first, first + m):
                line = M[order[k]]
                for x in range(k, first + m):
                    prefetch_once(line, order[x])


@plain
def _fill(block, flat, values, rows, g):
    """Set g of these rows, their own kernel values and √k(x, x), of a whole sum.

    `flat` has the kernel values of the block with one line per kernel.
    """
    at, K, size = block
    for chain in range(len(values.chains)):
        first, count, number, kind = values.chains[chain]
        if kind == CONSTANT:
            for x in range(flat.shape[1]):
                flat[first, x] = 1.0
        else:
            _gather(values.matrices[number], rows, K[first])
        for q in range(first + 1, first + count):
            next_values(flat[q - 1], flat[first], kind, flat[q])
    for q in range(len(g)):
        for k in range(len(rows)):
            size[k, q] = K[q, k, k]
        for j in range(g.shape[1]):
            of_all, some = g[q, j], at[q, j]
            for k in range(len(rows)):
                some[k] = of_all[rows[k]]
    for k in range(len(rows)):
        roots = size[k]
        for q in range(len(roots)):
            roots[q] = sqrt(roots[q])


def _state(data: Any) -> Any:
    return types.Array(from_dtype(np.dtype(data)), 3, "C")


def _lines(data: Any) -> Any:
    return types.Array(from_dtype(np.dtype(data)), 2, "C")


class Room(NamedTuple):
    """Room for some rows at a time, and for what their lines of values are multiplied by."""

    rows: Array
    factors: Array  # of shape (rows, kernels), filled up to whole cache lines
    four: Array  # those of a chain, of shape (4, rows)
    c: Array  # a multiplier of g for each output and kernel, filled up likewise

    @classmethod
    def of(cls, kernels: int, outputs: int, size: int, dtype: Any) -> Room:
        """For so many rows at a time."""
        filled = whole(kernels, np.float64)
        four, c = np.empty((4, size), dtype), np.zeros((outputs, filled))
        return cls(np.empty(size, np.uintp), np.empty((size, filled)), four, c)


class Workspace(NamedTuple):
    """What `learn_gram` works with; the content does not matter."""

    block: BlockValues
    new: Array  # coefficients of a block's rounds, of shape (rounds, outputs)
    share: Array  # and their share of u, of shape (rounds, outputs, kernels)
    rows: Array  # of a block
    flat: Array  # the kernel values of a block, with one line per kernel
    spare: Array  # lines for kernels that a chain does not have
    room: Room
    desk: Desk

    @classmethod
    def of(cls, g: Array, b: Array) -> Workspace:
        """For g of shape (kernels, outputs, rows), and the numbers of the kernels."""
        Q, J, n = g.shape
        B = FEW if J == 1 else MANY
        K, work = np.zeros((Q, B, B)), Desk.of(b, J, B)
        return cls(
            BlockValues(np.zeros((len(work.b), J, B)), K, np.zeros((B, len(work.b)))),
            np.empty((B, J)),
            np.empty((B, J, len(work.b))),
            np.empty(B, np.uintp),
            K.reshape(Q, B * B),
            np.zeros((2, n), g.dtype),
            Room.of(Q, J, B, g.dtype),
            work,
        )


def _room(data: Any) -> types.NamedTuple:
    fields = types.Array(types.uintp, 1, "C"), matrix, _lines(data), matrix
    return types.NamedTuple(fields, Room)


def _workspace(data: Any) -> types.NamedTuple:
    rows, lines = types.Array(types.uintp, 1, "C"), _lines(data)
    fields = block_values, matrix, cube, rows, matrix, lines, _room(data), desk
    return types.NamedTuple(fields, Workspace)


@plain(forceinline=True)
def _mean(c, part, coef, u, q):
    """C_T g - u for some kernels from q on; without u where `part` is zero."""
    at = load(c, q)
    return at * every(at, coef) - every(at, part) * load(u, q)


@plain
def _largest(c, part, coef, u, spare):
    """The size of the largest of these numbers; 1 where all are as good as zero."""
    most = every(load(spare, 0), 0.0)
    for n in range(len(coef)):
        for j in range(len(c)):
            for q in range(0, c.shape[1], lanes(c)):
                at = _mean(c[j], part, coef[n, j], u[n, j], q)
                most = larger(larger(at, every(at, 0.0) - at), most)
    store(spare, 0, most)
    size = 0.0
    for q in range(lanes(spare)):
        size = spare[q] if spare[q] > size else size
    return size if size > SMALL else 1.0


@plain
def _expand(values, C, total, coef, u, first, room, out):
    """out[j, x] += f_j(first + x) divided by what is returned."""
    rows, factors, four, c = room
    for j in range(len(c)):
        for q in range(len(C)):
            c[j, q] = C[q, j]
    part = 1.0 if total > 0.0 else 0.0  # without weights it is the f to come, c g
    size = _largest(c, part, coef, u, factors[0])
    share = 1.0 / size
    for j in range(len(out)):
        count = 0
        for n in range(len(coef)):
            moved = coef[n, j] != 0.0 or u[n, j, 0] != 0.0
            if moved:
                rows[count], to = n, factors[count]
                for q in range(0, len(to), lanes(to)):
                    at = _mean(c[j], part, coef[n, j], u[n, j], q)
                    store(to, q, at * every(at, share))
                count += 1
            if count > 0 and (count == len(rows) or n == len(coef) - 1):
                add_rows(values, rows[:count], factors, first, out[j], four)
                count = 0
    return size / total if total > 0.0 else size


@loop(
    lambda data: real(
        gram_type(data), matrix, real, matrix, cube, types.int64, _room(data), _lines(data)
    )
)
def expand_gram(values, c, total, coef, u, first, room, out):
    """out[j, x] += f_j(first + x) divided by what is returned, from g = Σ coef k and u = Σ C Δ.

    f̄ is (C_T g - u) / Σ ω, with C_T in `c` and Σ ω in `total`; `u` has one line of kernels per row
    and output, filled up with zeros to whole cache lines. Coefficients of f̄ may be larger than
    float32 can be, hence the divisor. Rows without a coefficient cost next to nothing.
    """
    return _expand(values, c, total, coef, u, first, room, out)


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
    Q, J, _ = g.shape
    block, new, share, rows, flat, spare, room, work = space
    timed, size = changes_in_time(rule, work), len(rows)
    start, mark = 0, 0
    for number in range(len(ends)):
        end = ends[number]
        for first in range(start, end, size):
            m = min(size, end - first)
            for k in range(m):
                rows[k] = rounds.order[first + k]
            _fill(block, flat, values, rows[:m], g)
            _ask_for(values, rounds.order, first + size, min(size, max(end - first - size, 0)))
            play(block, m, rounds, first, rule, timed, S, new, share, P, work)
            moved = 0
            for k in range(m):
                i, some = rows[k], False
                for j in range(J):
                    some |= new[k, j] != 0.0
                    if new[k, j] != 0.0:
                        coef[i, j] += new[k, j]
                        for q in range(Q):
                            u[i, j, q] += share[k, j, q]
                    new[moved, j] = new[k, j]
                rows[moved] = i
                moved += some
            _spread(values, rows, moved, new, g, room, spare)
        for q in range(Q):  # drift of ‖g‖² ends here: it is Σ coef g
            for j in range(J):
                total = _product(coef, j, g[q, j])
                S.g_norm_sq[q, j] = _plain(0.0 if total < 0.0 else total)
        start = end
        if mark < len(marks) and marks[mark] == number + 1:
            sizes[mark] = _expand(values, S.c_sum, S.weight[0, 0], coef, u, at, room, scores[mark])
            mark += 1
