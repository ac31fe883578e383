"""Text to numbers: decimal numbers, and lines in the svmlight format.

A decimal number w · 10^q becomes the nearest double. If w and 10^|q| are doubles, one product or
quotient does it. Otherwise w is multiplied by the first 128 bits of 5^q (Lemire 2021, "Number parsing
at a gigabyte per second"). Of more than 19 digits the first are taken. Where that leaves the last bit
open, which is rare, Python reads the values of features again.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from .cache import helper, plain
from .types import loop

LEAST, MOST = -342, 308  # powers of ten beyond which every number is zero or infinite
FAR = np.int64(100_000)  # of an exponent: as good as endless
DIGITS = np.uint64(19)  # that a 64-bit number can hold
MOST_FEATURES = 2**31 - 2

# How a line can be wrong
FINE, NO_TARGET, NO_FEATURE, NO_VALUE, NOT_ASCENDING, TOO_LARGE = range(6)
# What is counted while lines are read
ROWS, ENTRIES, LINES, BAD, BAD_AT, BAD_LINE, BAD_KIND, SLOW, LARGEST, COUNTS = range(10)


def _powers_of_five() -> np.ndarray:
    """The first 128 bits of 5^q, in two halves; those of negative q are rounded up."""
    out = np.zeros((MOST - LEAST + 1, 2), np.uint64)
    for q in range(LEAST, MOST + 1):
        power = 5 ** abs(q)
        shift = 128 - power.bit_length()
        if q >= 0:
            top = power << shift if shift >= 0 else power >> -shift
        else:
            top = (1 << (power.bit_length() + 127)) // power + 1
            top >>= top.bit_length() - 128
        out[q - LEAST] = top >> 64, top & (2**64 - 1)
    return out


FIVES = _powers_of_five()
TENS = 10.0 ** np.arange(23)
NOTHING, ONE, NINE, TEN, ZERO = (np.uint64(n) for n in (0, 1, 9, 10, 48))
INFINITE = np.uint64(0x7FF << 52)
TWO_63, EXACT, LARGE = np.uint64(2**63), np.uint64(2**53), np.uint64(MOST_FEATURES + 1)
SIGN = np.uint64(63)
LOW, HALF = np.uint64(2**32 - 1), np.uint64(32)


@helper
def _times(a, b):
    """The product of two 64-bit numbers: its upper and its lower half."""
    a1, a0, b1, b0 = a >> HALF, a & LOW, b >> HALF, b & LOW
    low, middle_a, middle_b = a0 * b0, a1 * b0, a0 * b1
    middle = (low >> HALF) + (middle_a & LOW) + (middle_b & LOW)
    high = a1 * b1 + (middle_a >> HALF) + (middle_b >> HALF) + (middle >> HALF)
    return high, (middle << HALF) | (low & LOW)


@plain
def _bits(w, q):
    """The bits of the double nearest to w · 10^q for w > 0, and whether they are certain."""
    zeros = np.int64(0)
    while w & TWO_63 == np.uint64(0):
        w <<= ONE
        zeros += 1
    high, low = _times(w, FIVES[q - LEAST, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        more, _ = _times(w, FIVES[q - LEAST, 1])
        low += more
        if low < more:
            high += ONE
        if low == np.uint64(2**64 - 1) and not -27 <= q <= 55:
            return np.uint64(0), False
    upper = np.int64(high >> np.uint64(63))
    shift = np.uint64(upper + 9)
    mantissa = high >> shift
    power = ((217706 * q) >> 16) + 63 + upper - zeros + 1023
    if power <= 0:  # a number below the normal ones
        if 1 - power >= 64:
            return np.uint64(0), True
        mantissa >>= np.uint64(1 - power)
        mantissa = (mantissa + (mantissa & ONE)) >> ONE
        return mantissa, True  # a carry into the exponent is as it should be
    if (
        low <= ONE
        and -4 <= q <= 23
        and mantissa & np.uint64(3) == ONE
        and mantissa << shift == high
    ):
        mantissa &= ~ONE  # halfway between two doubles: to the even one
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    if mantissa >= np.uint64(2**53):
        mantissa, power = np.uint64(2**52), power + 1
    if power >= 2047:
        return INFINITE, True
    return (mantissa & np.uint64(2**52 - 1)) | (np.uint64(power) << np.uint64(52)), True


@plain(forceinline=True)
def digit(text, at):
    """The digit at a place; more than 9 if there is none."""
    return np.uint64(text[at]) - ZERO


@helper(forceinline=True)
def is_blank(c):
    """Whether this byte is a space, a tab or the like, but for the end of a line."""
    return c == 32 or c == 9 or c == 13 or c == 11 or c == 12


@helper(forceinline=True)
def ends(c):
    """Whether a word ends before this byte: at a blank, a comment or the end of the line."""
    return c == 32 or c == 10 or c == 35 or is_blank(c)


@plain(forceinline=True)
def number(text, at, values, bits, k):
    """Read the number at a place into values[k], which shares its memory with bits[k].

    Returns where it ends, 0 if there is none, and whether its last bit is not certain.
    """
    negative = text[at] == 45
    at += np.uint64(negative | (text[at] == 43))  # no branch: signs cannot be foreseen
    start, w, q = at, np.uint64(0), np.int64(0)
    d = digit(text, at)
    while d <= NINE:
        w = w * TEN + d
        at += ONE
        d = digit(text, at)
    held = at - start
    if text[at] == 46:
        at += ONE
        begin, d = at, digit(text, at)
        while d <= NINE:
            w = w * TEN + d
            at += ONE
            d = digit(text, at)
        held += at - begin
        q = -np.int64(at - begin)
    if held == NOTHING:
        return NOTHING, False
    cut = False
    if held > DIGITS:
        w, dropped = _first_digits(text, start, at)
        q += dropped
        cut = dropped > 0
    if text[at] == 101 or text[at] == 69:
        at, power = _exponent(text, at + ONE)
        if at == NOTHING:
            return at, False
        q += power
    if -22 <= q <= 22 and w <= EXACT and not cut:
        value = np.float64(np.int64(w))
        values[k] = value / TENS[np.uint64(-q)] if q < 0 else value * TENS[np.uint64(q)]
        bits[k] |= np.uint64(negative) << SIGN
        return at, False
    if w == NOTHING or q < LEAST:
        values[k] = -0.0 if negative else 0.0
        return at, False
    if q > MOST:
        values[k] = -np.inf if negative else np.inf
        return at, False
    found, certain = _bits(w, q)
    if cut:  # the digits left out matter only where the next number is another double
        next_, also = _bits(w + ONE, q)
        certain = certain and also and found == next_
    bits[k] = found | TWO_63 if negative else found
    return at, not certain


@plain
def _first_digits(text, at, end):
    """The first 19 digits of a number, from its first that is not zero on, and how many follow."""
    w, held, dropped = np.uint64(0), np.uint64(0), np.int64(0)
    while at < end:
        d = digit(text, at)
        if d <= NINE:
            if held < DIGITS:
                w = w * TEN + d
                held += ONE if w != NOTHING else NOTHING
            else:
                dropped += 1
        at += ONE
    return w, dropped


@plain
def _exponent(text, at):
    """A whole number; where it ends, 0 if there is none."""
    down = text[at] == 45
    if down or text[at] == 43:
        at += ONE
    power, d = np.int64(0), digit(text, at)
    if d > NINE:
        return NOTHING, power
    while d <= NINE:
        power = min(power * 10 + np.int64(d), FAR)
        at += ONE
        d = digit(text, at)
    return at, -power if down else power


@plain
def wrong(counts, kind, at):
    """Count a line that is wrong; of the first one, where and why."""
    if counts[BAD] == 0:
        counts[BAD_AT], counts[BAD_LINE], counts[BAD_KIND] = at, counts[LINES], kind
    counts[BAD] += 1


@plain
def _features(text, at, first, indices, values, bits, slow, counts):
    """Read the features of a line: what is wrong with it, and where."""
    k, s, before = np.uint64(counts[ENTRIES]), counts[SLOW], np.int64(first - 1)
    while True:
        while is_blank(text[at]):
            at += ONE
        if text[at] == 10 or text[at] == 35:
            counts[ENTRIES], counts[SLOW] = np.int64(k), s
            return FINE, at
        start, feature, d = at, NOTHING, digit(text, at)
        while d <= NINE and feature < LARGE:
            feature = feature * TEN + d
            at += ONE
            d = digit(text, at)
        if feature >= LARGE:
            return TOO_LARGE, start
        if at == start or text[at] != 58:
            if text[start] == 113 and text[start + ONE] == 105:  # the id of a query
                while not ends(text[at]):
                    at += ONE
                continue
            return NO_FEATURE, start
        if np.int64(feature) <= before:
            return NOT_ASCENDING, start
        at, late = number(text, at + ONE, values, bits, k)
        if at == NOTHING or not ends(text[at]):
            return NO_VALUE, start
        if late:
            slow[s, 0], slow[s, 1] = np.int64(k), start
            s += 1
        before = np.int64(feature)
        indices[k] = before - first
        k += ONE


_text = types.Array(types.uint8, 1, "C", readonly=True)
_reals, _words = types.float64[::1], types.uint64[::1]
_wholes, _pairs = types.int64[::1], types.int64[:, ::1]


@loop(
    lambda dtype: types.void(
        _text,
        types.int64,
        _reals,
        _words,
        _wholes,
        types.int32[::1],
        _reals,
        _words,
        _pairs,
        _wholes,
    )
)
def svmlight(text, first, y, y_bits, indptr, indices, values, bits, slow, counts):
    """Read all lines: targets, and features from number `first` on. Lines that are wrong are left out.

    The text ends with the end of a line.
    """
    at, end = NOTHING, np.uint64(len(text))
    while at < end:
        while is_blank(text[at]):
            at += ONE
        if text[at] != 10 and text[at] != 35:
            entries, n, begin, kind = counts[ENTRIES], counts[ROWS], at, FINE
            at, _ = number(text, at, y, y_bits, np.uint64(n))
            if at == NOTHING or not ends(text[at]):
                kind, at = NO_TARGET, begin
            else:
                kind, at = _features(text, at, first, indices, values, bits, slow, counts)
            if kind != FINE:
                wrong(counts, kind, at)
                counts[ENTRIES] = entries
            else:
                if counts[ENTRIES] > entries:
                    counts[LARGEST] = max(counts[LARGEST], indices[counts[ENTRIES] - 1])
                counts[ROWS] = n + 1
                indptr[n + 1] = counts[ENTRIES]
        while text[at] != 10:
            at += ONE
        counts[LINES] += 1
        at += ONE
