"""Model files of estimators that were fitted on tables."""

import numpy as np
import pytest
from sklearn.base import is_classifier

import pistol

pandas = pytest.importorskip("pandas")


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    X = pandas.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(2)),
            "flag": rng.choice(["yes", "no"], n),
            "town": rng.choice(["Bern", "Ulm", "Rom", None], n),
            "street": rng.choice([f"street {i}" for i in range(300)], n),
            "day": pandas.Timestamp("2020-01-01")
            + pandas.to_timedelta(rng.integers(0, 900, n), "D"),
            "same": 1,
        }
    )
    return X, (X["size"].fillna(0) + (X["town"] == "Ulm")).to_numpy()


@pytest.mark.filterwarnings("ignore::pistol.TableWarning")
@pytest.mark.parametrize("stream", [True, False])
def test_tables_come_back(untouched, stream, tmp_path):
    model = untouched(random_state=0)
    (X, y), (more, later) = table(150), table(60, 1)
    y, later = (y > 0, later > 0) if is_classifier(model) else (y, later)
    path = tmp_path / "model.pistol"
    (model.partial_fit if stream else model.set_params(passes=1).fit)(X, y)
    model.save(path)
    before = path.read_bytes()
    again = pistol.load(path)
    again.save(path)
    assert path.read_bytes() == before
    np.testing.assert_array_equal(again.predict(more), model.predict(more))
    for each in (model, again):
        each.partial_fit(more, later)
        each.save(tmp_path / f"{each is model}.pistol")
    assert (tmp_path / "True.pistol").read_bytes() == (tmp_path / "False.pistol").read_bytes()
    model.save(path, predict_only=True)
    assert len(pistol.load(path).predict(more)) == len(more)
