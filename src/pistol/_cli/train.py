"""`pistol train`: from files to a model file."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from .._data.files.basics import STDIN, expand, trouble
from . import common
from .common import Data, Format, Json, OnError, Target, WeightColumn, ZeroBased


def train(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    format: Format = None,
    target: Target = None,
    weight_column: WeightColumn = None,
    test: Annotated[str | None, typer.Option(help="A file to test the model on.")] = None,
    task: Annotated[
        str | None, typer.Option(help="classification or regression; else the targets tell.")
    ] = None,
    learner: Annotated[
        str | None, typer.Option(help="kernel or linear; else the size of the data tells.")
    ] = None,
    loss: Annotated[str | None, typer.Option(help="A loss of pistol.losses, by its name.")] = None,
    passes: Annotated[
        int | None, typer.Option(min=1, help="Times that all rows are learned; else chosen.")
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(help="All labels, separated by commas; else the data are looked at."),
    ] = None,
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--whole", help="Learn chunk by chunk, or all rows at once."),
    ] = None,
    drift: Annotated[bool, typer.Option("--drift", help="Follow a stream that changes.")] = False,
    features: Annotated[
        int | None, typer.Option(min=1, help="Features of svmlight rows; else the files are read.")
    ] = None,
    bits: Annotated[int, typer.Option(min=1, max=30, help="Hashed features: 2^bits.")] = 18,
    zero_based: ZeroBased = False,
    on_error: OnError = "raise",
    checkpoint: Annotated[
        str, typer.Option(help="Save a checkpoint this often, while chunks are learned; or off.")
    ] = "60s",
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on from the checkpoint of the same command, if any."),
    ] = False,
    predict_only: Annotated[
        bool, typer.Option("--predict-only", help="Write a small model that learns no more.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Write the learning curve to a picture.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seeds the shuffled orders.")] = 0,
    chunk_bytes: Annotated[int | None, typer.Option(min=1, hidden=True)] = None,
    as_json: Json = False,
) -> None:
    """Train a model on files of any size; nothing has to be chosen.

    pistol train rows.csv -o model.pistol

    pistol train 'part-*.svm.gz' --test test.svm -o model.pistol

    zcat log.vw.gz | pistol train - --format vw --classes=-1,1 -o model.pistol

    Ctrl-C saves a checkpoint; the same command with --resume goes on from there, and ends with
    exactly the model of an undisturbed run.
    """
    from dataclasses import replace

    from .checkpoints import Checkpoints, seconds
    from .survey import look
    from .training import Stopped, choose
    from .training import stream as learn_stream
    from .training import whole as learn_whole

    with common.one_line():
        begin, console = perf_counter(), common.messages()
        if task not in (None, "classification", "regression"):
            raise ValueError(f"--task is classification or regression; got {task!r}")
        _writable(output, "--output")
        if plot:
            _writable(plot, "--plot")
        if test and test != STDIN:
            expand(test)
        reader = common.reader_of(format, target, weight_column, zero_based, bits, features)
        reader = replace(reader, piece=chunk_bytes)
        survey = look(
            data, reader, trouble(on_error).skip, task, _labels(classes), bool(stream or drift)
        )
        parameters = {"random_state": seed} | ({"loss": loss} if loss else {})
        parameters |= {"drift": True} if drift else {}
        choice = choose(survey, learner, True if drift else stream, parameters)
        if choice.whole and passes:
            choice.parameters["passes"] = passes
        if survey.once and (passes or 1) > 1:
            raise ValueError("several passes need files: the standard input is read once")
        job = {
            "files": [_stamp(path) for path in survey.files],
            "target": target, "weight": weight_column, "format": format, "learner": choice.learner,
            "classes": survey.classes, "parameters": choice.parameters, "passes": passes or 1,
            "on_error": on_error, "bits": bits, "chunk": chunk_bytes, "width": survey.width,
            "zero_based": zero_based,
        }  # fmt: skip
        kept = Checkpoints(output, seconds(checkpoint), job)
        if choice.whole:
            try:
                with _status(console, survey.rows, as_json):
                    model, progress = learn_whole(survey, choice, trouble(on_error), bool(plot))
            except KeyboardInterrupt:
                console.print(
                    "pistol: interrupted; nothing is saved, as all rows are learned at once; with "
                    "--stream they are learned chunk by chunk, with checkpoints",
                    soft_wrap=True,
                )
                raise typer.Exit(130) from None
        else:
            before = kept.resume() if resume else None
            if before:
                done = before[1]["progress"]["rows"]
                console.print(f"going on after {done:,} rows")
            total = survey.rows and survey.rows * (passes or 1)
            try:
                with Shown(console, total, as_json) as shown:
                    model, progress = learn_stream(
                        survey, choice, passes or 1, on_error, kept, shown.update, before
                    )
            except Stopped as stopped:
                again = [] if resume else ["--resume"]
                command = shlex.join(["pistol", *sys.argv[1:], *again])
                console.print(
                    f"stopped after {stopped.args[0].rows:,} rows; {kept.path} is saved. "
                    f"Go on with: {command}",
                    soft_wrap=True,
                )
                raise typer.Exit(130) from None
        model.save(output, predict_only=predict_only)
        kept.done()
        facts = _facts(model, progress, choice, survey, output, perf_counter() - begin)
        if test:
            from .evaluate import measured

            known = common.reader_for(model.fitted_, reader, needed=True)
            name, rows = type(model).__name__, known.chunks(test, trouble(on_error))
            facts["test"] = measured(name, model.fitted_, rows)
        if plot:
            _plot(progress, plot, survey.classes is not None)
        common.show(facts, as_json)


def _stamp(path: str) -> list[Any]:
    """A file's name, and what tells whether it was changed."""
    if path == STDIN or not Path(path).is_file():
        return [path]
    state = Path(path).stat()
    return [path, state.st_size, state.st_mtime_ns]


def _writable(path: Path, option: str) -> None:
    if not path.parent.is_dir():
        raise ValueError(f"{option}: there is no folder {path.parent}")
    if path.is_dir():
        raise ValueError(f"{option}: {path} is a folder")


def _labels(text: str | None) -> list[Any] | None:
    if text is None:
        return None
    words = [word.strip() for word in text.split(",") if word.strip()]
    if len(set(words)) < 2:
        raise ValueError(f"--classes needs two or more labels; got {text!r}")
    try:
        return sorted({int(word) for word in words})
    except ValueError:
        return sorted(set(words))


def _facts(model: Any, progress: Any, choice: Any, survey: Any, path: Path, time: float) -> Any:
    error = "online error" if survey.classes is not None else "online mean absolute error"
    facts = {
        "model": str(path), "kind": type(model).__name__, "rows": progress.rows // progress.passed,
        "passes": progress.passed if not choice.whole else model.passes_,
        "features": model.n_features_in_,
    }  # fmt: skip
    if survey.classes is not None:
        facts["classes"] = [common.word(label) for label in model.classes_]
    facts |= {
        "online loss": progress.online[0],
        error: progress.online[1],
        "seconds": round(time, 3),
    }
    if progress.skipped:
        facts["malformed lines"] = progress.skipped
    return facts


def _status(console: Any, rows: int | None, quiet: bool) -> Any:
    """A sign of life on a terminal while all rows are learned at once."""
    if quiet or not console.is_terminal:
        return nullcontext()
    return console.status(f"learning {rows:,} rows at once")


class Shown:
    """A bar with rows per second, online loss and error, and the time left, on a terminal."""

    def __init__(self, console: Any, total: int | None, quiet: bool) -> None:
        columns = TextColumn("{task.fields[seen]}"), BarColumn(), TimeRemainingColumn()
        self.bar = Progress(
            *columns, console=console, transient=True, disable=quiet or not console.is_terminal
        )
        self.id = self.bar.add_task("", total=total, seen="")
        self.first: tuple[float, int] | None = None

    def __enter__(self) -> Shown:
        self.bar.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.bar.stop()

    def update(self, progress: Any, model: Any) -> None:
        """Show how far training is."""
        now = perf_counter()
        self.first = self.first or (now, progress.rows)
        speed = (progress.rows - self.first[1]) / max(now - self.first[0], 1e-9)
        loss, error = progress.online or (model.online_loss_, model.online_error_)
        seen = f"{progress.rows:,} rows  {speed:,.0f} rows/s  loss {loss:.4f}  error {error:.4f}"
        self.bar.update(self.id, completed=progress.rows, seen=seen)


def _plot(progress: Any, path: Path, error: bool) -> None:
    """Online loss and error as rows were learned."""
    from matplotlib.figure import Figure

    rows, loss, wrong = zip(*progress.curve)
    figure = Figure((6, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(rows, loss, marker=".", label="online loss")
    axes.plot(
        rows, wrong, marker=".", label="online error" if error else "online mean absolute error"
    )
    axes.set(xscale="log", xlabel="rows", ylim=(0, None))
    axes.legend()
    figure.savefig(path, dpi=150)
