"""More and more rows: what is averaged, and over which rows."""

from importlib import import_module

import numpy as np
import pytest

from pistol_lab.benchmarks.quality.sources import Data

many = import_module("pistol_lab.benchmarks.many")  # the package has a function of this name
N = 400
DATA = Data(np.arange(N, dtype=float)[:, None], np.arange(N) % 2)
WITH_TEST = Data(*DATA[:2], np.arange(N, 2.0 * N)[:, None], np.zeros(N, int))


@pytest.mark.parametrize("data", [DATA, WITH_TEST], ids=["drawn", "given"])
def test_no_split_is_tested_on_rows_that_it_learns(data):
    for k in range(many.SPLITS):
        learned, (X_test, y_test) = many._split(data, k)
        assert len(set(learned)) == len(learned) > 0
        assert len(X_test) == len(y_test) > 0
        assert not set(data.X[learned, 0]) & set(X_test[:, 0])


def test_splits_differ_and_come_again():
    first = [many._split(DATA, k)[0] for k in range(many.SPLITS)]
    again = [many._split(DATA, k)[0] for k in range(many.SPLITS)]
    np.testing.assert_array_equal(first, again)
    assert len({tuple(order) for order in first}) == many.SPLITS


def test_figures_are_means_over_splits(monkeypatch):
    task = many.Many("two", lambda n: DATA)
    runs = []

    def run(task, data, n, k):
        numbers = {"ours": k, "ours_seconds": 2.0 * k, "ours_bytes": 4 * k, "ours_rate": 8.0 * k}
        runs.append((n, k))
        return {"task": task.name, "rows": n, "features": 1, "missing": []} | numbers

    monkeypatch.setattr(many, "_run", run)
    monkeypatch.setattr(many, "STEPS", (100, 300))
    monkeypatch.setattr(many, "OFTEN", 100)
    few, rest = many.measured(task, 1000)
    assert runs == [(100, 0), (100, 1), (100, 2), (300, 0)]
    assert [few[key] for key in ("ours", "ours_seconds", "ours_bytes", "ours_rate")] == [1, 2, 4, 8]
    assert few["task"] == "two"
    assert rest["ours"] == 0.0
