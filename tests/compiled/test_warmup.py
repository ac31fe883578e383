"""After `warmup` no default has anything left to compile, in whatever process."""

import os
import subprocess
import sys

import pytest

from pistol._compiled.cache import INTERPRETED

DEFAULTS = """
import numpy as np, scipy.sparse as sp, warnings
from numba.core import event
warnings.simplefilter("ignore")
compiled = event.RecordingListener()
event.register("numba:compile", compiled)
import pistol
from pistol.online import Learner

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
labels, three, targets = X[:, 0] * X[:, 1] > 0, np.digitize(X[:, 0], [-0.5, 0.5]), X[:, 0] ** 2
rows = {"dense": X, "single": X.astype(np.float32), "sparse": sp.csr_array(np.maximum(X, 0))}
for Z in rows.values():
    for n in (20, 90):
        for y in (labels, three):
            pistol.PistolClassifier().fit(Z[:n], y[:n]).predict_proba(Z)
            pistol.LinearPistolClassifier().fit(Z[:n], y[:n]).predict(Z)
        pistol.PistolRegressor().fit(Z[:n], targets[:n]).predict(Z)
        pistol.LinearPistolRegressor().fit(Z[:n], targets[:n]).predict(Z)
    pistol.PistolClassifier().partial_fit(Z, labels).predict(Z)
    pistol.LinearPistolClassifier().partial_fit(Z, labels).predict(Z)
for loss in ("logistic", "absolute"):
    for options in ({}, {"per_coordinate": True}, {"kernel": "rbf", "gamma": 0.5}):
        learner = Learner(loss, **options)
        learner.predict(X[0])
        learner.learn(X[0], 1.0)
print(sorted({record.data["dispatcher"].py_func.__qualname__ for _, record in compiled.buffer}))
"""


# Learners of all kinds, then a user's own loss.
LEARNERS = """
import numpy as np
from numba import njit
from numba.core import event

compiled = event.RecordingListener()
event.register("numba:compile", compiled)
import pistol
from pistol.losses import Loss
from pistol.online import Learner

X = np.random.default_rng(0).normal(size=(60, 3))
y = X[:, 0] > 0
for dtype in (np.float64, np.float32):
    pistol.PistolClassifier(random_state=0).fit(X.astype(dtype), y).predict(X)
    pistol.PistolClassifier(orders=None).fit(X.astype(dtype), y).predict(X)
    pistol.LinearPistolClassifier(random_state=0).fit(X.astype(dtype), y).predict(X)
    pistol.LinearPistolRegressor(per_coordinate=False).fit(X.astype(dtype), X[:, 0])
for per_coordinate in (False, True):
    learner = Learner("logistic", per_coordinate=per_coordinate)
    learner.predict(X[0])
    learner.learn(X[0], 1.0)
library = {record.data["dispatcher"].py_func.__qualname__ for _, record in compiled.buffer}

@njit
def value(y, p, theta):
    return 0.5 - y * p if y * p < 0.5 else 0.0

@njit
def grad(y, p, theta):
    return -y if y * p < 0.5 else 0.0

del compiled.buffer[:]
pistol.LinearPistolClassifier(loss=Loss("own", value, grad, L=1.0)).fit(X, y)
own = {record.data["dispatcher"].py_func.__qualname__ for _, record in compiled.buffer}
print(sorted(library), sorted(own))
"""


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_no_default_compiles_after_the_command(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    environment.pop("COVERAGE_PROCESS_START", None)

    def run(*arguments):
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert str(tmp_path) in run("-m", "pistol", "warmup").stdout
    done = run("-c", DEFAULTS)
    assert done.stdout.strip() == "[]"
    assert "compiling" not in done.stderr
    assert run("-c", LEARNERS).stdout.strip() == "[] ['grad', 'value']", "a loss of one's own alone"
