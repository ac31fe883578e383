"""What columns become: numbers, flags, levels, statistics, and numbers of dates."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import pistol
from pistol._data import encoder as module
from pistol._data.encoder import learn_encoder
from pistol._data.parts import FREE, Levels
from pistol._data.statistics import SHRINK, Many, _before, range_of
from pistol._data.tables import Table, frame_of, read_frame


def read(**columns) -> Table:
    return read_frame(frame_of(pd.DataFrame(columns)))


def learn(table, Y=None, weight=None, stream=False):
    weight = np.broadcast_to(1.0, table.rows) if weight is None else weight
    return learn_encoder(table, Y, weight, stream)


def test_a_gap_becomes_the_median_and_a_flag():
    encoder, X = learn(read(x=[1.0, 5.0, np.nan, 2.0], y=[1.0, 2.0, 3.0, 4.0]))
    assert encoder.feature_names == ["x", "x missing", "y"]
    np.testing.assert_array_equal(X[:, :2], [[1, 0], [5, 0], [2, 1], [2, 0]])
    again = encoder.encode(read(x=[np.nan], y=[np.nan]))
    np.testing.assert_array_equal(again, [[2, 1, 2]])


def test_levels_rare_new_and_missing():
    words = ["a"] * 30 + ["b"] * 20 + ["c"] * 9 + ["d", "e", None]
    encoder, X = learn(read(w=words))
    assert encoder.feature_names == ["w=a", "w=b", "w=c", "w=other", "w=missing"]
    np.testing.assert_array_equal(X.sum(axis=1), 1)
    rows = encoder.encode(read(w=["d", "never seen", "b", None]))
    np.testing.assert_array_equal(rows.argmax(axis=1), [3, 3, 1, 4])
    encoder, _ = learn(read(w=["a"] * 5 + ["b"] * 5 + ["c"] * 5))
    assert not encoder.encode(read(w=["new", None])).any()


def test_two_levels_are_one_column_and_anything_else_is_in_between():
    encoder, X = learn(read(sex=["m", "f", "m", "m"], x=[1, 2, 3, 4]))
    assert encoder.feature_names == ["sex=m", "x"]
    np.testing.assert_array_equal(X[:, 0], [1, 0, 1, 1])
    np.testing.assert_array_equal(encoder.encode(read(sex=["?", None], x=[0, 0]))[:, 0], 0.75)


def test_an_empty_column_to_predict_is_missing():
    encoder, _ = learn(read(w=["a", "b", "c", None] * 5, x=[1.0, 2.0] * 10))
    rows = encoder.encode(read(w=[None, None], x=[None, None]))
    np.testing.assert_array_equal(rows, [[0, 0, 0, 1, 1]] * 2)


def test_dates_become_the_numbers_that_vary():
    days = pd.date_range("2020-01-01", periods=400, freq="D")
    encoder, X = learn(read(d=days))
    assert encoder.feature_names[:3] == ["d days", "d sin year", "d cos year"]
    weekdays = X[:, 3:].argmax(axis=1)
    np.testing.assert_array_equal(weekdays, days.weekday)
    np.testing.assert_allclose(X[:365, 1] ** 2 + X[:365, 2] ** 2, 1.0)
    np.testing.assert_array_equal(np.diff(X[:, 0]), 1.0)
    hours = pd.date_range("2020-01-01", periods=48, freq="h")
    encoder, X = learn(read(d=hours))
    assert encoder.feature_names == ["d days", "d sin day", "d cos day"]
    np.testing.assert_allclose(X[:24, 1:], X[24:, 1:], atol=1e-9)
    gap = encoder.encode(read(d=pd.Series([pd.NaT, hours[0]])))
    assert np.isfinite(gap).all()


def test_constant_columns_and_identifiers_are_dropped():
    n = 60
    table = read(x=np.arange(n) % 7, one=["same"] * n, name=[f"n{i}" for i in range(n)])
    encoder, X = learn(table)
    assert encoder.feature_names == ["x"]
    assert X.shape == (n, 1)
    with pytest.raises(ValueError, match="no column of X can be learned from"):
        learn(read(one=["same"] * n))


def many(n=600, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 300, n)
    return read(z=[f"z{c}" for c in codes]), codes, rng.normal(size=(n, 1)) + codes[:, None] % 3


def test_statistics_of_many_levels_have_all_rows_at_predict():
    table, codes, Y = many()
    encoder, X = learn(table, Y)
    assert isinstance(encoder.parts[0], Many)
    assert encoder.feature_names[:2] == ["z mean", "z count"]
    V = range_of(Y)(Y)[:, 0]
    rows = encoder.encode(table)
    for code in np.unique(codes)[:20]:
        own = codes == code
        mean = (V[own].sum() + SHRINK * V.mean()) / (own.sum() + SHRINK)
        np.testing.assert_allclose(rows[own, 0], mean)
        np.testing.assert_allclose(rows[own, 1], np.log1p(own.sum()))
        np.testing.assert_allclose(X[own, 1], np.log1p(own.sum()))
    new = encoder.encode(read(z=["never seen"]))
    np.testing.assert_allclose(new[0, :2], [V.mean(), 0.0])


def test_a_row_does_not_see_its_own_target():
    """Noise must look like noise: no relation between statistic and target in the rows learned."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 1000, 3000)
    Y = rng.normal(size=(3000, 1))
    table = read(z=[str(c) for c in codes])
    encoder, X = learn(table, Y)
    assert abs(np.corrcoef(X[:, 0], Y[:, 0])[0, 1]) < 0.1
    assert np.corrcoef(encoder.encode(table)[:, 0], Y[:, 0])[0, 1] > 0.3


def test_statistics_do_not_depend_on_how_rows_are_sorted_and_weights_count_as_copies():
    table, _, Y = many()
    order = np.random.default_rng(3).permutation(table.rows)
    _, X = learn(table, Y)
    _, shuffled = learn(table.among(order), Y[order])
    np.testing.assert_allclose(shuffled, X[order])
    weight = np.random.default_rng(4).integers(1, 4, table.rows).astype(float)
    copies = np.repeat(np.arange(table.rows), weight.astype(int))
    _, weighted = learn(table, Y, weight)
    _, copied = learn(table.among(copies), Y[copies])
    np.testing.assert_allclose(copied[:, 1:], weighted[copies][:, 1:])


@given(st.lists(st.integers(0, 4), max_size=40))
def test_sums_before_each_row(codes):
    at = np.array(codes, int)
    values = np.arange(1.0, len(at) + 1)[:, None]
    naive = [sum(values[j, 0] for j in range(i) if at[j] == at[i]) for i in range(len(at))]
    np.testing.assert_allclose(_before(at, values)[:, 0], naive)


def test_a_stream_encodes_each_row_with_what_came_before():
    table, _, Y = many(400)
    weight = np.ones(400)
    whole, X = learn(table, Y, weight, stream=True)
    encoder, first = learn(table.among(np.arange(150)), Y[:150], weight[:150], stream=True)
    rest = table.among(np.arange(150, 400))
    later, second = encoder.then(rest, Y[150:], weight[150:])
    part, same = later.parts[0], whole.parts[0]
    assert {k: part.count[i] for k, i in part.levels.items() if part.count[i]} == {
        k: same.count[i] for k, i in same.levels.items() if same.count[i]
    }
    assert encoder.parts[0].count.sum() == 150  # the earlier value is as it was
    assert first[0, 1] == X[0, 1] == 0.0
    assert len(second) == 250


def test_new_levels_of_a_stream_take_columns_kept_for_them():
    encoder, X = learn(read(w=["a", "b"] * 10), stream=True)
    part = encoder.parts[0]
    assert isinstance(part, Levels)
    assert part.free == FREE
    words = ["c", "a", "d", None, "c"]
    later, rows = encoder.then(read(w=words), np.zeros((5, 1)), np.ones(5))
    assert later.width == encoder.width == X.shape[1]
    assert rows[0].argmax() == rows[4].argmax()
    assert len({int(row.argmax()) for row in rows}) == 4
    assert "w=c" in later.feature_names
    assert "w=c" not in encoder.feature_names
    np.testing.assert_array_equal(later.encode(read(w=words)), rows)
    more = [f"new {i}" for i in range(FREE + 5)]
    last, rows = later.then(read(w=more), np.zeros((len(more), 1)), np.ones(len(more)))
    assert last.parts[0].free == 0
    assert (rows.argmax(axis=1) == last.parts[0].other).sum() == 7


def test_many_columns_of_many_rows_are_sparse(monkeypatch):
    rng = np.random.default_rng(0)
    columns = {f"c{i}": rng.choice(list("abcdefgh"), 200) for i in range(4)}
    table = read(**columns, x=np.where(rng.random(200) < 0.1, np.nan, rng.normal(5, 2, 200)))
    _, dense = learn(table)
    monkeypatch.setattr(module, "ENTRIES", 1000)
    encoder, X = learn(table)
    assert sp.issparse(X)
    assert X.shape == dense.shape
    np.testing.assert_array_equal(X.toarray()[:, :32], dense[:, :32])
    number = X.toarray()[:, 32]
    np.testing.assert_allclose([number.mean(), number.std()], [0, 1], atol=1e-9)
    np.testing.assert_array_equal(X.toarray()[:, 33], dense[:, 33])
    np.testing.assert_array_equal(encoder.encode(table).toarray(), X.toarray())


@pytest.mark.parametrize("make", [pistol.PistolClassifier, pistol.PistolRegressor])
def test_encoding_keeps_to_n_jobs_in_fit_and_predict(make, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 16)
    monkeypatch.setattr(module, "ENTRIES", 100)  # so that rows are sparse
    asked, workers = [], module.workers
    monkeypatch.setattr(module, "workers", lambda n_jobs: asked.append(n_jobs) or workers(n_jobs))
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"word": rng.choice(list("abcdefgh"), 200), "x": rng.normal(size=200)})
    model = make(n_jobs=1, random_state=0).fit(X, X["x"] > 0)
    learned = len(asked)
    model.predict(X)
    assert len(asked) > learned > 0
    assert set(asked) == {1}
