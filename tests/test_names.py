"""What `import pistol` offers: names are there without being imported all at once."""

import ast
import inspect
import subprocess
import sys

import pytest

import pistol


def test_every_name_has_a_home():
    """What editors and type checkers see is what is found when the code runs."""
    tree = ast.parse(inspect.getsource(pistol))
    seen = [
        (alias.name, node.module) for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level for alias in node.names
    ]  # fmt: skip
    assert dict(seen) == pistol._HOME_OF
    assert {"__version__", *pistol._HOME_OF} == set(pistol.__all__)
    assert set(pistol.__all__) <= set(dir(pistol))


def test_a_star_imports_all_names():
    names = {}
    exec("from pistol import *", names)
    assert set(pistol.__all__) <= set(names)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'pistol' has no attribute 'spam'"):
        pistol.spam  # noqa: B018


def test_modules_are_there_once_they_are_used():
    code = (
        "import pistol; print(pistol.losses.LOSSES['hinge'].name, len(pistol.kernels.KERNELS) > 3)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "hinge True\n"
