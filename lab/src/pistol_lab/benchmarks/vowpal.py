"""The streaming peer: Vowpal Wabbit, from its text format and from its cache."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from pistol import LinearPistolClassifier

from ..measure import best_of, error, processor_time, race
from ..protocol import SkipError, peer
from .linear import coordinate_passes
from .results import Line, Result, Size
from .rows import a9a, news20

RULES = {"--pistol": ["--pistol"], "--coin": ["--coin"], "default": []}


class Measured(NamedTuple):
    """Seconds of one pass from text and from the cache; the test error after one pass."""

    text: float
    cache: float
    error: float
    processor: float  # that of a pass from the cache, of all threads


def vw(size: Size) -> Result:
    """Passes over sparse rows: the per-coordinate loop, against Vowpal Wabbit from its cache."""
    workspace = peer("vowpalwabbit").Workspace
    data, passes = a9a(size), size.vw_passes
    n, d = data.X.shape
    play, model = (
        coordinate_passes(data),
        LinearPistolClassifier(passes=1, orders=1, random_state=0),
    )
    model.fit(data.X[:50], data.y[:50])  # warm
    whole, _ = best_of(lambda: model.fit(data.X, data.y), size.repeats)
    many, _ = best_of(lambda: play(passes), size.repeats)
    ours = many / passes
    with TemporaryDirectory() as folder:
        write(Path(folder) / "train", data.X, data.y)
        write(Path(folder) / "test", data.X_test, data.y_test)
        found = {
            rule: _measure(workspace, folder, flags, passes, size.repeats, data.y_test)
            for rule, flags in RULES.items()
        }
    theirs = found["--pistol"]
    lines = [Line("LinearPistolClassifier.fit, one pass", whole)]
    for rule, times in found.items():
        lines += [
            Line(f"vw {rule}, one pass from text", times.text, times.error),
            Line(f"vw {rule}, a pass from its cache", times.cache),
        ]
    return Result(
        ours="per-coordinate loop, a pass",
        peer="vw --pistol, a pass from its cache",
        rows=n,
        features=d,
        our_seconds=ours,
        peer_seconds=theirs.cache,
        our_error=error(model, data.X_test, data.y_test),
        peer_error=theirs.error,
        target=3.0,
        goal="at least 3 times the rows a second",
        note=f"{_from_cache(passes)} Test errors are those after one pass. {data.note}".strip(),
        lines=tuple(lines),
        extra={"our_rows_per_second": n / ours, "peer_rows_per_second": n / theirs.cache},
    )


def news(size: Size) -> Result:
    """A whole one-pass fit on wide sparse rows, against a pass of Vowpal Wabbit from its cache."""
    workspace = peer("vowpalwabbit").Workspace
    data = news20(size)
    models = {
        "LinearPistolClassifier(passes=1, orders=1)": LinearPistolClassifier(
            passes=1, orders=1, random_state=0
        ),
        "LinearPistolClassifier(orders=None)": LinearPistolClassifier(orders=None),
    }
    for model in models.values():
        model.fit(data.X[:50], data.y[:50])  # warm
    fits = {name: partial(model.fit, data.X, data.y) for name, model in models.items()}
    times = race(fits, 2 * size.repeats)
    with TemporaryDirectory() as folder:
        write(Path(folder) / "train", data.X, data.y)
        write(Path(folder) / "test", data.X_test[:100], data.y_test[:100])
        passes, y = size.vw_passes, data.y_test[:100]
        theirs = _measure(workspace, folder, ["--pistol"], passes, size.repeats, y)
    name, (ours, _) = next(iter(times.items()))
    lines = [Line(k, s, m.online_error_) for k, (s, m) in times.items()]
    spent = [
        *(
            Line(f"{k}: processor time", processor_time(fit, size.repeats))
            for k, fit in fits.items()
        ),
        Line("vw --pistol, a pass from its cache: processor time", theirs.processor),
    ]
    return Result(
        ours=f"{name}.fit",
        peer="vw --pistol, a pass from its cache",
        rows=data.X.shape[0],
        features=data.X.shape[1],
        our_seconds=ours,
        peer_seconds=theirs.cache,
        our_error=lines[0].error,
        target=1.0,
        goal="at least as fast",
        note="Ours is the whole fit: checks, order, scaling, the pass. Errors are online. "
        f"{_from_cache(passes)} {data.note}".strip(),
        lines=(*lines[1:], Line("vw --pistol, one pass from text", theirs.text), *spent),
    )


def _from_cache(passes: int) -> str:
    """How a pass from the cache is measured; a few passes would tell little."""
    return (
        f"A pass from the cache: the difference of {passes + 2} and 2 passes, divided by {passes}."
    )


def _measure(
    workspace: Any, folder: str, flags: list[str], passes: int, repeats: int, y: Any
) -> Measured:
    train, test = f"{folder}/train", f"{folder}/test"
    model, predictions, cache = (f"{folder}/{name}" for name in ("model", "predictions", "cache"))

    def learn(*more: str) -> None:
        common = ["-d", train, "--loss_function", "logistic", "--quiet", *flags]
        workspace(arg_list=[*common, *more]).finish()

    def cached(k: int) -> None:
        learn("--cache_file", cache, "-k", "--passes", str(k), "--holdout_off")

    learn("-f", model)
    workspace(arg_list=["-d", test, "-t", "-i", model, "-p", predictions, "--quiet"]).finish()
    runs = {"text": learn, "few": lambda: cached(2), "many": lambda: cached(passes + 2)}
    times = {name: seconds for name, (seconds, _) in race(runs, repeats).items()}
    difference = times["many"] - times["few"]
    if difference <= 0:
        raise SkipError("too few rows or passes to see Vowpal Wabbit's time from its cache")
    few, many = (processor_time(runs[name], 1) for name in ("few", "many"))
    wrong = float(np.mean(np.sign(np.loadtxt(predictions)) != y))
    return Measured(times["text"], difference / passes, wrong, max(many - few, 0.0) / passes)


def write(path: Path, X: Any, y: Any) -> None:
    """Rows as Vowpal Wabbit's text; a value of 1 is left out."""
    X = X.tocsr()
    with path.open("w", encoding="utf-8") as file:
        for label, lo, hi in zip(y, X.indptr[:-1], X.indptr[1:], strict=True):
            pairs = zip(X.indices[lo:hi].tolist(), X.data[lo:hi].tolist(), strict=True)
            text = " ".join(f"{i}" if v == 1 else f"{i}:{v:g}" for i, v in pairs)
            file.write(f"{label:g} | {text}\n")
