"""Model files: the same model again, to the last bit; and no file does harm."""

import copy
import json
import os
import pickle
import random

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.base import is_classifier
from sklearn.linear_model import SGDClassifier

import pistol
from pistol._estimators import files
from pistol._estimators.loading import estimator_of
from pistol._training.answers import decide
from pistol._training.forms import Source, Written
from pistol.losses import Loss, huber_loss, quantile_loss

MUTATIONS = int(os.environ.get("PISTOL_MUTATIONS", "300"))  # of bytes, and as many forged files


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.pistol"


def saved(model, path, **more):
    model.save(path, **more)
    return path.read_bytes()


def test_a_loaded_model_is_the_same_and_learns_on_the_same(machine, rows, path):
    """The file of a loaded model has the same bytes: now, and after both have learned more."""
    model = machine(random_state=0)
    X, y = rows(model, n=60, labels=3)
    for learn in (model.fit, model.partial_fit):
        learn(X, y)
        before = saved(model, path)
        again = pistol.load(path)
        assert type(again) is type(model)
        assert again.get_params() == model.get_params()
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert saved(again, path) == before
        again.partial_fit(X[::-1], y[::-1])
        model.partial_fit(X[::-1], y[::-1])
        assert saved(again, path) == saved(model, path)


def test_the_defaults_go_on_the_same(untouched, rows, path):
    model = untouched(random_state=0)
    X, y = rows(model, n=60)
    model.fit(X, y)
    model.save(path)
    again = pistol.load(path)
    for each in (model, again):
        each.partial_fit(X[:20], y[:20])
    assert saved(again, path) == saved(model, path)


STREAMS = {
    "drift": (pistol.PistolClassifier, {"drift": True}, lambda X: X),
    "linear-drift": (pistol.LinearPistolRegressor, {"drift": True}, lambda X: X),
    "no-intercept": (pistol.LinearPistolRegressor, {"fit_intercept": False}, lambda X: X),
    "counts": (pistol.PistolRegressor, {"loss": "poisson"}, np.abs),
    "means": (pistol.LinearPistolRegressor, {"loss": "squared_error"}, lambda X: X),
    "quantiles": (pistol.PistolRegressor, {"loss": quantile_loss([0.1, 0.9])}, lambda X: X),
    "sparse": (pistol.PistolClassifier, {}, sp.csr_array),
    "wide": (
        pistol.LinearPistolClassifier, {},
        lambda X: sp.csr_array(np.hstack([X, np.zeros((len(X), 1)), X])).__class__(
            (sp.csr_array(X).data, sp.csr_array(X).indices * 40_000, sp.csr_array(X).indptr),
            shape=(len(X), 200_000),
        ),
    ),
    "float32": (pistol.PistolRegressor, {"kernel": "rbf"}, lambda X: X.astype(np.float32)),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_goes_on_the_same(name, path):
    """Saved and loaded in mid-stream: with challengers, windows, recent targets and all."""
    cls, changes, convert = STREAMS[name]
    rng = np.random.default_rng(0)
    stop = 270  # after the first challengers
    X = np.round(rng.normal(size=(600, 4)), 2)
    y = np.rint(np.abs(X[:, 0] + np.where(np.arange(600) < 200, X[:, 1], -X[:, 1])))
    model = cls(**changes)
    y = y > 1 if is_classifier(model) else y
    X = convert(X)
    model.partial_fit(X[:stop], y[:stop])
    model.save(path)
    again = pistol.load(path)
    for each in (model, again):
        each.partial_fit(X[stop:], y[stop:])
    assert saved(again, path) == saved(model, path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]), np.array(["no", "ä\n"], object), np.array([False, True]),
        np.array([-1, 1], np.int8), np.array([1.0, 2.0]), np.array([2**63, 2**63 + 2], np.uint64),
    ],
    ids=str,
)  # fmt: skip
def test_labels_of_all_kinds(labels, path):
    X = np.arange(20.0)[:, None]
    y = labels[(X[:, 0] > 9).astype(int)]
    model = pistol.LinearPistolClassifier(passes=1).fit(X, y)
    model.save(path)
    again = pistol.load(path)
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_names_parameters_and_settings_are_kept(path):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) % 7})
    y = np.where(X["a"] > 15, "up", "down")
    random_state = np.random.RandomState(3)
    random_state.normal()
    model = pistol.PistolClassifier(
        class_weight={"up": np.float64(2.0), "down": 1}, random_state=random_state, passes=1
    ).fit(X, y)
    model.set_params(verbose=False, a=0.25)
    model.save(path)
    again = pistol.load(path)
    assert list(again.feature_names_in_) == ["a", "b"]
    assert again.a == 0.25
    assert again.class_weight == {"up": 2.0, "down": 1}
    assert again.random_state.normal() == random_state.normal()
    with pytest.raises(ValueError, match=r"a was 1\.0 when training began and is 0\.25"):
        again.partial_fit(X, y)


@pytest.mark.parametrize(
    "value", [[1, "a"], ("b", 2.5), np.array([1, 3]), np.array(["x"])], ids=str
)
def test_parameters_may_be_lists_and_arrays(value):
    to = Written()
    found = files.PARAMETER.read(files.PARAMETER.write(value, to), Source(to.arrays))
    assert type(found) is type(value)
    np.testing.assert_array_equal(found, value)


def test_predict_only_predicts_the_same_and_learns_no_more(machine, rows, scores, path):
    model = machine(random_state=0)
    X, y = rows(model, n=60, labels=3)
    model.fit(X, y)
    whole = len(saved(model, path))
    assert len(saved(model, path, predict_only=True)) < whole
    again = pistol.load(path)
    expected = scores(model, X)
    np.testing.assert_allclose(scores(again, X), expected, atol=1e-5 * np.abs(expected).max())
    assert (again.t_, again.passes_, again.online_error_) == (
        model.t_, model.passes_, model.online_error_,
    )  # fmt: skip
    with pytest.raises(ValueError, match="predict_only"):
        again.partial_fit(X, y)
    np.testing.assert_array_equal(scores(again.fit(X, y), X), expected)


def test_predict_only_is_no_larger_than_the_pickle_of_sgd(path):
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 20_000), density=0.01, rng=rng, format="csr")
    y = np.arange(400) % 16
    pistol.LinearPistolClassifier(passes=1, orders=1).fit(X, y).save(path, predict_only=True)
    assert path.stat().st_size <= len(pickle.dumps(SGDClassifier(max_iter=5, tol=None).fit(X, y)))


@njit
def my_value(y, p, theta):
    return abs(y - p)


@njit
def my_grad(y, p, theta):
    return 1.0 if p > y else -1.0 if p < y else 0.0


def my_kernel(A, B):
    return A @ B.T


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"loss": Loss("mine", my_value, my_grad, 1.0)},
            "loss: the loss 'mine' is made of functions",
        ),
        ({"kernel": my_kernel}, "kernel: a function of your own"),
    ],
    ids=["loss", "kernel"],
)
def test_functions_of_the_user_are_not_written(change, message, rows, path):
    model = pistol.PistolRegressor(passes=1, **change)
    model.fit(*rows(model))
    path.write_bytes(b"older")
    with pytest.raises(ValueError, match=message):
        model.save(path)
    assert path.read_bytes() == b"older"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_loss_with_a_number_is_written(rows, path):
    model = pistol.PistolRegressor(passes=1, loss=huber_loss(0.5))
    model.fit(*rows(model)).save(path)
    assert pistol.load(path).loss.theta == 0.5


def test_a_model_that_is_not_fitted_is_not_written(untouched, path):
    with pytest.raises(ValueError, match="not fitted"):
        untouched().save(path)
    assert not path.exists()


def test_a_class_of_the_user_is_not_written(rows, path):
    class Mine(pistol.LinearPistolClassifier):
        pass

    with pytest.raises(ValueError, match="Mine is a class of your own"):
        Mine().fit(*rows(Mine())).save(path)


def test_a_failure_while_writing_leaves_the_older_file(rows, path, monkeypatch):
    model = pistol.LinearPistolClassifier(passes=1)
    model.fit(*rows(model))
    before = saved(model, path)

    def full(*args, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "save_file", full)
    with pytest.raises(OSError, match="No space"):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


# Pickles and skops


def test_skops_needs_to_trust_our_classes_alone(untouched, rows, path):
    """The model comes back to the last bit, and learns on the same."""
    skops = pytest.importorskip("skops.io")
    model = untouched(passes=1, random_state=0)
    X, y = rows(model, n=60)
    model.fit(X, y)
    content = skops.dumps(model)
    assert set(skops.get_untrusted_types(data=content)) <= set(pistol.TRUSTED_TYPES)
    again = skops.loads(content, trusted=pistol.TRUSTED_TYPES)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for each in (model, again):
        each.partial_fit(X[:20], y[:20])
    before = saved(model, path)
    assert saved(again, path) == before


def test_a_pickle_names_the_version_it_needs(rows, monkeypatch):
    model = pistol.LinearPistolClassifier(passes=1)
    X, y = rows(model)
    with monkeypatch.context() as later:
        later.setattr(files, "FORMAT", 7)
        later.setattr(files, "_version", lambda: "9.0")
        content = pickle.dumps(model.fit(X, y))
    with pytest.raises(pistol.ModelFileError, match=r"pistol 9.0 in format 7.*formats up to \d"):
        pickle.loads(content)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_functions_of_the_user_are_pickled(rows):
    model = pistol.PistolRegressor(passes=1, kernel=my_kernel)
    X, y = rows(model)
    again = pickle.loads(pickle.dumps(model.fit(X, y)))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


# Files that are none


def test_what_is_missing_or_no_model_is_named(tmp_path, path):
    with pytest.raises(FileNotFoundError):
        pistol.load(path)
    for content in (b"", b"PK\x03\x04", b"\xff" * 100, b"8" * 3000):
        path.write_bytes(content)
        with pytest.raises(pistol.ModelFileError, match=r"model\.pistol is no model file"):
            pistol.load(path)
    save_file({"x": np.zeros(3)}, path)
    with pytest.raises(pistol.ModelFileError, match="no model of pistol"):
        pistol.load(path)


def content_of(path):
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = json.loads(file.metadata()["pistol"])
    return {name: value for name, value in header.items() if name != "checksum"}, arrays


def forge(header, arrays, path):
    """A file with this content and a checksum to match, as someone hostile would write it."""
    arrays = {name: np.ascontiguousarray(x) for name, x in arrays.items()}
    save_file(arrays, path, files.sealed(header, arrays))


def test_a_later_format_is_named(rows, path):
    model = pistol.LinearPistolClassifier(passes=1)
    model.fit(*rows(model)).save(path)
    header, arrays = content_of(path)
    forge(header | {"format": 99, "version": "9.0"}, arrays, path)
    with pytest.raises(pistol.ModelFileError, match=r"pistol 9.0 in format 99.*Upgrade"):
        pistol.load(path)
    forge(header | {"format": 1, "version": "0.0"}, arrays, path)
    with pytest.raises(
        pistol.ModelFileError, match=r"pistol 0.0 in format 1.*Train the model again"
    ):
        pistol.load(path)
    for text in ("[" * 100_000, "3", "nonsense", '{"format": ' + "9" * 5000 + "}"):
        save_file(arrays, path, {"pistol": text})
        with pytest.raises(pistol.ModelFileError, match="cannot be read"):
            pistol.load(path)


def examples():
    """Fitted models of all kinds, small: they are judged a million times."""
    rng, n = np.random.default_rng(0), 12
    X = np.round(rng.normal(size=(n, 3)), 1)
    y = np.abs(np.rint(2 * X[:, 0]))
    few = {"passes": 1, "orders": 2, "n_jobs": 1}
    yield pistol.PistolClassifier(drift=True, n_jobs=1).partial_fit(X, y > 1), X
    yield pistol.PistolRegressor(loss="poisson", **few).fit(X, y), X
    yield pistol.PistolClassifier(kernel="precomputed", **few).fit(X @ X.T, y), X @ X.T
    yield pistol.PistolClassifier(**few).fit(sp.csr_array(X), y), X
    yield pistol.LinearPistolClassifier().partial_fit(X, y.astype(str)), X
    yield pistol.LinearPistolRegressor(per_coordinate=False).partial_fit(X, y), X
    columns = {
        "a": np.where(X[:, 0] > 1, np.nan, X[:, 0]), "b": np.tile(["u", "v", "w", "x"], n // 4),
        "c": np.tile(["no", "yes"], n // 2), "d": [f"word {i // 2}" for i in range(n)],
    }  # fmt: skip
    frame = pytest.importorskip("pandas").DataFrame(columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pistol._data.encoder.MOST", 4)
        yield pistol.PistolClassifier(**few).fit(frame, y > 1), frame
        yield pistol.LinearPistolRegressor().partial_fit(frame, y), frame
    wide = sp.csr_array((X.ravel(), np.tile([1, 70_000, 99_999], n), 3 * np.arange(n + 1)))
    yield pistol.LinearPistolClassifier(passes=1).fit(wide, y), wide


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder, out = tmp_path_factory.mktemp("models"), []
    for number, (model, X) in enumerate(examples()):
        for only in (False, True):
            path = folder / f"{number}-{only}.pistol"
            model.save(path, predict_only=only)
            header, arrays = content_of(path)
            out.append((path.read_bytes(), json.dumps(header), arrays, X))
    return out


def harmless(read, X):
    """What is read is refused by our own error, or it predicts, or says what is wrong with a row."""
    try:
        saved = read()
        model = estimator_of(saved, "model.pistol")
    except pistol.ModelFileError as problem:
        assert "model.pistol" in str(problem)  # noqa: PT017
        return False
    try:
        found = decide(saved.fitted, X, saved.name, 1)
    except ValueError as problem:  # of a table that does not fit what the file says of its columns
        clear = "X has a row of Euclidean norm", "when training began and holds"
        assert any(words in str(problem) for words in clear)  # noqa: PT017
        return False
    answers = saved.fitted.task.answers(found, saved.fitted.targets)
    assert len(answers) == X.shape[0]
    if is_classifier(model):
        assert np.isin(answers, model.classes_).all()
        assert not np.isnan(found).any()
    return True


@pytest.mark.filterwarnings("ignore")
def test_mutated_bytes_do_no_harm(models, path):
    for seed in range(MUTATIONS):
        rng = random.Random(seed)
        content, _, _, X = rng.choice(models)
        at = rng.randrange(rng.choice([len(content), 2000]))
        way, more = rng.randrange(4), rng.randbytes(rng.randrange(1, 10))
        rest = content[at:] if way == 0 else content[at + len(more) :] if way < 3 else b""
        new = content[:at] + (more if way < 2 else b"") + rest  # insert, change, drop or cut
        path.write_bytes(new)
        if harmless(lambda: files.read_model(path), X):  # nobody looks at what has changed
            pistol.load(path).save(path)
            assert new == content or path.read_bytes() == content, seed


ODD = [None, True, -1, 0, 1, 2**31, 2**63, 10**400, 1e-320, 1e300, -1e300, float("inf"),
       float("nan"), "", "rbf", "precomputed", "poisson", [], {}, [[]], {"is": "dual"}]  # fmt: skip
ODD_ENTRIES = [0, -1, 1, 2**31 - 1, 1e300, -1e300, 1e-310, np.nan, np.inf, -np.inf]


def places(tree, path=()):
    """Where something could be put in a tree of JSON."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in inner:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def mutate(rng, text, arrays):
    """One change to a tree or to an array."""
    header, arrays = json.loads(text), dict(arrays)
    if rng.random() < 0.5:
        at = rng.choice(list(places(header)))
        node = header
        for key in at[:-1]:
            node = node[key]
        if rng.random() < 0.2:
            del node[at[-1]]
        elif rng.random() < 0.3:
            other = header
            for key in rng.choice(list(places(header))):
                other = other[key]
            node[at[-1]] = copy.deepcopy(other)
        else:
            node[at[-1]] = rng.choice(ODD)
        return header, arrays
    name = rng.choice(sorted(arrays))
    x, way = arrays[name], rng.randrange(5)
    if way == 0 and x.size:
        x = x.copy()
        with np.errstate(all="ignore"):
            x.flat[rng.randrange(x.size)] = np.array(rng.choice(ODD_ENTRIES)).astype(x.dtype)
    elif way == 1:
        x = x[: rng.randrange(len(x) + 1)] if x.ndim else x
    elif way == 2:
        x = np.repeat(x, 2, axis=rng.randrange(x.ndim))
    elif way == 3:
        with np.errstate(all="ignore"):
            x = x.astype(rng.choice(["float32", "float64", "int64", "int32", "bool", "uint8"]))
    else:
        x = arrays[rng.choice(sorted(arrays))]
    return header, arrays | {name: x}


@pytest.mark.filterwarnings("ignore")
def test_forged_files_do_no_harm(models, path):
    """Someone who knows the format changes it and makes the checksum fit."""
    loaded = 0
    for seed in range(MUTATIONS):
        rng = random.Random(seed)
        _, text, arrays, X = rng.choice(models)
        header, arrays = mutate(rng, text, arrays)
        mark = files.sealed(header, arrays)["pistol"]
        try:
            loaded += harmless(lambda: files.understood(path, mark, arrays), X)  # noqa: B023
        except BaseException as problem:
            raise AssertionError(f"the forged file number {seed} did harm") from problem
    assert 0 < loaded < MUTATIONS
