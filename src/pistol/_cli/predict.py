"""`pistol predict`: one line per row."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.base import is_classifier

from .._data.files.basics import trouble
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
        known = common.loaded(model)
        if (proba or scores) and not is_classifier(known):
            raise ValueError("--proba and --scores are for classifiers; this model is a regressor")
        if proba and not hasattr(known, "predict_proba"):
            raise ValueError("this model's loss has no probabilities; try --scores")
        reader = common.reader_for(known, common.reader_of(format, target, None, zero_based), False)
        account = trouble(on_error)
        out = stack.enter_context(output.open("w")) if output else sys.stdout
        for chunk in reader.chunks(data, account):
            for line in lines(known, chunk.X, proba, scores, as_json):
                out.write(line + "\n")
        out.flush()
        if account.skipped:
            typer.echo(f"pistol: {common.left_out(account.skipped)}", err=True)


def lines(model: Any, X: Any, proba: bool, scores: bool, as_json: bool) -> Any:
    """What is said of each row."""
    if not (proba or scores):
        for answer in model.predict(X).tolist():
            yield json.dumps(common.word(answer)) if as_json else str(common.word(answer))
        return
    found = model.predict_proba(X) if proba else model.decision_function(X).reshape(X.shape[0], -1)
    names = [str(common.word(label)) for label in model.classes_]
    names = names if found.shape[1] == len(names) else names[1:]
    for row in found.tolist():
        yield json.dumps(dict(zip(names, row))) if as_json else "\t".join(f"{x:.6g}" for x in row)
