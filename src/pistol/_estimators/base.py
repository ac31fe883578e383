"""The one shell: from scikit-learn's calls to training and back."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._compiled.types import Array, read_only
from .._data.duplicates import Remembered, remember, row_keys, some_rows
from .._data.encoder import learn_encoder
from .._data.intake import Columns, Intake, check_first, check_more, check_rows
from .._data.notices import notices, notices_of_numbers, say
from .._data.ordering import as_given, check_size, round_size
from .._data.tables import Table
from .._data.validation import check_count, check_weight, usable
from .._learners import Finished
from .._training.answers import decide
from .._training.batch import train
from .._training.explain import Explanation, explained
from .._training.families import Data, Family
from .._training.fitted import Fitted, calibrated, marked, roll_back
from .._training.stream import begin_stream, learn_stream, widened
from .._training.watch import Watch
from .._training.work import Problem, Setup
from ..losses import Loss
from .files import packed, unpacked, write_model
from .recipes import Recipe
from .summary import Learned

# Parameters that partial_fit does not look at: they may change in mid-stream.
FREE = {"passes", "orders", "random_state", "n_jobs", "verbose"}


class Estimator(CallbackSupportMixin, BaseEstimator):
    """An estimator that learns in rounds. Each class says what that means by a function `_recipe`."""

    _recipe: Callable[[Any], Recipe]  # from the parameters
    fitted_: Fitted

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from all rows, forgetting what was learned before.

        A call that fails or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : table, array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of k counts as k copies of the row, a weight of 0 as none. Weights are counts:
            scale them to a mean of 1, or little is learned. Large weights cost no more time than
            small ones: up to 4,096 copies, or 8 per row if that is more, are learned one by one;
            beyond that several copies are learned at once.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        watch, begun = Watch(self, X, y), begin(self, X, y, sample_weight)
        data = begun.data
        fitted = train(data, begun.problem, begun.setup, watch)
        new = calibrated(fitted, data.X, data.weight)
        self.fitted_ = replace(new, remembered=begun.remembered)
        return self

    def explain(self, X: Any, reference: Any = None) -> Explanation:
        """What each column contributes to the prediction for each row.

        The contributions of a row and the baseline, which is the prediction for a reference, add up
        to the decision value of a classifier and to the predicted target of a regressor. (With
        ``loss="poisson"`` they add up to its logarithm, and of several quantiles each is explained
        before they are sorted.) A linear model's contributions are its weights times the distance to
        the reference. Those of a kernel machine are integrated gradients: the gradient with respect
        to a feature, integrated along the straight line from the reference to the row in scaled
        features. The columns that a category or a date is encoded as are added up.

        Parameters
        ----------
        X : table, array-like or sparse matrix of shape (n_samples, n_features)
            Rows to explain.
        reference : table, array-like or sparse matrix of shape (n, n_features), default=None
            Rows whose mean is the reference, such as those of one class. None: the centre of the
            training rows, which is the mean of a feature, or its usual value if it has one; zero
            where rows are not scaled.

        Returns
        -------
        explanation : Explanation
            The named tuple (contributions, baseline).

        See Also
        --------
        pistol.plot.ContributionsDisplay : A picture of it.
        """
        check_is_fitted(self, "fitted_")
        known = settled(self)
        rows = rows_for(self, X, known)
        start = None if reference is None else rows_for(self, reference, known)
        return explained(known, rows, start)

    def save(self, path: str | os.PathLike[str], predict_only: bool = False) -> None:
        """Write the fitted estimator to a file, which :func:`pistol.load` reads.

        The file is in the safetensors format and holds arrays, numbers and words, no code. A crash
        while it is written leaves an older file of that name as it was.

        Parameters
        ----------
        path : path-like
            Where to write it.
        predict_only : bool, default=False
            Keep only what predictions need, in float32 where that changes no more than rounding does.
            The file is small; what is loaded from it does not learn on with `partial_fit`.
        """
        check_is_fitted(self, "fitted_")
        write_model(Path(path), self, self.fitted_, predict_only)

    def _get_fitted_attr_html(self, doc_link: str = "") -> Learned:
        """What scikit-learn's diagram shows of a fitted estimator."""
        return Learned(self)

    def __getstate__(self) -> dict[str, Any]:
        """What was learned as in a model file, with the versions, if no function is in the way."""
        state = dict(vars(self))
        if "fitted_" in state:
            with suppress(ValueError):
                state["fitted_"] = packed(self.fitted_)
        return state

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy without the way through words and arrays."""
        new = memo[id(self)] = type(self).__new__(type(self))
        new.__dict__.update(copy.deepcopy(vars(self), memo))
        return new

    def __setstate__(self, state: dict[str, Any]) -> None:
        known = state.get("fitted_")
        if isinstance(known, dict):
            state = state | {"fitted_": unpacked(type(self), known)}
        self.__dict__.update(state)

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return fitted(self).columns.n

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features, where X had any."""
        names = fitted(self).columns.names
        if names is None:
            raise AttributeError("X had no feature names")
        return names

    @property
    def passes_(self) -> int:
        """How many times the rows were learned."""
        return fitted(self).passes

    @property
    def t_(self) -> float:
        """Rounds learned by each shuffled order: the sum of the sample weights, for every pass."""
        return max(learner.t for learner in fitted(self).learners)

    @property
    def held_out_error_(self) -> float:
        """Mean error on held-out rows, where `fit` had any; the same rows chose kernels and passes."""
        error = fitted(self).held_out_error
        if error is None:
            raise AttributeError("there were no held-out rows; see online_error_")
        return error

    @property
    def online_loss_(self) -> float:
        """Mean loss on each row before it was learned: an honest estimate that costs nothing."""
        return fitted(self).online.mean_loss

    @property
    def online_error_(self) -> float:
        """Mean error on each row before it was learned (absolute error in regression)."""
        return fitted(self).online.mean_error


class Begun(NamedTuple):
    """A fit before anything is learned."""

    data: Data
    problem: Problem
    setup: Setup
    remembered: Remembered | None  # what tells these rows again


def begin(estimator: Any, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Begun:
    """Check parameters, rows and targets of a fit."""
    settings = settings_of(estimator)
    recipe = estimator._recipe(SimpleNamespace(**settings))
    check_count("passes", estimator.passes, auto=True)
    check_count("orders", estimator.orders, auto=True, none="the rows as they come")
    intake = check_first(estimator, X, _given(estimator, y))
    task, stream = recipe.task(intake.y, classes), estimator.orders is None
    ready = _prepared(estimator, recipe.family, task, intake, sample_weight, None, True, stream)
    setup = Setup(
        estimator.passes,
        estimator.orders,
        lambda: check_random_state(settings["random_state"]),
        ready.columns,
        ready.n_rows,
        settings,
    )
    problem = Problem(task, ready.family, recipe.rule, recipe.drift)
    return Begun(ready.data, problem, setup, ready.remembered)


def learn_more(estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> Any:
    """`partial_fit` of classifiers and regressors: one call at a time."""
    known: Fitted | None = getattr(estimator, "fitted_", None)
    with nullcontext() if known is None else known.writing:
        _learn_chunk(estimator, X, y, classes, sample_weight)
    return estimator


def _learn_chunk(estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
    settings, watch = settings_of(estimator), Watch(estimator, X, y)
    recipe = estimator._recipe(SimpleNamespace(**settings))
    known: Fitted | None = getattr(estimator, "fitted_", None)
    if known is None:
        intake = check_first(estimator, X, _given(estimator, y))
        task, family = recipe.task(intake.y, classes), recipe.family
    else:
        _check_settings(settings, known.settings)
        if isinstance(known.learners[0], Finished):
            raise ValueError(
                "this model was saved with predict_only=True and cannot learn on; save it without, or "
                "call fit to begin anew"
            )
        intake = check_more(X, _given(estimator, y), known.columns, name_of(estimator))
        task, family = known.task, known.family
    ready = _prepared(estimator, family, task, intake, sample_weight, known, False, True)
    data = ready.data
    problem = Problem(task, ready.family, recipe.rule, recipe.drift)
    if known is None:
        size = round_size(data.weight)
        known = begin_stream(data, problem, None, size, ready.columns, settings)
    known = replace(known, columns=ready.columns)
    check_size(data.weight, known.counts.size)
    known = widened(known, data.X)
    rounds = as_given(data.weight, known.counts.size)
    marks = marked(known, data.X)
    try:
        watch.begin(1)
        new = learn_stream(known, data, rounds, problem, 1, ready.n_rows, watch)
        estimator.fitted_ = watch.end(new)  # nothing may follow: it could be interrupted
    except BaseException:
        roll_back(marks)
        getattr(estimator, "fitted_", known).forget_model()  # a callback may have had it made
        raise


def fitted(estimator: Any) -> Fitted:
    """What an estimator has learned; an error that `hasattr` understands if nothing."""
    if not hasattr(estimator, "fitted_"):
        raise AttributeError(f"this {type(estimator).__name__} is not fitted yet")
    return estimator.fitted_


def settled(estimator: Any) -> Fitted:
    """What an estimator has learned, with its model made, after which it does not change.

    Learners of a stream learn on in place: their model is made between two calls of `partial_fit`.
    """
    known = fitted(estimator)
    if not known.made:
        with known.writing:
            known = fitted(estimator)  # what a call that was under way ended with
            known.model()
    return known


def scores(estimator: Any, X: Any) -> tuple[Fitted, Array]:
    """What an estimator has learned, and its scores of shape (rows, outputs)."""
    check_is_fitted(estimator, "fitted_")
    known = settled(estimator)
    return known, decide(known, X, name_of(estimator), getattr(estimator, "n_jobs", None))


def rows_for(estimator: Any, X: Any, known: Fitted) -> Any:
    """Rows to predict as the rows of numbers that the model takes."""
    return check_rows(X, known.columns, name_of(estimator), getattr(estimator, "n_jobs", None))


def name_of(estimator: Any) -> str:
    """Its class, for messages."""
    return type(estimator).__name__


def _given(estimator: Any, y: Any) -> Any:
    if y is None:
        raise ValueError(f"{name_of(estimator)} requires y to be passed, but the target y is None")
    return y


def table_tags(tags: Any, categorical: bool = True) -> Any:
    """Tags of an estimator whose X may be a table with words and gaps."""
    tags.input_tags.allow_nan = tags.input_tags.string = True
    tags.input_tags.categorical = categorical
    return tags


class _Ready(NamedTuple):
    """Rows with encoded targets and weights, and what is known about the columns they come from."""

    data: Data
    family: Family
    columns: Columns
    n_rows: int  # rows given, those of weight zero included
    remembered: Remembered | None  # what tells these rows again, if they are all


def _prepared(
    estimator: Any,
    family: Family,
    task: Any,
    intake: Intake,
    sample_weight: Any,
    known: Fitted | None,
    whole: bool,
    stream: bool,
) -> _Ready:
    """Checked rows with encoded targets and weights; rows of weight zero are dropped."""
    X, y, columns = intake
    n_rows, n = intake.rows, 0 if known is None else known.counts.rows
    if columns.plain:
        family.check(X, None if whole else slice(n, n + n_rows))
    weight = check_weight(sample_weight, y, zero=n > 0)
    Y = task.encode(y)
    if getattr(estimator, "class_weight", None) is not None:
        weight = task.row_weight(estimator.class_weight, y, weight)
        if whole and not weight.any():
            raise ValueError("class_weight times sample_weight is zero for all rows")
    ids = np.arange(n, n + n_rows)
    if not weight.all():
        keep = np.flatnonzero(weight)
        X = X.among(keep) if isinstance(X, Table) else X[keep]
        Y, weight, ids = Y[keep], weight[keep], ids[keep]
    table = X
    if columns.plain and known is None:
        rows = None if columns.encoder is None else X  # sparse rows and Gram matrices
        found = notices_of_numbers(rows, Y, columns.names, getattr(task, "classes", None))
        columns = columns._replace(notices=say(found))
    elif not columns.plain:
        columns, X = _encoded(columns, X, Y, weight, task, stream, family.n_jobs)
        assert columns.encoder is not None
        family = family.laid_out(columns.encoder.layout) if known is None else family
    remembered = _remembered(table, columns, family.n_jobs) if whole else None
    return _Ready(Data(X, read_only(Y), weight, ids), family, columns, n_rows, remembered)


def _remembered(X: Any, columns: Columns, n_jobs: int | None) -> Remembered | None:
    """What tells rows that are learned again, as they are when they are predicted."""
    n = X.rows if isinstance(X, Table) else X.shape[0]
    at = some_rows(n)
    if isinstance(X, Table):
        assert columns.encoder is not None
        return remember(row_keys(columns.encoder.encode(X.among(at), n_jobs)), n)
    return remember(row_keys(X, at, n_jobs), n)


def _encoded(
    columns: Columns,
    table: Table,
    Y: Array,
    weight: Array,
    task: Any,
    stream: bool,
    n_jobs: int | None,
) -> tuple[Columns, Any]:
    """What is known of the columns after these rows, and the rows as numbers."""
    if columns.encoder is None:
        encoder, X = learn_encoder(table, Y, weight, stream, n_jobs)
        said = say(notices(table, Y, getattr(task, "classes", None)))
        columns = columns._replace(notices=said)
    else:
        encoder, X = columns.encoder.then(table, Y, weight, n_jobs)
    return columns._replace(encoder=encoder), usable(X, encoder.feature_names)


def settings_of(estimator: Any) -> dict[str, Any]:
    """The parameters as they are now, whatever happens to them later."""
    given = {name: getattr(estimator, name) for name in _names(type(estimator))}  # type: ignore[arg-type]
    return {name: dict(x) if isinstance(x, dict) else x for name, x in given.items()}


@lru_cache(maxsize=64)
def _names(cls: Any) -> list[str]:
    """The parameters of an estimator's class, which take a while to look up."""
    return cls._get_param_names()


def _check_settings(settings: dict[str, Any], before: dict[str, Any]) -> None:
    """Refuse parameters that were changed since the first call."""
    for name, value in settings.items():
        if name not in FREE and not _same(value, before[name]):
            raise ValueError(
                f"{name} was {before[name]!r} when training began and is {value!r} now; a stream goes "
                f"on with the parameters it began with. Set {name} back, or call fit to begin anew"
            )


def _same(value: Any, before: Any) -> bool:
    """Whether a parameter is what it was; losses are alike if all their parts are."""
    if isinstance(value, Loss) and isinstance(before, Loss):
        return vars(value) == vars(before)
    if isinstance(value, np.ndarray) or isinstance(before, np.ndarray):
        return np.array_equal(value, before)
    return bool(value is before or value == before)
