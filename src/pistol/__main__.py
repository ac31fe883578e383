"""`python -m pistol` and the `pistol` command: errors are one line, a missing extra is named."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line, if the extra it needs is installed."""
    if os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        os.environ.setdefault("TYPER_USE_RICH", "0")  # help without frames
    try:
        import typer

        from .cli import app
    except ModuleNotFoundError as error:
        sys.exit(f"the pistol command needs {error.name}: pip install 'pistol[cli]'")
    command = typer.main.get_command(app)
    try:
        code = command.main(prog_name="pistol", standalone_mode=False)
    except Exception as problem:
        if not hasattr(problem, "format_message"):
            raise
        bare = type(problem).__name__ == "NoArgsIsHelpError"  # the help is the message
        print(str(problem) if bare else f"pistol: {_usage(problem)}", file=sys.stderr)
        code = getattr(problem, "exit_code", 2)
    sys.exit(code if isinstance(code, int) else 0)


def _usage(problem: Exception) -> str:
    """What is wrong with the options, and where they are explained."""
    text = " ".join(problem.format_message().split()).rstrip(".")  # type: ignore[attr-defined]
    context = getattr(problem, "ctx", None)
    return f"{text}; see {context.command_path if context else 'pistol'} --help"


if __name__ == "__main__":
    main()
