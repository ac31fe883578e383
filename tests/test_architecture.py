"""The rooms of the package: imports point one way, classes do not override each other."""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "pistol"

# From each room to the rooms that it imports from, bottom up. The lowest one has the loops and the
# functions that they take: losses, kernels, potentials.
ROOMS: dict[str, set[str]] = {
    "theory": set(),
    "reference": set(),
    "_compiled": set(),
    "_learners": {"_compiled", "theory"},
    "_data": {"_compiled"},
    "_training": {"_compiled", "_learners", "_data"},
    "_estimators": {"_compiled", "_learners", "_data", "_training"},
    "__init__": {"_compiled", "_estimators", "_training"},
    "files": {"_data"},
    "onnx": {"_compiled", "_learners", "_data", "_estimators"},
    "online": {"_compiled", "_learners", "_data"},
    "river": {"_compiled", "_learners", "_data", "_training", "_estimators"},
    "plot": {"_compiled", "_data", "_training", "_estimators", "online"},
    "_demo": {"__init__"},
    "_dask": {"_compiled", "_data", "_training", "_estimators"},
    "dask": {"_dask", "_estimators"},
    "_cli": {"__init__", "_compiled", "_data", "_training", "_estimators"},
    "cli": {"__init__", "_compiled", "_demo", "_cli"},
    "__main__": {"cli"},
}
WITH_THE_LOOPS = {"losses", "kernels", "potentials"}


def dotted(path: Path) -> str:
    """A module's name below the package; the package itself is `__init__`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room(module: str) -> str:
    """The room that a module belongs to."""
    first = module.split(".")[0]
    return "_compiled" if first in WITH_THE_LOOPS else first


def package_of(module: str) -> str:
    """The package that a module's relative imports start from."""
    if MODULES[module].name == "__init__.py":
        return "pistol" if module == "__init__" else f"pistol.{module}"
    return ".".join(["pistol", *module.split(".")[:-1]])


def full_names(source: str, package: str) -> set[str]:
    """The dotted names of all that this source imports, at the top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            start = parents[: len(parents) + 1 - node.level] if node.level else []
            base = ".".join([*start, *filter(None, [node.module])])
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return found


def imports(source: str, package: str = "pistol") -> set[str]:
    """The modules of ours that this source imports."""
    return {known(name) for name in full_names(source, package) if name.split(".")[0] == "pistol"}


def known(name: str) -> str:
    """The module that `pistol.a.b` is, or is taken from."""
    parts = name.split(".")[1:]
    while parts and ".".join(parts) not in MODULES:
        parts.pop()
    return ".".join(parts) or "__init__"


def source(module: str) -> str:
    return MODULES[module].read_text(encoding="utf-8")


@cache
def graph() -> dict[str, set[str]]:
    """The modules of ours that each module imports."""
    return {module: imports(source(module), package_of(module)) for module in MODULES}


def test_imports_point_one_way():
    """A room imports exactly what the table says, from rooms that are above it in the table."""
    found: dict[str, set[str]] = {name: set() for name in ROOMS}
    for module, imported in graph().items():
        found[room(module)] |= {room(other) for other in imported} - {room(module)}
    assert found == ROOMS
    above: set[str] = set()
    for name, allowed in ROOMS.items():
        assert allowed <= above, f"{name} may import only from rooms named before it"
        above.add(name)


def test_no_modules_import_each_other_in_a_circle():
    inner = {module: imported - {module} for module, imported in graph().items()}
    for package in [module for module in MODULES if MODULES[module].name == "__init__.py"]:
        for module in inner:  # a package's own modules are imported through it, not by it
            if module.startswith(f"{package}."):
                inner[module] -= {package}
    list(TopologicalSorter(inner).static_order())


@pytest.mark.parametrize("module", MODULES)
def test_the_library_does_not_know_the_lab(module):
    names = full_names(source(module), package_of(module))
    assert not [name for name in names if name.split(".")[0] == "pistol_lab"]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_what_it_is_for_and_is_not_long(module):
    assert ast.get_docstring(ast.parse(source(module)))
    assert source(module).count("\n") < 500


@pytest.mark.parametrize(
    ("text", "package", "modules"),
    [
        ("import numpy", "pistol", set()),
        ("from numpy import pistol", "pistol", set()),
        ("import pistol", "pistol", {"__init__"}),
        ("import pistol._compiled.rows as r", "pistol", {"_compiled.rows"}),
        ("from pistol import losses, PistolClassifier", "pistol", {"losses", "__init__"}),
        ("from . import losses", "pistol", {"losses"}),
        ("def f():\n    from .kernels import Kernel", "pistol", {"kernels"}),
        ("from . import loops", "pistol._compiled", {"_compiled.loops"}),
        ("from .rows import add", "pistol._compiled", {"_compiled.rows"}),
        ("from .. import theory", "pistol._learners", {"theory"}),
        ("from ..kernels import gaussian", "pistol._compiled", {"kernels"}),
    ],
)
def test_imports_are_found_in_all_their_forms(text, package, modules):
    assert imports(text, package) == modules


# Classes


def our_classes() -> list[type]:
    names = [f"pistol.{module}" if module != "__init__" else "pistol" for module in MODULES]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    found = {
        value
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__.split(".")[0] == "pistol"
    }
    return sorted(found, key=lambda cls: (cls.__module__, cls.__qualname__))


def methods(cls: type) -> set[str]:
    """What a class defines itself, but for what Python calls and scikit-learn adds."""
    return {
        name
        for name, value in vars(cls).items()
        if hasattr(value, "__get__")
        and type(value).__module__ != "sklearn.utils._metadata_requests"
        and not (name.startswith("__") and name.endswith("__"))
    }


def overridden(cls: type) -> set[str]:
    """Methods of other classes of ours that this one replaces; protocols are there to be met."""
    ours = [base for base in cls.__mro__[1:] if base.__module__.split(".")[0] == "pistol"]
    bases = [base for base in ours if not getattr(base, "_is_protocol", False)]
    return methods(cls) & {name for base in bases for name in methods(base)}


def test_no_class_overrides_a_method_of_another():
    classes = our_classes()
    assert len(classes) > 40
    assert {cls.__name__: overridden(cls) for cls in classes if overridden(cls)} == {}


def test_an_override_would_be_found():
    class Base:
        def method(self):
            return 1

        @property
        def view(self):
            return 1

    class Derived(Base):
        def method(self):
            return 2

        view = property(lambda self: 2)

    Base.__module__ = Derived.__module__ = "pistol.somewhere"
    assert overridden(Derived) == {"method", "view"}


def test_an_estimator_has_one_shell_and_one_mixin(untouched):
    ours = [cls for cls in untouched.__mro__ if cls.__module__.split(".")[0] == "pistol"]
    assert len(ours) == 3


# State


def written(model, call) -> set[str]:
    """The attributes that a call sets or removes, but for those of scikit-learn's callbacks."""
    before = dict(vars(model))
    call()
    after = vars(model)
    changed = {
        name for name in before | after if before.get(name, call) is not after.get(name, call)
    }
    return {name for name in changed if not name.startswith("_skl_")}


@pytest.mark.parametrize("changes", [{}, {"orders": None}, {"orders": 2, "passes": 2}], ids=str)
def test_training_writes_one_attribute_and_prediction_none(untouched, rows, changes):
    model = untouched(random_state=0, **changes)
    X, y = rows(model, n=50)
    for call in (model.fit, model.partial_fit):
        assert written(model, lambda call=call: call(X, y)) == {"fitted_"}
        for name in ("predict", "decision_function", "predict_proba", "score"):
            if hasattr(model, name):
                read = getattr(model, name)
                more = (X, y) if name == "score" else (X,)
                assert written(model, lambda read=read, more=more: read(*more)) == set()
        assert written(model, lambda: [getattr(model, name, None) for name in dir(model)]) == set()
