"""Kernel streams in bounded memory: `max_support` against the exact learner."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from pistol import PistolClassifier

from ..learners import learner_bytes
from .results import Line, Result, Size
from .rows import Split, a9a, quadratic_split

CHUNK = 500  # rows per call of partial_fit


def budget(size: Size) -> Result:
    """A stream with at most so many support rows, against one that keeps all of them."""
    n = size.budget_rows
    streams = {
        "synthetic": quadratic_split(n, 20, size, flipped=0.1),
        "a9a": _first(a9a(size), n),
    }
    budgets = [b for b in (size.budget_most // 10, size.budget_most // 5, size.budget_most) if b]
    lines, found = [], {}
    _stream(PistolClassifier(max_support=20), streams["synthetic"], 300)  # warm
    for name, data in streams.items():
        for most in (None, *budgets):
            row = _stream(PistolClassifier(max_support=most), data, n)
            found[f"{name}, {most or 'all'}"] = row
            what = f"{name}, {row['support']:,} of {most or 'all'} support rows: "
            what += f"{1e6 * row['late']:.0f} µs per row in the last quarter, "
            what += f"{row['bytes'] / 1e6:.1f} MB, online error {row['online']:.3f}"
            lines.append(Line(what, row["seconds"], row["error"]))
    exact, ours = found["synthetic, all"], found[f"synthetic, {budgets[0]}"]
    return Result(
        ours=f"PistolClassifier(max_support={budgets[0]})",
        peer="PistolClassifier(), all support rows",
        rows=n,
        features=20,
        our_seconds=ours["seconds"],
        peer_seconds=exact["seconds"],
        our_error=ours["error"],
        peer_error=exact["error"],
        target=1.0,
        goal="not slower than the exact learner",
        note=f"partial_fit in chunks of {CHUNK}, one run each. Bytes are those of the learner: rows, "
        "coefficients and, once it is full, the factors of its Gram matrices.",
        lines=tuple(lines),
        extra={"streams": found},
    )


def _first(data: Split, n: int) -> Split:
    return data._replace(X=data.X[:n], y=data.y[:n])


def _stream(model: Any, data: Split, n: int) -> dict[str, float]:
    """Learn n rows chunk by chunk."""
    n, times = min(n, data.X.shape[0]), []
    for lo in range(0, n, CHUNK):
        start = perf_counter()
        model.partial_fit(data.X[lo : lo + CHUNK], data.y[lo : lo + CHUNK], classes=[-1.0, 1.0])
        times.append(perf_counter() - start)
    last = times[-max(len(times) // 4, 1) :]
    learner = model.fitted_.learners[0]
    factors = sum(span.factor.nbytes for span in learner._spans or [])
    return {
        "seconds": sum(times),
        "late": float(np.mean(last)) / CHUNK,
        "bytes": learner_bytes(model) + factors,
        "support": learner.support.ids.n,
        "online": model.online_error_,
        "error": float(1.0 - model.score(data.X_test, data.y_test)),
    }
