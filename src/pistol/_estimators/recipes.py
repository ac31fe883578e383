"""From constructor parameters to what is asked, what learns and by which rule, for each estimator.

Model files are read with the recipes alone: predicting from the shell needs no estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._learners import Rule
from .._training.families import Family
from .._training.kernel_family import KernelFamily
from .._training.linear_family import LinearFamily
from .._training.tasks import Task, classification, regression
from ..losses import Loss
from .rules import RuleOf, perceptron_rule, pistol_rule, sgd_rule

# Where b is "anytime" it is one of these numbers times √(2α_t), for labels and for targets; where every
# feature has a learner, times √(2α_t/k), with k the entries of a row.
KERNEL_ANYTIME, LINEAR_ANYTIME, SHARED_ANYTIME = (0.5, 8.0), (0.5, 2.0), (1.5, 6.0)


class Recipe(NamedTuple):
    """What the parameters of an estimator say: what is asked, what learns, and by which rule."""

    task: Callable[[Any, Any], Task]  # from y and classes
    family: Family
    rule: Callable[[Loss, float | None, float], Rule]  # from loss, rounds to come and their size
    drift: bool = False


def kernel_classifier(p: Any) -> Recipe:
    """Of `PistolClassifier`."""
    return Recipe(
        task=lambda y, classes: classification(p.loss, y, classes),
        family=_kernels(p),
        rule=pistol_rule(p.a, p.b, p.average, KERNEL_ANYTIME[0]),
        drift=p.drift,
    )


def kernel_regressor(p: Any) -> Recipe:
    """Of `PistolRegressor`."""
    return Recipe(
        task=lambda y, classes: regression(p.loss, y),
        family=_kernels(p),
        rule=pistol_rule(p.a, p.b, p.average, KERNEL_ANYTIME[1]),
        drift=p.drift,
    )


def linear_classifier(p: Any) -> Recipe:
    """Of `LinearPistolClassifier`."""
    return Recipe(
        task=lambda y, classes: classification(p.loss, y, classes),
        family=LinearFamily(p.per_coordinate, p.fit_intercept, p.scaling),
        rule=_linear_rule(p, 0),
        drift=p.drift,
    )


def linear_regressor(p: Any) -> Recipe:
    """Of `LinearPistolRegressor`."""
    return Recipe(
        task=lambda y, classes: regression(p.loss, y, centred=p.fit_intercept),
        family=LinearFamily(p.per_coordinate, p.fit_intercept, p.scaling),
        rule=_linear_rule(p, 1),
        drift=p.drift,
    )


def averaged_sgd(p: Any) -> Recipe:
    """Of `AveragedSGDClassifier`."""
    return Recipe(
        task=lambda y, classes: classification(p.loss, y, classes),
        family=_kernels(p),
        rule=sgd_rule(p.eta, p.average),
    )


def kernel_perceptron(p: Any) -> Recipe:
    """Of `KernelPerceptron`."""
    return Recipe(
        task=lambda y, classes: classification("perceptron", y, classes, zero_is_wrong=True),
        family=_kernels(p),
        rule=perceptron_rule(p.average),
    )


RECIPES: dict[str, Callable[[Any], Recipe]] = {
    "AveragedSGDClassifier": averaged_sgd,
    "KernelPerceptron": kernel_perceptron,
    "LinearPistolClassifier": linear_classifier,
    "LinearPistolRegressor": linear_regressor,
    "PistolClassifier": kernel_classifier,
    "PistolRegressor": kernel_regressor,
}


def _kernels(p: Any) -> KernelFamily:
    scaling, metric = getattr(p, "scaling", True), getattr(p, "metric", True)
    most = getattr(p, "max_support", None)
    return KernelFamily.checked(
        p.kernel, p.gamma, p.degree, p.coef0, scaling, p.n_jobs, metric, most
    )


def _linear_rule(p: Any, asked: int) -> RuleOf:
    shared = bool(p.per_coordinate)
    anytime = (SHARED_ANYTIME if shared else LINEAR_ANYTIME)[asked]
    return pistol_rule(p.a, p.b, p.average, anytime, shared)
