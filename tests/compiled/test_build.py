"""Building a wheel adds machine code where the library looks for it first."""

import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest

from pistol._compiled import cache

ROOT = Path(__file__).parents[2]
WRITES = (
    "import os, pathlib; place = pathlib.Path(os.environ['NUMBA_CACHE_DIR'], 'pistol-code-stamp'); "
    "place.mkdir(); (place / 'loop.pickle').write_text('code')"
)


@pytest.fixture
def build(monkeypatch):
    """Run the hook with this code in place of the compilation; what it adds, and what it warns of."""
    pytest.importorskip("hatchling", reason="the wheel is built with hatchling")
    spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert "warmup()" in module.WARMUP

    def run(code, root, version):
        monkeypatch.setattr(module, "WARMUP", code)
        warnings = []
        app = SimpleNamespace(display_info=print, display_warning=warnings.append)
        hook = module.CompileLoops(str(root), {}, None, None, "", "wheel", app)
        data = {"force_include": {}}
        hook.initialize(version, data)
        added = {inside: Path(file).read_text() for file, inside in data["force_include"].items()}
        hook.finalize(version, data, "")
        assert not any(Path(file).exists() for file in data["force_include"])
        return added, warnings

    return run


def test_a_wheel_has_the_code_in_the_folder_that_is_looked_at_first(build, tmp_path):
    added, warnings = build(WRITES, tmp_path, "standard")
    ((inside, content),) = added.items()
    assert content == "code"
    assert not warnings
    assert PurePosixPath(inside).parts[:2] == ("pistol", "__pycache__")
    if not cache.INTERPRETED and not cache.config.CACHE_DIR:
        assert cache.folders()[0].parent == cache.PACKAGE / "__pycache__"


def test_an_editable_installation_has_the_code_in_the_checkout(build, tmp_path):
    place = tmp_path / "src" / "pistol" / "__pycache__"
    place.mkdir(parents=True)
    added, _ = build(WRITES, tmp_path, "editable")
    assert not added
    assert (place / "pistol-code-stamp" / "loop.pickle").read_text() == "code"


def test_where_nothing_can_be_compiled_the_wheel_has_no_code(build, tmp_path):
    added, warnings = build("import sys; sys.exit('no compiler')", tmp_path, "standard")
    assert not added
    assert "no compiler" in warnings[0]


def test_the_compilation_finds_the_library_of_the_checkout(build):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import pistol; "
        f"assert pistol.__file__.startswith({str(ROOT)!r}); sys.exit('found')"
    )
    assert "found" in build(code, ROOT, "standard")[1][0]


def test_the_compilation_needs_nothing_that_the_build_does_not_install():
    """pip builds in an environment of its own, where a missing package only leaves the code out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    installed = {name.split(">")[0] for name in wheel["hooks"]["custom"]["dependencies"]}
    others = {name.split(">")[0] for name in project["project"]["dependencies"]} - installed
    assert others, "all dependencies are installed: this test is no longer needed"
    absent = {"scikit-learn": "sklearn"}
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({[absent.get(o, o) for o in others]})); "
        "from pistol._compiled.warmup import _pieces; print(len(_pieces()))"
    )
    command = [sys.executable, "-c", code]
    assert int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) > 10
