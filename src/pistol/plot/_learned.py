"""What a fitted model depends on, how it learned, and why it predicts what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._compiled.types import Array
from .._data.intake import read_known
from .._estimators.base import settled
from .._estimators.summary import column_names
from .._training.fitted import POINTS
from .._training.importance import spread_of_importances
from .._training.tasks import Classification
from ._axes import AGAINST, PISTOL, THEORY, axes, bars, bars_axes, short

MOST = 15  # bars
DOTS: Any = {"color": "black", "markersize": 5, "markeredgecolor": "white"}
ENOUGH = 30.0  # rounds of a point of a learning curve


class ImportancesDisplay:
    """How much a model depends on each column, with the spread over several models.

    Parameters
    ----------
    importances : array of shape (n_models, n_columns)
        What each model says; bars show the mean, dots the models.
    names : list of n_columns names
        The columns.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pistol import LinearPistolClassifier
    >>> from pistol.plot import ImportancesDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = LinearPistolClassifier(random_state=0).fit(X, y)
    >>> ImportancesDisplay.from_estimator(model).importances.shape
    (3, 4)
    """

    def __init__(self, importances: Any, names: Sequence[Any]) -> None:
        self.importances = np.atleast_2d(np.asarray(importances, np.float64))
        self.names = list(names)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, most: int = MOST, ax: Any = None
    ) -> ImportancesDisplay:
        """Draw the importances of a fitted estimator.

        Its dots are the models whose mean predicts, one for each shuffled order of the same rows, so
        they show how much depends on the order. For the spread over other rows see `from_estimators`.

        Parameters
        ----------
        estimator : estimator of this library
            Fitted.
        most : int, default=15
            The largest number of columns to draw.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ImportancesDisplay
            As drawn.
        """
        found = spread_of_importances(settled(estimator))
        return cls(found, column_names(estimator)).plot(ax, most=most)

    @classmethod
    def from_estimators(
        cls, estimators: Sequence[Any], *, most: int = MOST, ax: Any = None
    ) -> ImportancesDisplay:
        """Draw the importances of several estimators, fitted to different rows of one table.

        Parameters
        ----------
        estimators : list of estimators of this library
            Such as ``cross_validate(model, X, y, return_estimator=True)["estimator"]``.
        most : int, default=15
            The largest number of columns to draw.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ImportancesDisplay
            As drawn.
        """
        found = np.array([estimator.feature_importances_ for estimator in estimators])
        return cls(found, column_names(estimators[0])).plot(ax, most=most)

    def plot(self, ax: Any = None, *, most: int = MOST) -> ImportancesDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        most : int, default=15
            The largest number of columns to draw.

        Returns
        -------
        self : ImportancesDisplay
            With the attributes above.
        """
        mean = self.importances.mean(axis=0)
        order = np.argsort(-mean, kind="stable")[:most]
        ax = bars_axes(len(order)) if ax is None else ax
        bars(ax, [short(self.names[i]) for i in order], mean[order])
        if len(self.importances) > 1:
            for own in self.importances:
                ax.plot(own[order], range(len(order)), "o", **DOTS)
        ax.set(xlabel="share of the squared derivatives", xlim=(0.0, None))
        self.ax_, self.figure_ = ax, ax.figure
        return self


class KernelSharesDisplay:
    """What each kernel of a sum contributes to the model.

    Parameters
    ----------
    shares : dict of str to float
        As `kernel_weights_`: shares that sum to 1.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    Examples
    --------
    >>> from pistol.plot import KernelSharesDisplay
    >>> display = KernelSharesDisplay({"linear": 0.75, "rbf(gamma=0.1)": 0.25}).plot()
    """

    def __init__(self, shares: Mapping[str, float]) -> None:
        self.shares = dict(shares)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> KernelSharesDisplay:
        """Draw the shares of the kernels of a fitted kernel machine.

        Parameters
        ----------
        estimator : kernel machine of this library
            Fitted.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : KernelSharesDisplay
            As drawn.
        """
        return cls(estimator.kernel_weights_).plot(ax)

    def plot(self, ax: Any = None) -> KernelSharesDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        self : KernelSharesDisplay
            With the attributes above.
        """
        ax = bars_axes(len(self.shares)) if ax is None else ax
        bars(ax, [short(name) for name in self.shares], list(self.shares.values()))
        ax.set(xlabel="share of the model", xlim=(0.0, None))
        self.ax_, self.figure_ = ax, ax.figure
        return self


class LearningCurveDisplay:
    """The error as more rows are learned: that of each row before it was learned, in the first pass.

    It costs nothing, because the predictions were made while the model learned. The model that predicts
    in the end averages what was learned, often from several passes, and has smaller errors: where `fit`
    had held-out rows, a line shows its error on them.

    Parameters
    ----------
    rows : array of shape (n,)
        Rows that were learned before.
    error : array of shape (n,)
        The mean error of the rows that followed.
    held_out : float or None, default=None
        The error on held-out rows.
    quantity : str, default="error"
        What the error is.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pistol import LinearPistolClassifier
    >>> from pistol.plot import LearningCurveDisplay
    >>> model = LinearPistolClassifier(random_state=0).fit(*load_iris(return_X_y=True))
    >>> display = LearningCurveDisplay.from_estimator(model)
    >>> bool(display.error[-1] < display.error[0])
    True
    """

    def __init__(
        self, rows: Any, error: Any, held_out: float | None = None, quantity: str = "error"
    ) -> None:
        self.rows, self.error = np.asarray(rows, np.float64), np.asarray(error, np.float64)
        self.held_out, self.quantity = held_out, quantity

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> LearningCurveDisplay:
        """Draw the learning curve of a fitted estimator.

        Parameters
        ----------
        estimator : estimator of this library
            Fitted, by `fit` or by `partial_fit`.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : LearningCurveDisplay
            As drawn.
        """
        known = settled(estimator)
        share = isinstance(known.task, Classification)
        quantity = "share of wrong labels" if share else "mean absolute error"
        rows, error = _joined(known.online.curve)
        return cls(rows, error, known.held_out_error, quantity).plot(ax)

    def plot(self, ax: Any = None) -> LearningCurveDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        self : LearningCurveDisplay
            With the attributes above.
        """
        ax = axes() if ax is None else ax
        ax.plot(self.rows, self.error, "o-", color=PISTOL, label="before each row was learned")
        if self.held_out is not None:
            label = "the whole model, on held-out rows"
            ax.axhline(self.held_out, linestyle="--", color=THEORY, label=label)
        ax.set_xscale("log")
        ax.set_ylim(bottom=0.0)
        ax.set(xlabel="rows learned", ylabel=self.quantity)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _joined(curve: Array) -> tuple[Array, Array]:
    """Points of a learning curve, each of enough rounds."""
    rows, errors = [], []
    rounds = error = start = 0.0
    for i, (more, wrong) in enumerate(curve):
        rounds, error, end = rounds + more, error + wrong, 2.0 ** ((i + 1) / POINTS) - 1.0
        if rounds >= ENOUGH or (i == len(curve) - 1 and rounds > 0):
            rows.append(np.sqrt((start + 1.0) * (end + 1.0)))
            errors.append(error / rounds)
            rounds, error, start = 0.0, 0.0, end
    return np.array(rows), np.array(errors)


class ContributionsDisplay:
    """What each column contributes to one prediction.

    Parameters
    ----------
    contributions : array of shape (n_columns,)
        What each column adds.
    names : list of n_columns str
        The columns, with their values.
    baseline : float
        The prediction for the reference, to which the contributions are added.
    quantity : str, default="prediction"
        What is predicted.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pistol import LinearPistolClassifier
    >>> from pistol.plot import ContributionsDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = LinearPistolClassifier(random_state=0).fit(X, y)
    >>> display = ContributionsDisplay.from_estimator(model, X[:1])
    """

    def __init__(
        self,
        contributions: Any,
        names: Sequence[str],
        baseline: float,
        quantity: str = "prediction",
    ) -> None:
        self.contributions, self.names = np.asarray(contributions, np.float64), list(names)
        self.baseline, self.quantity = float(baseline), quantity

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, reference: Any = None, most: int = MOST, ax: Any = None
    ) -> ContributionsDisplay:
        """Explain the prediction for one row; of several classes, the score of the predicted one.

        Parameters
        ----------
        estimator : estimator of this library
            Fitted to dense rows or a table.
        X : table or array-like of shape (1, n_features)
            The row.
        reference : table or array-like of shape (n, n_features), default=None
            Rows whose mean the contributions are counted from, as in `explain`.
        most : int, default=15
            The largest number of columns to draw.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ContributionsDisplay
            As drawn.
        """
        known = settled(estimator)
        if known.columns.encoder is None:
            raise ValueError(
                "contributions are drawn for estimators fitted to dense rows or tables"
            )
        table = read_known(X, known.columns, type(estimator).__name__)
        if table.rows != 1:
            raise ValueError(f"X must have one row; it has {table.rows}")
        found, baseline = estimator.explain(X, reference)
        quantity, output = _explained(estimator, X)
        if found.ndim == 3:
            found, baseline = found[:, output], baseline[output]
        names = [f"{column.name} = {_value(column)}" for column in table.columns]
        return cls(found[0], names, baseline, quantity).plot(ax, most=most)

    def plot(self, ax: Any = None, *, most: int = MOST) -> ContributionsDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        most : int, default=15
            The largest number of columns to draw.

        Returns
        -------
        self : ContributionsDisplay
            With the attributes above.
        """
        order = np.argsort(-np.abs(self.contributions), kind="stable")[:most]
        ax = bars_axes(len(order)) if ax is None else ax
        values = self.contributions[order]
        colors = [PISTOL if value >= 0 else AGAINST for value in values]
        bars(ax, [short(self.names[i]) for i in order], values, colors)
        ax.axvline(0.0, color=THEORY, linewidth=0.8)
        total = self.baseline + float(self.contributions.sum())
        ax.set(
            xlabel=f"contribution to the {self.quantity}",
            title=f"{total:.4g} = {self.baseline:.4g} of the reference + contributions",
        )
        ax.title.set_size("medium")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _explained(estimator: Any, X: Any) -> tuple[str, int]:
    """What is explained: its name, and the number of the output."""
    task = settled(estimator).task
    if not isinstance(task, Classification):
        return ("logarithm of the mean" if task.loss.targets == "log" else "predicted target"), 0
    if len(task.classes) == 2:
        return f"score of {short(task.classes[1])}", 0
    label = estimator.predict(X)[0]
    return f"score of {short(label)}", list(task.classes).index(label)


def _value(column: Any) -> str:
    """The only value of a column, in a few letters."""
    if column.missing[0]:
        return "missing"
    if column.levels:
        return str(column.levels[int(column.values[0])])
    if column.kind == "dates":
        return str((1e3 * column.values[0]).astype("datetime64[ms]").astype("datetime64[D]"))
    return f"{column.values[0]:.4g}"
