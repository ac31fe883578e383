"""One event at a time, with features that are known by name: rounds of a linear learner per coordinate.

As in `events`, a call must not unpack many arrays. The vector of floats has the numbers of the rule,
then θ, p and y of each output, the values of the event, and room for the values that are learned; the
vector of integers has addresses, and the slots of the event's features. The state of the learner and
the means of the features are matrices that grow with the number of features.

A number is taken relative to the mean of its feature in the events that have it, the one at hand
included; so a feature that is absent counts as if it had its mean. Words are indicators, not centred.
"""

from __future__ import annotations

from math import inf, sqrt

from numba.core import types

from . import coordinates, loops
from .cache import helper, plain
from .coordinates import ENTRIES, SHARED, M, W, set_unit
from .rows import square
from .types import MAX_NORM_SQ, Plugs, Rounds, Rows, Scalars, cube, loop, matrix, real, vector

# The head of the vector of floats, then that of the vector of integers.
G_NORM, ALPHA, C_SUM, T, WEIGHT, SIZE, A, B, L, POWER, HEAD = range(11)
GRAD, VALUE, COUPLED, GROWTH, ROOM, ORDER, BEGIN, END, COLUMNS = range(9)
MEAN, NEWEST = 0, 1  # of a feature: the mean so far, and the weight of the next value; 0 for words
BIAS = 1.0

_learn_coordinates = helper(coordinates.learn_coordinates.py_func)
_total_loss = helper(loops.total_loss.py_func)


@helper(inline="always")
def _cell(Z, i):
    return Z[i : i + 1].reshape(1, 1)


@helper
def _relative(Z, N, J, means):
    """The values of the event, each relative to a mean that counts it."""
    m, at = N[END], HEAD + 3 * J
    values, z = Z[at : at + m], Z[at + N[ROOM] : at + N[ROOM] + m]
    for n in range(m):
        f = N[COLUMNS + n]
        z[n] = (1.0 - means[f, NEWEST]) * (values[n] - means[f, MEAN])
    return z


@plain
def _count(Z, N, J, means):
    """Count the values in the means of their features, with weights 1, 1/2, 1/3, …"""
    for n in range(N[END]):
        f = N[COLUMNS + n]
        means[f, MEAN] += means[f, NEWEST] * (Z[HEAD + 3 * J + n] - means[f, MEAN])
        means[f, NEWEST] /= 1.0 + means[f, NEWEST]


@plain
def _refused(Z, N, J):
    at = HEAD + 3 * J
    return not square(Z[at : at + N[END]]) <= MAX_NORM_SQ


_type = real(vector, types.int64[::1], cube, matrix)


@loop(lambda dtype: _type)
def learn_named(Z, N, state, means):
    """A round with the event; returns the loss suffered, or infinity where a value is refused."""
    J = len(state)
    if _refused(Z, N, J):
        return inf
    theta, Y = Z[HEAD : HEAD + J], Z[HEAD + 2 * J : HEAD + 3 * J].reshape(1, J)
    P = Z[HEAD + J : HEAD + 2 * J].reshape(1, J)
    P[:] = 0.0
    X = Rows(N[BEGIN:COLUMNS], N[COLUMNS:], _relative(Z, N, J, means), 0)
    rounds = Rounds(Y, N[ORDER:BEGIN], Z[SIZE:A])
    rule = Plugs(N[GRAD], theta, N[COUPLED], 0, N[GROWTH], Z[A], Z[B:L], Z[L], Z[POWER])
    S = Scalars(_cell(Z, G_NORM), _cell(Z, ALPHA), _cell(Z, C_SUM), _cell(Z, T), _cell(Z, WEIGHT))
    _learn_coordinates(X, rounds, rule, S, state, BIAS, P)
    _count(Z, N, J, means)
    return _total_loss(P, Y, rounds.order, rounds.r, N[VALUE], theta, N[COUPLED])


@loop(lambda dtype: _type)
def predict_named(Z, N, state, means):
    """Write f_t of the event to the vector; returns that of the first output, or infinity."""
    J = len(state)
    if _refused(Z, N, J):
        return inf
    z, d, b = _relative(Z, N, J, means), state.shape[1] - 1, Z[B]
    if N[GROWTH] == SHARED:
        k = 1.0
        for n in range(len(z)):
            k += z[n] != 0.0
        b *= sqrt((Z[T] + 1.0) / (state[0, d, ENTRIES] + k))
    for j in range(J):
        p = _weight(Z, N, state, j, d, BIAS, b) * BIAS
        for n in range(len(z)):
            p += _weight(Z, N, state, j, N[COLUMNS + n], z[n], b) * z[n]
        Z[HEAD + J + j] = p
    return Z[HEAD + J]


@helper
def _weight(Z, N, state, j, f, z, b):
    """The weight of coordinate f, in the unit that z would make its own."""
    if abs(z) <= state[j, f, M]:
        return state[j, f, W]
    own = state[j, f : f + 1].copy()
    set_unit(own, 0, z, Z[WEIGHT], N[GROWTH], Z[A], b, Z[L])
    return own[0, W]
