"""Building a wheel compiles the loops, as an extension in C would be, so that no fit waits for it.

The machine code goes into the package's own folder for it. There `_compiled/cache.py` finds it if
Python, numba, NumPy and the processor are the same as here; otherwise the first fit compiles. An
editable installation has it in the checkout. `HATCH_BUILD_NO_HOOKS=1` leaves all of this out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WARMUP = "import sys; sys.path.insert(0, sys.argv[1]); " + (
    "from pistol._compiled.warmup import warmup; print(f'compiled in {warmup():.0f} s')"
)


class CompileLoops(BuildHookInterface):
    """Adds machine code to the wheel; a wheel without it works, too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        source = Path(self.root, "src")
        if version == "editable":
            self._compile(source, source / "pistol" / "__pycache__")
            return
        self.made = tempfile.TemporaryDirectory()
        place = Path(self.made.name)
        self._compile(source, place)
        for file in place.rglob("*.pickle"):
            inside = Path("pistol", "__pycache__", file.relative_to(place))
            build_data["force_include"][str(file)] = inside.as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self.made.cleanup()

    def _compile(self, source: Path, place: Path) -> None:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(place)}
        command = [sys.executable, "-c", WARMUP, str(source)]
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        if run.returncode == 0:
            self.app.display_info(run.stdout.strip())
        else:
            self.app.display_warning(f"no machine code in the wheel: {run.stderr.strip()}")
