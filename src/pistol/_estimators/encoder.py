"""The encoder of the estimators as a transformer of its own."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from .._compiled.types import Array
from .._data.encoder import learn_encoder
from .._data.intake import Columns, check_first, check_rows
from .._data.notices import TableWarning
from .._data.statistics import OUTPUTS
from .._data.validation import usable
from .base import table_tags

__all__ = ["TableEncoder", "TableWarning"]


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turns a table with words, gaps and dates into rows of numbers, as the estimators do in `fit`.

    A number stays a number; where it is missing it becomes the median, with a column that says so.
    A category becomes one column per level, with one column for all levels that are rare. Of columns
    with very many levels the most frequent ones get columns, and all of them the mean of the targets
    and the logarithm of how often they occur. A date becomes days, and the time of the year, the day
    of the week and the hour, as far as they vary. Constant columns and identifiers are dropped.

    Parameters
    ----------
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns that hold categories, for tables. "from_dtype": those of categories, enums and
        strings. A list of names or numbers of columns, or a mask: these as well, such as codes that
        are numbers. None: only words are categories; categories that are numbers are numbers.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, where it has any.

    Examples
    --------
    >>> import pandas as pd
    >>> from pistol import TableEncoder
    >>> X = pd.DataFrame({"size": [1.0, None, 3.0], "colour": ["red", "blue", "red"]})
    >>> encoder = TableEncoder().fit(X)
    >>> [str(name) for name in encoder.get_feature_names_out()]
    ['size', 'size missing', 'colour=red']
    >>> encoder.transform(X)
    array([[1., 0., 1.],
           [1., 1., 0.],
           [3., 0., 1.]])
    """

    columns_: Columns

    def __init__(self, *, categorical_features: Any = "from_dtype") -> None:
        self.categorical_features = categorical_features

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what the columns hold.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels or targets, for the means of columns with very many levels.

        Returns
        -------
        self : object
            The fitted encoder.
        """
        self._learned(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn what the columns hold, and encode rows to learn from.

        A mean of targets does not contain the target of the row itself, as it does after `transform`.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels or targets.

        Returns
        -------
        rows : array or CSR array of shape (n_samples, n_columns)
            Rows of numbers.
        """
        return self._learned(X, y)

    def transform(self, X: Any) -> Any:
        """Encode rows to predict.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        rows : array or CSR array of shape (n_samples, n_columns)
            Rows of numbers; sparse where the rows learned from have more than 2^25 entries.
        """
        check_is_fitted(self)
        return check_rows(X, self.columns_, type(self).__name__)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns of numbers.

        Parameters
        ----------
        input_features : None
            Not used: names are those of the table.

        Returns
        -------
        names : array of shape (n_columns,)
            Such as "colour=red".
        """
        check_is_fitted(self)
        encoder = self.columns_.encoder
        names = range(self.columns_.n) if encoder is None else encoder.feature_names
        return np.array([str(name) for name in names], object)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the table."""
        return self._columns.n

    @property
    def feature_names_in_(self) -> Array:
        """Names of the columns, where the table has any."""
        if self._columns.names is None:
            raise AttributeError("X had no feature names")
        return self._columns.names

    @property
    def _columns(self) -> Columns:
        if not hasattr(self, "columns_"):
            raise AttributeError("this TableEncoder is not fitted yet")
        return self.columns_

    def _learned(self, X: Any, y: Any) -> Any:
        intake = check_first(self, X, y)
        columns, rows = intake.columns, intake.X
        if not columns.plain:
            weight = np.broadcast_to(1.0, intake.rows)
            encoder, rows = learn_encoder(intake.X, _targets(intake.y), weight)
            columns, rows = columns._replace(encoder=encoder), usable(rows, encoder.feature_names)
        self.columns_ = columns
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return table_tags(tags)


def _targets(y: Any) -> Array | None:
    """Targets of shape (rows, outputs): numbers as they are, labels as ±1."""
    if y is None:
        return None
    y = np.asarray(y)
    if type_of_target(y) in ("binary", "multiclass"):
        labels = np.unique(y)
        if len(labels) <= OUTPUTS or y.dtype.kind not in "fiu":
            return np.where(y[:, None] == labels[1 if len(labels) == 2 else 0 :], 1.0, -1.0)
    return y.reshape(len(y), -1).astype(np.float64)
