"""The `pistol` command, on top of the public names; the library itself never imports this.

Other distributions add commands through the entry-point group `pistol.commands`. An entry point is
loaded as a function with typer's annotations, or as a typer app.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from . import __version__
from ._cli.convert import convert
from ._cli.evaluate import evaluate
from ._cli.inspect import inspect
from ._cli.predict import predict
from ._cli.train import train

GROUP = "pistol.commands"
LAB = ("bench", "reproduce")  # commands of pistol-lab
PASS_ALL = {"allow_extra_args": True, "ignore_unknown_options": True}

app = typer.Typer(
    help="Kernel and linear learning with nothing to tune.",
    no_args_is_help=True,
)


def refuse(message: str) -> NoReturn:
    """End the command with one line and exit code 2."""
    typer.echo(message, err=True)
    raise typer.Exit(2)


def writable(path: Path, option: str) -> Path:
    """A file that can be written, its folder made if need be; else the command ends, naming the option.

    To be called before the work starts: what cannot be kept should not be computed.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent):
            pass
        if path.exists():
            path.open("ab").close()
    except FileExistsError:
        refuse(f"{option}: {path} cannot be written: {path.parent} is a file")
    except OSError as problem:
        refuse(f"{option}: {path} cannot be written: {problem.strerror or problem}")
    return path


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
    """Learn handwritten digits with nothing set, beside three methods of scikit-learn."""
    from ._demo import FORMATS, run

    if picture.suffix.lower() not in FORMATS:
        refuse(f"--picture: {picture} should end in one of {', '.join(FORMATS)}")
    run(writable(picture, "--picture"), Console())


for command in (train, predict, evaluate, inspect, convert):
    app.command()(command)


@app.command()
def warmup() -> None:
    """Compile all loops now, so that no fit has to wait for it: for images and services."""
    from . import warmup as compile_all
    from ._compiled.cache import folders

    seconds = compile_all()
    kept = next((folder for folder in folders() if folder.exists()), "no folder")
    print(f"pistol is compiled ({seconds:.1f} s); the machine code is in {kept}")


def add_commands(to: typer.Typer) -> None:
    """Add what other distributions offer, and say where the lab's commands are if it is not there."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    for name, point in sorted(points.items()):
        found = point.load()
        if isinstance(found, typer.Typer):
            to.add_typer(found, name=name)
        else:
            to.command(name)(found)
    for name in LAB:
        if name not in points:
            to.command(name, hidden=True, add_help_option=False, context_settings=PASS_ALL)(_absent)


def _absent(context: typer.Context) -> None:
    refuse(
        f"pistol {context.info_name} comes with pistol-lab, which is not installed; "
        "from a checkout: pip install ./lab"
    )


add_commands(app)
