"""How time and memory grow with rows, features and classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pistol import LinearPistolClassifier, PistolClassifier

from ..learners import learner_bytes
from ..measure import best_of, exponent, peak_memory
from .results import Line, Result, Size
from .rows import blobs

MACHINES = {"kernel": PistolClassifier, "linear": LinearPistolClassifier}
FEATURES, CLASSES = 20, 4  # while something else grows


def growth(size: Size) -> Result:
    """Time and memory against the number of rows, features and classes."""
    base = (size.growth_base, FEATURES, CLASSES)
    steps = {
        "rows": [(n, FEATURES, CLASSES) for n in ladder(1_000, size.growth_rows)],
        "features": [(base[0], d, CLASSES) for d in ladder(10, size.growth_features)],
        "classes": [(base[0], FEATURES, k) for k in ladder(2, size.growth_classes)],
    }
    curves, lines = [], []
    for machine in MACHINES:
        MACHINES[machine](orders=None).fit(*blobs(300, FEATURES, CLASSES))
        for at, (grows, shapes) in enumerate(steps.items()):
            curve = _curve(machine, grows, shapes, at, size)
            curves.append(curve)
            lines += [_line(curve)]
    largest = curves[0]
    return Result(
        ours="PistolClassifier, the most rows",
        rows=largest["x"][-1],
        features=FEATURES,
        our_seconds=largest["seconds"][-1],
        note="Gaussian clouds in float32; exponents by least squares on logarithms, over the upper "
        "half of a curve for time. Memory is that of the learner's arrays, spare room included; "
        f"{FEATURES} features, {CLASSES} classes and {size.growth_base:,} rows where they do not "
        "grow. The seconds are those of the largest.",
        lines=tuple(lines),
        extra={"curves": curves},
    )


def ladder(least: int, most: int) -> list[int]:
    """Numbers from the least to the most, about three times as large at each step."""
    steps = max(round(np.log(most / least) / np.log(10) * 2), 2)
    return sorted({int(x) for x in np.geomspace(least, most, steps + 1).round()})


def _curve(
    machine: str, grows: str, shapes: list[tuple[int, int, int]], at: int, size: Size
) -> dict[str, Any]:
    """Fit on rows of each shape; seconds, bytes of the arrays, and how far memory rose."""
    seconds, arrays, peaks = [], [], []
    for shape in shapes:
        X, y = blobs(*shape)
        model = MACHINES[machine](orders=None)
        with peak_memory() as peak:
            time, _ = best_of(lambda: model.fit(X, y), size.repeats)  # noqa: B023 (called here)
        seconds.append(time)
        arrays.append(learner_bytes(model))
        peaks.append(peak["bytes"])
    x = [shape[at] for shape in shapes]
    upper = len(x) // 2 if len(x) > 3 else 0  # small ones are mostly the cost of a call
    return {
        "machine": machine,
        "grows": grows,
        "x": x,
        "seconds": seconds,
        "bytes": arrays,
        "peak_bytes": peaks,
        "time_exponent": exponent(x[upper:], seconds[upper:]),
        "memory_exponent": exponent(x, arrays),
    }


def _line(curve: dict[str, Any]) -> Line:
    x, bounds = curve["x"], f"{curve['x'][0]:,} to {curve['x'][-1]:,}"
    what = f"{curve['machine']}, {bounds} {curve['grows']}: time ∝ {curve['grows']}^"
    what += f"{curve['time_exponent']:.2f}, memory ^{curve['memory_exponent']:.2f}"
    return Line(what, curve["seconds"][-1] if x else None)
