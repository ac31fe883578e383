"""What both parts of the lab are made of: jobs that are kept when done, and reasons to skip one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Found = Mapping[str, dict[str, Any]]  # a job's name → what it found


class SkipError(Exception):
    """Something cannot run here; the text says what is missing."""


def _always(found: dict[str, Any]) -> bool:
    return True


class Job(NamedTuple):
    """One piece of work that is not done twice.

    Its name says what its result depends on. Where a name cannot say it all, as with the sizes of a
    benchmark, `fresh` tells whether a kept result is still the one that is asked for.
    """

    name: str  # as "figure 3/a9a/svm/rows 1000/shuffle 0"
    work: Callable[..., dict[str, Any]]  # of a module, so that another process finds it
    args: tuple[Any, ...] = ()
    alone: bool = False  # nothing else may run beside it: it is timed, or uses all cores
    fresh: Callable[[dict[str, Any]], bool] = _always


def peer(module: str, extra: str = "bench") -> Any:
    """The module of a peer, or a reason to skip that names the extra."""
    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise SkipError(f"{name} is not installed: pip install 'pistol-lab[{extra}]'") from None
