"""Tables with words, gaps and dates: what encoding costs beside learning."""

from __future__ import annotations

from typing import Any

import numpy as np

from pistol import LinearPistolRegressor, TableEncoder

from ..measure import peak_memory, race
from ..protocol import peer
from .results import Line, Result, Size

SHARE, ROOM = 0.2, 2.0  # the goals: of the time of a fit, and times the table's memory


def encoding(size: Size) -> Result:
    """Encoding a table of 30 columns with words, gaps and dates, as a share of a linear fit."""
    table, y = mixed_table(size.encoding_rows)
    runs = {
        "encode": lambda: TableEncoder().fit_transform(table, y),
        "fit": lambda: LinearPistolRegressor(random_state=0).fit(table, y),
    }
    found = race(runs, size.repeats)
    encoded, fitted = found["encode"][0], found["fit"][0]
    with peak_memory() as memory:
        kept: Any = runs["encode"]()
    own = int(table.memory_usage(deep=True).sum())
    return Result(
        ours="TableEncoder().fit_transform",
        peer="LinearPistolRegressor().fit, which encodes too",
        rows=len(table),
        features=kept.shape[1],
        our_seconds=encoded,
        peer_seconds=fitted,
        target=1.0 / SHARE,
        goal=f"at most {SHARE:.0%} of the time of a fit, memory at most {ROOM:.0f} times the table",
        also=memory["bytes"] <= ROOM * own,
        note=f"{table.shape[1]} columns become {kept.shape[1]} features. The table has "
        f"{own / 1e6:.0f} MB; encoding took {memory['bytes'] / 1e6:.0f} MB more at its peak.",
        lines=(Line("encode", encoded), Line("fit", fitted)),
    )


def mixed_table(n: int) -> tuple[Any, np.ndarray]:
    """A frame of 12 columns of numbers, 12 of words, 3 of categories and 3 of dates, with gaps."""
    pandas, rng = peer("pandas", "quality"), np.random.default_rng(0)
    columns: dict[str, Any] = {}
    for i in range(12):
        values = rng.normal(size=n)
        values[rng.random(n) < 0.05 * (i % 3)] = np.nan
        columns[f"number {i}"] = values
    for i in range(12):
        words = np.array([f"word {k}" for k in range(4 if i < 9 else 2000)], object)
        columns[f"words {i}"] = words[rng.integers(0, len(words), n)]
    for i in range(3):
        columns[f"category {i}"] = pandas.Categorical.from_codes(
            rng.integers(-1, 8, n), [f"level {k}" for k in range(8)]
        )
        days = rng.integers(0, 700, n).astype("timedelta64[D]")
        columns[f"date {i}"] = np.datetime64("2024-01-01", "s") + days
    y = np.nan_to_num(columns["number 0"]) + (columns["words 0"] == "word 0")
    return pandas.DataFrame(columns), y + 0.1 * rng.normal(size=n)
