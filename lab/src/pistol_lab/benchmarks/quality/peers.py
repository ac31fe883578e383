"""The methods: ours as they come, the peers as a careful person would use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV, SGDClassifier, SGDRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR

from pistol import (
    LinearPistolClassifier,
    LinearPistolRegressor,
    PistolClassifier,
    PistolRegressor,
)

from . import boosting
from .ablation import NO_METRIC, NO_STEPS, STANDARD, switched
from .search import GAMMA, C, Searched, scale, scaler
from .streams import VowpalWabbit
from .tasks import Task

CACHE = 500  # megabytes for kernel values
ALPHAS = [10.0**k for k in range(-6, 0)]


@dataclass(frozen=True)
class Case:
    """What a method may know before it learns."""

    task: Task
    X: Any
    seed: int
    search: int  # the most rows that a grid is searched on
    found: Mapping[str, float]  # the parameters found by the grid that this method builds on
    toy: bool = False


Build = Callable[[Case], Any]


@dataclass(frozen=True)
class Method:
    """A way to learn: how the estimator is made, for the two kinds of targets."""

    about: str
    classify: Build | None = None
    regress: Build | None = None
    linear: bool = False  # runs on any number of features
    ranked: bool = True  # takes part in the mean ranks
    ours: bool = False
    after: str = ""  # the method whose parameters it takes over

    def build(self, kind: str) -> Build | None:
        """How the estimator is made for a kind of task; None if it is not for that kind."""
        return self.regress if kind == "regression" else self.classify

    def suits(self, task: Task) -> bool:
        """Whether the method can learn this task."""
        return self.build(task.kind) is not None and (self.linear or not task.linear)


class Units:
    """One of our estimators behind columns that are multiplied by random powers of ten."""

    def __init__(self, model: Any, seed: int):
        self.model = model
        self.seed = seed

    def fit(self, X: Any, y: Any) -> Units:
        """Learn rows in other units."""
        self.model.fit(self.changed(X), y)
        return self

    def predict(self, X: Any) -> Any:
        """Predict rows in other units."""
        return self.model.predict(self.changed(X))

    def changed(self, X: Any) -> Any:
        """The same columns, in units from a millionth to a million."""
        powers = np.random.default_rng(self.seed).integers(-6, 7, X.shape[1])
        units = 10.0**powers
        return X.multiply(units).tocsr() if sp.issparse(X) else X * units


def _scaled(case: Case, model: Any) -> Pipeline:
    return Pipeline([("scale", scaler(case.X)), ("learn", model)])


def _target(model: Any) -> TransformedTargetRegressor:
    return TransformedTargetRegressor(model, transformer=StandardScaler())


def _searched(case: Case, model: Any, prefix: str, **grid: Any) -> Searched:
    each = 4 if case.toy else 1  # a toy run tries every fourth value
    axes = {prefix + name: values[::each] for name, values in grid.items()}
    return Searched(model, axes, case.search, case.seed)


def _gammas(case: Case) -> list[float]:
    return [factor * scale(case.X) for factor in GAMMA]


def _svc(case: Case) -> Any:
    return _scaled(case, SVC(cache_size=CACHE))


def _svc_grid(case: Case) -> Any:
    return _searched(case, _svc(case), "learn__", C=C, gamma=_gammas(case))


def _svc_calibrated(case: Case) -> Any:
    return CalibratedClassifierCV(_svc(case).set_params(**case.found), cv=5)


def _svr(case: Case) -> Any:
    return _target(_scaled(case, SVR(epsilon=0.1, cache_size=CACHE)))


def _svr_grid(case: Case) -> Any:
    return _searched(case, _svr(case), "regressor__learn__", C=C, gamma=_gammas(case))


def _sgd(case: Case) -> Any:
    model = _scaled(case, SGDClassifier(random_state=case.seed))
    return _searched(case, model, "learn__", alpha=ALPHAS)


def _sgd_target(case: Case) -> Any:
    model = _target(_scaled(case, SGDRegressor(random_state=case.seed)))
    losses = ["epsilon_insensitive", "huber"]
    return _searched(case, model, "regressor__learn__", alpha=ALPHAS, loss=losses)


def _logistic(case: Case) -> Any:
    model = _scaled(case, LogisticRegression(max_iter=1000))
    return _searched(case, model, "learn__", C=[10.0**k for k in range(-3, 4)])


def _ridge(case: Case) -> Any:
    return _scaled(case, RidgeCV([10.0**k for k in range(-3, 4)]))


def _boosted(case: Case) -> Any:
    model = HistGradientBoostingClassifier(random_state=case.seed)
    dense = FunctionTransformer(lambda X: X.toarray(), accept_sparse=True)
    return make_pipeline(dense, model) if sp.issparse(case.X) else model


def _boosted_target(case: Case) -> Any:
    return HistGradientBoostingRegressor(loss="absolute_error", random_state=case.seed)


def _booster(names: str, make: Callable[[int, bool, bool], Any]) -> Method:
    return Method(
        f"{names} as they come, with the absolute error for targets",
        lambda case: make(case.seed, False, case.toy),
        lambda case: make(case.seed, True, case.toy),
    )


def _switched(what: str, **switches: Any) -> Method:
    """`pistol` with parts of its defaults switched off."""
    return Method(
        f"`pistol` {what}",
        lambda case: switched(PistolClassifier, switches, case.seed),
        lambda case: switched(PistolRegressor, switches, case.seed),
        ranked=False,
        ours=True,
    )


METHODS = {
    "pistol": Method(
        "`PistolClassifier()` and `PistolRegressor()`, on rows in their own units",
        lambda case: PistolClassifier(random_state=case.seed),
        lambda case: PistolRegressor(random_state=case.seed),
        ours=True,
    ),
    "pistol-linear": Method(
        "`LinearPistolClassifier()` and `LinearPistolRegressor()`, likewise",
        lambda case: LinearPistolClassifier(random_state=case.seed),
        lambda case: LinearPistolRegressor(random_state=case.seed),
        linear=True,
        ours=True,
    ),
    "pistol-units": Method(
        "`pistol` on columns multiplied by random powers of ten, from a millionth to a million",
        lambda case: Units(PistolClassifier(random_state=case.seed), case.seed),
        lambda case: Units(PistolRegressor(random_state=case.seed), case.seed),
        ranked=False,
        ours=True,
    ),
    "pistol-no-metric": _switched("without the learned metric", **NO_METRIC),
    "pistol-no-steps": _switched("without ramps beside the features", **NO_STEPS),
    "pistol-standard": _switched("scaled by mean and standard deviation", **STANDARD),
    "pistol-plain": _switched("without metric, ramps and robust scaling", **NO_METRIC, **STANDARD),
    "svc-grid": Method("`SVC`, a grid of 5 C × 5 γ, 5 folds", _svc_grid),
    "svc-calibrated": Method(
        "`CalibratedClassifierCV`, 5 folds, around `SVC` with the C and γ that svc-grid found; "
        "the time of the search is not in its time",
        _svc_calibrated,
        ranked=False,
        after="svc-grid",
    ),
    "svr-grid": Method(
        "`SVR`, a grid of 5 C × 5 γ, 5 folds, ε a tenth of the target's deviation",
        regress=_svr_grid,
    ),
    "svc": Method("`SVC()`", _svc),
    "svr": Method("`SVR()`", regress=_svr),
    "sgd-grid": Method(
        "`SGDClassifier`, 6 α; `SGDRegressor`, 6 α × 2 losses; 5 folds",
        _sgd,
        _sgd_target,
        linear=True,
    ),
    "logistic-grid": Method("`LogisticRegression`, 7 C, 5 folds", _logistic, linear=True),
    "ridge-grid": Method("`RidgeCV`, 7 α", regress=_ridge),
    "vw": Method(
        "Vowpal Wabbit, logistic loss, one pass", lambda case: VowpalWabbit(), linear=True
    ),
    "hgb": Method(
        "`HistGradientBoosting…` as they come, with the absolute error for targets",
        _boosted,
        _boosted_target,
    ),
    "lightgbm": _booster("`LGBMClassifier` and `LGBMRegressor`", boosting.lightgbm),
    "catboost": _booster("`CatBoostClassifier` and `CatBoostRegressor`", boosting.catboost),
    "xgboost": _booster("`XGBClassifier` and `XGBRegressor`", boosting.xgboost),
}
