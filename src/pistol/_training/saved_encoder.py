"""How an encoder of tables is written: one entry per kind of column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._data import parts, statistics
from .._data.encoder import CODES, Encoder
from .._data.tables import CLOCK, DATE, EMPTY, NUMBER, WORDS
from .forms import FLAG, Choice, Form, Many, Maybe, Number, Numbers, OneOf, Record, Source, Written

WHOLE = Number(-1, 2**31, whole=True)


@dataclass(frozen=True)
class Plain:
    """None, a number or a word."""

    kinds: tuple[type, ...] = (type(None), bool, int, float, str)

    def write(self, value: Any, to: Written) -> Any:
        """The value itself."""
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(value, self.kinds):
            raise ValueError(f"{value!r:.60} cannot be written to a model file")
        return value

    def read(self, found: Any, source: Source) -> Any:
        """The value itself."""
        source.demand(isinstance(found, self.kinds), "must be a number or a word")
        return found


TEXT, LEVEL = Plain((str,)), Plain()
TEXTS = Many(TEXT, tuple)
PLACE = Record(
    "place", tuple, {"level": LEVEL, "at": WHOLE},
    make=lambda level, at: (level, at), take=lambda item: {"level": item[0], "at": item[1]},
)  # fmt: skip
ZONE = Record(
    "zone", tuple, {"name": LEVEL, "zone": Maybe(TEXT)},
    make=lambda name, zone: (name, zone), take=lambda item: {"name": item[0], "zone": item[1]},
)  # fmt: skip
PLACES = Many(PLACE, dict)


def _items(*names: str) -> Any:
    """Take dictionaries as pairs."""
    return lambda value: vars(value) | {name: vars(value)[name].items() for name in names}


def _check_levels(part: Any, source: Source) -> None:
    slots = list(part.slots.values())
    other = [part.other] if part.other >= 0 else []
    used = {*slots, *other}
    fits = len(used) == len(slots) + len(other) and part.width == len(used) + part.free
    source.demand(fits and part.free >= 0, "has columns that do not fit its levels")
    source.demand(all(0 <= slot < part.width for slot in used), "has levels without a column")


LEVELS = Record(
    "levels", parts.Levels,
    {
        "name": TEXT, "slots": PLACES, "other": WHOLE, "width": WHOLE,
        "free": Number(0, parts.FREE, whole=True), "dense": TEXTS,
    },
    take=_items("slots"), check=_check_levels,
)  # fmt: skip


def _check_many(part: Any, source: Source) -> None:
    places = sorted(part.levels.values())
    source.demand(places == list(range(len(part.count))), "has levels without a place")
    outputs = 0 if part.range is None else len(part.range.middle)
    fits = part.total.shape[1] == outputs == len(part.labels)
    source.demand(fits, "has means that do not fit")


RANGE = Record(
    "range", statistics.Range,
    {"middle": Numbers(("K",)), "half": Numbers(("K",), low=1e-308)},
)  # fmt: skip
MANY = Record(
    "many", statistics.Many,
    {
        "frequent": LEVELS, "levels": PLACES, "count": Numbers(("L",), low=0.0),
        "total": Numbers(("L", "o")), "range": Maybe(RANGE), "labels": TEXTS,
    },
    take=_items("levels"), own=("L", "o"), check=_check_many,
)  # fmt: skip
FILL: dict[str, Form] = {"name": TEXT, "fill": Number(-1e300, 1e300), "flag": FLAG}
PARTS = OneOf((
    Record("dropped", parts.Dropped, {}),
    Record("number", parts.Number, FILL),
    Record(
        "two", parts.Two,
        {"name": TEXT, "levels": Many(LEVEL, tuple, 2, 2), "share": Number(0.0, 1.0)},
    ),
    LEVELS,
    MANY,
    Record(
        "dates", parts.Dates,
        {
            **FILL, "season": FLAG, "hours": FLAG, "weekdays": FLAG, "trend": FLAG,
            "days": Many(TEXT, tuple, 7, 7),
        },
    ),
))  # fmt: skip


def _check_encoder(encoder: Encoder, source: Source) -> None:
    n = len(encoder.parts)
    source.demand(len(encoder.names) == n == len(encoder.kinds), "has parts that do not fit")
    source.demand(set(encoder.zones) <= set(encoder.names), "has zones of unknown columns")
    if encoder.scale is not None:
        dense = sum(len(part.dense) for part in encoder.parts)
        source.demand(all(len(x) == dense for x in encoder.scale), "has a scale that does not fit")


SCALE = Record(
    "scale", tuple, {"center": Numbers(("s",)), "unit": Numbers(("s",), low=1e-300)},
    make=lambda center, unit: (center, unit),
    take=lambda pair: {"center": pair[0], "unit": pair[1]}, own=("s",),
)  # fmt: skip
ENCODER = Record(
    "encoder", Encoder,
    {
        "names": Many(LEVEL), "kinds": Many(Choice((NUMBER, WORDS, DATE, CLOCK, EMPTY, CODES))),
        "zones": Many(ZONE, dict), "parts": Many(PARTS, low=1), "scale": Maybe(SCALE),
    },
    take=_items("zones"), check=_check_encoder,
)  # fmt: skip
