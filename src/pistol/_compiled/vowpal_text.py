"""Lines in Vowpal Wabbit's text format: `label importance tag|namespace feature:value ...`.

The name of a feature is hashed as Vowpal Wabbit does it, by MurmurHash3 with the hash of its namespace
as the seed; a name that is a number is added to that hash.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from .cache import helper, plain
from .text import (
    ENTRIES,
    FINE,
    LINES,
    NINE,
    NO_TARGET,
    NO_VALUE,
    NOTHING,
    ONE,
    ROWS,
    TEN,
    digit,
    is_blank,
    number,
    wrong,
)
from .types import loop

NO_BAR = 6
MASK = np.uint64(2**32 - 1)
C1, C2, FIVE, MIX = (np.uint64(n) for n in (0xCC9E2D51, 0x1B873593, 5, 0xE6546B64))
F1, F2 = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
FOUR, EIGHT = np.uint64(4), np.uint64(8)
S13, S15, S16, S17, S19 = (np.uint64(n) for n in (13, 15, 16, 17, 19))


@helper
def _scrambled(k):
    k = (k * C1) & MASK
    k = ((k << S15) | (k >> S17)) & MASK
    return (k * C2) & MASK


@plain
def murmur(text, at, end, seed):
    """MurmurHash3 (32 bits) of the bytes from one place to another."""
    h, n = seed & MASK, end - at
    while end - at >= FOUR:
        k = np.uint64(0)
        for i in range(4):
            k |= np.uint64(text[at + np.uint64(i)]) << (EIGHT * np.uint64(i))
        h ^= _scrambled(k)
        h = ((h << S13) | (h >> S19)) & MASK
        h = (h * FIVE + MIX) & MASK
        at += FOUR
    if at < end:
        k, shift = np.uint64(0), np.uint64(0)
        while at < end:
            k |= np.uint64(text[at]) << shift
            shift += EIGHT
            at += ONE
        h ^= _scrambled(k)
    h ^= n
    h = ((h ^ (h >> S16)) * F1) & MASK
    h = ((h ^ (h >> S13)) * F2) & MASK
    return h ^ (h >> S16)


@plain
def _hashed(text, at, end, seed):
    """The hash of a feature's name."""
    value, place = np.uint64(0), at
    while place < end and digit(text, place) <= NINE:
        value = (value * TEN + digit(text, place)) & MASK
        place += ONE
    return (value + seed) & MASK if place == end and end > at else murmur(text, at, end, seed)


@helper
def _stops(c):
    """Whether a name ends before this byte."""
    return c == 10 or c == 124 or c == 58 or is_blank(c)


@plain
def _front(text, at, bar, n, y, y_bits, weight, weight_bits):
    """Read what stands before the first bar: what is wrong with it, and where."""
    y[n], weight[n] = np.nan, 1.0
    for part in range(3):
        while at < bar and is_blank(text[at]):
            at += ONE
        start = at
        while at < bar and not is_blank(text[at]):
            at += ONE
        if start == bar or at == bar or text[start] == 39:  # a tag touches the bar or has a quote
            return FINE, at
        target, bits = (y, y_bits) if part == 0 else (weight, weight_bits)
        if part < 2:
            place, _ = number(text, start, target, bits, n)
            if place != at or (part == 1 and not weight[n] >= 0):
                return NO_TARGET, start
    return FINE, at


@plain
def _names(text, at, indices, values, bits, mask, counts):
    """Read namespaces and features from the first bar on: what is wrong with them, and where."""
    k, seed, scale = counts[ENTRIES], np.uint64(0), 1.0
    while True:
        if text[at] == 124:
            at += ONE
            start, scale = at, 1.0
            while not _stops(text[at]):
                at += ONE
            seed = murmur(text, start, at, np.uint64(0)) if at > start else np.uint64(0)
            if text[at] == 58:
                at, _ = number(text, at + ONE, values, bits, k)
                if at == NOTHING or not _stops(text[at]):
                    return NO_VALUE, start
                scale = float(values[k])
        while is_blank(text[at]):
            at += ONE
        if text[at] == 10:
            counts[ENTRIES] = k
            return FINE, at
        if text[at] == 124:
            continue
        start = at
        while not _stops(text[at]):
            at += ONE
        key, value = _hashed(text, start, at, seed), 1.0
        if text[at] == 58:
            at, _ = number(text, at + ONE, values, bits, k)
            if at == NOTHING or not _stops(text[at]) or text[at] == 58:
                return NO_VALUE, start
            value = float(values[k])
        indices[k], values[k] = np.int64(key & mask), value * scale
        if np.isnan(values[k]):  # zero times a number beyond all doubles
            return NO_VALUE, start
        k += 1


_text = types.Array(types.uint8, 1, "C", readonly=True)
_reals, _words, _wholes = types.float64[::1], types.uint64[::1], types.int64[::1]


@loop(
    lambda dtype: types.void(
        _text, types.uint64, _reals, _words, _reals, _words,
        _wholes, types.int32[::1], _reals, _words, _wholes,
    )
)  # fmt: skip
def vowpal(text, mask, y, y_bits, weight, weight_bits, indptr, indices, values, bits, counts):
    """Read all lines; those that are wrong are left out. The text ends with the end of a line."""
    at, end = NOTHING, np.uint64(len(text))
    while at < end:
        bar, any_ = at, False
        while text[bar] != 10 and text[bar] != 124:
            any_ = any_ or not is_blank(text[bar])
            bar += ONE
        if text[bar] == 10:
            if any_:
                wrong(counts, NO_BAR, at)
        else:
            entries, n, begin = counts[ENTRIES], counts[ROWS], at
            kind, at = _front(text, at, bar, n, y, y_bits, weight, weight_bits)
            if kind == FINE:
                kind, at = _names(text, bar, indices, values, bits, mask, counts)
            if kind != FINE:
                wrong(counts, kind, begin)
                counts[ENTRIES] = entries
            else:
                counts[ROWS] = n + 1
                indptr[n + 1] = counts[ENTRIES]
        at = bar
        while text[at] != 10:
            at += ONE
        counts[LINES] += 1
        at += ONE
