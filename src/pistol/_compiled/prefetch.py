"""Memory that is asked for before it is needed: rows in a shuffled order lie anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .cache import INTERPRETED, helper, plain

AHEAD, SOON = 6, 2  # rounds from the request for a row to its use, and for the rest of a long one
LINE = 8  # float64 values of a cache line; it has twice as many numbers of features
LONGEST = 32  # values of a row that are asked for first


def _asking(locality: int) -> Any:
    """An instruction that asks for memory which is used as often as its locality says, from 0 to 3."""

    @intrinsic
    def ask(typingctx, x, i):
        def codegen(context, builder, signature, args):
            array = context.make_array(signature.args[0])(context, builder, args[0])
            at = builder.bitcast(builder.gep(array.data, [args[1]]), cgutils.voidptr_t)
            number = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            builder.call(function, [at, number(0), number(locality), number(1)])
            return context.get_dummy_value()

        return types.none(x, types.intp), codegen

    return ask


def _nothing(x: Any, i: int) -> None:
    """Without compiled code there is nothing to ask for."""


# prefetch(x, i): ask for element i of an array, counted along its memory; it need not exist
prefetch: Any = _nothing if INTERPRETED else _asking(3)
# The same where so much is read that caches should not keep it, in place of what Python needs.
prefetch_once: Any = _nothing if INTERPRETED else _asking(0)


@plain(forceinline=True)
def ask_for_rows(X, rounds, k):
    """In round k, ask for row and targets of a later round, and for the place of a row later still."""
    order = rounds.order
    if k + 2 * AHEAD < len(order):
        prefetch(X.indptr, order[k + 2 * AHEAD])
    if k + AHEAD < len(order):
        i = np.uintp(order[k + AHEAD])
        lo = X.indptr[i]
        prefetch(rounds.Y, np.intp(i) * rounds.Y.shape[1])
        for n in range(0, LONGEST, LINE):  # a shorter row's neighbour does no harm
            prefetch(X.data, lo + n)
        for n in range(0, LONGEST, 2 * LINE):
            prefetch(X.indices, (lo + n) * X.step)
    if k + SOON < len(order):
        i = np.uintp(order[k + SOON])
        lo, hi = X.indptr[i] + LONGEST, X.indptr[i + np.uintp(1)]
        for n in range(lo, hi, LINE):
            prefetch(X.data, n)
        for n in range(lo, hi, 2 * LINE):
            prefetch(X.indices, n * X.step)


@plain(forceinline=True)
def ask_for_columns(X, i):
    """Ask for columns of row i here and there, for a bisection."""
    if i + 1 < len(X.indptr):
        for n in range(X.indptr[i], X.indptr[i + 1], 4 * LINE):
            prefetch(X.indices, n * X.step)


@helper(inline="always")
def ask_for_next(F, later, n):
    """While entry n of a row is used, ask for what a table has on that of a later row."""
    if n < len(later):
        prefetch(F, np.intp(later[n]) * F.shape[1])


@helper(inline="always")
def ask_for_rest(F, later, n):
    """After the last entry of a row, ask for entries of a later row from n on."""
    for k in range(n, len(later)):
        prefetch(F, np.intp(later[k]) * F.shape[1])
