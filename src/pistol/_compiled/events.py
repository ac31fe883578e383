"""One event at a time: rounds of linear learners at the price of a function call.

Unpacking a dozen arrays takes ten times as long as a round with twenty features. So all that a round
needs lies in one vector of floats and one of integers; the functions here lay views over them and
play a single round with the very loops that play whole chunks. A refused event changes nothing and
returns infinity, which no loss and no score ever is; the caller then raises the error.
"""

from __future__ import annotations

from math import inf

from numba.core import types

from . import loops
from .cache import helper
from .loops import FIELDS, M, W, set_unit
from .plugs import call_loss, call_potential
from .rows import square
from .types import (
    MAX_NORM_SQ,
    MAX_TARGET,
    Plugs,
    Rounds,
    Rows,
    Scalars,
    loop,
    numbers,
    real,
    vector,
)

# The head of the vector of floats: the scalars, then y, r and p of the round, then the rule's numbers.
(
    G_NORM, ALPHA, C_SUM, T, WEIGHT, TARGET, SIZE, SCORE, A, B, L, POWER, THETA, LOSS_SUM, S_SUM, HEAD,
) = range(16)  # fmt: skip
# The vector of integers: addresses of the plugs, how b_t grows, the row's number, where it begins
# and ends, and its columns.
GRAD, VALUE, POTENTIAL, GROWTH, ORDER, BEGIN, END, COLUMNS = range(8)
UNCOUPLED = 0  # an event has one output

_learn_primal = helper(loops.learn_primal.py_func)
_learn_coordinates = helper(loops.learn_coordinates.py_func)


@helper(inline="always")
def _cell(state, i):
    return state[i : i + 1].reshape(1, 1)


@helper(inline="always")
def _scalars(Z):
    cells = _cell(Z, G_NORM), _cell(Z, ALPHA), _cell(Z, C_SUM), _cell(Z, T), _cell(Z, WEIGHT)
    return Scalars(cells[0], cells[1], cells[2], cells[3], cells[4])


@helper(inline="always")
def _round(Z, N):
    return Rounds(_cell(Z, TARGET), N[ORDER:BEGIN], Z[SIZE:SCORE])


@helper(inline="always")
def _plugs(Z, N):
    return Plugs(
        N[GRAD], Z[THETA:LOSS_SUM], UNCOUPLED, N[POTENTIAL], N[GROWTH],
        Z[A], Z[B:L], Z[L], Z[POWER],
    )  # fmt: skip


@helper
def _refused(x, features, y):
    """Whether anything about the event is not finite, too large, or of the wrong length."""
    return len(x) != features or not square(x) <= MAX_NORM_SQ or not abs(y) <= MAX_TARGET


@helper(inline="always")
def _suffer(Z, N, y):
    """The loss of the round just played, which is added to the sums."""
    value = call_loss(N[VALUE], y, Z[SCORE], Z[THETA])
    Z[LOSS_SUM] += value
    Z[S_SUM] += abs(call_loss(N[GRAD], y, Z[SCORE], Z[THETA]))
    return value


def _learn_type(dtype):
    return real(vector, types.int64[::1], numbers, real)


def _predict_type(dtype):
    return real(vector, types.int64[::1], numbers)


@loop(_learn_type)
def learn_primal(Z, N, x, y):
    """A round with g as a vector; returns the loss suffered, or infinity where x or y is refused."""
    d = N[END]
    if _refused(x, d, y):
        return inf
    Z[TARGET] = y
    Z[SCORE] = 0.0
    X = Rows(N[BEGIN:COLUMNS], N[COLUMNS:], x, 0)
    g, u = Z[HEAD : HEAD + d + 1].reshape(1, d + 1), Z[HEAD + d + 1 :].reshape(1, d + 1)
    _learn_primal(X, _round(Z, N), _plugs(Z, N), _scalars(Z), g, u, 0.0, _cell(Z, SCORE))
    return _suffer(Z, N, y)


@loop(_predict_type)
def predict_primal(Z, N, x):
    """f_t(x) = c_t ⟨g, x⟩; infinity where x is refused."""
    if _refused(x, N[END], 0.0):
        return inf
    c = call_potential(N[POTENTIAL], Z[G_NORM], Z[ALPHA], Z[T], Z[B])
    total = 0.0
    for i in range(len(x)):
        total += Z[HEAD + i] * x[i]
    return c * total


@loop(_learn_type)
def learn_coordinates(Z, N, x, y):
    """A round with one learner per coordinate; returns as `learn_primal` does."""
    d = N[END]
    if _refused(x, d, y):
        return inf
    Z[TARGET] = y
    Z[SCORE] = 0.0
    X = Rows(N[BEGIN:COLUMNS], N[COLUMNS:], x, 0)
    state = Z[HEAD:].reshape(1, d + 1, FIELDS)
    _learn_coordinates(X, _round(Z, N), _plugs(Z, N), _scalars(Z), state, 0.0, _cell(Z, SCORE))
    return _suffer(Z, N, y)


@loop(_predict_type)
def predict_coordinates(Z, N, x):
    """f_t(x), with the unit of a coordinate as x would make it; infinity where x is refused."""
    d = N[END]
    if _refused(x, d, 0.0):
        return inf
    state, total = Z[HEAD:].reshape(d + 1, FIELDS), 0.0
    for f in range(d):
        if abs(x[f]) <= state[f, M]:
            total += state[f, W] * x[f]
        else:
            own = state[f : f + 1].copy()
            set_unit(own, 0, x[f], Z[WEIGHT], N[GROWTH], Z[A], Z[B], Z[L])
            total += own[0, W] * x[f]
    return total
