"""Pictures of what was learned. matplotlib is needed only when something is drawn.

Each picture is a display in the style of scikit-learn: `from_estimator` computes and draws it, `plot`
draws it again, and `ax_` and `figure_` are what it was drawn on.
"""

from ._axes import PISTOL, THEORY
from ._effects import EffectDisplay
from ._learned import (
    ContributionsDisplay,
    ImportancesDisplay,
    KernelSharesDisplay,
    LearningCurveDisplay,
)
from ._regret import RegretDisplay

__all__ = [
    "PISTOL",
    "THEORY",
    "ContributionsDisplay",
    "EffectDisplay",
    "ImportancesDisplay",
    "KernelSharesDisplay",
    "LearningCurveDisplay",
    "RegretDisplay",
]
