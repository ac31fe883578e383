"""Estimators for Dask clusters: rows on many machines, with nothing lost when a worker dies.

They need the extra `dask`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Self

import numpy as np

try:
    import dask.array as da
    from dask import delayed
    from distributed import Client, default_client
except ImportError as missing:
    raise ImportError(
        "pistol.dask needs Dask, which comes with an extra: pip install 'pistol[dask]'"
    ) from missing

from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ._dask import steps
from ._dask.bars import bar
from ._dask.fitting import fit_blocks, packed
from ._dask.inputs import blocks_of, file_blocks, is_blocks, is_dask_frame, whole_rows
from ._dask.running import Traffic, counters, moved, running
from ._estimators.kernel import PistolClassifier, PistolRegressor
from ._estimators.linear import LinearPistolClassifier, LinearPistolRegressor

__all__ = [
    "DaskLinearPistolClassifier",
    "DaskLinearPistolRegressor",
    "DaskPistolClassifier",
    "DaskPistolRegressor",
    "Traffic",
    "blocks",
]


def blocks(
    paths: Any,
    *,
    format: str | None = None,
    target: str | int | None = None,
    weight: str | int | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    bits: int = 18,
    on_error: str = "raise",
) -> list[Any]:
    """Files as delayed blocks for `fit`, `predict` and `score`: one block per file, read by workers.

    Parameters
    ----------
    paths : str, path-like, or list of them
        Files that all workers can read. A pattern such as ``"part-*.csv"`` stands for all files that
        it fits, and a folder for its Parquet files.
    format, target, weight, n_features, zero_based, bits, on_error
        As in :func:`pistol.files.chunks`.

    Returns
    -------
    blocks : list of delayed tuples (X, y, weight)
        One per file.

    Examples
    --------
    >>> from pistol.dask import DaskLinearPistolClassifier, blocks
    >>> rows = blocks("rows/*.parquet", target="clicked")  # doctest: +SKIP
    >>> model = DaskLinearPistolClassifier().fit(rows)  # doctest: +SKIP
    """
    return file_blocks(
        paths, on_error, n_features,
        format=format, target=target, weight=weight, zero_based=zero_based, bits=bits,
    )  # fmt: skip


class DaskEstimator(BaseEstimator):
    """What all estimators for clusters can do. Each class names the plain estimator that it is like."""

    _plain: Any
    client: Any
    verbose: bool

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from all rows, forgetting what was learned before.

        A call that fails or is interrupted leaves the estimator as it was, and cancels its tasks.

        Parameters
        ----------
        X : Dask array, Dask data frame, or list of delayed tuples (X, y) or (X, y, weight)
            Training rows. Blocks of an array may be sparse. :func:`blocks` reads files.
        y : Dask array, series or data frame, default=None
            Labels or targets, cut at the same rows as X; None where X is a list.
        sample_weight : Dask array or series, default=None
            A weight of k counts as k copies of the row.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        client, plain = self.client_, self._unfitted()
        given = blocks_of(X, y, sample_weight)
        before = counters(client)
        with bar(bool(self.verbose)) as shown, running(client, shown) as run:
            fitted = fit_blocks(run, plain, given)
            traffic = Traffic(run.tasks, run.client_bytes, *moved(before, counters(client)))
        self.traffic_, self.fitted_ = traffic, fitted
        return self

    def to_local(self) -> Any:
        """The plain estimator with the same parameters and predictions.

        Returns
        -------
        model : object
            An estimator of the class without `Dask` in its name. It can be saved, and learns on with
            `partial_fit`.
        """
        check_is_fitted(self, "fitted_")
        model = self._unfitted()
        model.fitted_ = self.fitted_
        return model

    def predict(self, X: Any) -> Any:
        """Predicted labels or targets; nothing is computed yet.

        Parameters
        ----------
        X : Dask array, Dask data frame, or list of delayed blocks
            Rows to predict.

        Returns
        -------
        predictions : Dask array, or a list of delayed arrays where X is a list
            As `predict` of the plain estimator.
        """
        return _lazy(self.to_local(), X, "predict")

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of labels that are right, or R² of the targets. Workers compute it.

        Parameters
        ----------
        X : Dask array, Dask data frame, or list of delayed tuples (X, y) or (X, y, weight)
            Rows to predict.
        y : Dask array, series or data frame, default=None
            True labels or targets; None where X is a list.
        sample_weight : Dask array or series, default=None
            Weights of the rows.

        Returns
        -------
        score : float
            As `score` of the plain estimator.
        """
        model, given = self.to_local(), blocks_of(X, y, sample_weight, "score")
        with bar(False) as shown, running(self.client_, shown) as run:
            (held,) = run.start([run.task("model", 0, _itself, model)])
            homes = run.homes(given.rows)
            parts = [
                run.task("score", i, steps.judged, held, block)
                for i, block in enumerate(packed(run, given, homes))
            ]
            (total,) = run.done([run.tree("score", steps.judged_together, parts)], "scoring")
            return steps.verdict(run.result(total))

    @property
    def client_(self) -> Client:
        """The client that is used: `client`, or the one that was made last."""
        return default_client() if self.client is None else self.client

    def _unfitted(self) -> Any:
        """The plain estimator with the same parameters."""
        names = self._plain._get_param_names()
        return self._plain(**{name: getattr(self, name) for name in names})

    def __getattr__(self, name: str) -> Any:
        """Fitted attributes are those of the plain estimator."""
        if name.endswith("_") and not name.startswith("_") and name != "fitted_":
            if "fitted_" not in vars(self):
                raise AttributeError(f"this {type(self).__name__} is not fitted yet")
            return getattr(self.to_local(), name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"client": None}  # a connection cannot be written to a file

    def __sklearn_clone__(self) -> Self:
        parameters = self.get_params(deep=False)
        kept = parameters.pop("client")
        copies = {name: clone(value, safe=False) for name, value in parameters.items()}
        return type(self)(client=kept, **copies)

    def __sklearn_tags__(self) -> Any:
        return self._unfitted().__sklearn_tags__()


def _itself(x: Any) -> Any:
    return x


def _lazy(model: Any, X: Any, method: str) -> Any:
    """The answers of a plain estimator to all blocks of X; the model is one key of the graph."""
    held = delayed(model, pure=True, name=f"pistol-model-{id(model):x}", traverse=False)
    if is_blocks(X):
        ask = delayed(_asked, pure=True)
        return [ask(part, held, method) for part in X]
    if not (isinstance(X, da.Array) or is_dask_frame(X)):
        raise TypeError(
            f"{method} takes a Dask array, a Dask data frame or a list of delayed blocks; got "
            f"{type(X).__name__}. For rows in memory use to_local().{method}"
        )
    like = steps.nothing(model, method)
    if is_dask_frame(X):
        parts = [delayed(steps.answer, pure=True)(part, held, method) for part in X.to_delayed()]
        shape = (np.nan, *like.shape[1:])
        return da.concatenate([da.from_delayed(part, shape, meta=like) for part in parts])
    X = whole_rows(X)
    wide = like.ndim == 2
    return X.map_blocks(
        steps.answer,
        model=held,
        method=method,
        dtype=like.dtype,
        meta=like,
        name=None,
        token=f"pistol-{method}",
        **({"chunks": (X.chunks[0], (like.shape[1],))} if wide else {"drop_axis": 1}),
    )


def _asked(chunk: Any, model: Any, method: str) -> Any:
    return steps.answer(chunk[0] if isinstance(chunk, tuple) else chunk, model, method)


def _has(method: str) -> Callable[[Any], bool]:
    """Whether the plain estimator has a method; its own error tells why not."""

    def check(estimator: Any) -> bool:
        known = "fitted_" in vars(estimator)
        getattr(estimator.to_local() if known else estimator._unfitted(), method)
        return True

    return check


class DaskClassifier:
    """What classifiers for clusters can do."""

    def decision_function(self, X: Any) -> Any:
        """Raw scores; nothing is computed yet.

        Parameters
        ----------
        X : Dask array, Dask data frame, or list of delayed blocks
            Rows to score.

        Returns
        -------
        scores : Dask array, or a list of delayed arrays where X is a list
            As `decision_function` of the plain estimator.
        """
        return _lazy(self.to_local(), X, "decision_function")  # type: ignore[attr-defined]

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes; nothing is computed yet.

        Parameters
        ----------
        X : Dask array, Dask data frame, or list of delayed blocks
            Rows to score.

        Returns
        -------
        probabilities : Dask array, or a list of delayed arrays where X is a list
            As `predict_proba` of the plain estimator.
        """
        return _lazy(self.to_local(), X, "predict_proba")  # type: ignore[attr-defined]


def _like(plain: Any) -> Callable[[Any], Any]:
    """Give a class the parameters of a plain estimator, with the same defaults, and a client."""

    def dress(cls: Any) -> Any:
        given = inspect.signature(plain.__init__)
        own = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None)
        named = [*given.parameters.values(), own]
        defaults = {p.name: p.default for p in named[1:]}

        def keep(self: Any, **parameters: Any) -> None:
            unknown = next((name for name in parameters if name not in defaults), None)
            if unknown is not None:
                raise TypeError(f"{cls.__name__} has no parameter {unknown!r}")
            for name, default in defaults.items():
                setattr(self, name, parameters.get(name, default))

        keep.__signature__ = given.replace(parameters=named)  # type: ignore[attr-defined]
        cls.__init__, cls._plain = keep, plain
        return cls

    return dress


@_like(PistolClassifier)
class DaskPistolClassifier(DaskClassifier, DaskEstimator):
    """:class:`pistol.PistolClassifier` for rows on a Dask cluster.

    Up to 5,000 rows are learned by one worker as the plain estimator does. More are learned in cells:
    a sample chooses scaling, kernels and metric and divides space into groups of cells, the rows of
    each group are brought together, and each group is learned where they are. The result does not
    depend on the number of workers, and a worker that dies costs the time to compute its results again.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The client to use; None takes the one that was made last.
    **parameters
        Those of :class:`pistol.PistolClassifier`, with the same defaults. More than 5,000 rows need
        ``kernel="auto"`` and ``passes="auto"``.

    Attributes
    ----------
    client_ : distributed.Client
        The client that is used.
    traffic_ : Traffic
        What the last `fit` has moved.
    classes_, feature_importances_, …
        Those of the plain estimator.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_breast_cancer
    >>> from pistol.dask import DaskPistolClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200)
    >>> with Client(processes=False, n_workers=1, dashboard_address=None):
    ...     model = DaskPistolClassifier(random_state=0).fit(X, y)
    ...     accuracy = model.score(X, y)
    >>> accuracy > 0.94
    True
    """


@_like(PistolRegressor)
class DaskPistolRegressor(DaskEstimator):
    """:class:`pistol.PistolRegressor` for rows on a Dask cluster.

    It learns as :class:`DaskPistolClassifier` does.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The client to use; None takes the one that was made last.
    **parameters
        Those of :class:`pistol.PistolRegressor`, with the same defaults. More than 5,000 rows need
        ``kernel="auto"`` and ``passes="auto"``.

    Attributes
    ----------
    client_ : distributed.Client
        The client that is used.
    traffic_ : Traffic
        What the last `fit` has moved.
    feature_importances_, …
        Those of the plain estimator.

    Examples
    --------
    >>> from pistol.dask import DaskPistolRegressor
    >>> model = DaskPistolRegressor(random_state=0).fit(X, y)  # doctest: +SKIP
    >>> model.predict(X).compute()  # doctest: +SKIP
    """


@_like(LinearPistolClassifier)
class DaskLinearPistolClassifier(DaskClassifier, DaskEstimator):
    """:class:`pistol.LinearPistolClassifier` for rows on a Dask cluster.

    Up to 30,000 rows are learned by one worker as the plain estimator does. Of more rows, every block
    is learned by itself, and the mean of the models is where the next round starts. Rounds end when
    the loss of held-out rows does not fall any more; a sixteenth of the rows, but not more than
    16,384, are held out.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The client to use; None takes the one that was made last.
    **parameters
        Those of :class:`pistol.LinearPistolClassifier`, with the same defaults. With many rows,
        `passes` is the number of rounds and `orders` is not used.

    Attributes
    ----------
    client_ : distributed.Client
        The client that is used.
    traffic_ : Traffic
        What the last `fit` has moved.
    coef_, intercept_, classes_, …
        Those of the plain estimator.

    Examples
    --------
    >>> from pistol.dask import DaskLinearPistolClassifier
    >>> model = DaskLinearPistolClassifier(random_state=0).fit(X, y)  # doctest: +SKIP
    >>> model.to_local().save("model.pistol")  # doctest: +SKIP
    """


@_like(LinearPistolRegressor)
class DaskLinearPistolRegressor(DaskEstimator):
    """:class:`pistol.LinearPistolRegressor` for rows on a Dask cluster.

    It learns as :class:`DaskLinearPistolClassifier` does.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The client to use; None takes the one that was made last.
    **parameters
        Those of :class:`pistol.LinearPistolRegressor`, with the same defaults. With many rows,
        `passes` is the number of rounds and `orders` is not used.

    Attributes
    ----------
    client_ : distributed.Client
        The client that is used.
    traffic_ : Traffic
        What the last `fit` has moved.
    coef_, intercept_, …
        Those of the plain estimator.

    Examples
    --------
    >>> from pistol.dask import DaskLinearPistolRegressor
    >>> model = DaskLinearPistolRegressor(random_state=0).fit(X, y)  # doctest: +SKIP
    >>> model.predict(X).compute()  # doctest: +SKIP
    """
