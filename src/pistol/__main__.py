"""`python -m pistol` and the `pistol` command: a missing extra is named, not traced."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, if the extra it needs is installed."""
    try:
        from .cli import app
    except ModuleNotFoundError as error:
        sys.exit(f"the pistol command needs {error.name}: pip install 'pistol[cli]'")
    app()


if __name__ == "__main__":
    main()
