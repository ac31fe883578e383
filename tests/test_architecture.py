"""Every module keeps to the import table of docs/architecture.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "pistol"


def dotted(path: Path) -> str:
    """A module's name below the package; the package itself is `__init__`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}
HEADER = "| module | may import (inside pistol) | what lives there |"


def read_table() -> dict[str, list[str]]:
    """Module → the modules it may import, in the order of the table."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = page.split(HEADER)[1].strip().split("\n\n")[0].splitlines()[1:]
    cells = [row.split("|") for row in rows]
    return {re.findall(r"`([\w.]+)`", c[1])[0]: re.findall(r"`([\w.]+)`", c[2]) for c in cells}


def package_of(module: str) -> str:
    """The package that a module's relative imports start from."""
    if MODULES[module].name == "__init__.py":
        return "pistol" if module == "__init__" else f"pistol.{module}"
    return ".".join(["pistol", *module.split(".")[:-1]])


def imports(source: str, package: str = "pistol") -> set[str]:
    """The modules of ours that this source imports, at the top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            full = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            start = parents[: len(parents) + 1 - node.level] if node.level else []
            base = ".".join([*start, *filter(None, [node.module])])
            full = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {known(name) for name in full if name.split(".")[0] == "pistol"}
    return found


def known(name: str) -> str:
    """The module that `pistol.a.b` is, or is taken from."""
    parts = name.split(".")[1:]
    while parts and ".".join(parts) not in MODULES:
        parts.pop()
    return ".".join(parts) or "__init__"


TABLE = read_table()


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_the_table_allows(module):
    assert module in TABLE, f"{module} has no row in docs/architecture.md"
    source = MODULES[module].read_text(encoding="utf-8")
    forbidden = imports(source, package_of(module)) - set(TABLE[module])
    assert not forbidden, f"{module} must not import {sorted(forbidden)}"


def test_every_module_in_the_table_exists():
    assert set(TABLE) <= set(MODULES)


def test_the_table_is_bottom_up():
    above: set[str] = set()
    for module, allowed in TABLE.items():
        assert set(allowed) <= above, f"{module} may import only from modules above it"
        above.add(module)


@pytest.mark.parametrize("package", ["benchmarks", "experiments"])
def test_only_the_command_may_import(package):
    inner = {module for module in TABLE if module.split(".")[0] == package}
    assert inner
    assert {m for m in TABLE if inner.intersection(TABLE[m])} - inner == {"cli"}


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("import numpy", set()),
        ("from numpy import pistol", set()),
        ("import pistol", {"__init__"}),
        ("import pistol._compiled.rows as r", {"rows"}),
        ("from pistol import losses, PistolClassifier", {"losses", "__init__"}),
        ("from . import _loops", {"_loops"}),
        ("from .rows import add", {"rows"}),
        ("def f():\n    from .kernels import Kernel", {"kernels"}),
    ],
)
def test_imports_are_found_in_all_their_forms(source, modules):
    assert imports(source) == modules


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("from . import report", {"benchmarks.report"}),
        ("from .protocol import Size", {"benchmarks.protocol"}),
        ("from .. import PistolClassifier, losses", {"__init__", "losses"}),
        ("from ..kernels import gaussian", {"kernels"}),
        ("from .kernels import engine", {"benchmarks.kernels"}),
        ("from pistol.benchmarks import run", {"benchmarks"}),
        ("import pistol.benchmarks.data", {"benchmarks.data"}),
    ],
)
def test_imports_are_found_from_inside_a_subpackage(source, modules):
    assert imports(source, "pistol.benchmarks") == modules
