"""Learners: the state of g in one of three representations, and what it can do.

Each has `play`, which learns and yields what was predicted chunk by chunk, so that the caller can show
progress or stop between two chunks; and `model`: f̄, the weighted average of all f_t, or the last f.
All predict with f_t = f_0 + c_t g_{t-1}, where f_0 is zero unless a learner goes on from a function
that it has learned before its data changed their scale.
"""

from .cells import Cells, Patchwork
from .coordinates import Coordinates
from .dual import Dual
from .finished import Finished
from .gram import GramRun
from .gram_matrix import Gram
from .primal import Primal, RowsRun
from .rule import AVERAGES, Chunk, Rule, step_by_step
from .support import diagonal

__all__ = [
    "AVERAGES",
    "Cells",
    "Chunk",
    "Coordinates",
    "Dual",
    "Finished",
    "Gram",
    "GramRun",
    "Learner",
    "Patchwork",
    "Primal",
    "RowsRun",
    "Rule",
    "diagonal",
    "step_by_step",
]

Learner = Primal | Coordinates | Dual | Cells  # those that learn; `Finished` has stopped
