"""The commands about files: a whole session, pipes, errors of one line, exit codes."""

import io
import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import pistol
from pistol import files
from pistol.cli import app

pytestmark = pytest.mark.every_case_counts_lines  # each goes its own way


def run(*words, code=0, stdin=None):
    result = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    assert result.exit_code == code, result.output
    return result


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 3)), 3)
    return X, np.where(X[:, 0] > X[:, 1], "up", "down")


def csv_of(X, y, path):
    lines = ["a,b,c,y", *(",".join([*map(str, row), str(label)]) for row, label in zip(X, y))]
    path.write_text("\n".join(lines) + "\n")
    return path


def svm_of(X, y, path):
    rows = (" ".join(f"{i + 1}:{x}" for i, x in enumerate(row)) for row in X)
    path.write_text("".join(f"{label} {row}\n" for label, row in zip(y, rows)))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows, and a model that was trained on them from the shell."""
    folder = tmp_path_factory.mktemp("session")
    csv_of(*table(), folder / "rows.csv")
    csv_of(*table(seed=1), folder / "test.csv")
    result = run(
        "train", folder / "rows.csv", "--test", folder / "test.csv", "--passes", 1,
        "-o", folder / "model.pistol", "--json",
    )  # fmt: skip
    (folder / "facts.json").write_text(result.stdout)
    return folder


def test_nothing_has_to_be_chosen(folder):
    facts = json.loads((folder / "facts.json").read_text())
    assert facts["kind"] == "PistolClassifier"
    assert facts["classes"] == ["down", "up"]
    assert (facts["rows"], facts["features"], facts["test"]["rows"]) == (120, 3, 120)
    assert facts["test"]["error"] < 0.2
    model = pistol.load(folder / "model.pistol")
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    same = pistol.PistolClassifier(passes=1, random_state=0).fit(
        *files.read(folder / "rows.csv")[:2]
    )
    X = files.read(folder / "test.csv").X
    np.testing.assert_array_equal(model.decision_function(X), same.decision_function(X))


def test_predictions_are_those_of_python(folder):
    X, _ = table(seed=1)
    model = pistol.load(folder / "model.pistol")
    X = files.read(folder / "test.csv").X
    out = run("predict", folder / "model.pistol", folder / "test.csv").stdout.split()
    assert out == model.predict(X).tolist()
    without = "b,a,c\n" + "".join(f"{b},{a},{c}\n" for a, b, c in table(seed=1)[0])
    piped = run("predict", folder / "model.pistol", "-", "--format", "csv", stdin=without)
    assert piped.stdout.split() == out
    proba = run("predict", folder / "model.pistol", folder / "test.csv", "--proba").stdout
    np.testing.assert_allclose(
        np.loadtxt(io.StringIO(proba)), model.predict_proba(X), rtol=1e-4, atol=1e-9
    )
    scores = run("predict", folder / "model.pistol", folder / "test.csv", "--scores", "--json")
    assert json.loads(scores.stdout.split("\n")[0]) == {"up": model.decision_function(X)[0]}


def test_evaluate_and_inspect(folder):
    model, (X, y, _) = pistol.load(folder / "model.pistol"), files.read(folder / "test.csv")
    facts = json.loads(
        run("evaluate", folder / "model.pistol", folder / "test.csv", "--json").stdout
    )
    assert facts["error"] == pytest.approx(1 - model.score(X, y))
    facts = json.loads(run("inspect", folder / "model.pistol", "--json").stdout)
    assert (facts["rows"], facts["support_rows"]) == (120, model.n_support_)
    assert set(facts["strongest_features"]) <= {"a", "b", "c"}
    assert "strongest features" in run("inspect", folder / "model.pistol").stdout


def test_regression_from_svmlight_and_from_a_pipe(tmp_path):
    X, _ = table()
    y = np.round(X[:, 0] * 3 + 0.1, 3)
    path, out = svm_of(X, y, tmp_path / "rows.svm"), tmp_path / "m.pistol"
    facts = json.loads(run("train", path, "-o", out, "--learner", "linear", "--json").stdout)
    assert facts["kind"] == "LinearPistolRegressor"
    facts = json.loads(run("evaluate", out, path, "--json").stdout)
    assert facts["R2"] > 0.9
    text = path.read_text()
    run("train", "-", "--task", "regression", "-o", out, stdin=text)
    streamed = pistol.load(out)
    again = pistol.LinearPistolRegressor(random_state=0).partial_fit(*files.read(path)[:2])
    np.testing.assert_array_equal(streamed.coef_, again.coef_)
    assert len(run("predict", out, "-", stdin=text).stdout.split()) == len(y)


def test_vowpal_text_and_small_models(tmp_path):
    path, out = tmp_path / "rows.vw", tmp_path / "m.pistol"
    words = [("1", "sun sea"), ("-1", "rain fog"), ("1", "sea wind"), ("-1", "fog wind")] * 20
    path.write_text("".join(f"{label} 2.0 |w {text}\n" for label, text in words))
    run("train", path, "-o", out, "--predict-only", "--bits", 12)
    assert run("predict", out, path).stdout.split()[:4] == ["1", "-1", "1", "-1"]
    assert json.loads(run("inspect", out, "--json").stdout)["predict_only"] is True


def test_malformed_lines_are_counted(tmp_path):
    X, y = table()
    path = svm_of(X, (y == "up").astype(int), tmp_path / "rows.svm")
    path.write_text(path.read_text() + "spam\n")
    out = tmp_path / "m.pistol"
    result = run("train", path, "-o", out, code=1)
    assert f"{path}, line 121: a target that is a number was expected: 'spam'" in result.stderr
    facts = run("train", path, "-o", out, "--on-error", "skip", "--json", "--learner", "linear")
    assert json.loads(facts.stdout)["malformed_lines"] == 1
    assert "1 malformed line was left out" in run("predict", out, path, "--on-error", "skip").stderr


def test_convert(folder, tmp_path):
    rows = tmp_path / "rows.svm"
    X, y = table()
    csv_of(X, (y == "up").astype(int), tmp_path / "rows.csv")
    run("convert", tmp_path / "rows.csv", "-o", rows)
    found = files.read(rows)
    np.testing.assert_array_equal(found.X.toarray(), X)
    assert found.y.tolist() == (y == "up").astype(int).tolist()
    for name in ("rows.parquet", "rows.arrow", "again.csv"):
        run("convert", tmp_path / "rows.csv", "-o", tmp_path / name)
        np.testing.assert_array_equal(np.asarray(files.read(tmp_path / name).X), X)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "none.svm", "-o", "m"], "none.svm does not exist"),
        (["train", "none-*.svm", "-o", "m"], "no file has such a name"),
        (["train", "ROWS", "-o", "no/folder/m"], "no folder"),
        (["train", "ROWS", "-o", "m", "--task", "clustering"], "classification or regression"),
        (["train", "ROWS", "-o", "m", "--learner", "tree"], "kernel or linear"),
        (["train", "ROWS", "-o", "m", "--checkpoint", "often"], "60s"),
        (["train", "ROWS", "-o", "m", "--target", "z"], "no column 'z'"),
        (["train", "ROWS", "-o", "m", "--loss", "spam"], "unknown loss"),
        (["train", "-", "-o", "m"], "--task regression or with --classes"),
        (["train", "ROWS", "-o", "m", "--test", "none.csv"], "none.csv does not exist"),
        (
            ["train", "ROWS", "-o", "m", "--classes", "up,left"],
            "label 'down' is not among --classes",
        ),
        (["train", "ROWS", "-o", "m", "--classes", "up,down,left"], "no row has the label 'left'"),
        (["train", "ROWS", "rows.svm", "-o", "m"], "files of one format"),
        (["train", "rows.svm", "--target", "y", "-o", "m"], "no column to name as target"),
        (["train", "-", "-o", "m", "--task", "regression", "--passes", "2"], "read once"),
        (["predict", "none", "ROWS"], "none"),
        (["predict", "ROWS", "ROWS"], "no model file"),
        (["evaluate", "MODEL", "none.csv"], "none.csv does not exist"),
        (["convert", "ROWS", "-o", "m.doc"], ".svm, .vw, .csv"),
        (["convert", "ROWS", "-o", "m.svm"], "targets are words, such as"),
        (["inspect", "MODEL", "--picture", "m.doc"], "m.doc cannot be written"),
    ],
)
def test_errors_are_one_line(folder, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    places = {
        "rows.svm": svm_of(np.eye(3), [0, 1, 1], folder / "rows.svm"),
        "ROWS": folder / "rows.csv",
        "MODEL": folder / "model.pistol",
    }
    result = run(*(places.get(word, word) for word in words), code=1, stdin="")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_stops_early_is_no_error(folder):
    command = (
        f"{sys.executable} -m pistol predict {folder}/model.pistol {folder}/test.csv | head -1"
    )
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout in ("up\n", "down\n")
    assert done.stderr == ""


def test_what_the_options_say_is_not_looked_for(tmp_path, monkeypatch):
    """With all that a stream needs, the files are not read beforehand; the model is the same."""
    X, y = table()
    path = svm_of(X, (y == "up").astype(int), tmp_path / "rows.svm")
    out = tmp_path / "m.pistol"
    run("train", path, "-o", out, "--stream")
    looked = out.read_bytes()
    monkeypatch.setattr("pistol._cli.survey.Labels", None)
    run("train", path, "-o", out, "--stream", "--classes", "0,1", "--features", 3)
    assert out.read_bytes() == looked


def test_an_interrupted_fit_leaves_no_model(folder, tmp_path, monkeypatch):
    def fit(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(pistol.PistolClassifier, "fit", fit)
    out = tmp_path / "m.pistol"
    assert "interrupted" in run("train", folder / "rows.csv", "-o", out, code=130).stderr
    assert list(tmp_path.iterdir()) == []


def test_a_picture_of_the_learning_curve(folder, tmp_path):
    picture, out = tmp_path / "curve.png", tmp_path / "m.pistol"
    for way in ("--stream", "--whole"):
        run("train", folder / "rows.csv", "-o", out, way, "--passes", 1, "--plot", picture)
        assert picture.read_bytes().startswith(b"\x89PNG")
        picture.unlink()
    run("inspect", out, "--picture", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_an_interrupt_saves_a_checkpoint_and_says_how_to_go_on(tmp_path, monkeypatch):
    from pistol._cli import training

    X, y = table(400)
    path = svm_of(X, (y == "up").astype(int), tmp_path / "rows.svm")
    out, whole = tmp_path / "m.pistol", tmp_path / "whole.pistol"
    options = ["--stream", "--passes", 2, "--chunk-bytes", 2000, "--checkpoint", "1h"]
    run("train", path, "-o", whole, *options)
    plain = training._after

    def after(progress, rows, *others):
        if progress.rows > 450:
            signal.raise_signal(signal.SIGINT)
        return plain(progress, rows, *others)

    monkeypatch.setattr(training, "_after", after)
    result = run("train", path, "-o", out, *options, code=130)
    assert "m.pistol.checkpoint is saved. Go on with: pistol" in result.stderr
    assert "--resume" in result.stderr
    assert not out.exists()
    monkeypatch.setattr(training, "_after", plain)
    other = run("train", path, "-o", out, *options, "--loss", "hinge", "--resume", code=1)
    assert "parameters differ" in other.stderr
    result = run("train", path, "-o", out, *options, "--resume")
    assert "going on after" in result.stderr
    assert out.read_bytes() == whole.read_bytes()
    assert not (tmp_path / "m.pistol.checkpoint").exists()


SHELL = """
import sys
from pistol.__main__ import main

sys.argv = ["pistol", *sys.argv[1:]]
try:
    main()
finally:
    heavy = {"matplotlib", "pandas", "scipy.optimize", "scipy.stats", "sklearn"}
    print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("kind", ["kernel", "linear", "table"])
@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_what_looks_at_rows_starts_without_scikit_learn(folder, kind, command, tmp_path):
    """A row is predicted long before scikit-learn and pandas would be imported."""
    if kind == "table":
        model, rows = folder / "model.pistol", folder / "test.csv"
    else:
        X, y = table()
        model, rows = (
            tmp_path / "model.pistol",
            svm_of(X, (y == "up").astype(int), tmp_path / "r.svm"),
        )
        run("train", rows, "--learner", kind, "--passes", 1, "-o", model)
    words = [sys.executable, "-c", SHELL, command, str(model), str(rows)]
    result = subprocess.run(words, capture_output=True, text=True, check=True)
    assert result.stdout
    assert result.stderr == "[]\n"
