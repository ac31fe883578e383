"""Learners: the state of g in one of three representations, and what may be asked of it.

Each has `play`, which learns and yields the predictions f_t(x_t) chunk by chunk, so that whoever
drives it can show progress or stop between two chunks; and `model`: f̄, the weighted average of
all f_t, or the last f.
"""

from .dual import Dual, diagonal
from .rule import AVERAGES, Rule, part
from .vectors import Coordinates, Primal

__all__ = ["AVERAGES", "Coordinates", "Dual", "Learner", "Primal", "Rule", "diagonal", "part"]

Learner = Primal | Coordinates | Dual
