"""Training from files: whole where the rows are few, else chunk by chunk."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .. import (
    LinearPistolClassifier,
    LinearPistolRegressor,
    PistolClassifier,
    PistolRegressor,
)
from .._data.files.basics import Chunk, Trouble
from .._data.files.reading import joined
from .checkpoints import Checkpoints
from .survey import Survey, targets

FEW_ROWS, FEW_FEATURES = 200_000, 4096  # up to which kernels are learned
WHOLE = 2**25  # entries up to which rows are learned as a whole
MODELS = {
    ("kernel", True): PistolClassifier, ("kernel", False): PistolRegressor,
    ("linear", True): LinearPistolClassifier, ("linear", False): LinearPistolRegressor,
}  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """What is learned, and how."""

    learner: str  # kernel or linear
    whole: bool  # all rows at once, or chunk by chunk
    parameters: dict[str, Any]

    def model(self, survey: Survey) -> Any:
        """The estimator that has learned nothing yet."""
        return MODELS[self.learner, survey.classes is not None](**self.parameters)


def choose(
    survey: Survey, learner: str | None, stream: bool | None, parameters: dict[str, Any]
) -> Choice:
    """Kernels for few rows of few features, linear models else; streams where rows are many."""
    rows = survey.rows
    few = rows is not None and rows <= FEW_ROWS and survey.width <= FEW_FEATURES
    if learner not in (None, "kernel", "linear"):
        raise ValueError(f"--learner is kernel or linear; got {learner!r}")
    chosen = learner or ("kernel" if few and not stream else "linear")
    small = rows is not None and rows * (survey.width if survey.dense else 100) <= WHOLE
    whole = (few or small) if stream is None else not stream
    if whole and rows is None:
        raise ValueError("data from the standard input are learned as a stream")
    return Choice(chosen, whole, parameters)


@dataclass
class Progress:
    """How far training is."""

    rows: int = 0
    passed: int = 0  # passes that are complete
    chunks: int = 0  # of the pass under way
    skipped: int = 0
    online: list[float] = field(default_factory=list)  # loss and error of the first pass
    curve: list[list[float]] = field(default_factory=list)  # rows, online loss, online error

    def notes(self) -> dict[str, Any]:
        """As JSON."""
        return vars(self)


Watch = Callable[[Progress, Any], None]


PARTS = (16, 8, 4, 2)  # a learning curve has fits to a sixteenth of the rows, an eighth, …
LEAST = 16  # rows of such a fit


def whole(survey: Survey, choice: Choice, trouble: Trouble, curve: bool) -> tuple[Any, Progress]:
    """Learn all rows at once; for a learning curve, learn parts of them before."""
    chunks = list(survey.reader.chunks(survey.files, trouble))
    all_rows = joined(chunks)
    y = targets(all_rows, survey.classes, survey.files[0])
    _check_complete(survey, y)
    points = _parts(survey, choice, all_rows, y) if curve else []
    model = choice.model(survey).fit(all_rows.X, y, sample_weight=all_rows.weight)
    online = [model.online_loss_, model.online_error_]
    points.append([len(y), *online])
    return model, Progress(len(y), 1, skipped=trouble.skipped, online=online, curve=points)


def _check_complete(survey: Survey, y: Any) -> None:
    """Of a class without rows nothing can be learned at once."""
    absent = set(map(str, survey.classes or [])) - set(map(str, np.unique(y).tolist()))
    if absent:
        raise ValueError(
            f"{', '.join(survey.files)}: no row has the label {min(absent)!r} of --classes; with "
            "--stream it may come later"
        )


def _parts(survey: Survey, choice: Choice, rows: Chunk, y: Any) -> list[list[float]]:
    """Online loss and error of models of parts of the rows, which are drawn at random."""
    order = np.random.default_rng(0).permutation(len(y))
    points = []
    for part in PARTS:
        some = order[: len(y) // part]
        if len(some) < LEAST or len(np.unique(y[some])) < 2:
            continue
        X = rows.X.take(some) if hasattr(rows.X, "column_names") else rows.X[some]
        weight = None if rows.weight is None else rows.weight[some]
        model = choice.model(survey).fit(X, y[some], sample_weight=weight)
        points.append([len(some), model.online_loss_, model.online_error_])
    return points


def stream(
    survey: Survey, choice: Choice, passes: int, on_error: str, kept: Checkpoints, watch: Watch,
    before: tuple[Any, dict[str, Any]] | None,
) -> tuple[Any, Progress]:  # fmt: skip
    """Learn chunk by chunk, from where an interrupted run has stopped.

    An interrupt waits for the chunk under way. Then a checkpoint is saved, and `Stopped` is raised.
    """
    model, progress = choice.model(survey), Progress()
    if before is not None:
        model, progress = before[0], Progress(**{**before[1]["progress"]})
    more = {} if survey.classes is None else {"classes": survey.classes}
    with interrupts() as asked:
        for _ in range(progress.passed, passes):
            trouble = Trouble(on_error == "skip")
            for chunk in _skip(survey.reader.chunks(survey.files, trouble), progress.chunks):
                y = targets(chunk, survey.classes, survey.files[0])
                model.partial_fit(chunk.X, y, sample_weight=chunk.weight, **more)
                progress = _after(progress, len(y), trouble.skipped, model)
                if asked or kept.due():
                    kept.save(model, {"progress": progress.notes()})
                watch(progress, model)
                if asked:
                    raise Stopped(progress)
            if not hasattr(model, "fitted_"):
                raise ValueError(f"{', '.join(survey.files)}: there are no rows")
            online = progress.online or [model.online_loss_, model.online_error_]
            progress = replace(progress, passed=progress.passed + 1, chunks=0, online=online)
    return model, progress


class Stopped(Exception):  # noqa: N818
    """Training was interrupted after this much progress, which is saved."""


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """A list that is empty until Ctrl-C or a request to end comes; a second one comes through."""
    asked: list[int] = []
    before: dict[int, Any] = {
        number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)
    }

    def ask(number: int, frame: Any) -> None:
        asked.append(number)
        signal.signal(number, before[number])

    try:
        for number in before:
            signal.signal(number, ask)
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _after(progress: Progress, rows: int, skipped: int, model: Any) -> Progress:
    """After one chunk more."""
    total, curve = progress.rows + rows, progress.curve
    if not progress.online and (not curve or total >= 1.1 * curve[-1][0]):
        curve = [*curve, [total, model.online_loss_, model.online_error_]]
    skipped = max(progress.skipped, skipped)
    return replace(progress, rows=total, chunks=progress.chunks + 1, skipped=skipped, curve=curve)


def _skip(chunks: Iterator[Chunk], n: int) -> Iterator[Chunk]:
    """All chunks but the first n."""
    for number, chunk in enumerate(chunks):
        if number >= n:
            yield chunk
