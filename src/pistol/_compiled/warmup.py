"""Compilation ahead of time, for images and services."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from ..losses import LOSSES
from ..potentials import POTENTIALS
from . import events as events  # for their loops
from . import gram as gram
from . import loops
from . import named as named
from .cache import INTERPRETED
from .plugs import address, comparison
from .types import LOOPS


def warmup() -> float:
    """Compile all loops, losses and potentials now, so that no fit has to wait for it.

    Machine code is kept on disk: in the folder that ``NUMBA_CACHE_DIR`` names or, without that, in
    the package's own or the user's cache folder. Call this once when an image is built, or when a
    service starts. What is on disk already is only read.

    Returns
    -------
    seconds : float
        How long it took.

    Examples
    --------
    >>> import pistol
    >>> seconds = pistol.warmup()
    """
    start = perf_counter()
    if INTERPRETED:
        return 0.0
    for loop in LOOPS:
        double, single = np.dtype(np.float64), np.dtype(np.float32)
        loop.compiled(double)
        if loop.signature(single) != loop.signature(double):
            loop.compiled(single)
    for loss in LOSSES.values():
        for function in (loss.value, loss.grad):
            address(function, 3)
            function(1.0, 0.5, 0.5)  # Python calls some of them too
    for potential in POTENTIALS.values():
        address(potential, 4)
        potential(1.0, 1.0, 1.0, 1.0)
    comparison(loops.compare)
    return perf_counter() - start
