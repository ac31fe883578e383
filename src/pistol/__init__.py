"""Kernel and linear learning with nothing to tune."""

from ._estimators.baselines import AveragedSGDClassifier, KernelPerceptron
from ._estimators.kernel import PistolClassifier, PistolRegressor
from ._estimators.linear import LinearPistolClassifier, LinearPistolRegressor
from ._warmup import warmup

__version__ = "0.1.0"

__all__ = [
    "AveragedSGDClassifier",
    "KernelPerceptron",
    "LinearPistolClassifier",
    "LinearPistolRegressor",
    "PistolClassifier",
    "PistolRegressor",
    "__version__",
    "warmup",
]
