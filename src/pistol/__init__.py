"""Kernel and linear learning with nothing to tune."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._compiled.warmup import warmup
    from ._estimators.baselines import AveragedSGDClassifier, KernelPerceptron
    from ._estimators.encoder import TableEncoder, TableWarning
    from ._estimators.files import ModelFileError
    from ._estimators.kernel import PistolClassifier, PistolRegressor
    from ._estimators.linear import LinearPistolClassifier, LinearPistolRegressor
    from ._estimators.loading import TRUSTED_TYPES, load
    from ._training.explain import Explanation, Neighbours

__version__ = "0.1.0"

__all__ = [
    "TRUSTED_TYPES",
    "AveragedSGDClassifier",
    "Explanation",
    "KernelPerceptron",
    "LinearPistolClassifier",
    "LinearPistolRegressor",
    "ModelFileError",
    "Neighbours",
    "PistolClassifier",
    "PistolRegressor",
    "TableEncoder",
    "TableWarning",
    "__version__",
    "load",
    "warmup",
]

# Where names are from. They are imported when they are first used: scikit-learn takes a second or two,
# and `pistol predict` does without it.
_HOMES = {
    "_compiled.warmup": ["warmup"],
    "_estimators.baselines": ["AveragedSGDClassifier", "KernelPerceptron"],
    "_estimators.encoder": ["TableEncoder", "TableWarning"],
    "_estimators.files": ["ModelFileError"],
    "_estimators.kernel": ["PistolClassifier", "PistolRegressor"],
    "_estimators.linear": ["LinearPistolClassifier", "LinearPistolRegressor"],
    "_estimators.loading": ["TRUSTED_TYPES", "load"],
    "_training.explain": ["Explanation", "Neighbours"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("kernels", "losses", "potentials", "theory")


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
    elif name in _MODULES:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
