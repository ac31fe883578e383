"""`pistol inspect`: what a model is, and what it has learned."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from . import common
from .common import Json

MOST = 10  # features that are named


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
        from .._estimators.loading import CLASSES

        known, header = read_model(model, CLASSES)
        facts = {
            "kind": header["class"], "written by": f"pistol {header['version']}",
            "bytes": model.stat().st_size, "predict only": header["predict_only"],
            **described(known),
        }  # fmt: skip
        if picture:
            draw(facts, picture)
        if not as_json and len(facts.get("encoder", ())) > MOST:
            counts = Counter(facts["encoder"].values())
            facts["encoder"] = {f"{what}:": n for what, n in counts.items()}
        common.show(facts, as_json)


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


def described(model: Any) -> dict[str, Any]:
    """Facts about a fitted model."""
    fitted = model.fitted_
    changed = {
        name: str(value) if callable(value) or not _plain(value) else value
        for name, value in model.get_params(deep=False).items()
        if name != "random_state" and repr(value) != repr(getattr(type(model)(), name))
    }
    facts = {
        "rows": fitted.counts.rows, "rounds": model.t_, "passes": model.passes_,
        "online loss": model.online_loss_, "online error": model.online_error_,
        "features": model.n_features_in_, "loss": fitted.task.loss.name,
    }  # fmt: skip
    if changed:
        facts["parameters"] = changed
    if hasattr(model, "classes_"):
        facts["classes"] = [common.word(label) for label in model.classes_]
    if hasattr(type(model), "support_"):
        facts |= {"support rows": model.n_support_, "kernels": model.kernel_weights_}
        strength = _or_none(lambda: model.feature_importances_)
    else:
        weights = np.abs(np.atleast_2d(model.coef_)).max(axis=0)
        facts["non-zero weights"] = int(np.count_nonzero(weights))
        strength = weights
    if fitted.columns.encoder is not None and not fitted.columns.plain:
        facts["encoder"] = encoded(fitted.columns.encoder)
    if strength is not None:
        names = getattr(model, "feature_names_in_", None)
        order = np.argsort(-strength, kind="stable")[:MOST]
        facts["strongest features"] = {
            str(i if names is None else names[i]): float(strength[i]) for i in order if strength[i]
        }
    return facts


def encoded(encoder: Any) -> dict[str, str]:
    """What each column of a table holds, and how many numbers it becomes."""
    out = {}
    for name, kind, part in zip(encoder.names, encoder.kinds, encoder.parts):
        n = len(part.dense) + len(part.hot)
        out[str(name)] = f"{kind} → {n}" if n else f"{kind}, not used"
    return out


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _or_none(read: Any) -> Any:
    try:
        return read()
    except AttributeError:
        return None
