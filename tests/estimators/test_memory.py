"""Sparse rows cost what they store, not what they would take as dense rows."""

import subprocess
import sys

import pytest

pytest.importorskip("resource")

SCRIPT = """
import pathlib, resource, sys
import numpy as np, scipy.sparse as sp
import pistol

def peak():
    status = pathlib.Path("/proc/self/status")
    if status.exists():  # the other number begins with that of the process that started this one
        lines = status.read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

def rows(n, d, stored, seed):
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, n, stored))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))])
    data = rng.normal(size=stored)
    return sp.csr_array((data, rng.integers(0, d, stored), indptr), shape=(n, d))

name, n, d, outputs = sys.argv[1], *map(int, sys.argv[2:])
train = rows(300, d, 3000, 0)
y = np.arange(300) % outputs
model = getattr(pistol, name)(random_state=0, passes=1, orders=1).fit(train, y)
X = rows(n, d, 2 * n, 1)
model.predict(X[:10])
before = peak()
assert np.isfinite(model.predict(X)).all()
print(peak() - before, before)
"""


def measured(name, n, d, outputs=2):
    """Bytes that predict adds to the peak, and the peak before it."""
    call = [sys.executable, "-c", SCRIPT, name, str(n), str(d), str(outputs)]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    return map(int, done.stdout.split())


@pytest.mark.parametrize("name", ["PistolClassifier", "LinearPistolClassifier"])
def test_predict_of_sparse_rows_takes_far_less_than_dense_ones(name):
    n, d = 12_000, 4_000
    more, _ = measured(name, n, d)
    assert more < 0.3 * 8 * n * d


def test_a_linear_learner_of_many_features_takes_what_was_seen():
    """Ten million features and ten classes: 8 × 10⁸ bytes for every array of dense weights."""
    more, before = measured("LinearPistolClassifier", 1000, 10**7, 10)
    assert before + more < 1.5e9
