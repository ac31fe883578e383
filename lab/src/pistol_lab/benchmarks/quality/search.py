"""A grid search as a careful person would do it, on some of the rows where there are many."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from ...protocol import Array

FOLDS = 5
C = (0.1, 1.0, 10.0, 100.0, 1000.0)
GAMMA = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)  # times 1/(features × variance)


def scaler(X: Any) -> Any:
    """Mean 0 and variance 1 for each column; of sparse rows only the largest value becomes 1."""
    return MaxAbsScaler() if sp.issparse(X) else StandardScaler()


def scale(X: Any) -> float:
    """1/(features × variance) of rows after scaling: what SVC calls gamma="scale"."""
    X = scaler(X).fit_transform(X)
    square = X.multiply(X).mean() if sp.issparse(X) else (X * X).mean()
    return 1.0 / (X.shape[1] * (square - X.mean() ** 2))


class Searched(BaseEstimator):
    """Search a grid by cross-validation and learn all rows with the best of it.

    Parameters
    ----------
    model : estimator
        What is searched; classifiers are judged by errors, regressors by absolute errors.
    grid : dict
        Values to try for each parameter.
    rows : int
        Where there are more rows, so many are drawn to search on.
    seed : int
        Of the folds and of what is drawn.
    """

    def __init__(self, model: Any, grid: dict[str, Any], rows: int, seed: int):
        self.model = model
        self.grid = grid
        self.rows = rows
        self.seed = seed

    def fit(self, X: Any, y: Array) -> Searched:
        """Search, then learn all rows."""
        labels = is_classifier(self.model)
        part = np.arange(len(y))
        if len(y) > self.rows:
            strata = y if labels else None
            part, _ = train_test_split(
                part, train_size=self.rows, random_state=self.seed, stratify=strata
            )
        folds = (StratifiedKFold if labels else KFold)(FOLDS, shuffle=True, random_state=self.seed)
        scoring = "accuracy" if labels else "neg_mean_absolute_error"
        search = GridSearchCV(self.model, self.grid, scoring=scoring, cv=folds, refit=False)
        self.best_params_ = search.fit(X[part], y[part]).best_params_
        self.searched_ = len(part)
        self.best_ = clone(self.model).set_params(**self.best_params_).fit(X, y)
        return self

    def predict(self, X: Any) -> Array:
        """What the best model predicts."""
        return self.best_.predict(X)

    def __getattr__(self, name: str) -> Any:
        """Probabilities and classes, where the best model has them."""
        if name in ("predict_proba", "classes_"):
            return getattr(self.best_, name)
        raise AttributeError(name)
