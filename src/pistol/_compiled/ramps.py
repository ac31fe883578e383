"""Ramps beside scaled features: how far along each of its parts a value is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from .cache import plain
from .types import indices, loop, numbers


@plain
def _place(z, values, places, lo, hi):
    """`places` at z, on straight lines between `values` from lo to hi, and constant beyond them."""
    if z <= values[lo]:
        return places[lo]
    if z >= values[hi - 1]:
        return places[hi - 1]
    first, left = lo, hi - 1 - lo
    while left > 1:  # values[first] <= z, without a jump that no processor could guess
        half = left // 2
        first += half * (values[first + half] <= z)
        left -= half
    last = first + 1
    slope = (places[last] - places[first]) / (values[last] - values[first])
    return slope * (z - values[first]) + places[first]


def _signature(data: Any) -> Any:
    real = from_dtype(np.dtype(data))
    rows = types.Array(real, 2, "C", readonly=True)
    out = types.Array(real, 2, "C")
    return types.void(
        rows, numbers, indices, indices, numbers, numbers, indices, numbers, numbers, out
    )


@loop(_signature)
def extend_rows(Z, keep, owner, starts, values, places, first, center, size, out):
    """Set rows with ramps: Z · keep, and (ramp - center) · size of the ramps of each `owner`.

    `starts` tells where the knots of a feature begin, and `first` which of all ramps is its first; both
    have one number more at the end.
    """
    d = Z.shape[1]
    for i in range(len(Z)):
        for j in range(d):
            out[i, j] = Z[i, j] * keep[j]
        for f in range(len(owner)):
            z = np.float64(np.float32(Z[i, owner[f]]))
            place = _place(z, values, places, starts[f], starts[f + 1])
            for ramp in range(first[f], first[f + 1]):
                height = place - (ramp - first[f])
                height = 0.0 if height < 0.0 else height
                height = 1.0 if height > 1.0 else height
                out[i, d + ramp] = (height - center[ramp]) * size[ramp]
