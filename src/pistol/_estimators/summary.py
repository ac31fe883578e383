"""What a fitted model is and what it has learned, in a few facts: for the shell and for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import numpy as np

from .._training.fitted import Fitted

MOST, SHOWN = 10, 5  # features that are named in the shell, and in notebooks


def facts(model: Any) -> dict[str, Any]:
    """Facts about a fitted model, by name."""
    known = model.fitted_
    changed = {
        name: value if _plain(value) else str(value)
        for name, value in model.get_params(deep=False).items()
        if name != "random_state" and repr(value) != repr(getattr(type(model)(), name))
    }
    found = {
        "rows": known.counts.rows, "rounds": model.t_, "passes": model.passes_,
        "online loss": model.online_loss_, "online error": model.online_error_,
        "held-out error": known.held_out_error, "features": model.n_features_in_,
        "features used": _used(known), "loss": known.task.loss.name, "parameters": changed,
        "classes": _labels(model), "encoder": _encoder(known), "noticed": list(known.columns.notices),
    }  # fmt: skip
    if hasattr(type(model), "support_"):
        found |= {"support rows": model.n_support_, "kernels": model.kernel_weights_}
    else:
        weights = np.atleast_2d(model.coef_)
        found["non-zero weights"] = int(np.count_nonzero(weights.any(axis=0)))
    found["strongest features"] = strongest(model, MOST)
    return {name: value for name, value in found.items() if value not in (None, {}, [])}


def strongest(model: Any, most: int) -> dict[str, float]:
    """The features that the model depends on most, and how much; none where that is not known."""
    importances = getattr(model, "feature_importances_", None)
    if importances is None:
        return {}
    names = column_names(model)
    order = np.argsort(-importances, kind="stable")[:most]
    return {str(names[i]): float(importances[i]) for i in order if importances[i]}


def column_names(model: Any) -> list[Any]:
    """The user's names of the features, or their numbers."""
    return list(getattr(model, "feature_names_in_", range(model.n_features_in_)))


def _labels(model: Any) -> list[Any]:
    classes = getattr(model, "classes_", None)
    return [] if classes is None else list(classes)


def _encoder(known: Fitted) -> dict[str, str]:
    """What each column of a table holds, and how many numbers it becomes."""
    encoder, found = known.columns.encoder, {}
    if encoder is None or known.columns.plain:
        return {}
    for name, kind, part in zip(encoder.names, encoder.kinds, encoder.parts, strict=True):
        n = len(part.dense) + len(part.hot)
        found[str(name)] = f"{kind} → {n}" if n else f"{kind}, not used"
    return found


def _used(known: Fitted) -> int:
    """How many of the user's columns are not dropped."""
    columns, scaler = known.columns, known.scaler
    varies = getattr(scaler, "varies", None)
    if columns.plain:
        return columns.n if varies is None else int(np.count_nonzero(varies))
    assert columns.encoder is not None
    owner = columns.encoder.layout.owner
    return len(np.unique(owner if varies is None else owner[varies]))


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


class Learned:
    """What was learned as a table of HTML, where scikit-learn shows fitted attributes."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __len__(self) -> int:
        return 1

    def _repr_html_inner(self) -> str:
        body = "".join(
            f'<tr class="default"><td class="param">{escape(name)}</td><td>{value}</td></tr>'
            for name, value in _rows(self.model)
        )
        return (
            '<div class="estimator-table"><details open><summary>What was learned</summary>'
            f'<table class="parameters-table"><tbody>{body}</tbody></table></details></div>'
        )


def _rows(model: Any) -> Iterable[tuple[str, str]]:
    """Names, and values as HTML in which everything from the user is escaped."""
    found = facts(model)
    yield "rows", f"{found['rows']:,}"
    features, used = found["features"], found["features used"]
    yield "features", f"{features:,}" + (f", {used:,} of them used" if used < features else "")
    if "classes" in found:
        yield "classes", _cut(map(str, found["classes"]))
    yield "passes", f"{found['passes']:,}"
    share = "classes" in found
    for name in ("online error", "held-out error"):
        if name in found:
            yield name, f"{found[name]:.2%}" if share else f"{found[name]:.4g}"
    if "kernels" in found:
        kernels = sorted(found["kernels"].items(), key=lambda item: -item[1])
        yield "kernels", _bars(kernels[:SHOWN])
        yield "support rows", f"{found['support rows']:,}"
    else:
        yield "non-zero weights", f"{found['non-zero weights']:,}"
    if "strongest features" in found:
        yield "strongest features", _bars(list(found["strongest features"].items())[:SHOWN])
    if "noticed" in found:
        yield "noticed", "<br>".join(map(escape, found["noticed"]))


def _cut(words: Iterable[str]) -> str:
    words = list(words)
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return escape(", ".join(words[:SHOWN])) + more


def _bars(shares: list[tuple[str, float]]) -> str:
    """Names with shares of 1, as bars."""
    blue = "linear-gradient(#1b6ca8, #1b6ca8) no-repeat 0 / "
    style = f"display:inline-block;width:60px;height:.7em;margin-right:.5em;background:{blue}"
    return "<br>".join(
        f'<span style="{style}{100 * share:.0f}% 100%"></span>{escape(name)} {_percent(share)}'
        for name, share in shares
    )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "&lt;1%"
