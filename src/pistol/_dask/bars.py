"""A bar that shows how far a call on a cluster is, in a terminal or a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def bar(shown: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A function that is told the step, and how many of its tasks are done; it draws if asked to."""
    if not shown:
        yield _nothing
        return
    try:
        from rich.progress import Progress
    except ImportError:
        yield _printed
        return
    with Progress() as progress:
        steps: dict[str, Any] = {}

        def draw(name: str, done: int, total: int) -> None:
            if name not in steps:
                steps[name] = progress.add_task(name, total=total)
            progress.update(steps[name], completed=done)

        yield draw


def _nothing(name: str, done: int, total: int) -> None:
    pass


def _printed(name: str, done: int, total: int) -> None:
    if done in (0, total):
        print(f"{name}: {done} of {total}", flush=True)
