"""Machine code on disk: never stale, never mixed up, and not needed."""

import ast
import os
import shutil
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import pistol
from pistol._compiled import cache

PACKAGE = Path(pistol.__file__).parent
compiled = pytest.mark.skipif(cache.INTERPRETED, reason="nothing is compiled")

# Prints numbers that depend on compiled code of several files, and whether anything was compiled.
SCRIPT = """
import numpy as np, warnings
from numba.core import event
warnings.simplefilter("always")
made = event.RecordingListener()
event.register("numba:compile", made)
import pistol
from pistol._compiled.moments import vote_stored
from pistol._compiled.rows import as_rows
from pistol._compiled.types import read_only
from pistol.kernels import gaussian
from pistol.losses import LOSSES

X, one, usual, votes = np.arange(6.0).reshape(3, 2), read_only(np.ones(3)), np.zeros(2), np.zeros(2)
vote_stored(as_rows(X), one, usual, votes, np.zeros(2))
K = np.full((3, 3), -0.3)
gaussian(K, one, one, one, np.zeros((3, 0)), np.zeros((0, 3)))
print(pistol.__file__, LOSSES["logistic"].grad(1.0, 0.5, 0.5) + usual[0], K[0, 0], bool(made.buffer))
"""


class Copy:
    """An installed copy of the package, and processes that use it."""

    def __init__(self, folder):
        self.site, self.package = folder / "site", folder / "site" / "pistol"
        shutil.copytree(
            PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__", "*.nb[ic]")
        )
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("NUMBA_", "COV", "PYTHON"))
        } | {"PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1"}

    def start(self, **environment):
        command = [sys.executable, "-c", SCRIPT]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, env=self.environment | environment, stdout=pipe, stderr=pipe, text=True
        )

    def run(self, **environment):
        """Two numbers, whether anything was compiled, and what was said about it."""
        return self.result(self.start(**environment))

    def result(self, process):
        out, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
        file, *numbers, made = out.split()
        assert Path(file).is_relative_to(self.package)
        return tuple(map(float, numbers)), made == "True", said

    def edit(self, file, old, new):
        """Change a formula so that neither the date nor the size of its file shows it."""
        path = self.package / file
        before, text = path.stat(), path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        assert len(old) == len(new)
        path.write_text(text.replace(old, new), encoding="utf-8")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


@pytest.fixture
def nowhere(copy, tmp_path):
    """An environment in which no folder can be written to, not even by root."""
    (tmp_path / "file").write_text("not a folder")
    (copy.package / "__pycache__").write_text("not a folder")
    below = str(tmp_path / "file" / "below")
    return {"HOME": below, "XDG_CACHE_HOME": below, "LOCALAPPDATA": below}


EDITS = [
    ("_compiled/exp.py", "e = e * r + 0.5\n", "e = e * r + 0.7\n"),
    ("losses.py", "else 1.0) / (1.0 + e)", "else 1.0) / (2.0 + e)"),
]


@compiled
def test_a_change_in_any_file_acts_at_once(copy, tmp_path):
    folder = {"NUMBA_CACHE_DIR": str(tmp_path / "code")}
    before, made, _ = copy.run(**folder)
    assert made
    for edit in EDITS:
        copy.edit(*edit)
    now, _, _ = copy.run(**folder)
    assert all(number != old for number, old in zip(now, before, strict=True))
    assert now == pytest.approx(copy.run(NUMBA_DISABLE_JIT="1")[0], rel=1e-9)  # both have acted
    again, made, _ = copy.run(**folder)
    assert again == now
    assert not made


@compiled
def test_stale_bytecode_does_not_spoil_the_code_of_new_sources(copy, tmp_path):
    """Where Python itself runs old bytecode, its machine code must not be taken for the source's."""
    folder = {"NUMBA_CACHE_DIR": str(tmp_path / "code"), "PYTHONDONTWRITEBYTECODE": ""}
    before, _, _ = copy.run(**folder)
    copy.edit(*EDITS[0])
    assert copy.run(**folder)[0] == before  # by Python's rules nothing has changed
    for bytecode in copy.package.rglob("*.pyc"):
        bytecode.unlink()
    assert copy.run(**folder)[0] != before


@compiled
def test_nothing_can_be_written_and_all_works_with_one_warning(copy, nowhere):
    expected, _, _ = copy.run(NUMBA_DISABLE_JIT="1")
    found, made, said = copy.run(**nowhere)
    assert made
    assert found == pytest.approx(expected, rel=1e-9)
    assert said.count("Set NUMBA_CACHE_DIR to a folder that can be written to") == 1


@compiled
def test_code_is_looked_for_wherever_it_may_have_been_written(copy, tmp_path):
    """As in an image: what root compiled when it was built serves a user who would write elsewhere."""
    home, blocked = {"XDG_CACHE_HOME": str(tmp_path / "home")}, copy.package / "__pycache__"
    blocked.write_text("not a folder")
    assert copy.run(**home)[1]
    blocked.unlink()
    _, made, said = copy.run(**home)
    assert not made
    assert said == ""


@compiled
def test_processes_that_start_cold_at_once_agree(copy, tmp_path):
    folder = {"NUMBA_CACHE_DIR": str(tmp_path / "code")}
    results = [copy.result(p) for p in [copy.start(**folder) for _ in range(2)]]
    assert len({values for values, _, _ in results}) == 1
    values, made, said = copy.run(**folder)
    assert (values, made, said) == (results[0][0], False, "")
    for file in (tmp_path / "code").rglob("*.pickle"):
        file.write_bytes(file.read_bytes()[:100])  # damaged: to be compiled anew
    assert copy.run(**folder)[:2] == (values, True)


def test_code_of_older_stamps_goes_away(tmp_path):
    (tmp_path / "code-of-others").mkdir()
    for stamp in range(7):
        folder = tmp_path / f"{cache.NAME}{stamp}"
        cache.write(folder / "f.pickle", b"code")
        os.utime(folder, (stamp, stamp))
    cache.write(tmp_path / f"{cache.NAME}new" / "f.pickle", b"code")
    kept = {folder.name for folder in tmp_path.iterdir()} - {"code-of-others"}
    assert f"{cache.NAME}new" in kept
    assert f"{cache.NAME}0" not in kept
    assert len(kept) <= cache.KEPT
    assert (tmp_path / "code-of-others").exists()
    assert (tmp_path / f"{cache.NAME}new" / "f.pickle").read_bytes() == b"code"


def test_what_takes_long_is_said_once(capsys, monkeypatch):
    monkeypatch.setattr(cache, "PATIENCE", 0.2)
    news = cache.News()
    for seconds in (0.01, 0.5, 0.5):
        news.begin()
        time.sleep(seconds)
        news.end()
    assert capsys.readouterr().err.count("compiling") == 1


def test_what_takes_no_time_is_not_mentioned(capsys):
    news = cache.News()
    news.begin()
    news.end()
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("module", cache.STAMPED)
def test_stamped_code_takes_nothing_of_ours_from_elsewhere(module):
    path = PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join(module.split(".")[: -node.level] + [node.module or ""]).rstrip(".")
            names = [f"{base}.{alias.name}" for alias in node.names]
            assert all(base in cache.STAMPED or name in cache.STAMPED for name in names), names


@compiled
def test_how_a_function_is_compiled_does_not_depend_on_who_calls_it_first():
    for module in map(import_module, cache.STAMPED):
        for function in vars(module).values():
            if isinstance(function, Dispatcher):
                assert {"fastmath", "error_model", "forceinline"} <= set(function.targetoptions)


def test_code_with_other_flags_is_the_same():
    """Under a profiler a loop has other flags; machine code on disk would not be found."""
    code = test_code_with_other_flags_is_the_same.__code__
    other = code.replace(co_flags=code.co_flags ^ 0x1000000)  # of annotations in the future
    assert other.co_flags != code.co_flags
    assert list(cache._parts(other)) == list(cache._parts(code))
