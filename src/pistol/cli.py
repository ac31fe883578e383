"""The `pistol` command, on top of the public names; the library itself never imports this."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from . import __version__

app = typer.Typer(
    help="Kernel and linear learning with nothing to tune.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Kernel and linear learning with nothing to tune."""
    if version:
        print(f"pistol {__version__}")
        raise typer.Exit


@app.command()
def demo(
    picture: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("demo.png"),
) -> None:
    """Learn handwritten digits with nothing set, beside a cross-validated SVM."""
    from ._demo import run

    run(picture, Console())
