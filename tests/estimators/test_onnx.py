"""ONNX graphs give what the models give, within float32."""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pistol
import pistol.losses
from pistol._data.steps import Stepped
from pistol.onnx import register, to_onnx

runtime = pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")


def outputs(content, X):
    session = runtime.InferenceSession(
        content.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"X": X.astype(np.float32)})


def data(n=120):
    """Heavy tails, so that values are bent and a feature is ranked; rows that float32 can hold."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_t(1, n), rng.normal(size=(n, 2)), rng.integers(2, size=n)])
    X = X.astype(np.float32).astype(np.float64)
    return X, X[:, 1] + X[:, 2] ** 2


MODELS = {
    "default": lambda: pistol.PistolClassifier(random_state=0),
    "rbf": lambda: pistol.PistolClassifier(kernel="rbf", random_state=0),
    "poly": lambda: pistol.PistolClassifier(kernel="poly", degree=2, random_state=0),
    "cosine": lambda: pistol.PistolRegressor(kernel="cosine", random_state=0),
    "linear": lambda: pistol.LinearPistolClassifier(random_state=0),
    "regressor": lambda: pistol.PistolRegressor(random_state=0),
    "counts": lambda: pistol.LinearPistolRegressor(loss="poisson", random_state=0),
    "perceptron": lambda: pistol.KernelPerceptron(random_state=0),
}


def test_ramps_are_exported():
    X = data(200)[0]
    model = pistol.PistolRegressor(random_state=0).fit(X, np.floor(2 * X[:, 1]) + (X[:, 2] > 0.3))
    kinds = {type(model.fitted_.scaler), type(getattr(model.fitted_.scaler, "scaler", None))}
    assert Stepped in kinds
    (found,) = outputs(to_onnx(model), X)
    np.testing.assert_allclose(found.ravel(), model.predict(X), rtol=1e-4, atol=1e-4)


@pytest.mark.every_case_counts_lines  # each kernel has operators of its own
@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_the_graph_gives_what_the_model_gives(name, labels):
    X, y = data()
    model = MODELS[name]()
    if is_classifier(model):
        y = np.array(["a", "b", "c"])[np.digitize(y, [1.0, 2.5][: labels - 1])]
    elif labels == 3:
        y = np.column_stack([y, -y])
    y = np.rint(np.abs(y)) if name == "counts" else y
    model.fit(X, y)
    found = outputs(to_onnx(model), X)
    if not is_classifier(model):
        expected = model.predict(X)
        size = np.abs(expected).max()
        np.testing.assert_allclose(found[0].reshape(expected.shape), expected, atol=1e-5 * size)
        return
    if hasattr(model, "predict_proba"):
        expected = model.predict_proba(X)
    else:
        expected = model.decision_function(X)
        expected = np.column_stack([-expected, expected]) if expected.ndim == 1 else expected
    np.testing.assert_allclose(found[1], expected, atol=1e-5 * np.abs(expected).max())
    clear = np.ptp(np.sort(expected, axis=1)[:, -2:], axis=1) > 1e-4
    assert (found[0] == model.predict(X))[clear].all()


@pytest.mark.every_case_counts_lines
@pytest.mark.parametrize("classes", [[3, 7], [False, True], [-1.0, 1.0]], ids=str)
def test_labels_may_be_numbers(classes):
    X, y = data(40)
    model = pistol.LinearPistolClassifier(loss="logistic", orders=None, passes=1)
    model.fit(X, np.array(classes)[(y > np.median(y)).astype(int)])
    labels, shares = outputs(to_onnx(model), X)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=1e-5)


def test_a_pipeline_is_converted():
    from skl2onnx import to_onnx as convert

    register()
    X, y = data()
    model = make_pipeline(StandardScaler(), pistol.LinearPistolRegressor(passes=1)).fit(X, y)
    found = outputs(convert(model, X[:1].astype(np.float32)), X)[0]
    np.testing.assert_allclose(found[:, 0], model.predict(X), rtol=1e-4, atol=1e-4)


def test_what_has_no_counterpart_is_named():
    pandas = pytest.importorskip("pandas")
    X, y = data()
    frame = pandas.DataFrame({"a": X[:, 1], "b": np.where(X[:, 2] > 0, "u", "v")})
    with pytest.raises(ValueError, match="a table with words"):
        to_onnx(pistol.LinearPistolRegressor(passes=1).fit(frame, y))
    with pytest.raises(ValueError, match="'laplacian' is not exported"):
        to_onnx(pistol.PistolRegressor(kernel="laplacian", passes=1).fit(X, y))
    quantiles = pistol.losses.quantile_loss([0.1, 0.9])
    with pytest.raises(ValueError, match="one model per quantile"):
        to_onnx(pistol.LinearPistolRegressor(loss=quantiles, passes=1).fit(X, y))
    uncalibrated = pistol.LinearPistolClassifier(loss="smooth_hinge", orders=None, passes=1)
    with pytest.raises(ValueError, match=r"'smooth_hinge' without calibration.*default passes"):
        to_onnx(uncalibrated.fit(X, y > 1))
