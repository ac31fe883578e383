"""Gradient boosting from three packages, with the defaults of each, behind scikit-learn's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...protocol import Array, peer

EXTRA = "boosting"
FEW = {"n_estimators": 10}  # trees of a toy run; CatBoost grows 1,000 on any number of rows


class Encoded:
    """A classifier whose labels are 0, 1, …, in front of labels of any type.

    XGBoost takes no others, and CatBoost returns its labels as a column where there are several
    classes.
    """

    def __init__(self, model: Any):
        self.model = model

    def fit(self, X: Any, y: Array) -> Encoded:
        """Learn the numbers of the classes."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.model.fit(X, codes)
        return self

    def predict(self, X: Any) -> Array:
        """The label of each row."""
        return self.classes_[np.asarray(self.model.predict(X)).ravel().astype(int)]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes; they sum to 1 in double precision too."""
        P = np.asarray(self.model.predict_proba(X), float)
        return P / P.sum(axis=1, keepdims=True)


def lightgbm(seed: int, regression: bool, toy: bool = False) -> Any:
    """LightGBM on one core."""
    made = peer("lightgbm", EXTRA)
    quiet = {"n_jobs": 1, "random_state": seed, "verbose": -1} | (FEW if toy else {})
    if regression:
        return made.LGBMRegressor(objective="mae", **quiet)
    return Encoded(made.LGBMClassifier(**quiet))


def catboost(seed: int, regression: bool, toy: bool = False) -> Any:
    """CatBoost on one core."""
    made = peer("catboost", EXTRA)
    quiet = {"thread_count": 1, "random_seed": seed, "verbose": False}
    quiet |= {"allow_writing_files": False} | (FEW if toy else {})
    if regression:
        return made.CatBoostRegressor(loss_function="MAE", **quiet)
    return Encoded(made.CatBoostClassifier(**quiet))


def xgboost(seed: int, regression: bool, toy: bool = False) -> Any:
    """XGBoost on one core."""
    made = peer("xgboost", EXTRA)
    quiet = {"n_jobs": 1, "random_state": seed, "verbosity": 0} | (FEW if toy else {})
    if regression:
        return made.XGBRegressor(objective="reg:absoluteerror", **quiet)
    return Encoded(made.XGBClassifier(**quiet))
