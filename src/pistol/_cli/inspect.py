"""`pistol inspect`: what a model is, and what it has learned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import common
from .common import Json


def inspect(
    model: Annotated[Path, typer.Argument(help="A model file.")], as_json: Json = False
) -> None:
    """Tell what a model is and what it has learned.

    pistol inspect model.pistol --json
    """
    with common.one_line():
        from .._estimators.files import read_model
        from .._estimators.loading import CLASSES
        from .._estimators.summary import facts

        known, header = read_model(model, CLASSES)
        found = {
            "kind": header["class"], "written by": f"pistol {header['version']}",
            "bytes": model.stat().st_size, "predict only": header["predict_only"],
            **facts(known),
        }  # fmt: skip
        if "classes" in found:
            found["classes"] = [common.word(label) for label in found["classes"]]
        common.show(found, as_json)
