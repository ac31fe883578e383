"""Tables with words, gaps and dates: every library gives the same model, and bad input is named."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier

import pistol
from pistol import PistolClassifier, PistolRegressor, TableEncoder, TableWarning

pytestmark = pytest.mark.every_case_counts_lines  # each goes its own way

LIBRARIES = {
    "polars": pl.from_pandas,
    "pyarrow": lambda X: pl.from_pandas(X).to_arrow(),
    "categories": lambda X: X.astype({"city": "category", "sex": "category"}),
    "backwards": lambda X: X[X.columns[::-1]],
}


@pytest.fixture(scope="session")
def table():
    """A frame with words, gaps and dates, and what depends on them."""

    def make(model, n=80, seed=0):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(
            {
                "age": np.where(rng.random(n) < 0.2, np.nan, rng.integers(20, 60, n)),
                "city": rng.choice(["Rome", "Paris", "Oslo", "Bonn"], n),
                "sex": rng.choice(["m", "f"], n),
                "since": pd.Timestamp("2019-03-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
                "member": rng.random(n) < 0.5,
            }
        )
        X.loc[rng.random(n) < 0.1, "city"] = None
        target = (X.city == "Rome") * 2.0 + X.age.fillna(70) / 20 + (X.sex == "m") * X.member
        return X, (target > target.median()).to_numpy() if is_classifier(
            model
        ) else target.to_numpy()

    return make


def cheap(make, **changes):
    """The defaults, but for what costs time."""
    names = make().get_params()
    few = {"metric": False, "passes": 2, "orders": 1, "random_state": 0}
    return make(**{k: v for k, v in few.items() if k in names} | changes)


@pytest.mark.parametrize("convert", LIBRARIES.values(), ids=list(LIBRARIES))
def test_all_libraries_give_the_same_model(untouched, table, scores, convert):
    model = cheap(untouched)
    X, y = table(model)
    first = scores(model.fit(X, y), X)
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(scores(model, convert(X)), first)
    if convert is not LIBRARIES["backwards"]:
        np.testing.assert_array_equal(scores(clone(model).fit(convert(X), y), X), first)


def test_the_defaults_learn_from_words_gaps_and_dates(table):
    for make in (PistolClassifier, PistolRegressor):
        X, y = table(make(), n=200)
        model = make(random_state=0).fit(X[:150], y[:150])
        assert model.score(X[150:], y[150:]) > 0.75
        importances = dict(zip(model.feature_names_in_, model.feature_importances_, strict=True))
        assert set(importances) == set(X.columns)
        assert sum(importances.values()) == pytest.approx(1)
        assert min(importances["age"], importances["city"]) > importances["since"]
        assert model.n_features_in_ == 5


def test_streams_take_tables_and_new_levels(untouched, table, scores):
    model = cheap(untouched)
    X, y = table(model)
    more = {"classes": np.unique(y)} if is_classifier(model) else {}
    model.partial_fit(X[:50], y[:50], **more).partial_fit(X[50:], y[50:])
    late = X.assign(city="Athens")
    model.partial_fit(late, y)
    assert np.isfinite(scores(model, X)).all()
    assert "city=Athens" in model.fitted_.columns.encoder.feature_names
    assert np.abs(scores(model, late) - scores(model, X.assign(city="Sofia"))).max() > 0


@pytest.mark.parametrize("make", [pistol.LinearPistolClassifier, PistolRegressor])
def test_a_table_as_it_comes_is_a_stream_of_one_chunk(make, table, scores):
    model = cheap(make, orders=None, passes=1)
    X, y = table(model, n=60)
    other = clone(model)
    more = {"classes": np.unique(y)} if is_classifier(model) else {}
    np.testing.assert_array_equal(
        scores(model.fit(X, y), X), scores(other.partial_fit(X, y, **more), X)
    )


def test_a_failed_chunk_changes_nothing(untouched, table, refuses):
    model = cheap(untouched)
    X, y = table(model)
    model.fit(X, y)
    bad = X.assign(age=["old"] * len(X), city="Athens")
    message = "column 'age' held numbers when training began and holds words now, such as 'old'"
    refuses(model, lambda: model.partial_fit(bad, y), message, X)
    refuses(model, lambda: model.predict(bad), message, X)


@pytest.mark.parametrize("name", ["array", "frame"])
def test_numbers_without_gaps_are_learned_as_they_are(untouched, rows, scores, name):
    model = cheap(untouched)
    X, y = rows(model)
    given = X if name == "array" else pd.DataFrame(X, columns=list("abc"))
    model.fit(given, y)
    assert model.fitted_.columns.plain
    assert scores(model, given).tolist() == scores(clone(model).fit(X.copy(), y), X).tolist()


def test_gaps_in_arrays_are_learned(untouched, rows, scores):
    model = cheap(untouched)
    X, y = rows(model)
    X[::5, 1] = np.nan
    X[3] = np.nan  # a row of nothing
    model.fit(X, y)
    assert np.isfinite(scores(model, X)).all()
    frame = pd.DataFrame(X, columns=list("abc"))
    np.testing.assert_array_equal(scores(clone(model).fit(frame, y), frame), scores(model, X))


def test_gaps_that_come_later_are_medians_and_said(untouched, rows, scores):
    model = cheap(untouched)
    X, y = rows(model)
    model.fit(X, y)
    gap, filled = X.copy(), X.copy()
    gap[2, 1], filled[2, 1] = np.nan, np.median(X[:, 1])
    with pytest.warns(
        TableWarning, match="missing values in 1, where none were when training began"
    ):
        found = scores(model, gap)
    np.testing.assert_array_equal(found, scores(model, filled))


def test_rows_of_weight_zero_are_as_if_they_were_not_there(untouched, table, scores):
    model = cheap(untouched)
    X, y = table(model)
    more = pd.concat([X, X.assign(city="Nowhere", age=1e6)[:30]], ignore_index=True)
    weight = np.append(np.ones(len(X)), np.zeros(30))
    other = clone(model).fit(more, np.append(y, y[:30]), weight)
    np.testing.assert_allclose(scores(other, X), scores(model.fit(X, y), X))


def test_categorical_features(table):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"code": rng.integers(0, 5, 100), "x": rng.normal(size=100)})
    y = X.code.isin([1, 3]).to_numpy()
    for given in (["code"], [0], [True, False]):
        model = cheap(pistol.LinearPistolClassifier, categorical_features=given, passes=20)
        assert model.fit(X, y).score(X, y) == 1.0
        assert "code=3" in model.fitted_.columns.encoder.feature_names
    array = cheap(pistol.LinearPistolClassifier, categorical_features=[0], passes=20)
    assert array.fit(X.to_numpy(), y).score(X.to_numpy(), y) == 1.0
    numbers = X.assign(code=X.code.astype("category"))
    names = TableEncoder(categorical_features=None).fit(numbers).get_feature_names_out()
    assert list(names) == ["code", "x"]
    model.partial_fit(X, y)
    with pytest.raises(ValueError, match="categorical_features was"):
        model.set_params(categorical_features=np.array([False, True])).partial_fit(X, y)


# What is refused


BAD = {
    "missing": (lambda X: X.drop(columns="city"), "column 'city' is missing"),
    "unknown": (lambda X: X.assign(more=1), "column 'more' was not there when training began"),
    "words-for-dates": (lambda X: X.assign(since="May"), "column 'since' held dates"),
    "dates-for-words": (lambda X: X.assign(city=X.since), "column 'city' held words"),
    "numbers-for-words": (lambda X: X.assign(city=1.0), "column 'city' held words"),
    "zone": (
        lambda X: X.assign(since=X.since.dt.tz_localize("UTC")),
        "column 'since' had times of no zone when training began and has times of the zone UTC now",
    ),
    "infinite": (lambda X: X.assign(age=np.inf), "infinity: row 0, feature 'age'"),
    "array": (lambda X: np.zeros((len(X), 5)), "column 'city' held words"),
    "width": (lambda X: np.zeros((len(X), 4)), "X has 4 features, but .* is expecting 5"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=list(BAD))
@pytest.mark.parametrize("make", [pistol.LinearPistolClassifier, PistolRegressor])
def test_other_columns_are_refused_by_name(make, table, refuses, change, message):
    model = cheap(make, passes=1)
    X, y = table(model, n=60)
    model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        refuses(model, lambda: model.predict(change(X)), message, X)
        refuses(model, lambda: model.partial_fit(change(X), y), message, X)


def test_frames_of_numbers_find_their_columns_by_name(untouched, rows, scores):
    model = cheap(untouched, passes=1)
    X, y = rows(model)
    frame = pd.DataFrame(X, columns=list("abc"))
    found = scores(model.fit(frame, y), frame)
    for other in (frame[["c", "a", "b"]], pl.from_pandas(frame).select("b", "c", "a")):
        np.testing.assert_array_equal(scores(model, other), found)
    arrow = pl.from_pandas(frame).to_arrow()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(scores(model, arrow), found)
        np.testing.assert_array_equal(scores(clone(model).fit(arrow, y), arrow), found)
    with pytest.raises(ValueError, match="column 'c' is missing"):
        scores(model, frame[["a", "b"]])
    with pytest.raises(ValueError, match=r"column 'b' held numbers .* 'x'"):
        scores(model, frame.assign(b="x"))


# What is said


def said(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, TableWarning)]


def test_what_is_noticed_is_said_once(table):
    model = cheap(pistol.LinearPistolClassifier)
    X, y = table(model, n=200)
    X = X.assign(
        one="same",
        name=[f"person {i}" for i in range(200)],
        row=np.arange(200),
        rare=[1.0] + [np.nan] * 199,
        empty=None,
        copy=np.where(y, "yes", "no"),
    )
    labels = np.where(y, "a", "b").astype(object)
    labels[:3] = "c"
    X.loc[:2, "copy"] = "perhaps"
    (message,) = said(lambda: model.fit(X, labels))
    for line in (
        "column 'one' is constant and is not used",
        "column 'name' looks like an identifier",
        "column 'row' counts the rows",
        "column 'rare' is missing in 99.5% of the rows",
        "column 'empty' has no values and is not used",
        "column 'copy' determines the target",
        "class 'c' has 3 row(s)",
    ):
        assert line in message
    assert message.count("\n") == 6
    assert said(lambda: model.predict(X)) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", TableWarning)
        model.fit(X, labels)


def test_nothing_is_said_about_a_good_table(table):
    model = cheap(pistol.LinearPistolRegressor)
    X, y = table(model)
    assert said(lambda: model.fit(X, y)) == []
    (message,) = said(lambda: model.fit(X.assign(copy=3 * y + 1), y))
    assert "column 'copy' determines the target" in message


# The transformer


def test_the_encoder_is_that_of_the_estimators(table):
    model = cheap(pistol.LinearPistolRegressor)
    X, y = table(model)
    encoder = TableEncoder().fit(X, y)
    names = model.fit(X, y).fitted_.columns.encoder.feature_names
    assert list(encoder.get_feature_names_out()) == names
    assert list(encoder.feature_names_in_) == list(X.columns)
    np.testing.assert_array_equal(encoder.fit_transform(X, y), encoder.transform(X))
    frame = TableEncoder().set_output(transform="pandas").fit_transform(X, y)
    assert list(frame.columns) == names
