"""One event at a time: rounds of linear learners at the price of a function call.

Unpacking a dozen arrays takes ten times as long as a round with twenty features. So all that a round
needs lies in one vector of floats and one of integers; the functions here lay views over them and
play a single round with the very loops that play whole chunks. A refused event changes nothing and
returns infinity, which no loss and no score ever is; the caller then raises the error.

Learning one feature at a time cannot make up for features far from zero: all their weights would
have to move together. So events can be taken relative to the mean of all events so far, the one at
hand included.
"""

from __future__ import annotations

from math import inf

from numba.core import types

from . import coordinates, loops
from .cache import helper, plain
from .coordinates import FIELDS, M, W, set_unit
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
    table,
    vector,
)

# The head of the vector of floats: the scalars, then y, r and p of the round, then the rule's numbers,
# the constant beside the features, the weight of the next event in the mean of all, and the loss of the
# round. The state of the learner follows; the mean and the event relative to it come last.
(
    G_NORM, ALPHA, C_SUM, T, WEIGHT, TARGET, SIZE, SCORE, A, B, L, POWER, THETA, LOSS_SUM, S_SUM,
    BIAS, NEWEST, LOSS, HEAD,
) = range(19)  # fmt: skip
# The vector of integers: addresses of the plugs, how b_t grows, the row's number, where it begins
# and ends, and its columns.
GRAD, VALUE, POTENTIAL, GROWTH, ORDER, BEGIN, END, COLUMNS = range(8)
UNCOUPLED = 0  # an event has one output

_learn_primal = helper(loops.learn_primal.py_func)
_learn_coordinates = helper(coordinates.learn_coordinates.py_func)


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


@plain
def _refused(x, features, y):
    """Whether anything about the event is not finite, too large, or of the wrong length."""
    return len(x) != features or not square(x) <= MAX_NORM_SQ or not abs(y) <= MAX_TARGET


@helper(inline="always")
def _body(Z, d):
    return Z[HEAD : len(Z) - 2 * d]


@helper(inline="always")
def _mean(Z, d):
    return Z[len(Z) - 2 * d : len(Z) - d]


@helper
def _centred(Z, d, x):
    """x relative to a mean that counts it, (1 - weight) (x - mean)."""
    mean, z = _mean(Z, d), Z[len(Z) - d :]
    for i in range(d):
        z[i] = (1.0 - Z[NEWEST]) * (x[i] - mean[i])
    return z


@plain
def _count(Z, d, x):
    """Count x in the mean, with weights 1, 1/2, 1/3, …; a weight of zero stays zero."""
    mean = _mean(Z, d)
    for i in range(d):
        mean[i] += Z[NEWEST] * (x[i] - mean[i])
    Z[NEWEST] /= 1.0 + Z[NEWEST]


@helper(inline="always")
def _suffer(Z, N, x, y):
    """What was predicted in the round just played; its loss is added to the sums, the mean moves on."""
    _count(Z, N[END], x)
    Z[LOSS] = call_loss(N[VALUE], y, Z[SCORE], Z[THETA])
    Z[LOSS_SUM] += Z[LOSS]
    Z[S_SUM] += abs(call_loss(N[GRAD], y, Z[SCORE], Z[THETA]))
    return Z[SCORE]


def _learn_type(dtype):
    return real(vector, types.int64[::1], numbers, real)


def _predict_type(dtype):
    return real(vector, types.int64[::1], numbers)


@loop(_learn_type)
def learn_primal(Z, N, x, y):
    """A round with g as a vector; returns f_t(x), or infinity where x or y is refused."""
    d = N[END]
    if _refused(x, d, y):
        return inf
    Z[TARGET] = y
    Z[SCORE] = 0.0
    X = Rows(N[BEGIN:COLUMNS], N[COLUMNS:], _centred(Z, d, x), 0)
    g, u = _body(Z, d)[: d + 1].reshape(1, d + 1), _body(Z, d)[d + 1 :].reshape(1, d + 1)
    _learn_primal(X, _round(Z, N), _plugs(Z, N), _scalars(Z), g, u, Z[BIAS], _cell(Z, SCORE))
    return _suffer(Z, N, x, y)


@loop(_predict_type)
def predict_primal(Z, N, x):
    """f_t(x) = c_t ⟨g, x⟩; infinity where x is refused."""
    d = N[END]
    if _refused(x, d, 0.0):
        return inf
    c = call_potential(N[POTENTIAL], Z[G_NORM], Z[ALPHA], Z[T], Z[B])
    g, mean, total = _body(Z, d), _mean(Z, d), 0.0
    for i in range(d):
        total += g[i] * ((1.0 - Z[NEWEST]) * (x[i] - mean[i]))
    return c * (total + g[d] * Z[BIAS])


@loop(_learn_type)
def learn_coordinates(Z, N, x, y):
    """A round with one learner per coordinate; returns as `learn_primal` does."""
    d = N[END]
    if _refused(x, d, y):
        return inf
    Z[TARGET] = y
    Z[SCORE] = 0.0
    X = Rows(N[BEGIN:COLUMNS], N[COLUMNS:], _centred(Z, d, x), 0)
    state = _body(Z, d).reshape(1, d + 1, FIELDS)
    _learn_coordinates(X, _round(Z, N), _plugs(Z, N), _scalars(Z), state, Z[BIAS], _cell(Z, SCORE))
    return _suffer(Z, N, x, y)


_one_primal = helper(learn_primal.py_func)
_one_coordinates = helper(learn_coordinates.py_func)


def _many_type(dtype):
    return types.void(vector, types.int64[::1], table, numbers, vector)


@loop(_many_type)
def learn_primal_many(Z, N, X, y, P):
    """Rounds with the rows of X, none of which may be refused; what was predicted goes to P."""
    for i in range(len(y)):
        P[i] = _one_primal(Z, N, X[i], y[i])


@loop(_many_type)
def learn_coordinates_many(Z, N, X, y, P):
    """The same with one learner per coordinate."""
    for i in range(len(y)):
        P[i] = _one_coordinates(Z, N, X[i], y[i])


@loop(_predict_type)
def predict_coordinates(Z, N, x):
    """f_t(x), with the unit of a coordinate as x would make it; infinity where x is refused."""
    d = N[END]
    if _refused(x, d, 0.0):
        return inf
    state, mean = _body(Z, d).reshape(d + 1, FIELDS), _mean(Z, d)
    total = _weight(Z, N, state, d, Z[BIAS]) * Z[BIAS]
    for f in range(d):
        z = (1.0 - Z[NEWEST]) * (x[f] - mean[f])
        total += _weight(Z, N, state, f, z) * z
    return total


@helper
def _weight(Z, N, state, f, z):
    """The weight of coordinate f, in the unit that z would make its own."""
    if abs(z) <= state[f, M]:
        return state[f, W]
    own = state[f : f + 1].copy()
    set_unit(own, 0, z, Z[WEIGHT], N[GROWTH], Z[A], Z[B], Z[L])
    return own[0, W]
