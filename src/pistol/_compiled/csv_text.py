"""Records of plain numbers, as CSV files mostly hold them, column by column."""

from __future__ import annotations

import numpy as np
from numba.core import types

from .cache import plain
from .text import NINE, NOTHING, ONE, digit, number
from .types import loop

SKIPPED, REAL, WHOLE = range(3)  # kinds of columns
LONGEST = np.uint64(15)  # digits of a whole number: so many are exact


@plain(forceinline=True)
def _field(text, at, kind, values, bits, k):
    """Read one field into values[k]: where it ends, 0 if it holds no plain number."""
    begin = at
    if text[at] == 43:
        return NOTHING
    at, late = number(text, at, values, bits, k)
    if at == NOTHING or late or values[k] - values[k] != 0.0:
        return NOTHING
    if kind == WHOLE:
        begin += np.uint64(text[begin] == 45)
        if at - begin > LONGEST:
            return NOTHING
        for place in range(begin, at):
            if digit(text, place) > NINE:  # a point or an exponent
                return NOTHING
    return at


@plain
def _past(text, at, separator):
    """Where a field ends that is not wanted; 0 if there are quotes in it."""
    while text[at] != separator and text[at] != 10 and text[at] != 13:
        if text[at] == 34:
            return NOTHING
        at += ONE
    return at


_text = types.Array(types.uint8, 1, "C", readonly=True)


@loop(
    lambda dtype: types.int64(
        _text,
        types.int64,
        types.int64[::1],
        types.int64[::1],
        types.int64,
        types.float64[::1],
        types.uint64[::1],
    )
)
def numbers(text, separator, kinds, starts, most, values, bits):
    """Read all records; column j begins at values[starts[j]] and has room for `most` rows.

    Returns how many rows there are, -1 if there is anything but plain numbers. The text ends with the
    end of a line. Lines without a character are no records.
    """
    at, end, row, last = NOTHING, np.uint64(len(text)), 0, len(kinds) - 1
    while at < end:
        if text[at] == 13:
            at += ONE
            if text[at] != 10:
                return -1
        if text[at] == 10:
            at += ONE
            continue
        if row == most:
            return -1
        for j in range(len(kinds)):
            if kinds[j] == SKIPPED:
                at = _past(text, at, separator)
            else:
                at = _field(text, at, kinds[j], values, bits, np.uint64(starts[j] + row))
            if at == NOTHING:
                return -1
            if j < last:
                if text[at] != separator:
                    return -1
                at += ONE
        if text[at] == 13:
            at += ONE
        if text[at] != 10:
            return -1
        at += ONE
        row += 1
    return row
