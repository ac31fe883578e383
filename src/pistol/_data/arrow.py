"""Columns of pyarrow as arrays. Much of pyarrow imports pandas when it is first used, these do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compiled.types import Array


def numbers_of(column: Any, missing: float = np.nan) -> Array:
    """A column of numbers, with another number where they are missing."""
    one = whole(column)
    lo, hi = one.offset, one.offset + len(one)
    kind = one.type.to_pandas_dtype()
    if lo == hi:
        return np.empty(0, kind)
    valid, data = one.buffers()
    values = np.frombuffer(data, kind)[lo:hi]
    if not one.null_count:
        return values
    there = np.unpackbits(np.frombuffer(valid, np.uint8), count=hi, bitorder="little")[lo:]
    return np.where(there, values, missing)


def as_floats(column: Any) -> Array:
    """A column of numbers or booleans as real numbers."""
    return numbers_of(column if str(column.type) == "double" else column.cast("double"))


def codes_of(column: Any) -> tuple[Array, list[Any]]:
    """A column of words: the place of each among the levels, -1 where it is missing; and the levels."""
    one = whole(column)
    one = one if hasattr(one, "dictionary") else one.dictionary_encode()
    return numbers_of(one.indices.cast("int64"), -1), one.dictionary.to_pylist()


def values_of(column: Any) -> Array:
    """A column of numbers, of words or of something else, none of which is missing."""
    kind = str(column.type)
    if kind.startswith(("int", "uint", "float", "double")):
        return numbers_of(column)
    if kind in ("string", "large_string"):
        codes, levels = codes_of(column)
        return np.array(levels, object)[codes]
    return whole(column).to_numpy(zero_copy_only=False)


def whole(column: Any) -> Any:
    """A column in one piece."""
    if not hasattr(column, "combine_chunks"):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
