"""`pistol predict`: one line per row."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from .._data.files.basics import trouble
from .._estimators.files import Saved, read_model
from .._training.answers import decide
from .._training.tasks import Classification
from . import common
from .common import Data, Format, Json, OnError, Target, ZeroBased


def predict(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Data,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file.")
    ] = None,
    format: Format = None,
    target: Target = None,
    zero_based: ZeroBased = False,
    on_error: OnError = "raise",
    proba: Annotated[
        bool, typer.Option("--proba", help="Probabilities of the classes, separated by tabs.")
    ] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Raw scores of a classifier.")] = False,
    as_json: Json = False,
) -> None:
    """Predict the rows of files, one line per row.

    pistol predict model.pistol rows.csv -o predictions.txt

    cat rows.svm | pistol predict model.pistol - --proba
    """
    with common.one_line(), ExitStack() as stack:
        saved = read_model(model)
        task = saved.fitted.task
        if (proba or scores) and not isinstance(task, Classification):
            raise ValueError("--proba and --scores are for classifiers; this model is a regressor")
        if proba and task.loss.link is None:
            raise ValueError("this model's loss has no probabilities; try --scores")
        options, account = common.reader_of(format, target, None, zero_based), trouble(on_error)
        reader = common.reader_for(saved.fitted, options, False)
        out = stack.enter_context(output.open("w")) if output else sys.stdout
        for chunk in reader.chunks(data, account):
            for line in lines(saved, chunk.X, proba, scores, as_json):
                out.write(line + "\n")
        out.flush()
        if account.skipped:
            typer.echo(f"pistol: {common.left_out(account.skipped)}", err=True)


def lines(saved: Saved, X: Any, proba: bool, scores: bool, as_json: bool) -> Any:
    """What is said of each row."""
    known, task = saved.fitted, saved.fitted.task
    found = decide(known, X, saved.name, known.family.n_jobs)
    if not (proba or scores):
        for answer in task.answers(found, known.targets).tolist():
            yield json.dumps(common.word(answer)) if as_json else str(common.word(answer))
        return
    found = task.probabilities(found, known.temperature) if proba else found
    names = [str(common.word(label)) for label in task.classes]
    names = names if found.shape[1] == len(names) else names[1:]
    for row in found.tolist():
        yield json.dumps(dict(zip(names, row))) if as_json else "\t".join(f"{x:.6g}" for x in row)
