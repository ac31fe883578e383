"""A new process compiles nothing that an earlier one has compiled; a user's loss compiles alone."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
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


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_new_process_does_not_compile(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    environment.pop("COVERAGE_PROCESS_START", None)

    def run():
        command = [sys.executable, "-c", SCRIPT]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    cold, warm = run(), run()
    assert "learn_dual" in cold
    assert "learn_gram" in cold
    assert warm == "[] ['grad', 'value']"
