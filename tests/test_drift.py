"""‖g‖² is kept incrementally; over ten million rounds it must not drift from ⟨g, g⟩."""

import numpy as np
import scipy.sparse as sp

from pistol._types import read_only
from pistol.kernels import get_kernel
from pistol.learners import Dual, Primal, Rule
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


def test_the_period_of_recomputation_grows_with_the_features():
    """A sparse stream with many features must not pay for a dense product every thousand rounds."""
    d, n = 200_000, 3000
    X = sp.random_array((n, d), density=1e-4, format="csr", rng=np.random.default_rng(0))
    y = read_only(np.ones((n, 1)))
    learner = Primal(Rule(LOSSES["logistic"], "pistol_anytime", 1.0, 0.5, "linear"), d, 1)
    for _ in learner.play(X, y, read_only(np.arange(n)), read_only(np.ones(n))):
        pass
    assert abs(learner.S.g_norm_sq[0, 0] / (learner.g[0] @ learner.g[0]) - 1) < 1e-9


def test_drift_of_the_dual_norm():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 3)), rng.choice([-1.0, 1.0], size=(5000, 1))
    kernel = get_kernel("rbf", 0.5, 1, 0)
    learner = Dual(Rule(LOSSES["logistic"], "pistol_anytime", 1.0, 0.5, "linear"), (kernel,), 1)
    for _ in range(4):
        for _ in learner.play(
            X, read_only(y), read_only(np.arange(5000)), read_only(np.ones(5000))
        ):
            pass
    coef = learner.coef.values[:, 0]
    K = np.exp(-0.5 * ((learner.store.rows[:, None] - learner.store.rows[None]) ** 2).sum(axis=2))
    assert abs(learner.S.g_norm_sq[0, 0] / (coef @ K @ coef) - 1) < 1e-9
