"""Memory of large arrays that is used again, by the fit that asked for it and by those that follow.

Memory that a process has never touched comes from the system page by page. That may take longer than to
compute what is written there.
"""

from __future__ import annotations

import mmap
import os
from collections import deque
from contextlib import suppress
from ctypes import CDLL
from functools import cache
from math import prod
from threading import Lock
from typing import Any, NamedTuple, cast
from weakref import finalize

import numpy as np

from .types import Array

PAGE = 2**21  # bytes of a large page of the system's memory
LINE = 64  # bytes at a multiple of which arrays begin
KEPT = 128 * PAGE  # that a process keeps from one fit to the next, at most


class Stretch(NamedTuple):
    """Memory that comes from the system at once, and goes back as soon as nobody needs it.

    What `malloc` is given back it often keeps, tens of megabytes for each thread.
    """

    room: Array  # of bytes, from a `LINE` on
    pages: Any = None  # the map that they are from …
    first: int = 0  # … and where they begin in it

    @classmethod
    def of(cls, size: int) -> Stretch:
        """So many bytes, in whole large pages where there are such.

        To be given them takes a tenth of the time of as many small ones.
        """
        if not hasattr(mmap, "MAP_PRIVATE"):  # a system without it, such as Windows
            some = np.empty(size + LINE, np.uint8)
            return cls(some[-some.ctypes.data % LINE :][:size])
        whole = -(-size // PAGE) * PAGE
        pages = mmap.mmap(-1, whole + PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # which has no large pages
                pages.madvise(mmap.MADV_HUGEPAGE)
        every = np.frombuffer(pages, np.uint8)
        first = -every.ctypes.data % PAGE
        return cls(every[first : first + whole], pages, first)

    def offer(self, start: int, stop: int) -> None:
        """Let the system have the whole pages of a part, should it run short of memory."""
        lo, hi = -(-start // PAGE) * PAGE, stop // PAGE * PAGE
        if self.pages is not None and hasattr(mmap, "MADV_FREE") and lo < hi:
            with suppress(OSError):  # which does not know this
                self.pages.madvise(mmap.MADV_FREE, self.first + lo, hi - lo)


def memory(size: int) -> Array:
    """A stretch of its own."""
    return Stretch.of(size).room


class Arena:
    """A stretch of memory whose parts are given to arrays, the first part that is large enough.

    So little of it is ever touched, and what was touched is used again, whatever the sizes are. The
    system gives it page by page, as it is touched. After a fit it may have them back if it runs short.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.renew()

    def renew(self) -> None:
        """Start with memory that was never touched."""
        self.lock, self.stretch = Lock(), cast(Any, None)
        self.free = [(0, self.size)]  # sorted, and no two of them next to each other
        # A finalizer may run at any time, also while the lock is held. So it only leaves a note.
        self.notes = deque[tuple[int, int]]()

    def part(self, need: int, owner: Any) -> Any:
        """So many bytes, until the owner is gone; None if no part is large enough.

        An interrupt in here may lose a part, but none is ever given twice.
        """
        need = max(-(-need // LINE), 1) * LINE
        with self.lock:
            self._collect()
            fits = (i for i, (start, stop) in enumerate(self.free) if need <= stop - start)
            i = next(fits, None)
            if i is None or not self._is_there():
                return None
            start, stop = self.free[i]
            self.free[i : i + 1] = [(start + need, stop)] if start + need < stop else []
            part = self.stretch.room[start : start + need]
        finalize(owner, self.notes.append, (start, start + need)).atexit = False
        return part

    def _is_there(self) -> bool:
        """Whether the system has given the stretch; it may have less."""
        if self.stretch is None:
            with suppress(OSError, MemoryError):
                self.stretch = Stretch.of(self.size)
        return self.stretch is not None

    def _collect(self) -> None:
        """Parts whose owners are gone are free again, joined with their neighbours."""
        while self.notes:
            self.free.append(self.notes.popleft())
        joined: list[tuple[int, int]] = []
        for start, stop in sorted(self.free):
            if joined and joined[-1][1] == start:
                start = joined.pop()[0]
            joined.append((start, stop))
        self.free = joined

    def offer(self) -> None:
        """Let the system have the pages of all that is free, should it run short of memory."""
        with self.lock:
            self._collect()
            for part in self.free if self.stretch else ():
                self.stretch.offer(*part)

    def clear(self) -> None:
        """Give the pages of all that is free back to the system."""
        with self.lock:
            self._collect()
            if self.free == [(0, self.size)]:
                self.stretch = None


kept = Arena(KEPT)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=kept.renew)  # where its pages would have to be copied


class Spare:
    """Memory of large arrays that are gone, for new ones of the same fit.

    Parts of `kept` come first, unless as little as possible is to be touched: then large arrays take
    the place of others as they are. Other memory goes back to the system with the fit.
    """

    def __init__(self, from_kept: bool = True) -> None:
        self.lock, self.free, self.from_kept = Lock(), list[Any](), from_kept

    def another(self) -> Spare:
        """One of the same kind without any memory."""
        return Spare(self.from_kept)

    def array(self, shape: tuple[int, ...], dtype: Any, owner: Any) -> Any:
        """An array with any content. Its memory is spare again when the owner is gone."""
        need = prod(shape) * np.dtype(dtype).itemsize
        room = kept.part(need, owner) if self.from_kept else None
        if room is None:
            room = self._taken(need)
            finalize(owner, self.free.append, room).atexit = False
        return room[:need].view(dtype).reshape(shape)

    def _taken(self, need: int) -> Any:
        """The smallest spare memory that is large enough; otherwise new memory, in place of some.

        So there are never more pieces of it than there were arrays at a time.
        """
        with self.lock:
            fits = [i for i, room in enumerate(self.free) if need <= len(room)]
            if fits:
                return self.free.pop(min(fits, key=lambda i: len(self.free[i])))
            if self.free:
                self.free.pop(max(range(len(self.free)), key=lambda i: len(self.free[i])))
            return memory(need + need // 64)  # folds differ by a row

    def clear(self) -> None:
        """Give all of it back to the system, but for parts of `kept`."""
        with self.lock:
            self.free.clear()


@cache
def gnu() -> Any:
    """The C library if it is GNU's, whose `malloc` can be told to give memory back; otherwise None."""
    try:
        library = CDLL(None)
        return library if library.mallopt and library.malloc_trim else None
    except (AttributeError, OSError, TypeError):
        return None


def trim() -> None:
    """Give memory of small arrays that are gone back to the system.

    Between those that are left, `malloc` keeps it: tens of megabytes after arrays of a million numbers.
    """
    library = gnu()
    if library is not None:
        library.malloc_trim(0)
