"""The loop of `coordinates` for long rows with very many features: two threads may share each round.

Every feature belongs to one of two parts, and so do its entries in all rows. ⟨w, x⟩ is the sum of one
sum per part, whoever computes them. So one thread and two threads compute the same bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from .cache import helper, plain
from .coordinates import ENTRIES, FIELDS, SHARED, count_entries, dot_weights, move_weights, share
from .exchange import (
    BEGIN,
    FOLLOWER,
    LEADER,
    LONG,
    dismiss,
    leave,
    publish,
    receive,
    report,
    see_off,
    take_on,
    was_last,
)
from .features import first_from
from .loops import LANES, gradients, tick
from .prefetch import ask_for_rest, ask_for_rows
from .rows import row
from .types import Array, cube, loop, matrix, plugs, real, rounds, rows_type, scalars, vector


class Work(NamedTuple):
    """What a thread works with; the content does not matter."""

    lanes: Array  # numbers of a row's coordinates side by side
    at: Array  # places in a row
    outputs: Array  # four numbers of each output
    rows: Array  # of this round and the next two: where part 1 begins, and the entries
    entries: Array  # as a coordinate, of which a follower uses the entries alone

    @classmethod
    def of(cls, longest: int, outputs: int) -> Work:
        """For rows with so many stored values."""
        room = longest + LANES
        return cls(
            lanes=np.ones((4, room)),
            at=np.zeros(room, np.int64),
            outputs=np.zeros((4, outputs)),
            rows=np.zeros((4, 2), np.int64),
            entries=np.zeros(FIELDS),
        )


_places = types.Array(types.int64, 1, "C")
_marks = types.Array(types.int64, 2, "C")
_work = types.NamedTuple((matrix, _places, matrix, _marks, vector), Work)
_CUT, _COUNT = 0, 1
_TURNS = 3  # a mask: numbers of rounds in turn


@plain
def _prepare(X, rounds, k, border, bias, work):
    """Find the parts of the row of round k, and count its entries."""
    if k < len(rounds.order):
        cols, vals = row(X, rounds.order[k])
        work.rows[k & _TURNS, _CUT] = first_from(cols, border)
        work.rows[k & _TURNS, _COUNT] = count_entries(vals, bias)


@helper(inline="always")
def _own(X, rounds, k, part, work):
    """The entries of one part of round k."""
    cols, vals = row(X, rounds.order[k])
    cut = work.rows[k & _TURNS, _CUT]
    lo, hi = part * cut, cut + part * (len(cols) - cut)
    return cols[lo:hi], vals[lo:hi]


@plain(forceinline=True)
def _start(rounds, k, rule, S, entries, work):
    """Let time move on; b of this round."""
    tick(S, rounds.r[k], rule.power)
    if rule.growth != SHARED:
        return rule.b[0]
    count = work.rows[k & _TURNS, _COUNT]
    return rule.b[0] * share(entries, count, rounds.r[k], S.t[0, 0])


@plain(forceinline=True)
def _sum_up(X, rounds, k, part, rule, b, weight, state, bias, work):
    """The share of one part in ⟨w, x⟩, per output. The constant is in part 0."""
    cols, vals = _own(X, rounds, k, part, work)
    later, _ = _own(X, rounds, min(k + 1, len(rounds.order) - 1), part, work)
    half, constant = len(later) // 2, state.shape[1] - 1 + part
    for j in range(len(state)):
        work.outputs[part, j] = dot_weights(
            state[j], cols, vals, later[:half], constant, bias, weight,
            rule.growth, rule.a, b, rule.L, work.lanes, work.at,
        )  # fmt: skip


@plain(forceinline=True)
def _compare(rounds, k, rule, P, work):
    """Lines 6 and 7."""
    for j in range(P.shape[1]):
        P[k, j] += work.outputs[0, j] + work.outputs[1, j]
    gradients(rounds, rule, k, P, work.outputs[2], work.outputs[3])


@plain(forceinline=True)
def _move(X, rounds, k, part, rule, b, now, state, bias, work):
    """Line 8 for the coordinates of one part; the other half of those of its next row is asked for."""
    cols, vals = _own(X, rounds, k, part, work)
    later, _ = _own(X, rounds, min(k + 1, len(rounds.order) - 1), part, work)
    half, constant = len(later) // 2, state.shape[1] - 1 + part
    s = work.outputs[3]
    for j in range(len(state)):
        if s[j] != 0.0:
            move_weights(
                state[j], cols, vals, later[half:], constant, bias, s[j], now,
                rule.growth, rule.a, b, rule.L, work.lanes,
            )  # fmt: skip
        else:
            ask_for_rest(state[j], later, half)


@plain
def _play_alone(X, rounds, k, border, rule, S, state, bias, P, work):
    """Round k in one thread."""
    ask_for_rows(X, rounds, k)
    weight = S.weight[0, 0]
    b = _start(rounds, k, rule, S, state[0, -1], work)
    for part in range(2):
        _sum_up(X, rounds, k, part, rule, b, weight, state, bias, work)
    _prepare(X, rounds, k + 2, border, bias, work)
    _compare(rounds, k, rule, P, work)
    for part in range(2):
        _move(X, rounds, k, part, rule, b, S.weight[0, 0], state, bias, work)


@plain
def _play_together(
    X, rounds, k, border, rule, S, entries, state, bias, P, work, lines, marks, thread
):
    """Rounds from k on, in two threads, each with a part of its own; how many rounds are over then.

    While the other thread may still be summing up, a later row is made ready.
    """
    other, last, waited = 1 - thread, 0, 0
    while k < len(rounds.order):
        ask_for_rows(X, rounds, k)
        weight = S.weight[0, 0]
        b = _start(rounds, k, rule, S, entries, work)
        _sum_up(X, rounds, k, thread, rule, b, weight, state, bias, work)
        last = 1 if waited > LONG else 0
        publish(lines, marks, thread, k, work.outputs[thread], last)
        _prepare(X, rounds, k + 2, border, bias, work)
        waited = receive(lines, marks, other, k, work.outputs[other])
        _compare(rounds, k, rule, P, work)
        _move(X, rounds, k, thread, rule, b, S.weight[0, 0], state, bias, work)
        k += 1
        if last or was_last(marks, other, k - 1):
            return k
    return k


def _signature(data: Any) -> Any:
    given = rows_type(data), rounds, types.int64, plugs, scalars, cube, real, matrix
    return types.boolean(*given, _work, matrix, _marks)


@loop(_signature, fastmath={"contract"})
def lead(X, rounds, border, rule, S, state, bias, P, work, lines, marks):
    """Play all rounds, with a follower as soon as there is one; whether they parted before the end.

    Features from the border on are in part 1.
    """
    k, entries, parted = 0, state[0, -1], False
    _prepare(X, rounds, 0, border, bias, work)
    _prepare(X, rounds, 1, border, bias, work)
    while k < len(rounds.order):
        lines[BEGIN, 1], lines[BEGIN, 2] = S.t[0, 0], S.weight[0, 0]
        lines[BEGIN, 3] = entries[ENTRIES]
        if take_on(marks, k):
            k = _play_together(
                X, rounds, k, border, rule, S, entries, state, bias, P, work, lines, marks, LEADER
            )
            see_off(marks)
            parted = k < len(rounds.order)
        else:
            _play_alone(X, rounds, k, border, rule, S, state, bias, P, work)
            k += 1
    dismiss(marks)
    return parted


@loop(_signature, fastmath={"contract"})
def follow(X, rounds, border, rule, S, state, bias, P, work, lines, marks):
    """Play part 1 of the rounds from where the leader says; S and P are the follower's own."""
    k = report(marks)
    if k >= 0:
        S.t[0, 0], S.weight[0, 0] = lines[BEGIN, 1], lines[BEGIN, 2]
        work.entries[ENTRIES] = lines[BEGIN, 3]
        _prepare(X, rounds, k, border, bias, work)
        _prepare(X, rounds, k + 1, border, bias, work)
        k = _play_together(
            X,
            rounds,
            k,
            border,
            rule,
            S,
            work.entries,
            state,
            bias,
            P,
            work,
            lines,
            marks,
            FOLLOWER,
        )
        leave(marks)
    return k >= 0
