"""Many rows with nothing set, as users have them: a table with words, gaps and weights."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from pistol import PistolClassifier, PistolRegressor

N, TEST = 11_000, 3_000


def table():
    """A target that jumps with a date and a place, and about as much noise."""
    rng = np.random.default_rng(0)
    n = N + TEST
    frame = pd.DataFrame(
        {
            "day": rng.integers(1, 32, n),
            "month": rng.integers(1, 13, n),
            "place": pd.Categorical(rng.choice(list("abcdefgh"), n)),
            "size": rng.lognormal(size=n),
        }
    )
    step = np.where((frame["month"] > 6) & (frame["day"] % 7 < 3), 2.0, 0.0)
    truth = step * frame["place"].isin(["a", "d", "e"]) + 0.5 * np.log(frame["size"])
    frame.loc[rng.random(n) < 0.02, "size"] = np.nan
    return frame, truth.to_numpy(), truth.to_numpy() + rng.normal(size=n)


@pytest.mark.parametrize("make", [PistolClassifier, PistolRegressor])
def test_trees_are_learned_from_a_table_with_nothing_set(make):
    frame, truth, y = table()
    weight = np.where(np.arange(N + TEST) % 5 == 0, 2.0, 1.0)
    y = y > np.median(truth) if make is PistolClassifier else y
    model = make(random_state=0).fit(frame[:N], y[:N], sample_weight=weight[:N])
    assert "trees" in model.kernel_weights_
    answers = model.predict(frame[N:])
    if make is PistolClassifier:
        error, usual = np.mean(answers != y[N:]), min(np.mean(y[N:]), np.mean(~y[N:]))
    else:
        error, usual = (np.abs(each - truth[N:]).mean() for each in (answers, np.median(y[:N])))
    assert error < 0.8 * usual
    found = model.explain(frame[N : N + 20])
    scores = model.decision_function if make is PistolClassifier else model.predict
    total = found.contributions.sum(axis=-1) + found.baseline
    assert_allclose(total, scores(frame[N : N + 20]), rtol=1e-5, atol=1e-5)
