"""One call on a cluster: named tasks, a bar, what was moved, and what to do when it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from time import sleep, time
from typing import Any, NamedTuple, cast
from uuid import uuid4
from weakref import WeakSet

import cloudpickle
from dask import annotate, delayed, get_annotations
from dask.utils import format_bytes, parse_bytes
from distributed import Client, KilledWorker, as_completed

from .memory import keeping

ARITY = 16  # results that are merged at a time
HEARD = 5.0  # seconds until the scheduler knows of what was submitted, at most
HELD = 0.2  # of the memory of all workers may hold blocks between two steps

_later = delayed(keeping, pure=False)


class Traffic(NamedTuple):
    """What one `fit` has moved.

    Bytes and messages between workers are those that the workers which are still there have counted.
    """

    tasks: int
    client_bytes: int  # results that came to the client
    worker_bytes: int  # between workers
    worker_messages: int


class Run:
    """Tasks of one call. Names are seen on the dashboard; all are cancelled if the call ends early."""

    def __init__(self, client: Client, bar: Callable[[str, int, int], None]) -> None:
        self.client, self.bar, self.token = client, bar, uuid4().hex[:12]
        self.futures: WeakSet[Any] = WeakSet()  # what nobody needs any more is released
        self.tasks = self.client_bytes = 0

    def task(
        self,
        name: str,
        number: Any,
        work: Callable[..., Any],
        *arguments: Any,
        home: str | None = None,
    ) -> Any:
        """A task that is not submitted yet. It runs at `home` as long as this worker is there."""
        self.tasks += 1
        key = f"pistol-{name}-{self.token}-{number}"
        with annotate(workers=[home], allow_other_workers=True) if home else nullcontext():
            return _later(work, *arguments, dask_key_name=key)

    def homes(self, parts: Sequence[Any]) -> list[str | None]:
        """A worker for each part of some rows: one that has it, unless that has its share of parts.

        Dask alone moves parts whenever one worker seems less busy than another. None where nobody has
        anything yet, or where the user has said which workers to use.
        """
        keys = [getattr(part, "key", "") for part in parts]
        scheduler: Any = self.client.scheduler
        found = self.client.sync(scheduler.who_has, keys=keys)
        if not any(found.values()) or "workers" in get_annotations():
            return [None] * len(parts)
        return shared_out([found[key] for key in keys], self.client.nthreads())

    def places(self, futures: Sequence[Any]) -> dict[str | None, list[int]]:
        """Which of these results each worker has; None has those that were just lost."""
        scheduler: Any = self.client.scheduler
        found = self.client.sync(scheduler.who_has, keys=[future.key for future in futures])
        places: dict[str | None, list[int]] = {}
        for number, future in enumerate(futures):
            there = min(found[future.key], default=None)
            places.setdefault(there, []).append(number)
        return places

    def merged(self, name: str, merge: Callable[..., Any], parts: Sequence[Any]) -> list[Any]:
        """Fewer results of many: a few that follow each other are merged into one."""
        return [
            self.task(f"merge-{name}", i, merge, list(parts[i : i + ARITY]))
            for i in range(0, len(parts), ARITY)
        ]

    def tree(self, name: str, merge: Callable[..., Any], parts: Sequence[Any]) -> Any:
        """One result of many, merged a few at a time in the order of the blocks."""
        level = 0
        while len(parts) > 1 or not level:
            parts = self.merged(f"{name}-{level}", merge, parts)
            level += 1
        return parts[0]

    def start(self, tasks: Sequence[Any]) -> list[Any]:
        """Submit tasks."""
        futures = self.client.compute(list(tasks), optimize_graph=False)
        self.futures.update(futures)
        return futures

    def done(self, tasks: Sequence[Any], name: str) -> list[Any]:
        """Submit tasks and wait for them; the results stay where they are."""
        return self.finished(self.start(tasks), name)

    def finished(self, futures: Sequence[Any], name: str) -> list[Any]:
        """Wait for tasks that were submitted; the results stay where they are."""
        self.bar(name, 0, len(futures))
        for count, future in enumerate(as_completed(futures), 1):
            if future.status == "error":
                future.result()
            self.bar(name, count, len(futures))
        return list(futures)

    def release(self) -> None:
        """Nobody needs anything any more, so Dask drops what has not begun.

        `Client.cancel` does not know of tasks in between that no future stands for, and fails. What
        is released before the scheduler has heard of it would stay, so that is waited for.
        """
        futures = list(self.futures)
        keys, scheduler = [future.key for future in futures], cast(Any, self.client.scheduler)
        deadline = time() + HEARD
        while self.client.status == "running" and time() < deadline:
            if None not in self.client.sync(scheduler.get_task_status, keys=keys).values():
                break
            sleep(0.05)
        for future in futures:
            future.release()

    def result(self, future: Any) -> Any:
        """One result, brought to the client."""
        found = future.result()
        self.client_bytes += _size(found)
        return found

    def gathered(self, futures: Sequence[Any], name: str) -> list[Any]:
        """Results, each brought to the client as soon as it is there."""
        found: dict[Any, Any] = {}
        self.bar(name, 0, len(futures))
        for count, future in enumerate(as_completed(futures), 1):
            found[future.key] = self.result(future)
            self.bar(name, count, len(futures))
        return [found[future.key] for future in futures]

    def fits(self, size: float | None) -> bool:
        """Whether blocks of so many bytes may stay in the memory of the workers."""
        if size is None:
            return False
        limits = [
            w["memory_limit"] for w in self.client.scheduler_info(n_workers=-1)["workers"].values()
        ]
        return not all(limits) or size <= HELD * sum(map(parse_bytes, limits))


def shared_out(held: Sequence[Sequence[str]], threads: dict[str, int]) -> list[str | None]:
    """A worker for each part, given those that have it; none gets more than its share of all."""
    total = sum(threads.values())
    room = {worker: -(-len(held) * own // total) for worker, own in threads.items()}
    homes: list[str | None] = []
    for there in held:
        homes.append(max((w for w in there if room.get(w)), key=room.__getitem__, default=None))
        if homes[-1]:
            room[homes[-1]] -= 1
    for i, home in enumerate(homes):
        if home is None:  # whoever has it has enough
            homes[i] = emptiest = max(room, key=room.__getitem__)
            room[emptiest] -= 1
    return homes


def _size(result: Any) -> int:
    """Bytes of a result on its way; arrays are not copied."""
    arrays: list[Any] = []
    frame = cloudpickle.dumps(result, protocol=5, buffer_callback=arrays.append)
    return len(frame) + sum(array.raw().nbytes for array in arrays)


@contextmanager
def running(client: Client, bar: Callable[[str, int, int], None]) -> Iterator[Run]:
    """A run whose tasks end with the block, however it ends."""
    run = Run(client, bar)
    try:
        yield run
    except KilledWorker as error:
        run.release()
        raise RuntimeError(_lost(error)) from error
    except MemoryError as error:
        run.release()
        raise MemoryError(f"a worker had no memory left: {error}. {SMALLER}") from error
    except BaseException:
        run.release()
        raise


SMALLER = (
    "Use smaller blocks (rechunk, repartition), fewer threads per worker, or a larger memory_limit"
)


def _lost(error: KilledWorker) -> str:
    """What is known about workers that died again and again."""
    task, limit = error.task, getattr(error.last_worker, "memory_limit", 0)
    kind = str(task).split("-")[1] if str(task).startswith("pistol-") else str(task)
    room = f" (limit {format_bytes(limit)})" if limit else ""
    return (
        f"workers died {error.allowed_failures + 1} times in the step {kind!r}. Most often their memory"
        f"{room} is too small for the blocks. {SMALLER}"
    )


def counters(client: Client) -> dict[str, tuple[int, int]]:
    """Bytes and messages that each worker has sent to others so far."""
    return client.run(_counted, on_error="ignore")


def _counted(dask_worker: Any) -> tuple[int, int]:
    return (
        int(dask_worker.transfer_outgoing_bytes_total),
        int(dask_worker.transfer_outgoing_count_total),
    )


def moved(before: dict[str, Any], after: dict[str, Any]) -> tuple[int, int]:
    """What was sent between two looks at the counters."""
    pairs = [(before.get(worker, (0, 0)), now) for worker, now in after.items()]
    return sum(b[0] - a[0] for a, b in pairs), sum(b[1] - a[1] for a, b in pairs)
