"""Kernel and linear learning with nothing to tune."""

from ._baselines import AveragedSGDClassifier, KernelPerceptron
from ._kernel_machines import PistolClassifier, PistolRegressor
from ._linear_machines import LinearPistolClassifier, LinearPistolRegressor
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
