"""Freed memory of a worker, kept while one of our tasks runs.

Dask starts its workers with `MALLOC_TRIM_THRESHOLD_`, so the C library hands freed memory back to the
system at once. Then every temporary array is new memory that the system has to clear first, and our
tasks take up to four times as long.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from .._compiled.memory import gnu

NAME = "MALLOC_TRIM_THRESHOLD_"
TRIM, MAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
KEPT, MAPPED = 2**26, 2**25  # the most that the library of GNU comes to by itself
USUAL = 2**17  # its threshold for mappings at the start

_lock, _running = Lock(), 0


def keeping(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a task that need not fetch its memory again and again."""
    with kept():
        return work(*arguments)


@contextmanager
def kept() -> Iterator[None]:
    """Keep freed memory in this process; hand it back when the last task ends."""
    library = _library()
    if library is None:
        yield
        return
    _count(library, 1)
    try:
        yield
    finally:
        _count(library, -1)


def _count(library: Any, change: int) -> None:
    """One task more or less."""
    global _running
    with _lock:
        before, _running = _running, _running + change
        if not before:
            library.mallopt(TRIM, KEPT)
            library.mallopt(MAP, MAPPED)
        elif not _running:
            library.mallopt(TRIM, int(os.environ[NAME]))
            library.mallopt(MAP, USUAL)
            library.malloc_trim(0)


def _library() -> Any:
    """The C library, if it is GNU's and was told to hand memory back; None otherwise."""
    return gnu() if os.environ.get(NAME, "").isdigit() else None
