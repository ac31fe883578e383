"""After `warmup` no default has anything left to compile, in whatever process."""

import os
import re
import shutil
import subprocess
import sys
from functools import partial

import pytest

from pistol._compiled import warmup
from pistol._compiled.cache import INTERPRETED, PACKAGE, folders

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
for Z, n, y in zip(rows.values(), (300, 20, 90), (labels, three, labels)):
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


# Learners of all kinds, then a user's own loss, in the same process.
LEARNERS = """
from numba import njit
from pistol.losses import Loss

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


# Prints which files the command looks for, wherever they are.
COMMAND = """
import sys
from pistol import cli
from pistol._compiled.cache import Kept

files, named = [], Kept._file
Kept._file = lambda *arguments: files.append(named(*arguments)) or files[-1]
sys.argv[1:] = ["warmup"]
try:
    cli.app()
finally:
    print(*files, sep="\\n")
"""


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_no_default_compiles_after_the_command(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    environment.pop("COVERAGE_PROCESS_START", None)

    def run(code, env):
        command = [sys.executable, "-c", code]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True)

    said, *files = run(COMMAND, os.environ).stdout.splitlines()
    (source,) = [folder for folder in folders() if str(folder) in said]
    kept = tmp_path / source.name
    kept.mkdir()
    for file in files:
        shutil.copy(source / file, kept)
    done = run(DEFAULTS + LEARNERS, environment)
    defaults, learners = done.stdout.splitlines()
    assert defaults == "[]"
    assert "compiling" not in done.stderr
    assert learners == "[] ['grad', 'value']", "a loss of one's own alone"


# Prints how many loops are known to somebody who has imported nothing else.
LOOPS = """
from pistol._compiled import warmup
from pistol._compiled.types import LOOPS
warmup._pieces()
print(len(LOOPS))
"""


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_all_loops_are_found_whatever_was_imported():
    sources = (path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    written = sum(len(re.findall(r"^@loop\b", source, re.MULTILINE)) for source in sources)
    done = subprocess.run([sys.executable, "-c", LOOPS], capture_output=True, text=True, check=True)
    assert int(done.stdout) == written


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_shares_are_everything_once(monkeypatch):
    done = []
    monkeypatch.setattr(warmup, "_pieces", lambda: [partial(done.append, i) for i in range(11)])
    for i in range(3):
        warmup.compile_share(i, 3)
    assert sorted(done) == list(range(11))


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_several_processes_compile_where_nothing_is_on_disk(monkeypatch, tmp_path):
    """Small pieces of code stand for all of it."""
    code = f"""
import pistol
from pistol._compiled import warmup
from pistol._compiled.cache import folders
warmup.cpu_count = lambda: 2
warmup.SHARE = "import pathlib, sys; pathlib.Path({str(tmp_path)!r}, sys.argv[1] + sys.argv[2]).touch()"
warmup._pieces = lambda: []
pistol.warmup()
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "code")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert {file.name for file in tmp_path.iterdir()} == {"02", "12"}
