"""`pistol inspect`: what a model is, and what it has learned."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from . import common
from .common import Json


def inspect(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    as_json: Json = False,
    picture: Annotated[
        Path | None, typer.Option(help="Write a picture of it to this file, too.")
    ] = None,
) -> None:
    """Tell what a model is and what it has learned. Features without names are counted from 0.

    pistol inspect model.pistol --json

    pistol inspect model.pistol --picture model.png
    """
    with common.one_line():
        from .._estimators.files import read_model
        from .._estimators.loading import estimator_of
        from .._estimators.summary import MOST, facts

        saved = read_model(model)
        header = saved.header
        found = {
            "kind": header["class"], "written by": f"pistol {header['version']}",
            "bytes": model.stat().st_size, "predict only": header["predict_only"],
            **facts(estimator_of(saved, model)),
        }  # fmt: skip
        if "classes" in found:
            found["classes"] = [common.word(label) for label in found["classes"]]
        if picture:
            draw(found, picture)
        if not as_json and len(found.get("encoder", ())) > MOST:
            counts = Counter(found["encoder"].values())
            found["encoder"] = {f"{what}:": n for what, n in counts.items()}
        common.show(found, as_json)


def draw(facts: dict[str, Any], path: Path) -> None:
    """Facts as text, beside bars for the strongest features and the kernels."""
    from matplotlib.figure import Figure

    parts = {name: facts[name] for name in ("strongest features", "kernels") if facts.get(name)}
    figure = Figure((9, 4.5), layout="constrained")
    text, *axes = figure.subplots(1, 1 + len(parts), squeeze=False)[0]
    shown = [f"{name}: {common.plain(value)}" for name, value in facts.items()
             if not isinstance(value, dict)]  # fmt: skip
    text.text(0, 1, "\n".join(line[:60] for line in shown), va="top", fontsize=9)
    text.axis("off")
    for axis, (name, values) in zip(axes, parts.items()):
        axis.barh([key[:24] for key in values], list(values.values()), color="#1b6ca8")
        axis.invert_yaxis()
        axis.set_title(name, fontsize=10)
        axis.tick_params(labelsize=8)
    try:
        figure.savefig(path, dpi=150)
    except ValueError as problem:  # of the suffix
        raise ValueError(f"--picture: {path} cannot be written: {problem}") from None
