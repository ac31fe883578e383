"""`Fitted` as arrays, numbers and words, and back: one entry per type of value.

Nothing is imported by a name from a file and no code is run: types, losses, kernels and potentials are
looked up here. To write another type of value, add a `Record` for it, and name it where it occurs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._compiled.slots import Slots
from .._compiled.types import Array
from .._data.bends import Bent
from .._data.intake import Columns
from .._data.metric import Weighted
from .._data.origin import OriginScaler
from .._data.parts import Number as Plain
from .._data.scaling import Moments, Scaler, Unscaled
from .._data.seen import Seen
from .._data.steps import Stepped
from .._data.targets import LogScaler, Recent, TargetScaler
from .._learners import Cells, Coordinates, Dual, Finished, Patchwork, Primal
from .._learners.models import Expansion, Linear
from .drift import Challengers, Duel
from .fitted import Counts, Fitted, Online, Stream, Window, challenging
from .forms import FLAG, Either, Many, Maybe, Number, Numbers, OneOf, Record, Rows, Sized, Source
from .labels import LABELS
from .linear_family import LinearFamily
from .saved_cells import LEARNERS, LEARNING
from .saved_encoder import ENCODER, TEXT
from .saved_learners import COUNT, LOSS, NOT_NEGATIVE, POSITIVE, WIDTH
from .tasks import Classification, Regression

BOUNDS = Numbers(("K",), endless=True)


# Scalers


def _check_knots(knots: dict[int, tuple[Array, Array]], features: int, source: Source) -> None:
    for i, (values, places) in knots.items():
        fits = i < features and len(values) == len(places) > 0
        source.demand(fits and (np.diff(values) > 0).all(), "has ranks that are not in order")


SCALER = Record(
    "scaler", Scaler,
    {"center": Numbers(("D",)), "scale": Numbers(("D",), low=0.0), "centred": FLAG},
)  # fmt: skip
KNOTS = Record(
    "knots", tuple,
    {"feature": COUNT, "values": Numbers(("k",)), "scores": Numbers(("k",), low=-10, high=10)},
    make=lambda feature, values, scores: (feature, (values, scores)),
    take=lambda item: {"feature": item[0], "values": item[1][0], "scores": item[1][1]}, own=("k",),
)  # fmt: skip
BENT = Record(
    "bent", Bent, {"scaler": SCALER, "ranked": Many(KNOTS, dict)},
    take=lambda bent: {"scaler": bent.scaler, "ranked": bent.ranked.items()},
    check=lambda bent, source: _check_knots(bent.ranked, bent.features, source),
)  # fmt: skip
UNSCALED = Record(
    "unscaled", Unscaled, {"features": WIDTH},
    check=lambda scaler, source: source.fit((scaler.features,), ("D",)),
)  # fmt: skip


def _check_ramps(scaler: Stepped, source: Source) -> None:
    _check_knots(scaler.places, scaler.scaler.features, source)
    rising = all(places[0] == 0 < places[-1] for _, places in scaler.places.values())
    source.demand(rising and len(scaler.owner) == len(scaler.center), "has ramps that do not fit")


STEPPED = Record(
    "stepped", Stepped,
    {
        "scaler": BENT, "places": Many(KNOTS, dict),
        "center": Numbers(("s",), low=0, high=1), "size": Numbers(("s",), low=0, high=1e6),
    },
    take=lambda scaler: vars(scaler) | {"places": scaler.places.items()},
    check=_check_ramps, own=("s",),
)  # fmt: skip
WEIGHTED = Record(
    "weighted", Weighted,
    {
        "scaler": Sized(OneOf((BENT, STEPPED, SCALER, UNSCALED)), "w", lambda x: x.features),
        "weight": Numbers(("w",), low=1e-12, high=1e12),
    },
    own=("w",),
)  # fmt: skip
ORIGIN = Record(
    "origin", OriginScaler,
    {"mu": Numbers(("D",), low=-1e150, high=1e150), "scale": Numbers(("D",), low=0.0)},
)  # fmt: skip


def _seen(slots: Any, width: int) -> Seen:
    return Seen(Slots(slots), width, len(slots))


def _check_seen(scaler: Seen, source: Source) -> None:
    source.fit((scaler.width,), ("D",))
    source.demand(len(scaler.slots) == scaler.features, "has a feature twice")
    features = scaler.slots.features
    inside = not len(features) or (features.min() >= 0 and features.max() < scaler.width)
    source.demand(inside, "has features that do not exist")


SEEN = Record(
    "seen", Seen, {"slots": Numbers(("d",), ("int64",), 0, 2**31), "width": WIDTH},
    make=_seen, check=_check_seen,
    take=lambda seen: {"slots": seen.slots.features[: seen.features], "width": seen.width},
)  # fmt: skip
SCALERS = Sized(
    OneOf((SCALER, BENT, STEPPED, WEIGHTED, UNSCALED, ORIGIN, SEEN)), "d", lambda x: x.features
)

LEVEL = Either(Numbers(("K",)), Number())
TARGETS = OneOf((
    Record(
        "targets", TargetScaler,
        {
            "center": Numbers(("K",), low=-1e301, high=1e301), "scale": Numbers(("K",), low=1e-307),
            "low": LEVEL, "high": LEVEL,
        },
    ),
    Record(
        "counts", LogScaler,
        {
            "mean": Numbers(("K",), low=1e-308), "most": Numbers(("K",), low=0.0, high=1e150),
            "spread_of": Numbers(("K",), low=0.0),
        },
    ),
))  # fmt: skip


# Streams


def _moments(**parts: Any) -> Moments:
    moments = Moments(0)
    vars(moments).update(parts)
    return moments


PER_FEATURE = Numbers(("D",))
EXTREMES = Numbers(("D",), endless=True)
MOMENTS = Record(
    "moments", Moments,
    {
        "weight": NOT_NEGATIVE, "mean": PER_FEATURE, "deviation": Numbers(("D",), low=0.0),
        "usual": PER_FEATURE, "votes": PER_FEATURE, "low": EXTREMES, "high": EXTREMES,
    },
    make=_moments,
)  # fmt: skip


def _check_recent(recent: Recent, source: Source) -> None:
    rows = 0 if recent.X is None else recent.X.shape[0]
    source.demand(rows <= len(recent.r) and bool(rows) == bool(len(recent.r)), "has wrong lengths")


RECENT = Record(
    "recent", Recent,
    {
        "Y": Numbers(("m", "K"), low=-1e301, high=1e301), "r": Numbers(("m",), low=0.0),
        "low": BOUNDS, "high": BOUNDS, "X": Maybe(Rows(("l", "D"))),
    },
    own=("m", "l"),
    check=_check_recent,
)  # fmt: skip
WINDOW = Record(
    "window", Window,
    {"X": Rows(("m", "D")), "Y": Numbers(("m", "K")), "r": Numbers(("m",), low=0.0)}, own=("m",),
)  # fmt: skip
DUEL = Record(
    "duel", Duel,
    {
        "learner": LEARNING, "every": Number(1, 2**53, whole=True),
        "looks": COUNT, "gain": Number(), "squares": NOT_NEGATIVE, "pending": Number(),
    },
)  # fmt: skip
CHALLENGERS = Record("challengers", Challengers, {"age": COUNT, "duels": Many(DUEL, tuple)})
STREAM = Record(
    "stream", Stream,
    {
        "moments": Maybe(MOMENTS), "typical_sq": NOT_NEGATIVE, "recent": Maybe(RECENT),
        "challengers": Maybe(CHALLENGERS), "window": Maybe(WINDOW),
    },
)  # fmt: skip


# Tasks, and the whole


def _check_classes(task: Classification, source: Source) -> None:
    many = len(task.classes)
    source.demand(many >= 2, "has fewer than two classes")
    source.demand(len(np.unique(task.classes)) == many, "has a class twice")
    source.demand((np.unique(task.classes) == task.classes).all(), "has classes out of order")
    source.fit((1 if many == 2 else many,), ("K",))


def _check_outputs(task: Regression, source: Source) -> None:
    source.fit((max(task.outputs, len(task.loss.levels), 1),), ("K",))


TASKS = OneOf((
    Record(
        "classification", Classification,
        {"loss": LOSS, "classes": LABELS, "zero_is_wrong": FLAG}, check=_check_classes,
    ),
    Record(
        "regression", Regression, {"loss": LOSS, "outputs": COUNT, "centred": FLAG},
        check=_check_outputs,
    ),
))  # fmt: skip


def _check_columns(columns: Columns, source: Source) -> None:
    """Names are those of the columns; D is how many numbers a row has."""
    source.demand(columns.names is None or len(columns.names) == columns.n, "has other names")
    encoder = columns.encoder
    if encoder is not None:
        source.demand(len(encoder.names) == columns.n, "has an encoder of other columns")
        numbers = all(isinstance(part, Plain) for part in encoder.parts)
        source.demand(numbers or not columns.plain, "has an encoder that is not plain")
    source.demand(columns.plain or encoder is not None, "has no encoder")
    source.fit((columns.n if columns.plain or encoder is None else encoder.width,), ("D",))


COLUMNS = Record(
    "columns",
    Columns,
    {
        "n": WIDTH,
        "names": Maybe(LABELS),
        "encoder": Maybe(ENCODER),
        "plain": FLAG,
        "notices": Many(TEXT, tuple),
    },
    check=_check_columns,
)
ONLINE = Record(
    "online", Online,
    {
        "rounds": NOT_NEGATIVE, "loss": Number(), "error": NOT_NEGATIVE,
        "curve": Numbers(("c", 2), low=0.0),
    },
    own=("c",),
)  # fmt: skip
COUNTS = Record("counts", Counts, {"rows": COUNT, "rounds": COUNT, "size": POSITIVE})


def _check_whole(fitted: Fitted, source: Source) -> None:
    """What belongs to the targets fits them, and what belongs to the family fits it."""
    counts = isinstance(fitted.targets, LogScaler)
    source.demand(counts == (fitted.task.loss.targets == "log"), "has targets that do not fit")
    linear = isinstance(fitted.family, LinearFamily)
    scalers: tuple[type, ...] = (Scaler, Bent, Stepped, Weighted, Unscaled)
    scalers = (Scaler, OriginScaler, Unscaled, Seen) if linear else scalers
    source.demand(isinstance(fitted.scaler, scalers), "has a scaler that does not fit")
    again = fitted.stream.moments is None or not linear
    source.demand(again or isinstance(fitted.scaler, Scaler | OriginScaler), "has other moments")
    learner: Any = (Dual, Cells)
    if linear:
        learner = Coordinates if fitted.family.per_coordinate else Primal
    for each in [*fitted.learners, *challenging(fitted.stream)]:
        fits = isinstance(each, learner)
        if isinstance(each, Finished):
            fits = isinstance(each.made, Linear if linear else (Expansion, Patchwork))
        source.demand(fits, "has a learner that does not fit")
    if not linear and len(fitted.learners) > 1:
        models: list[Any] = [each.model() for each in fitted.learners]
        kinds = {type(model) for model in models}
        models = [model.base if isinstance(model, Patchwork) else model for model in models]
        alike = len(kinds) == 1
        alike &= len({(sp.issparse(model.rows), model.rows.shape[1]) for model in models}) == 1
        source.demand(alike, "has learners with rows that do not fit each other")


def fitted_record(family: Any, settings: dict[str, Any]) -> Record:
    """The form of what an estimator with these parameters has learned."""
    parts: dict[str, Any] = {
        "columns": COLUMNS, "task": TASKS, "scaler": SCALERS, "targets": TARGETS,
        "learners": Many(LEARNERS, low=1), "passes": COUNT, "online": ONLINE, "counts": COUNTS,
        "temperature": Maybe(POSITIVE), "held_out_error": Maybe(NOT_NEGATIVE), "stream": STREAM,
    }  # fmt: skip

    def make(**given: Any) -> Fitted:
        columns = given["columns"]
        laid = family if columns.plain else family.laid_out(columns.encoder.layout)
        return Fitted(family=laid, settings=settings, **given)

    return Record("fitted", Fitted, parts, make=make, check=_check_whole)


def finished(fitted: Fitted) -> Fitted:
    """The same function, which learns no more."""
    model = fitted.model()
    if isinstance(model, Expansion):
        model = model.without_zeros()
    elif isinstance(model, Linear):
        model = Linear(np.delete(model.weights, np.s_[fitted.scaler.features : -1], axis=1))
    stopped: Any = Finished(model, max(learner.t for learner in fitted.learners))
    return replace(fitted, learners=[stopped], stream=Stream())
