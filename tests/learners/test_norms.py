"""‖g‖² is kept incrementally; over ten million rounds it must not drift from ⟨g, g⟩."""

import numpy as np
import pytest

from pistol._compiled.types import read_only
from pistol._learners import Dual, Primal, Rule
from pistol.kernels import get_kernel
from pistol.losses import LOSSES


def test_drift_of_the_primal_norm_over_ten_million_rounds():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 3)), rng.choice([-1.0, 1.0], size=(1000, 1))
    learner = Primal(Rule(LOSSES["logistic"], "pistol_anytime", 1.0, 0.5, "linear"), 3, 1, bias=1.0)
    order = read_only(rng.integers(0, 1000, size=10**6))
    r = read_only(np.ones(10**6))
    for _ in range(10):
        for _ in learner.play(X, read_only(y), order, r):
            exact = learner.g[0] @ learner.g[0]
            assert abs(learner.S.g_norm_sq[0, 0] / exact - 1) < 1e-9
    assert learner.S.t[0, 0] == 10**7


def played(X, y, kernel, passes=4):
    rule = Rule(LOSSES["logistic"], "pistol_anytime", 1.0, 0.5, "linear")
    learner = Dual(rule, (get_kernel(*kernel),), 1)
    rounds = read_only(np.arange(len(X))), read_only(np.ones(len(X)))
    for _ in range(passes):
        for _ in learner.play(X, read_only(y), *rounds):
            pass
    return learner


@pytest.mark.parametrize(("dtype", "drift"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_drift_of_the_dual_norm(dtype, drift):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 3)).astype(dtype), rng.choice([-1.0, 1.0], size=(5000, 1))
    learner = played(X, y, ("rbf", 0.5, 1, 0))
    coef, S = learner.support.coef.values[:, 0], learner.support.rows.rows.astype(np.float64)
    norm_sq = sum(
        coef[lo : lo + 500] @ np.exp(-0.5 * ((S[lo : lo + 500, None] - S) ** 2).sum(axis=2)) @ coef
        for lo in range(0, len(S), 500)
    )
    assert abs(learner.S.g_norm_sq[0, 0] / norm_sq - 1) < drift
