"""Two threads that play rounds together and tell each other, once per round, what each has summed up.

The leader begins alone. A follower reports when it has started, which may be late or never, and the
leader takes it on between two rounds. From then on each round has one exchange: a thread writes its
numbers, then the number of the round, and waits for those of the other. A thread that has waited too
long, as the other one has lost its core to some other program, says so with its next numbers, and both
part after that round. Compiled loops neither fail nor are interrupted, so a thread that was taken on
always answers.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .cache import INTERPRETED, helper, plain
from .types import LINE, Array, aligned_zeros

CLOCK = getattr(time, "CLOCK_MONOTONIC", None)
FOLLOWED = not INTERPRETED and os.name == "posix" and CLOCK is not None and sys.maxsize > 2**32
# What the follower is: not there yet, ready, taken on, or not needed.
AWAY, READY, TAKEN, GONE = 0, 1, 2, 3
# Lines of a desk: the follower's status, what it begins with, then two lines of numbers or more for
# each thread. They take turns: while one is read, the next may be written already.
STATUS, BEGIN, NUMBERS = 0, 1, 2
LEADER, FOLLOWER = 0, 1

RARELY = 2**6 - 1  # a mask: looks at the other thread's line between pauses
SHORT = 2**17  # looks until a core is left to others, a fifth of a millisecond or so
NAP = 20_000  # nanoseconds for which it is left to them
LONG = 1_000_000  # nanoseconds: threads of which one waits longer part


def new_desk(numbers: int) -> tuple[Array, Array]:
    """Memory for exchanges of so many numbers: as lines of numbers, and as lines of whole ones."""
    width = -(-(numbers + 1) // LINE) * LINE
    lines = aligned_zeros((NUMBERS + 4, max(width, LINE)))
    return lines, lines.view(np.int64)


def _at(context: Any, builder: Any, kind: Any, array: Any, line: Any) -> Any:
    """The address of the first element of a line."""
    lines = context.make_array(kind)(context, builder, array)
    width = builder.extract_value(lines.shape, 1)
    return builder.gep(lines.data, [builder.mul(line, width)])


@intrinsic
def _load(typingctx, lines, line):
    """The first number of a line; what was written before it is seen, too."""

    def codegen(context, builder, signature, args):
        at = _at(context, builder, signature.args[0], *args)
        return builder.load_atomic(at, "acquire", 8)

    return types.int64(lines, types.intp), codegen


@intrinsic
def _store(typingctx, lines, line, value):
    """Write the first number of a line, after all that was written before."""

    def codegen(context, builder, signature, args):
        at = _at(context, builder, signature.args[0], *args[:2])
        builder.store_atomic(args[2], at, "release", 8)
        return context.get_dummy_value()

    return types.none(lines, types.intp, types.int64), codegen


@intrinsic
def _change(typingctx, lines, line, old, new):
    """Write the first number of a line if it is the old one; whether it was."""

    def codegen(context, builder, signature, args):
        at = _at(context, builder, signature.args[0], *args[:2])
        pair = builder.cmpxchg(at, args[2], args[3], "acq_rel", "acquire")
        return builder.extract_value(pair, 1)

    return types.boolean(lines, types.intp, types.int64, types.int64), codegen


@intrinsic
def _pause(typingctx):
    """Tell the processor that this is a loop that waits, where it can be told."""

    def codegen(context, builder, signature, args):
        if platform.machine().lower() in ("x86_64", "amd64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            name = "llvm.x86.sse2.pause"
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [])
        return context.get_dummy_value()

    return types.none(), codegen


@intrinsic
def _sleep(typingctx):
    """Leave the core to others for a short time; to yield it would be to queue up behind all."""

    def codegen(context, builder, signature, args):
        whole = ir.IntType(64)
        time = cgutils.alloca_once_value(builder, ir.ArrayType(whole, 2)([0, NAP]))
        kind = ir.FunctionType(ir.IntType(32), [cgutils.voidptr_t, cgutils.voidptr_t])
        function = cgutils.get_or_insert_function(builder.module, kind, "nanosleep")
        time = builder.bitcast(time, cgutils.voidptr_t)
        builder.call(function, [time, cgutils.voidptr_t(None)])
        return context.get_dummy_value()

    return types.none(), codegen


@intrinsic
def _nanoseconds(typingctx):
    """The system's clock."""

    def codegen(context, builder, signature, args):
        number, whole = ir.IntType(32), ir.IntType(64)
        now = cgutils.alloca_once(builder, ir.ArrayType(whole, 2))  # seconds and nanoseconds
        kind = ir.FunctionType(number, [number, cgutils.voidptr_t])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        builder.call(function, [number(CLOCK), builder.bitcast(now, cgutils.voidptr_t)])
        seconds, rest = cgutils.unpack_tuple(builder, builder.load(now), 2)
        return builder.add(builder.mul(seconds, whole(10**9)), rest)

    return types.int64(), codegen


def _change_alone(lines: Array, line: int, old: int, new: int) -> bool:
    """The same without compiled code, where nobody follows."""
    same = bool(lines[line, 0] == old)
    if same:
        lines[line, 0] = new
    return same


@helper(inline="always")
def _nothing():
    """In place of a call that is not there."""


@helper(inline="always")
def _zero():
    """In place of a clock that is not there."""
    return 0


load: Any = (lambda lines, line: lines[line, 0]) if INTERPRETED else _load
change: Any = _change_alone if INTERPRETED else _change
store: Any = (lambda lines, line, x: lines.__setitem__((line, 0), x)) if INTERPRETED else _store
pause: Any = (lambda: None) if INTERPRETED else _pause
# Where the system has no such calls, nobody ever follows.
sleep: Any = _sleep if FOLLOWED else _nothing
nanoseconds: Any = _nanoseconds if FOLLOWED else _zero


@plain
def take_on(marks, k):
    """Whether a follower was ready, and is with the leader from round k on."""
    if load(marks, STATUS) != READY:
        return False
    marks[BEGIN, 0] = k
    return change(marks, STATUS, READY, TAKEN)


@plain
def dismiss(marks):
    """Nobody is taken on any more."""
    if not change(marks, STATUS, AWAY, GONE):
        change(marks, STATUS, READY, GONE)


@plain
def leave(marks):
    """The follower is done with all that it has begun."""
    store(marks, STATUS, GONE)


@plain
def see_off(marks):
    """Wait until the follower is done."""
    looks, since = 0, 0
    while load(marks, STATUS) != GONE:
        since = _rest(looks, since)
        looks += 1


@plain
def _rest(looks, since):
    """Wait a little, after so many looks and since some time; the time since which the core is left.

    Pauses are rare: many of them in a row make a virtual machine give its core away.
    """
    if looks & RARELY == RARELY:
        pause()
    if looks < SHORT:
        return since
    now = nanoseconds() if looks == SHORT else since
    sleep()
    return now


@plain
def report(marks):
    """Be ready to follow; the first round to play, or -1 if the leader needs nobody.

    A leader that never comes is not waited for: it may have been interrupted before its loop began.
    """
    if not FOLLOWED or not change(marks, STATUS, AWAY, READY):
        return -1
    looks, since = 0, 0
    while load(marks, STATUS) == READY:
        since = _rest(looks, since)
        looks += 1
        if looks > SHORT and nanoseconds() - since > LONG:
            change(marks, STATUS, READY, GONE)
    return marks[BEGIN, 0] if load(marks, STATUS) == TAKEN else -1


@helper(inline="always")
def _line(thread, k):
    """The line in which a thread has its numbers of round k."""
    return NUMBERS + 2 * thread + (k & 1)


@plain
def publish(lines, marks, thread, k, numbers, last):
    """Show the other thread the numbers of round k; the last ones, or not."""
    line = _line(thread, k)
    for j in range(len(numbers)):
        lines[line, 1 + j] = numbers[j]
    store(marks, line, 2 * (k + 1) + last)


@plain
def receive(lines, marks, thread, k, numbers):
    """Take the other thread's numbers of round k; for how long they were waited for, if for long."""
    line, looks, since = _line(thread, k), 0, 0
    while load(marks, line) >> 1 != k + 1:
        since = _rest(looks, since)
        looks += 1
    for j in range(len(numbers)):
        numbers[j] = lines[line, 1 + j]
    return nanoseconds() - since if looks > SHORT else 0


@plain
def was_last(marks, thread, k):
    """Whether a thread parts after round k."""
    return marks[_line(thread, k), 0] & 1
