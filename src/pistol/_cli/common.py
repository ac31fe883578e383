"""What the commands share: options, errors of one line, and what is shown."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import Console

from .._data.files.reading import FORMATS, Reader, threads_here
from .._data.files.tables import Roles
from .._data.files.vowpal import BITS
from .._training.fitted import Fitted

Data = Annotated[
    list[str], typer.Argument(help="Files or patterns of files; - is the standard input.")
]
Format = Annotated[
    str | None, typer.Option("--format", help=f"One of {', '.join(FORMATS)}; else by the name.")
]
Target = Annotated[
    str | None,
    typer.Option(
        help="The target's column, by name or number; else 'target', 'label', … or the last."
    ),
]
WeightColumn = Annotated[str | None, typer.Option(help="A column with weights of the rows.")]
ZeroBased = Annotated[
    bool, typer.Option("--zero-based", help="Feature numbers of svmlight rows begin at 0.")
]
OnError = Annotated[
    str, typer.Option(help="A malformed line is an error (raise), or left out and counted (skip).")
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON, for machines.")]


def reader_of(
    format: str | None,
    target: str | None = None,
    weight: str | None = None,
    zero_based: bool = False,
    bits: int = BITS,
    n_features: int | None = None,
) -> Reader:
    """How the options say that data are read."""
    roles = Roles(target, weight)
    return Reader(format, roles, n_features, zero_based, bits, threads_here())


def reader_for(known: Fitted, reader: Reader, needed: bool) -> Reader:
    """The same for rows that a model is to see: with its features, whatever else there is."""
    width, names = known.columns.n, known.columns.names
    features = None if names is None else tuple(map(str, names))
    bits = width.bit_length() - 1 if width & (width - 1) == 0 else reader.bits
    encoder = known.columns.encoder
    kinds = None if encoder is None else dict(zip(map(str, encoder.names), encoder.kinds))
    roles = reader.roles._replace(features=features, needed=needed, kinds=kinds)
    return replace(reader, roles=roles, n_features=width, crop=True, bits=bits)


@contextmanager
def one_line() -> Iterator[None]:
    """Errors about files, data and values end the command with one line and exit code 1.

    Warnings are lines, too.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _one_warning()
            yield
    except KeyboardInterrupt:
        typer.echo("pistol: interrupted", err=True)
        raise typer.Exit(130) from None
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(141) from None
    except (ValueError, TypeError, OSError) as problem:
        text = " ".join(str(problem).split()) or type(problem).__name__
        typer.echo(f"pistol: {text}", err=True)
        raise typer.Exit(1) from None


def _one_warning() -> Any:
    """What prints each warning once, as a line."""
    said: set[str] = set()

    def say(message: Any, *others: Any, **more: Any) -> None:
        text = " ".join(str(message).split())
        if text not in said:
            typer.echo(f"pistol: {text}", err=True)
        said.add(text)

    return say


def left_out(lines: int) -> str:
    """How many malformed lines were left out."""
    return f"{lines:,} malformed line{'s were' if lines > 1 else ' was'} left out"


def messages() -> Console:
    """Where progress and messages go; plain where it is no terminal."""
    return Console(stderr=True, highlight=False)


def show(facts: dict[str, Any], as_json: bool) -> None:
    """Print facts as lines, or as one JSON object."""
    if as_json:
        print(json.dumps(keyed(facts)))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {plain(value)}")


def keyed(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts with names that are easy to type: online_loss, R2."""
    names = str.maketrans({" ": "_", "-": "_", "²": "2"})
    return {
        name.translate(names): keyed(value) if name == "test" else value
        for name, value in facts.items()
    }


def plain(value: Any) -> str:
    """A fact as a reader likes it."""
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain(part)}" for key, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def word(label: Any) -> Any:
    """A label as JSON takes it: a whole number without a point."""
    plain = label.item() if hasattr(label, "item") else label
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain
