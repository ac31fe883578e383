"""Inner products of rows that lie side by side in panels.

A panel has as many rows as fit into three vectors of the processor, feature by feature. A tile of inner
products, of eight rows and a panel, is then a sum of outer products that stays in registers from the
first feature to the last. The instructions are written for vectors as wide as the processor has them.
BLAS takes some processors for older ones, and twice as long there.

All products are sums in the order of the features: they do not depend on where a row stands.
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

from .cache import INTERPRETED, plain
from .lanes import vector_bytes
from .memory import LINE, PAGE, memory
from .types import Array, indices, loop, read_only

DEEP = 256  # products that are added up in registers


class Shape(NamedTuple):
    """How many numbers are computed together."""

    size: int  # bytes of a vector
    vectors: int  # of a panel
    lines: int  # rows of a tile: with all vectors they leave room in the registers


@cache
def shape() -> Shape:
    """That of this processor."""
    size = vector_bytes()
    if size > 16:
        return Shape(size, 3, 8 if size == 64 else 4)
    triple, _, _ = cpu_target.target_context.codegen().magic_tuple()
    return Shape(size, 4 if triple.startswith(("aarch64", "arm64")) else 2, 4)


def width(dtype: Any) -> int:
    """Rows of a panel."""
    return shape().size * shape().vectors // np.dtype(dtype).itemsize


def aligned(size: tuple[int, ...], dtype: Any) -> Array:
    """An array with any content that begins where a vector does."""
    need = prod(size) * np.dtype(dtype).itemsize
    room = memory(need + LINE) if need > PAGE // 2 else np.empty(need + LINE, np.uint8)
    first = -room.ctypes.data % LINE
    return room[first : first + need].view(dtype).reshape(size)


class Panels(NamedTuple):
    """Rows in panels, of shape (panels, features, rows of a panel), and their squared norms."""

    rows: Array
    sq: Array

    @classmethod
    def of(cls, Z: Array, order: Array, dtype: Any) -> Panels:
        """The rows of a matrix with these numbers; the last panel is filled up."""
        n = width(dtype)
        panels = cls(aligned((-(-len(order) // n), Z.shape[1], n), dtype), np.empty(len(order)))
        lay_out = _lay_out_double if dtype == np.float64 else _lay_out_single
        lay_out(read_only(np.ascontiguousarray(Z)), read_only(order), *panels)
        return panels


@plain
def _fill(Z, order, panels, sq):
    """Four rows at a time; where there are no more, the last one fills the panel up."""
    last = len(order) - 1
    for p in range(len(panels)):
        panel, first = panels[p], p * panels.shape[2]
        for i in range(0, panels.shape[2], 4):
            a, b = Z[order[min(first + i, last)]], Z[order[min(first + i + 1, last)]]
            c, d = Z[order[min(first + i + 2, last)]], Z[order[min(first + i + 3, last)]]
            for k in range(len(panel)):
                four = panel[k, i : i + 4]
                four[0], four[1], four[2], four[3] = a[k], b[k], c[k], d[k]
        own = sq[first : first + panels.shape[2]]
        for i in range(len(own)):
            own[i] = 0.0
        for k in range(len(panel)):
            values = panel[k]
            for i in range(len(own)):
                value = np.float64(values[i])
                own[i] += value * value


def _layout_type(data: Any, to: Any) -> Any:
    rows = types.Array(from_dtype(np.dtype(data)), 2, "C", readonly=True)
    panels = types.Array(from_dtype(np.dtype(to)), 3, "C")
    return types.void(rows, indices, panels, types.float64[::1])


@loop(lambda data: _layout_type(data, np.float64))
def _lay_out_double(Z, order, panels, sq):
    """Lay rows out in panels, and add up their squares, in float64."""
    _fill(Z, order, panels, sq)


@loop(lambda data: _layout_type(data, np.float32))
def _lay_out_single(Z, order, panels, sq):
    """The same in float32."""
    _fill(Z, order, panels, sq)


class _Emitter:
    """Writes the instructions of `multiply` for numbers of one type."""

    def __init__(self, builder: ir.IRBuilder, real: Any, itemsize: int) -> None:
        size, self.vectors, self.lines = shape()
        self.builder, self.itemsize, self.lanes = builder, itemsize, size // itemsize
        self.vector = ir.VectorType(real, self.lanes)

    def place(self, start: Any, number: Any) -> Any:
        """Of one of the vectors that begin there."""
        at = self.builder.gep(start, [ir.IntType(64)(number * self.lanes)])
        return self.builder.bitcast(at, self.vector.as_pointer())

    def load(self, start: Any) -> list[Any]:
        """The vectors of a panel, for one feature."""
        places = [self.place(start, v) for v in range(self.vectors)]
        return [self.builder.load(place, align=self.itemsize) for place in places]

    def store(self, totals: list[Any], start: Any) -> None:
        """A line of the tile."""
        for v, total in enumerate(totals):
            self.builder.store(self.builder.load(total), self.place(start, v), align=self.itemsize)

    def all_lanes(self, number: Any) -> Any:
        """A vector of the same number."""
        first = self.builder.insert_element(
            ir.Constant(self.vector, ir.Undefined), number, ir.IntType(32)(0)
        )
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), None)
        return self.builder.shuffle_vector(first, first, lanes)

    def add(self, total: Any, number: Any, values: Any) -> None:
        """total += number · values."""
        product = self.builder.fmul(number, values, flags=("contract",))
        known = self.builder.load(total)
        self.builder.store(self.builder.fadd(known, product, flags=("contract",)), total)

    def line(self, start: Any, step: Any, number: Any) -> Any:
        """Where a line of a matrix begins."""
        return self.builder.gep(start, [self.builder.mul(number, step)])


@intrinsic
def _emitted(typingctx, A, a, a_step, a_line, B, b, b_step, order, lines, out, at, out_step):
    """`multiply` as compiled code."""

    def codegen(context, builder, signature, args):
        def start(i, x, first):
            data = context.make_array(x)(context, builder, args[i]).data
            return builder.gep(data, [args[first]])

        left, right, target = start(0, A, 1), start(4, B, 5), start(9, out, 10)
        a_step, a_line, b_step, lines, out_step = (args[i] for i in (2, 3, 6, 8, 11))
        numbers = context.make_array(order)(context, builder, args[7])
        depth = cgutils.unpack_tuple(builder, numbers.shape, 1)[0]
        real = context.get_data_type(A.dtype)
        emit = _Emitter(builder, real, context.get_abi_sizeof(real))
        tile = [
            [cgutils.alloca_once(builder, emit.vector) for _ in range(emit.vectors)]
            for _ in range(emit.lines)
        ]
        own = [ir.IntType(64)(i) for i in range(emit.lines)]
        span = ir.IntType(64)(0), lines, ir.IntType(64)(emit.lines)
        with cgutils.for_range_slice(builder, *span, inc=True) as (line, _):
            for total in chain(*tile):
                builder.store(ir.Constant(emit.vector, None), total)
            begin = emit.line(left, a_line, line)
            with cgutils.for_range(builder, depth) as each:
                number = builder.load(builder.gep(numbers.data, [each.index]))
                values = emit.load(emit.line(right, b_step, number))
                first = emit.line(begin, a_step, each.index)
                for i, totals in zip(own, tile, strict=True):
                    factor = emit.all_lanes(builder.load(emit.line(first, a_line, i)))
                    for total, value in zip(totals, values, strict=True):
                        emit.add(total, factor, value)
            for i, totals in zip(own, tile, strict=True):
                emit.store(totals, emit.line(target, out_step, builder.add(line, i)))
        return context.get_dummy_value()

    n = types.intp
    return types.void(A, n, n, n, B, n, n, order, n, out, n, n), codegen


def _interpreted(A, a, a_step, a_line, B, b, b_step, order, lines, out, at, out_step):
    """`multiply` in plain Python."""
    A, B, out = A.reshape(-1), B.reshape(-1), out.reshape(-1)
    each, panel = np.arange(lines)[:, None], np.arange(width(A.dtype))
    left = A[a + a_line * each + a_step * np.arange(len(order))]
    out[at + out_step * each + panel] = left @ B[b + b_step * order[:, None] + panel]


# multiply(A, a, a_step, a_line, B, b, b_step, order, lines, out, at, out_step): a tile of a product,
# out[at + out_step i + x] = Σ_k A[a + a_step k + a_line i] B[b + b_step order[k] + x], for i from 0 to
# `lines` and x from 0 to the width of a panel. Arrays count as flat. Several lines are made at once,
# so in A and `out` there has to be room for the last ones.
multiply: Any = _interpreted if INTERPRETED else _emitted


@plain
def product(A, a, a_step, a_line, B, b, b_step, order, lines, tile, out, at, out_step):
    """`multiply` for up to a panel of lines, as a sum of sums of some products each: these round less.

    `tile` is a matrix with the size of a panel.
    """
    first = order[:DEEP]
    multiply(A, a, a_step, a_line, B, b, b_step, first, lines, out, at, out_step)
    flat, w = out.reshape(-1), tile.shape[1]
    for k in range(DEEP, len(order), DEEP):
        a += a_step * DEEP
        part = order[k : k + DEEP]
        multiply(A, a, a_step, a_line, B, b, b_step, part, lines, tile, 0, w)
        for i in range(lines):
            to, of = flat[at + i * out_step : at + i * out_step + w], tile[i]
            for x in range(w):
                to[x] += of[x]
