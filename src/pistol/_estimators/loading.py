"""`pistol.load`: an estimator from a model file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .._training.tasks import Classification
from .baselines import AveragedSGDClassifier, KernelPerceptron
from .files import ModelFileError, Saved, read_model
from .kernel import PistolClassifier, PistolRegressor
from .linear import LinearPistolClassifier, LinearPistolRegressor
from .tasks import Classifier

CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        AveragedSGDClassifier,
        KernelPerceptron,
        LinearPistolClassifier,
        LinearPistolRegressor,
        PistolClassifier,
        PistolRegressor,
    )
}

TRUSTED_TYPES = sorted(f"{cls.__module__}.{cls.__qualname__}" for cls in CLASSES.values())


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator that its method `save` has written to a file.

    It predicts what the saved one predicts, and `partial_fit` goes on as if it had never stopped, bit
    for bit. Loading runs no code and checks everything, so files of unknown origin are safe to load.

    Parameters
    ----------
    path : path-like
        A model file.

    Returns
    -------
    estimator : object
        The fitted estimator.

    Raises
    ------
    ModelFileError
        If the file is no model, is truncated or damaged, or was written by a later version.

    Examples
    --------
    >>> import pistol
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = pistol.LinearPistolClassifier(passes=1).fit(X, y)
    >>> model.save("iris.pistol")  # doctest: +SKIP
    >>> pistol.load("iris.pistol").predict(X[:1])  # doctest: +SKIP
    array([0])
    """
    return estimator_of(read_model(Path(path)), path)


def estimator_of(saved: Saved, path: str | os.PathLike[str]) -> Any:
    """The fitted estimator of what a file holds."""
    cls: Any = CLASSES[saved.name]
    same = saved.parameters.keys() == set(cls._get_param_names())
    if not same or isinstance(saved.fitted.task, Classification) != issubclass(cls, Classifier):
        what = "a task that is not that" if same else "parameters that are not those"
        raise ModelFileError(f"{path} cannot be read: it has {what} of its class, {saved.name}")
    estimator = cls(**saved.parameters)
    estimator.fitted_ = saved.fitted
    return estimator
