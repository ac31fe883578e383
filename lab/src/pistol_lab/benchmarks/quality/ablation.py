"""Our defaults with a part switched off, where the installed pistol has a switch for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ...protocol import SkipError

NO_METRIC = {"metric": False}
NO_STEPS = {"scaling": "robust"}
STANDARD = {"scaling": "standard"}
NONSENSE = "no such value"


def switched(estimator: type, switches: Mapping[str, Any], seed: int) -> Any:
    """An estimator with these parameters; a reason to skip it where they are not known."""
    for name, value in switches.items():
        if not knows(estimator, name, value):
            text = f"{name}={value!r}"
            raise SkipError(f"the installed pistol has no {estimator.__name__}({text})")
    return estimator(random_state=seed, **switches)


@lru_cache
def knows(estimator: Any, name: str, value: Any) -> bool:
    """Whether an estimator has a parameter, and tells a word from nonsense.

    A version that only asks whether the value is true would take any word, and the same thing would
    be measured twice.
    """
    if name not in estimator().get_params():
        return False
    return isinstance(value, bool) or (
        _learns(estimator(**{name: value})) and not _learns(estimator(**{name: NONSENSE}))
    )


def _learns(model: Any) -> bool:
    X = np.random.default_rng(0).normal(size=(20, 2))
    try:
        model.fit(X, X[:, 0] > 0 if is_classifier(model) else X[:, 0])
    except (TypeError, ValueError):
        return False
    return True
