"""Threads that share out tasks, and BLAS kept out of their way."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cached_property, lru_cache, partial
from multiprocessing import current_process
from threading import Lock, get_ident
from typing import Any

from threadpoolctl import ThreadpoolController

from .memory import Spare

MANY = 500  # rows × outputs from which threads are worth their while


class Held:
    """A context of the whole process: opened for the first thread that enters, closed after the last.

    threadpoolctl's limits restore what they found. Of two that overlap in different threads, the second
    would find the limit of the first and leave it behind for good. It also wants a limit to be taken
    back by the thread that set it. So the first thread sets it; should it leave before the others, a
    thread of our own takes over. Waking that one takes longer than the limit itself.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.renew)  # where no other thread exists

    def renew(self) -> None:
        """Nobody is inside."""
        self.lock, self.inside, self.keeper = Lock(), 0, ThreadPoolExecutor(1, "pistol-blas")

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.owner, self.own = get_ident(), 0
                self._open()
            self.inside += 1
            self.own += get_ident() == self.owner

    def __exit__(self, *error: Any) -> None:
        with self.lock:
            self.inside -= 1
            mine = get_ident() == self.owner
            self.own -= mine
            if mine and self.own == 0:
                self._close()
                if self.inside:
                    self.owner = 0
                    self._keep(self._open)
            elif self.inside == 0:
                self._keep(self._close)

    def _keep(self, task: Callable[[], None]) -> None:
        try:
            self.keeper.submit(task).result()
        except RuntimeError:  # the interpreter is ending and starts no more threads
            task()

    def _open(self) -> None:
        self.context = self.make()
        self.context.__enter__()

    def _close(self) -> None:
        self.context.__exit__(None, None, None)


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _limit() -> Any:
    return _controller().limit(limits=1, user_api="blas")


_for_all = Held(_limit)


@lru_cache(maxsize=1)
def _per_thread() -> bool:
    """Whether any BLAS has a limit per thread, as those built on OpenMP have."""
    pools = _controller().select(user_api="blas").info()
    return any(pool.get("threading_layer") == "openmp" for pool in pools)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS keeps to the calling thread.

    Its own threads would wait for work in a busy loop and take the cores from ours; and with one
    thread to a product, results do not depend on the number of cores.
    """
    with _for_all, _limit() if _per_thread() else nullcontext():
        yield


class Workers:
    """Threads for tiles, started when there is more than one tile to share out."""

    def __init__(self, n_jobs: int | None, stack: ExitStack) -> None:
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 has no meaning; None or -1 are all cores")
        self.n_jobs, self.stack, self.spare = n_jobs, stack, Spare()
        self.pool: ThreadPoolExecutor | None = None

    @property
    def alone(self) -> Workers:
        """One thread, for a task that is one of several; with the same memory."""
        one = Workers(1, self.stack)
        one.spare = self.spare
        return one

    @cached_property
    def n(self) -> int:
        """How many threads there may be."""
        if self.n_jobs == 1 or current_process().daemon:  # a worker of Dask; joblib would warn
            return 1
        from joblib import effective_n_jobs  # a single tile does without
        from joblib.parallel import get_active_backend

        if self.n_jobs is None and get_active_backend()[0].nesting_level:
            return 1  # inside joblib's workers, which share the cores already
        return effective_n_jobs(-1 if self.n_jobs is None else self.n_jobs)

    def run(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """What the tasks return, in order. A task may have tasks of its own to share out."""
        if len(tasks) < 2 or self.n == 1:
            return [task() for task in tasks]
        try:
            return self._shared_out(tasks)
        except RuntimeError as error:
            if isinstance(
                error.__context__, KeyboardInterrupt
            ):  # it came while a lock was waited for
                raise KeyboardInterrupt from error
            raise

    def _shared_out(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """The calling thread does tasks, too: waking another one takes as long as a short task."""
        if self.pool is None:
            self.pool = self.stack.enter_context(ThreadPoolExecutor(self.n - 1))
        results, left = [None] * len(tasks), deque(enumerate(tasks))
        drain, helpers = partial(_drain, left, results), []
        try:
            for _ in range(min(self.n, len(tasks)) - 1):
                helpers.append(self.pool.submit(drain))
            drain()
        finally:
            left.clear()  # after an error or an interrupt nothing more is begun
            begun = [helper for helper in helpers if not helper.cancel()]  # others found no thread
            wait(begun)
        for helper in begun:
            helper.result()
        return results


def _drain(left: deque[tuple[int, Callable[[], Any]]], results: list[Any]) -> None:
    """Do tasks as long as any are left, beside other threads that do the same."""
    try:
        while True:
            try:
                i, task = left.popleft()
            except IndexError:  # to ask first would be a race between threads
                return
            results[i] = task()
    except BaseException:
        left.clear()
        raise


@contextmanager
def workers(n_jobs: int | None, size: int = MANY) -> Iterator[Workers]:
    """Workers whose threads end with the block; a single one for few rows × outputs.

    Loops over few rows end sooner than Python's lock changes hands between threads.
    """
    with ExitStack() as stack:
        yield Workers(n_jobs if size >= MANY else 1, stack)
