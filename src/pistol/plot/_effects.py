"""The effect of one column, or of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._compiled.types import Array
from .._data.intake import read_known
from .._data.tables import Table
from .._estimators.base import settled
from .._estimators.summary import column_names
from .._training.effects import effects, grid_of
from .._training.fitted import Fitted
from .._training.tasks import Classification
from ._axes import PISTOL, axes, short

ONE, TWO = 40, 20  # values of a column of numbers, alone and in a pair
MANY = 24  # letters of all labels of an axis, beyond which they are turned


class EffectDisplay:
    """The effect of one column or of two: the mean prediction if all rows had the same values in them.

    This is partial dependence. It takes tables as they come: a column may hold numbers, words, dates or
    times. Numbers are shown between their quantiles of 1 % and 99 %.

    Parameters
    ----------
    names : list of one or two names
        The columns.
    values : list of one or two lists
        Values of each column.
    average : array of shape (n_values, n_outputs) or (n_values, n_values, n_outputs)
        Mean probabilities of classes, or mean predicted targets.
    outputs : list of str
        What the outputs are: classes, or targets.
    quantity : str
        What is predicted: the label of the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    See Also
    --------
    sklearn.inspection.PartialDependenceDisplay : The same for columns of numbers, with the lines of
        single rows.

    Examples
    --------
    >>> import numpy as np
    >>> from pistol import PistolRegressor
    >>> from pistol.plot import EffectDisplay
    >>> X = np.random.default_rng(0).uniform(-2, 2, (100, 2))
    >>> model = PistolRegressor(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> display = EffectDisplay.from_estimator(model, X, 0)
    >>> display.average.shape
    (40, 1)
    """

    def __init__(
        self,
        names: Sequence[Any],
        values: Sequence[Sequence[Any]],
        average: Any,
        outputs: Sequence[str],
        quantity: str,
    ) -> None:
        self.names, self.values = list(names), [list(each) for each in values]
        self.average, self.outputs = np.asarray(average, np.float64), list(outputs)
        self.quantity = quantity

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        features: Any,
        *,
        target: Any = None,
        rows: int = 100,
        ax: Any = None,
    ) -> EffectDisplay:
        """Compute and draw the effect of one column or of two.

        Parameters
        ----------
        estimator : estimator of this library
            Fitted to dense rows or a table.
        X : table or array-like of shape (n_samples, n_features)
            Rows over which predictions are averaged, and whose values are shown.
        features : str, int, or pair of them
            Name or number of a column, or of two columns.
        target : label, int or None, default=None
            The class, or the number of the target. None: the second of two classes, and the only
            target; all of several, if there is one column.
        rows : int, default=100
            Average over so many rows of X, taken at equal distances.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : EffectDisplay
            As drawn.
        """
        known = settled(estimator)
        table = _table(estimator, known, X)
        pair = isinstance(features, list | tuple)
        picked = [_column(estimator, one) for one in (features if pair else [features])]
        if not 1 <= len(set(picked)) == len(picked) <= 2:
            raise ValueError(f"features must be one column or two different ones; got {features!r}")
        size = ONE if len(picked) == 1 else TWO
        grids = [grid_of(table.columns[i], size) for i in picked]
        for grid in grids:
            if not len(grid.values):
                raise ValueError(f"column {grid.name!r} of X has no values")
        average = effects(known, table, grids, rows)
        outputs, quantity = _outputs(known, average.shape[-1])
        at = _picked_outputs(known, outputs, target, len(picked))
        return cls(
            [grid.name for grid in grids],
            [grid.shown for grid in grids],
            average[..., at],
            [outputs[i] for i in at],
            quantity,
        ).plot(ax)

    def plot(self, ax: Any = None) -> EffectDisplay:
        """Draw it.

        One column: a line per output, and dots for words. Two columns: colours, and for words a line
        per word.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        self : EffectDisplay
            With the attributes above.
        """
        ax = axes() if ax is None else ax
        words = [_words(values) for values in self.values]
        if len(self.names) == 1:
            self._lines(ax, 0, self.average, self.outputs, None)
        elif any(words):
            level = 1 if words[1] else 0
            lines = np.moveaxis(self.average[..., 0], level, 1)
            self._lines(ax, 1 - level, lines, self.values[level], self.names[level])
        else:
            self._surface(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _lines(self, ax: Any, i: int, average: Array, labels: list[Any], title: Any) -> None:
        """One line per label over the values of column i."""
        x, one = self.values[i], len(labels) == 1
        style = "o" if _words(x) and one else "o:" if _words(x) else "-"
        place = range(len(x)) if _words(x) else x
        for j, label in enumerate(labels):
            color = {"color": PISTOL} if one else {}
            ax.plot(place, average[:, j], style, label=short(label), **color)
        if _words(x):
            _name_ticks(ax, x)
        if not one:
            title = None if title is None else short(title)
            ax.legend(frameon=False, title=title, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        if any(isinstance(value, np.datetime64) for value in x):
            _shorten_dates(ax)
        ax.set(xlabel=short(self.names[i]), ylabel=self._predicted())
        ax.spines[["top", "right"]].set_visible(False)
        ax.margins(y=0.1)

    def _predicted(self) -> str:
        one = len(self.outputs) == 1 and self.outputs[0]
        return f"{self.quantity} of {short(one)}" if one else self.quantity

    def _surface(self, ax: Any) -> None:
        """Colours over two columns of numbers."""
        x, y = self.values
        drawn = ax.contourf(x, y, self.average[..., 0].T, levels=12)
        ax.figure.colorbar(drawn, ax=ax, label=self._predicted())
        ax.set(xlabel=short(self.names[0]), ylabel=short(self.names[1]))


def _words(values: list[Any]) -> bool:
    return not all(isinstance(value, int | float | np.number | np.datetime64) for value in values)


def _shorten_dates(ax: Any) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(maxticks=8)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _name_ticks(ax: Any, words: list[Any]) -> None:
    labels = [short(word) for word in words]
    turned = sum(map(len, labels)) > MANY
    more = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    ax.set_xticks(range(len(labels)), labels, **more)
    ax.set_xlim(-0.5, len(labels) - 0.5)


def _table(estimator: Any, known: Fitted, X: Any) -> Table:
    """X as the columns that the estimator knows."""
    if known.columns.encoder is None:
        raise ValueError(
            "effects of columns are there for estimators that were fitted to dense rows or tables"
        )
    table = read_known(X, known.columns, type(estimator).__name__)
    if not table.rows:
        raise ValueError("X has no rows")
    return table


def _column(estimator: Any, feature: Any) -> int:
    """The number of a column, given its name or number."""
    names = column_names(estimator)
    if feature in names:
        return names.index(feature)
    if isinstance(feature, int | np.integer) and 0 <= feature < len(names):
        return int(feature)
    raise ValueError(f"X has no column {feature!r}; it has {', '.join(map(repr, names[:10]))}")


def _outputs(known: Fitted, n: int) -> tuple[list[str], str]:
    """Names of the outputs, and what is predicted."""
    if not isinstance(known.task, Classification):
        return [""] if n == 1 else [str(i) for i in range(n)], "predicted target"
    classes = [str(label) for label in known.task.classes]
    if known.task.loss.link is None:
        return classes[-n:], "decision value"
    return classes, "probability"


def _picked_outputs(known: Fitted, outputs: list[str], target: Any, columns: int) -> list[int]:
    if target is not None:
        labels = list(known.task.classes)[-len(outputs) :] if hasattr(known.task, "classes") else []
        if labels and target in labels:
            return [labels.index(target)]
        if not labels and isinstance(target, int) and 0 <= target < len(outputs):
            return [target]
        raise ValueError(f"target {target!r} is none of {', '.join(outputs)}")
    if isinstance(known.task, Classification) and len(known.task.classes) == 2:
        return [len(outputs) - 1]
    if columns == 2 and len(outputs) > 1:
        raise ValueError(f"say with target which of {', '.join(outputs)} is to be shown")
    return list(range(len(outputs)))
