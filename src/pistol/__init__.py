"""Kernel and linear learning with nothing to tune."""

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
