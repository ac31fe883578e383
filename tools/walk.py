"""Count the functions and modules that one call of an estimator walks through.

Run it as ``python tools/walk.py``. For `fit`, `partial_fit` and `predict` of each estimator with its
default settings on 1,000 rows it prints how many of the library's functions and modules were entered,
and how many calls went from a method in one file to a method of the same object in another file.
Compiled loops count as functions that are called, not as what they call. Comprehensions, lambdas and
functions inside functions count as part of the function they stand in.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import pistol

ROOT = Path(pistol.__file__).parent


@dataclass
class Walk:
    """What was entered: (file, function) pairs, and calls through `self` between files."""

    functions: set[tuple[str, str]] = field(default_factory=set)
    crossings: set[tuple[str, str, str, str]] = field(default_factory=set)

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        """A profile function: note the function that begins, and who called it."""
        if event != "call" or not _ours(frame):
            return
        self.functions.add(_name(frame))
        caller = frame.f_back
        if caller is not None and _ours(caller) and _same_object(frame, caller):
            here, there = _name(caller), _name(frame)
            if here[0] != there[0]:
                self.crossings.add((*here, *there))

    @property
    def modules(self) -> set[str]:
        """The files that were entered."""
        return {file for file, _ in self.functions}


def walk(call: Callable[[], Any]) -> Walk:
    """The walk of one call, in the calling thread and in those it starts."""
    seen = Walk()
    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return seen


def _ours(frame: FrameType) -> bool:
    path = Path(frame.f_code.co_filename)
    return ROOT in path.parents


def _name(frame: FrameType) -> tuple[str, str]:
    path = Path(frame.f_code.co_filename).relative_to(ROOT)
    return str(path), frame.f_code.co_qualname.split(".<", 1)[0]


def _same_object(frame: FrameType, caller: FrameType) -> bool:
    """Whether both are methods of one object, other than scikit-learn's `__sklearn_tags__`."""
    mine, theirs = frame.f_locals.get("self"), caller.f_locals.get("self")
    return mine is not None and mine is theirs and not frame.f_code.co_name.startswith("__")


def main() -> None:
    """Print one line per estimator and call."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    target = X[:, 0] - X[:, 1] * X[:, 2]
    label = target > 0
    print(f"{'':24} {'call':12} functions  modules  calls through self between files")
    for make, y in (
        (pistol.PistolClassifier, label),
        (pistol.PistolRegressor, target),
        (pistol.LinearPistolClassifier, label),
        (pistol.LinearPistolRegressor, target),
    ):
        make().fit(X, y)  # compile first
        model, stream = make(), make()
        stream.partial_fit(X[:500], y[:500])
        calls = {
            "fit": lambda m=model, t=y: m.fit(X, t),
            "partial_fit": lambda m=stream, t=y: m.partial_fit(X[500:], t[500:]),
            "predict": lambda m=model: m.predict(X),
        }
        for name, call in calls.items():
            seen = walk(call)
            counts = f"{len(seen.functions):9}  {len(seen.modules):7}  {len(seen.crossings):5}"
            print(f"{make.__name__:24} {name:12} {counts}")


if __name__ == "__main__":
    main()
