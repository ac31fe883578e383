"""What the first fit after installation has to compile: it is waited for, so it is kept small."""

import os
import subprocess
import sys

import pytest

from pistol._compiled import cache

compiled = pytest.mark.skipif(cache.INTERPRETED, reason="nothing is compiled")

# Prints which loops a fit has asked for, and for how many dtypes each.
FIT = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
import pistol
from pistol._compiled.types import LOOPS

X = np.random.default_rng(0).normal(size=(1000, 20))
y = X[:, 0] * X[:, 1]
getattr(pistol, sys.argv[1])().fit(X, y > 0 if "Classifier" in sys.argv[1] else y)
for loop in LOOPS:
    if loop._compiled:
        print(loop.py_func.__name__, len(loop._compiled))
"""

# Compiles one loop where nothing is on disk, and prints which functions of ours that took.
LOOP = """
import numpy as np
from numba.core import event
made = event.RecordingListener()
event.register("numba:compile", made)
from pistol._compiled.coordinates import learn_coordinates

learn_coordinates.compiled(np.dtype(np.float64))
for _, record in made.buffer:
    function = record.data["dispatcher"].py_func
    if record.is_start and function.__module__.startswith("pistol."):
        print(function.__name__)
"""

# scaling, and the order of rows
ORDER = {"describe", "set_keys", "look_again", "add_fine_hashes", "fine_zeros", "add_row_keys"}
ROWS = ORDER | {"look", "add_squares", "scale_rows", "extend_rows", "find_knots"}
SCORES = {"total_loss", "least_loss", "loss_at"}
VALUES = {"_lay_out_single", "fill_lines", "learn_gram", "expand_gram"}
KERNELS = VALUES | {"count_ends", "inner_products", "add_slopes", "add_gradient_squares"}


def output(code, *arguments, **environment):
    command = [sys.executable, "-c", code, *arguments]
    environment = os.environ | environment
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


@compiled
@pytest.mark.parametrize(
    ("estimator", "own"),
    [
        ("PistolClassifier", KERNELS),
        ("LinearPistolClassifier", {"learn_coordinates"}),
    ],
)
def test_a_default_fit_needs_few_loops_each_for_one_dtype(estimator, own):
    needed = dict(line.split() for line in output(FIT, estimator))
    assert set(needed) <= ROWS | SCORES | own
    assert set(needed.values()) == {"1"}


@compiled
def test_what_a_loop_calls_is_compiled_once(tmp_path):
    names = output(LOOP, NUMBA_CACHE_DIR=str(tmp_path))
    assert "learn_coordinates" in names
    assert sorted(names) == sorted(set(names))
