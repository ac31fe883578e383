"""Every module keeps to the import table of docs/architecture.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "pistol"
MODULES = {path.stem: path for path in sorted(PACKAGE.glob("*.py"))}
HEADER = "| module | may import (inside pistol) | what lives there |"


def read_table() -> dict[str, list[str]]:
    """Module → the modules it may import, in the order of the table."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = page.split(HEADER)[1].strip().split("\n\n")[0].splitlines()[1:]
    cells = [row.split("|") for row in rows]
    return {re.findall(r"`(\w+)`", c[1])[0]: re.findall(r"`(\w+)`", c[2]) for c in cells}


def imports(source: str) -> set[str]:
    """The modules of the package that this source imports, at the top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            full = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, ["pistol" if node.level else "", node.module]))
            full = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for package, _, rest in (name.partition(".") for name in full):
            if package == "pistol":
                name = rest.partition(".")[0]
                found.add(name if name in MODULES else "__init__")
    return found


TABLE = read_table()


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_the_table_allows(module):
    assert module in TABLE, f"{module} has no row in docs/architecture.md"
    forbidden = imports(MODULES[module].read_text(encoding="utf-8")) - set(TABLE[module])
    assert not forbidden, f"{module} must not import {sorted(forbidden)}"


def test_every_module_in_the_table_exists():
    assert set(TABLE) <= set(MODULES)


def test_the_table_is_bottom_up():
    above: set[str] = set()
    for module, allowed in TABLE.items():
        assert set(allowed) <= above, f"{module} may import only from modules above it"
        above.add(module)


def test_the_package_has_no_subpackages_the_table_would_miss():
    assert set(PACKAGE.rglob("*.py")) == set(MODULES.values())


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("import numpy", set()),
        ("from numpy import pistol", set()),
        ("import pistol", {"__init__"}),
        ("import pistol.rows as r", {"rows"}),
        ("from pistol import losses, PistolClassifier", {"losses", "__init__"}),
        ("from . import _loops", {"_loops"}),
        ("from .rows import add", {"rows"}),
        ("def f():\n    from .kernels import Kernel", {"kernels"}),
    ],
)
def test_imports_are_found_in_all_their_forms(source, modules):
    assert imports(source) == modules
