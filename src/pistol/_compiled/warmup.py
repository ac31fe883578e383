"""Compilation ahead of time, for images and services."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib import cpu_count

from ..losses import LOSSES
from ..potentials import POTENTIALS
from . import loops
from .cache import INTERPRETED, PACKAGE, STAMPED, folders
from .plugs import address, comparison, potentials
from .types import LOOPS

# Compiles every n-th piece of code from the i-th on.
SHARE = "import sys; sys.path.insert(0, sys.argv[3]); " + (
    f"from {__name__} import compile_share; compile_share(int(sys.argv[1]), int(sys.argv[2]))"
)


def warmup() -> float:
    """Compile all loops, losses and potentials now, so that no fit has to wait for it.

    Machine code is kept on disk: in the folder that ``NUMBA_CACHE_DIR`` names or, without that, in
    the package's own or the user's cache folder. Call this once when an image is built, or when a
    service starts. What is on disk already is only read. On several cores, several processes compile.

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
    n = min(cpu_count(), 8)
    if n > 1 and not any(folder.exists() for folder in folders()):
        _compile_in(n)
    compile_share(0, 1)
    return perf_counter() - start


def _compile_in(n: int) -> None:
    """Have n processes compile one share each. Should one of them fail, its share is compiled here."""
    place = str(Path(PACKAGE).parent)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", SHARE, str(i), str(n), place],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for i in range(n)
    ]
    for process in started:
        process.wait()


def compile_share(i: int, n: int) -> None:
    """Compile every n-th piece of code from the i-th on, or read it from disk."""
    for work in _pieces()[i::n]:
        work()


def _pieces() -> list[Callable[[], Any]]:
    """All there is to compile."""
    for module in STAMPED:  # each adds its loops to LOOPS
        import_module(module)
    pieces: list[Callable[[], Any]] = []
    for loop in LOOPS:
        double, single = np.dtype(np.float64), np.dtype(np.float32)
        pieces.append(partial(loop.compiled, double))
        if loop.signature(single) != loop.signature(double):
            pieces.append(partial(loop.compiled, single))
    for loss in LOSSES.values():
        for function in (loss.value, loss.grad):
            pieces.append(partial(address, function, 3))
            pieces.append(partial(function, 1.0, 0.5, 0.5))  # Python calls some of them too
    for potential in POTENTIALS.values():
        pieces.append(partial(address, potential, 4))
        pieces.append(partial(potentials, potential))
        pieces.append(partial(potential, 1.0, 1.0, 1.0, 1.0))
    pieces.append(partial(comparison, loops.compare))
    return pieces
