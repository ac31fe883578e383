"""Threads that share out tasks, and BLAS kept out of their way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> Any:
    """A context in which BLAS keeps to the calling thread.

    Its own threads would wait for work in a busy loop and take the cores from ours; and with one
    thread to a product, results do not depend on the number of cores.
    """
    return _controller().limit(limits=1, user_api="blas")


class Workers:
    """Threads for tiles, started when there is more than one tile to share out."""

    def __init__(self, n_jobs: int | None, stack: ExitStack) -> None:
        self.n_jobs, self.stack = n_jobs, stack
        self.n = effective_n_jobs(-1 if n_jobs is None else n_jobs)
        self.pool: ThreadPoolExecutor | None = None

    def run(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """What the tasks return, in order."""
        if self.n == 1 or len(tasks) < 2:
            return [task() for task in tasks]
        if self.pool is None:
            self.pool = self.stack.enter_context(ThreadPoolExecutor(self.n))
        return list(self.pool.map(lambda task: task(), tasks))


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Workers]:
    """Workers whose threads end with the block."""
    with ExitStack() as stack:
        yield Workers(n_jobs, stack)
