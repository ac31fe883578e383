"""Beside gradient boosting on hard tables: the figures of "Weak spots" on the page *Nothing to tune*.

    python tools/weak_spots.py

trains `PistolClassifier()` and `HistGradientBoostingClassifier()` on synthetic rows and prints times
and tables of test errors. It takes some minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from pistol import PistolClassifier, PistolRegressor

SEEDS = range(3)
LEARNED = 2_000


def variants(Z: Any, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """The same rows with heavy tails, outliers, codes for "unknown" and useless features."""
    yield "as they are", Z
    yield "exp(2z) of every feature", np.exp(2.0 * Z)
    outlier = Z.copy()
    outlier[0, 0] = 1e6
    yield "one cell of 1,000,000", outlier
    yield "3 % of the cells are -999", np.where(rng.random(Z.shape) < 0.03, -999.0, Z)
    for extra in (10, 50):
        yield f"{extra} useless features more", np.hstack([Z, rng.normal(size=(len(Z), extra))])


def errors(X: Any, y: Any, learned: int) -> tuple[float, float]:
    """Test errors of PistolClassifier and of HistGradientBoosting, in percent."""
    models = PistolClassifier(random_state=0), HistGradientBoostingClassifier(random_state=0)
    return tuple(
        100.0 * (1.0 - model.fit(X[:learned], y[:learned]).score(X[-5_000:], y[-5_000:]))
        for model in models
    )


def features() -> None:
    """Six features of which three matter: the sign of z0·z1 + z2."""
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(LEARNED + 5_000, 6))
        for name, X in variants(Z, rng):
            result = errors(X, Z[:, 0] * Z[:, 1] + Z[:, 2] > 0, LEARNED)
            found.setdefault(name, []).append(result)
    print(f"{LEARNED:,} rows, sign of z0·z1 + z2; mean of {len(SEEDS)} draws")
    for name, pairs in found.items():
        ours, theirs = np.mean(pairs, axis=0)
        print(f"  {name:28} pistol {ours:5.1f} %   boosting {theirs:5.1f} %")


def few() -> None:
    """The same with few rows and many useless features."""
    found = []
    for seed in SEEDS:
        Z = np.random.default_rng(seed).normal(size=(700 + 5_000, 46))
        found.append(errors(Z, Z[:, 0] * Z[:, 1] + Z[:, 2] > 0, 700))
    ours, theirs = np.mean(found, axis=0)
    print(f"700 rows, 43 useless features    pistol {ours:5.1f} %   boosting {theirs:5.1f} %")


def rows() -> None:
    """Two classes of 32 clusters each in ten of twenty features; 5 % of the labels are wrong."""
    X, y = make_classification(
        69_000, 20, n_informative=10, n_redundant=0, n_clusters_per_class=32, flip_y=0.05,
        random_state=0,
    )  # fmt: skip
    print("more rows, 20 features")
    for n in (1_000, 4_000, 16_000, 64_000):
        ours, theirs = errors(X, y, n)
        print(f"  {n:>6,} rows                  pistol {ours:5.1f} %   boosting {theirs:5.1f} %")


def totals() -> None:
    """A skewed target: log-normal, with one feature that matters."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(LEARNED + 5_000, 4))
    y = np.exp(X[:, 0] + rng.normal(size=len(X)))
    print("sum of predictions for a log-normal target")
    for loss in ("huber", "squared_error"):
        model = PistolRegressor(loss=loss, random_state=0).fit(X[:LEARNED], y[:LEARNED])
        share = 100.0 * model.predict(X[LEARNED:]).sum() / y[LEARNED:].sum()
        print(f"  {loss:<25} {share:.0f} % of the true sum")


def times() -> None:
    """Processor time, best of three, and peak memory of a process for 4,096 rows of 20 features."""
    print("4,096 rows of 20 features, two classes")
    for name, options in {
        "the defaults": {},
        "without ramps": {"scaling": "robust"},
        "without ramps and metric": {"scaling": "robust", "metric": False},
    }.items():
        seconds, before, after = _in_process(f"PistolClassifier(random_state=0, **{options!r})")
        print(f"  {name:<28} {seconds:5.1f} s   {after - before:.2f} GB")
    print(f"  {'boosting':<28} {_in_process('HistGradientBoostingClassifier()')[0]:5.1f} s")


TIMED = """
import resource, time
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from pistol import PistolClassifier

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

rng = np.random.default_rng(0)
X = rng.normal(size=(4_096, 20))
y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=len(X)) > 0
{model}.fit(X[:300], y[:300])
before, seconds = peak(), []
for _ in range(3):
    start = time.process_time()
    {model}.fit(X, y)
    seconds.append(time.process_time() - start)
print(min(seconds), before, peak())
"""


def _in_process(model: str) -> tuple[float, ...]:
    """Seconds, and gigabytes before and after, of a fit in a process with one thread."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1")
    command = [sys.executable, "-c", TIMED.format(model=model)]
    done = subprocess.run(command, env=os.environ | one, capture_output=True, check=True)
    return tuple(map(float, done.stdout.split()))


if __name__ == "__main__":
    times()
    with threadpool_limits(1):
        features()
        few()
        rows()
        totals()
