"""`pistol evaluate`: how good a model is on files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .._compiled.types import Array
from .._data.files.basics import trouble
from .._estimators.files import read_model
from .._training.answers import decide
from .._training.fitted import Fitted
from .._training.tasks import Classification
from . import common
from .common import Data, Format, Json, OnError, Target, WeightColumn, ZeroBased


def evaluate(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Data,
    format: Format = None,
    target: Target = None,
    weight_column: WeightColumn = None,
    zero_based: ZeroBased = False,
    on_error: OnError = "raise",
    as_json: Json = False,
) -> None:
    """Test a model on the rows of files: error and log-loss, or errors of a regressor.

    pistol evaluate model.pistol test.csv --target price
    """
    with common.one_line():
        saved = read_model(model)
        options = common.reader_of(format, target, weight_column, zero_based)
        reader, account = common.reader_for(saved.fitted, options, True), trouble(on_error)
        facts = measured(saved.name, saved.fitted, reader.chunks(data, account))
        if account.skipped:
            facts["malformed lines"] = account.skipped
        common.show(facts, as_json)


def measured(name: str, known: Fitted, chunks: Iterable[Any]) -> dict[str, Any]:
    """Weighted means over all rows, chunk by chunk."""
    measure = _classes if isinstance(known.task, Classification) else _numbers
    rows, total, sums = 0, 0.0, dict[str, float]()
    for X, y, weight in chunks:
        if y is None:
            raise ValueError("there are no targets to compare with")
        w = np.ones(len(y)) if weight is None else weight
        rows, total = rows + len(y), total + float(w.sum())
        scores = decide(known, X, name, known.family.n_jobs)
        for what, values in measure(known, scores, y).items():
            sums[what] = sums.get(what, 0.0) + float(w @ values)
    if not total > 0:
        raise ValueError("there are no rows, or all of them have weight zero")
    means = {what: value / total for what, value in sums.items()}
    if "squared" in means:
        variance = means.pop("y²") - means.pop("y") ** 2
        square = means.pop("squared")
        means["root mean squared error"] = square**0.5
        means["R²"] = 1.0 - square / variance if variance > 0 else 0.0
    return {"rows": rows, **means}


def _classes(known: Fitted, scores: Array, y: Any) -> dict[str, Any]:
    """Errors, and the log-loss where there are probabilities."""
    task, answers = known.task, known.task.answers(scores, known.targets)
    given, names, found = (
        np.asarray([str(common.word(label)) for label in labels])
        for labels in (y, task.classes, answers)
    )
    out = {"error": found != given}
    if task.loss.link is not None:
        hit = names[None, :] == given[:, None]
        P = np.where(hit, task.probabilities(scores, known.temperature), 0.0).sum(axis=1)
        out["log-loss"] = -np.log(np.maximum(P, 1e-15))
    return out


def _numbers(known: Fitted, scores: Array, y: Any) -> dict[str, Any]:
    """Absolute and squared errors."""
    y, found = np.asarray(y, np.float64), known.task.answers(scores, known.targets)
    if found.ndim > 1:
        raise ValueError("models of several outputs or quantiles cannot be evaluated here")
    gap = np.abs(found - y)
    return {"mean absolute error": gap, "squared": gap**2, "y": y, "y²": y**2}
