"""Export to ONNX, through skl2onnx (extra `onnx`).

Linear models and kernel machines on rows of numbers become graphs that scale a row, evaluate the
kernels and turn scores into labels, probabilities or targets. The graph computes in float64 and takes
and returns float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ._compiled.types import Array
from ._data.bends import ROOM, STRAIGHT, Bent
from ._data.metric import Weighted
from ._data.scaling import FAR, Scaler, Unscaled
from ._data.steps import Stepped
from ._data.targets import LOG_LEAST, LOG_MOST, STEPS, LogScaler, TargetScaler
from ._estimators.base import settled
from ._estimators.loading import CLASSES
from ._learners.models import Expansion, Linear

__all__ = ["register", "to_onnx"]


def to_onnx(model: Any, target_opset: Any = None) -> Any:
    """The ONNX model of a fitted estimator.

    Parameters
    ----------
    model : object
        A fitted classifier or regressor of pistol, trained on rows of numbers.
    target_opset : int, default=None
        As in ``skl2onnx.to_onnx``.

    Returns
    -------
    onnx_model : onnx.ModelProto
        Its input is `X`, float32 of shape (rows, features). A classifier has the outputs `label` and
        `probabilities`, which are raw scores where the loss has no probabilities; a regressor has the
        output `variable`.

    Raises
    ------
    ValueError
        If a part of the model has no counterpart in ONNX: tables with words or gaps, cells of large
        kernel machines, precomputed kernels, functions of the user, or the laplacian kernel.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pistol import LinearPistolClassifier
    >>> from pistol.onnx import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearPistolClassifier(passes=1).fit(X, y)
    >>> content = to_onnx(model).SerializeToString()  # doctest: +SKIP
    """
    register()
    from skl2onnx import to_onnx as convert
    from skl2onnx.common.data_types import FloatTensorType

    options = {id(model): {"zipmap": False}} if is_classifier(model) else None
    types = [("X", FloatTensorType([None, model.n_features_in_]))]
    return convert(model, initial_types=types, options=options, target_opset=target_opset)


def register() -> None:
    """Make skl2onnx know the estimators of pistol, so that it converts pipelines with them, too.

    Examples
    --------
    >>> from pistol.onnx import register
    >>> register()  # doctest: +SKIP
    """
    try:
        from skl2onnx import update_registered_converter
        from skl2onnx.common.shape_calculator import (
            calculate_linear_classifier_output_shapes,
            calculate_linear_regressor_output_shapes,
        )
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            f"export to ONNX needs {problem.name}: pip install 'pistol[onnx]'"
        ) from None
    for name, cls in CLASSES.items():
        classifies = is_classifier(cls())
        update_registered_converter(
            cls,
            f"Pistol{name}",
            calculate_linear_classifier_output_shapes
            if classifies
            else calculate_linear_regressor_output_shapes,
            _convert,
            options={"zipmap": [True, False, "columns"], "nocl": [True, False]}
            if classifies
            else None,
        )


class Graph:
    """Nodes and arrays of the graph under way; values are known by their names."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope, self.container = scope, container

    def array(self, values: Any, integers: bool = False) -> str:
        """Numbers that do not change."""
        from onnx import TensorProto

        name = self.scope.get_unique_variable_name("constant")
        kind = TensorProto.INT64 if integers else TensorProto.DOUBLE
        x = np.asarray(values, np.int64 if integers else np.float64)
        self.container.add_initializer(name, kind, list(x.shape), x.ravel().tolist())
        return name

    def op(self, kind: str, *inputs: str, to: str | None = None, **attributes: Any) -> str:
        """The value of one operator."""
        out = to or self.scope.get_unique_variable_name(kind.lower())
        domain = "ai.onnx.ml" if kind == "ArrayFeatureExtractor" else ""
        self.container.add_node(
            kind, list(inputs), [out], op_domain=domain,
            name=self.scope.get_unique_operator_name(kind), **attributes,
        )  # fmt: skip
        return out

    def cast(self, x: str, kind: str, to: str | None = None) -> str:
        """Numbers of another type."""
        from onnx import TensorProto

        out = to or self.scope.get_unique_variable_name("cast")
        name = self.scope.get_unique_operator_name("Cast")
        self.container.add_node("Cast", [x], [out], name=name, to=getattr(TensorProto, kind))
        return out

    def clip(self, x: str, low: Any, high: Any) -> str:
        """Values within bounds."""
        return self.op("Min", self.op("Max", x, self.array(low)), self.array(high))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """The converter that skl2onnx calls: from the input to all outputs of one estimator."""
    model, g = operator.raw_operator, Graph(scope, container)
    known = settled(model)
    if not known.columns.plain:
        raise ValueError(
            "this model was trained on a table with words, dates or gaps, which are encoded outside "
            "of what ONNX offers; encode it with TableEncoder and train on the numbers"
        )
    X = g.cast(operator.inputs[0].full_name, "DOUBLE")
    scores = decide(g, known.model(), scaled(g, known.scaler, X))
    outputs = [output.full_name for output in operator.outputs]
    if is_classifier(model):
        _classes(g, model, known, scores, outputs)
    else:
        g.cast(_targets(g, known, scores), "FLOAT", outputs[0])


def scaled(g: Graph, scaler: Any, X: str) -> str:
    """Rows as the model wants them."""
    if isinstance(scaler, Weighted):
        return g.op("Mul", scaled(g, scaler.scaler, X), g.array(scaler.weight[None]))
    if isinstance(scaler, Bent):
        return _bent(g, scaler, scaled(g, scaler.scaler, X))
    if isinstance(scaler, Stepped):
        return _stepped(g, scaler, scaled(g, scaler.scaler, X))
    if isinstance(scaler, Scaler):
        moved = g.op("Sub", X, g.array(scaler.center[None]))
        return g.clip(g.op("Mul", moved, g.array(scaler.scale[None])), -FAR["d"], FAR["d"])
    if isinstance(scaler, Unscaled):
        return X
    raise ValueError(
        f"rows scaled by {type(scaler).__name__}, as hashed ones are, are not exported"
    )


def _bent(g: Graph, scaler: Bent, Z: str) -> str:
    """Values far out bent; features that are ranked get straight lines between their knots."""
    size = g.op("Abs", Z)
    beyond = g.op("Max", g.op("Sub", size, g.array(STRAIGHT)), g.array(0.0))
    part = g.op("Div", beyond, g.op("Add", g.array(1.0), g.op("Div", beyond, g.array(ROOM))))
    bent = g.op("Mul", g.op("Sign", Z), g.op("Add", g.op("Min", size, g.array(STRAIGHT)), part))
    if not scaler.ranked:
        return bent
    d = scaler.features
    keep = np.ones((1, d))
    keep[0, list(scaler.ranked)] = 0.0
    out = g.op("Mul", bent, g.array(keep))
    for i, knots in scaler.ranked.items():
        out = g.op("Add", out, g.op("MatMul", _lines(g, Z, d, i, *knots), g.array(np.eye(d)[[i]])))
    return out


def _lines(g: Graph, Z: str, d: int, i: int, values: Array, heights: Array) -> str:
    """Straight lines between knots, of one of d features; one column."""
    low, high = values[None, :-1], values[None, 1:]
    slopes = np.diff(heights) / np.diff(values)
    z = g.op("MatMul", Z, g.array(np.eye(d)[:, [i]]))
    steps = g.op("Sub", g.op("Min", g.op("Max", z, g.array(low)), g.array(high)), g.array(low))
    return g.op("Add", g.op("MatMul", steps, g.array(slopes[:, None])), g.array(heights[0]))


def _stepped(g: Graph, scaler: Stepped, Z: str) -> str:
    """Features and their ramps, side by side."""
    d, owner = scaler.scaler.features, scaler.owner
    out = g.op("MatMul", Z, g.array(np.diag(scaler.keep) @ np.eye(d, scaler.features)))
    for i, knots in scaler.places.items():
        own = np.flatnonzero(owner == i)
        rise = g.op("Sub", _lines(g, Z, d, i, *knots), g.array(np.arange(len(own))[None] * 1.0))
        ramp = g.op("Sub", g.clip(rise, 0.0, 1.0), g.array(scaler.center[None, own]))
        place = np.eye(scaler.features)[d + own] * scaler.size[own, None]
        out = g.op("Add", out, g.op("MatMul", ramp, g.array(place)))
    return out


def decide(g: Graph, model: Any, Z: str) -> str:
    """Scores of shape (rows, outputs)."""
    if isinstance(model, Linear):
        product = g.op("MatMul", Z, g.array(model.weights[:, :-1].T))
        return g.op("Add", product, g.array(model.weights[None, :, -1]))
    if not isinstance(model, Expansion):
        raise ValueError(
            "a kernel machine of more than 5,000 rows has a model per cell of its trees, which is not "
            "exported; train a linear model, or a kernel machine on fewer rows"
        )
    outputs = model.coef.shape[1]
    rows = np.asarray(model.rows.toarray() if hasattr(model.rows, "toarray") else model.rows)
    total = g.array(np.zeros((1, outputs)) if model.offset is None else model.offset[None])
    if not len(model.ids):
        first = g.op("MatMul", Z, g.array(np.zeros((rows.shape[1], outputs))))
        return g.op("Add", first, total)
    inner = g.op("MatMul", Z, g.array(rows.T))
    square = g.op("MatMul", g.op("Mul", Z, Z), g.array(np.ones((rows.shape[1], 1))))
    for kernel, coef in zip(model.kernels, model.coef):
        K = values(g, kernel, inner, square, np.square(rows.astype(np.float64)).sum(axis=1)[None])
        total = g.op("Add", total, g.op("MatMul", K, g.array(coef.T)))
    return total


def values(g: Graph, kernel: Any, inner: str, square: str, s_sq: Array) -> str:
    """k(s, x) for all rows and all support rows."""
    gamma, degree, coef0 = kernel.theta.tolist()
    if kernel.source in ("rbf", "exponential"):
        both = g.op("Add", square, g.array(s_sq))
        gap = g.op("Sub", both, g.op("Mul", g.array(2.0), inner))
        gap = g.op("Max", gap, g.array(0.0))
        gap = g.op("Sqrt", gap) if kernel.source == "exponential" else gap
        return g.op("Exp", g.op("Mul", g.array(-gamma), gap))
    if kernel.source == "linear":
        return inner
    if kernel.source == "poly":
        base = g.op("Add", g.op("Mul", g.array(gamma), inner), g.array(coef0))
        return g.op("Pow", base, g.array(degree))
    if kernel.source == "bounded_poly":
        shrunk = gamma * np.sqrt(np.minimum(1.0, coef0 / np.maximum(s_sq, 1e-300)))
        most = g.op("Div", g.array(coef0), g.op("Max", square, g.array(1e-300)))
        also = g.op("Sqrt", g.op("Min", g.array(1.0), most))
        base = g.op("Mul", g.op("Mul", inner, g.array(shrunk)), also)
        return g.op("Pow", base, g.array(degree))
    if kernel.source == "cosine":
        norms = g.op("Mul", g.op("Sqrt", square), g.array(np.sqrt(s_sq)))
        return g.op("Div", inner, g.op("Max", norms, g.array(1e-300)))
    raise ValueError(f"the kernel {kernel.source!r} is not exported")


def _classes(g: Graph, model: Any, known: Any, scores: str, outputs: list[str]) -> None:
    """Labels and probabilities; raw scores where the loss has no probabilities."""
    two = len(model.classes_) == 2
    sides = g.op("Concat", g.op("Neg", scores), scores, axis=1) if two else scores
    best = g.op("ArgMax", sides, axis=1, keepdims=0)
    _labels(g, model.classes_, best, outputs[0])
    T, loss = known.temperature, known.task.loss
    if T is not None or loss.coupled:
        each = (T or 1.0) / (2 if two else 1)  # two sides share one score
        P = g.op("Softmax", g.op("Mul", g.array(each), sides), axis=1)
    elif loss.link is None:
        P = sides
    elif loss.name == "logistic" and two:
        P = g.op("Sigmoid", sides)
    else:
        raise ValueError(
            f"the probabilities of the loss {loss.name!r} without calibration are not exported; fit "
            "with the default passes and orders calibrates them"
        )
    g.cast(P, "FLOAT", outputs[1])


def _labels(g: Graph, classes: Array, best: str, to: str) -> None:
    """The label of each number."""
    from onnx import TensorProto

    name = g.scope.get_unique_variable_name("classes")
    if classes.dtype.kind in "iubf":  # labels that are numbers are whole ones
        kind, values = TensorProto.INT64, classes.astype(np.int64).tolist()
    else:
        kind, values = TensorProto.STRING, [str(label).encode() for label in classes]
    g.container.add_initializer(name, kind, [len(classes)], values)
    found = g.op("ArrayFeatureExtractor", name, best)
    g.op("Reshape", found, g.array([-1], integers=True), to=to)


def _targets(g: Graph, known: Any, scores: str) -> str:
    """Targets from scores; several quantiles in ascending order."""
    targets = known.targets
    if isinstance(targets, LogScaler):
        powers = g.clip(g.op("Div", scores, g.array(STEPS)), LOG_LEAST, LOG_MOST)
        multiples = g.op("Min", g.op("Exp", powers), g.array(targets.most))
        Y = g.op("Mul", multiples, g.array(targets.mean))
    elif isinstance(targets, TargetScaler):
        Y = g.op("Add", g.op("Mul", scores, g.array(targets.unit[None])), g.array(targets.center))
    else:
        raise ValueError(f"targets scaled by {type(targets).__name__} are not exported")
    if known.task.loss.levels:
        raise ValueError("several quantiles at once are not exported; train one model per quantile")
    return Y
