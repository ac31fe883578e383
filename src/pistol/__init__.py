"""Kernel and linear learning with nothing to tune."""

from ._compiled.warmup import warmup
from ._estimators.baselines import AveragedSGDClassifier, KernelPerceptron
from ._estimators.encoder import TableEncoder, TableWarning
from ._estimators.kernel import PistolClassifier, PistolRegressor
from ._estimators.linear import LinearPistolClassifier, LinearPistolRegressor

__version__ = "0.1.0"

__all__ = [
    "AveragedSGDClassifier",
    "KernelPerceptron",
    "LinearPistolClassifier",
    "LinearPistolRegressor",
    "PistolClassifier",
    "PistolRegressor",
    "TableEncoder",
    "TableWarning",
    "__version__",
    "warmup",
]
