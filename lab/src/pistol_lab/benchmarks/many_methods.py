"""The methods that learn more and more rows: ours and the peers, all with their defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.compose import (
    TransformedTargetRegressor,
    make_column_selector,
    make_column_transformer,
)
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from pistol import PistolClassifier, PistolRegressor

from ..protocol import peer
from .quality.peers import CACHE
from .quality.search import scaler


@dataclass(frozen=True)
class Method:
    """How an estimator is made, given whether it classifies and the rows that it will learn."""

    make: Callable[[bool, Any], Any]
    dense: bool = False  # whether sparse rows have to be made dense
    most: int = 2**62  # rows; more would take too long


def _ours(classes: bool, X: Any) -> Any:
    return (PistolClassifier if classes else PistolRegressor)(random_state=0)


def _boosting(classes: bool, X: Any) -> Any:
    if classes:
        return HistGradientBoostingClassifier(random_state=0)
    return HistGradientBoostingRegressor(loss="absolute_error", random_state=0)


def _lightgbm(classes: bool, X: Any) -> Any:
    made = peer("lightgbm", "quality")
    if classes:
        return made.LGBMClassifier(random_state=0, verbose=-1)
    return made.LGBMRegressor(objective="mae", random_state=0, verbose=-1)


def _svc(classes: bool, X: Any) -> Any:
    """Scaled numbers, and words as indicators."""
    ready = scaler(X)
    if hasattr(X, "iloc"):
        ready = make_column_transformer(
            (
                OneHotEncoder(handle_unknown="ignore"),
                make_column_selector(dtype_include="category"),
            ),
            remainder=make_pipeline(SimpleImputer(), StandardScaler()),
        )
    if classes:
        return make_pipeline(ready, SVC(cache_size=CACHE))
    model = make_pipeline(ready, SVR(cache_size=CACHE))
    return TransformedTargetRegressor(model, transformer=StandardScaler())


METHODS = {
    "ours": Method(_ours),
    "boosting": Method(_boosting, dense=True),
    "lightgbm": Method(_lightgbm),
    "svc": Method(_svc, most=10_000),
}
