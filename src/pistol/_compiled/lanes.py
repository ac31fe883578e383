"""Vectors of the processor as values of compiled code: loops over lanes that are written out.

A compiler finds vectors in a loop by itself, but it has to assume that arrays overlap, that any number
of them remains at the end, and that totals are in memory. Here a loop says what it means::

    for x in range(0, len(g), lanes(g)):
        store(g, x, load(g, x) + every(load(k, x), s) * load(k, x))

Arrays are as long as some whole vectors. `+`, `-` and `*` of vectors round as those of numbers do, but
for a product that is added up at once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.registry import cpu_target
from numba.extending import intrinsic, lower_builtin, register_model, type_callable

from .cache import INTERPRETED
from .types import Array

LINE = 64  # bytes of a cache line, and of the largest vectors


@cache
def vector_bytes() -> int:
    """Of a vector of this processor."""
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    known = features.split(",")
    return 64 if "+avx512f" in known else 32 if "+avx2" in known else 16


def count(dtype: Any) -> int:
    """Numbers of a vector."""
    return vector_bytes() // np.dtype(dtype).itemsize


def whole(n: int, dtype: Any) -> int:
    """n or the next larger number that fills cache lines, and so vectors, of this dtype."""
    size = LINE // np.dtype(dtype).itemsize
    return -(-n // size) * size


def filled_up(x: Array) -> Array:
    """With zeros at the end of the last dimension where it does not have whole cache lines."""
    if x.shape[-1] == whole(x.shape[-1], x.dtype):
        return np.ascontiguousarray(x)
    out = np.zeros((*x.shape[:-1], whole(x.shape[-1], x.dtype)), x.dtype)
    out[..., : x.shape[-1]] = x
    return out


class Lanes(types.Type):
    """The type of a vector of float32 or float64."""

    def __init__(self, dtype: Any) -> None:
        self.dtype, self.count = dtype, vector_bytes() * 8 // dtype.bitwidth
        super().__init__(name=f"Lanes({dtype} x {self.count})")


@register_model(Lanes)
class _Model(PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        number = manager.lookup(kind.dtype).get_value_type()
        super().__init__(manager, kind, ir.VectorType(number, kind.count))


def _place(context: Any, builder: Any, kind: Any, vector: Lanes, array: Any, at: Any) -> Any:
    """Where the vector lies that begins at this element of an array."""
    data = context.make_array(kind)(context, builder, array).data
    to = context.get_value_type(vector).as_pointer()
    return builder.bitcast(builder.gep(data, [at]), to)


@intrinsic
def _lanes(typingctx, a):
    size = Lanes(a.dtype).count
    return types.intp(a), lambda context, *_: context.get_constant(types.intp, size)


@intrinsic
def _load(typingctx, a, i):
    vector = Lanes(a.dtype)

    def codegen(context, builder, signature, args):
        at = _place(context, builder, signature.args[0], vector, *args)
        return builder.load(at, align=vector.dtype.bitwidth // 8)

    return vector(a, types.intp), codegen


@intrinsic
def _store(typingctx, a, i, v):
    def codegen(context, builder, signature, args):
        at = _place(context, builder, signature.args[0], v, *args[:2])
        builder.store(args[2], at, align=v.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(a, types.intp, v), codegen


@intrinsic
def _every(typingctx, v, x):
    def codegen(context, builder, signature, args):
        kind = context.get_value_type(v)
        first = builder.insert_element(ir.Constant(kind, ir.Undefined), args[1], ir.IntType(32)(0))
        same = ir.Constant(ir.VectorType(ir.IntType(32), v.count), None)
        return builder.shuffle_vector(first, first, same)

    return v(v, v.dtype), codegen


@intrinsic
def _larger(typingctx, v, w):
    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return v(v, v), codegen


@intrinsic
def _total(typingctx, v):
    def codegen(context, builder, signature, args):
        (v,) = args
        lanes = v.type.count
        while lanes > 1:  # halves are added, so the order does not depend on the compiler
            lanes //= 2
            halves = [[*range(first, first + lanes)] for first in (0, lanes)]
            v = builder.fadd(*(_picked(builder, v, half) for half in halves))
        return builder.extract_element(v, ir.IntType(32)(0))

    return v.dtype(v), codegen


def _picked(builder: Any, v: Any, numbers: list[int]) -> Any:
    """The vector of these lanes."""
    return _mixed(builder, v, ir.Constant(v.type, ir.Undefined), numbers)


@intrinsic
def _apart(typingctx, a, at, step):
    vector = Lanes(a.dtype)

    def codegen(context, builder, signature, args):
        data = context.make_array(a)(context, builder, args[0]).data
        _, at, step = args
        v = ir.Constant(context.get_value_type(vector), ir.Undefined)
        for lane in range(vector.count):
            place = builder.add(at, builder.mul(step, step.type(lane)))
            number = builder.load(builder.gep(data, [place]))
            v = builder.insert_element(v, number, ir.IntType(32)(lane))
        return v

    return vector(a, types.intp, types.intp), codegen


@intrinsic
def _across(typingctx, a, at, step, to):
    def codegen(context, builder, signature, args):
        data = context.make_array(a)(context, builder, args[0]).data
        at, step, to = args[1:]
        vector = Lanes(a.dtype)
        kind, align = context.get_value_type(vector).as_pointer(), vector.dtype.bitwidth // 8

        def line(first, i):
            place = builder.add(first, builder.mul(step, step.type(i)))
            return builder.bitcast(builder.gep(data, [place]), kind)

        lines = [builder.load(line(at, i), align=align) for i in range(vector.count)]
        for i, v in enumerate(_transposed(builder, lines)):
            builder.store(v, line(to, i), align=align)
        return context.get_dummy_value()

    return types.none(a, types.intp, types.intp, types.intp), codegen


def _transposed(builder: Any, lines: list[Any]) -> list[Any]:
    """The columns of a square of vectors: blocks beside its diagonal change places, size by size."""
    n, size = len(lines), 1
    while size < n:
        here = [lane if not lane & size else n + lane - size for lane in range(n)]
        there = [lane + size if not lane & size else n + lane for lane in range(n)]
        for i in (i for i in range(n) if not i & size):
            pair = lines[i], lines[i + size]
            lines[i], lines[i + size] = (_mixed(builder, *pair, some) for some in (here, there))
        size *= 2
    return lines


def _mixed(builder: Any, v: Any, w: Any, numbers: list[int]) -> Any:
    """Lanes of two vectors, those of the second one counted after those of the first."""
    kind = ir.VectorType(ir.IntType(32), len(numbers))
    return builder.shuffle_vector(v, w, ir.Constant(kind, numbers))


def _operator(function: Callable[..., Any], instruction: str) -> None:
    """Teach compiled code an operator of two vectors."""

    @type_callable(function)
    def typed(context):
        return lambda v, w: v if isinstance(v, Lanes) and v == w else None

    @lower_builtin(function, Lanes, Lanes)
    def lowered(context, builder, signature, args):
        return getattr(builder, instruction)(*args, flags=("contract",))


for _known in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    _operator(*_known)


def _store_in_turn(a: Array, i: int, v: Array) -> None:
    a[i : i + len(v)] = v


def _load_in_turn(a: Array, i: int) -> Array:
    return a[i : i + count(a.dtype)].copy()


def _across_in_turn(a: Array, at: int, step: int, to: int) -> None:
    each = np.arange(count(a.dtype))
    a[to + step * each[:, None] + each] = a[at + step * each + each[:, None]]


def _apart_in_turn(a: Array, at: int, step: int) -> Array:
    return a[at + step * np.arange(count(a.dtype))]


# How many lanes a vector of numbers like those of an array has
lanes: Any = (lambda a: count(a.dtype)) if INTERPRETED else _lanes
# load(a, i): the vector that begins at element i of an array of one dimension
load: Any = _load_in_turn if INTERPRETED else _load
# store(a, i, v) puts it there
store: Any = _store_in_turn if INTERPRETED else _store
# every(v, x): a vector like v with x in all lanes
every: Any = (lambda v, x: np.full_like(v, x)) if INTERPRETED else _every
# total(v): the sum over the lanes
total: Any = np.sum if INTERPRETED else _total
# larger(v, w): the larger of two numbers in each lane
larger: Any = np.maximum if INTERPRETED else _larger
# apart(a, at, step): the vector of numbers of an array of one dimension that are `step` apart
apart: Any = _apart_in_turn if INTERPRETED else _apart
# across(a, at, step, to): a square of numbers in lines that are `step` apart, as columns: for i and j
# below the number of lanes, a[to + step j + i] = a[at + step i + j]
across: Any = _across_in_turn if INTERPRETED else _across
