"""Rows for the benchmarks: from data sets, or synthetic ones of the same shape."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .. import data
from ..protocol import Array
from .results import Size

STAND_IN = "Synthetic rows in place of the data."


class Split(NamedTuple):
    """Rows to learn from and rows to test on; the note says if they are not the real ones."""

    X: Any
    y: Array
    X_test: Any
    y_test: Array
    note: str = ""


def a9a(size: Size) -> Split:
    """The a9a data, sparse; a toy has random rows with fourteen ones among 123 features."""
    if not size.toy:
        (X, y, _), (X_test, y_test, _) = data.read("a9a", "a9a.t")
        return Split(X[: size.a9a_rows], y[: size.a9a_rows], X_test, y_test)
    rng, n, m = np.random.default_rng(0), size.a9a_rows, size.test_rows
    places = np.sort(rng.random((n + m, 123)).argsort(axis=1)[:, :14], axis=1)
    starts = np.arange(0, places.size + 1, 14)
    X = sp.csr_matrix((np.ones(places.size), places.ravel(), starts), shape=(n + m, 123))
    y = np.where(X @ rng.normal(size=123) + rng.normal(size=n + m) > 0, 1.0, -1.0)
    return Split(X[:n], y[:n], X[n:], y[n:], STAND_IN)


def news20(size: Size) -> Split:
    """The news20 data, sparse and wide; a toy has random rows of fifty features among 20,000."""
    if not size.toy:
        ((X, y, _),) = data.read("news20.binary")
        return Split(X[: size.news20_rows], y[: size.news20_rows], X, y)
    rng, n, d = np.random.default_rng(0), size.news20_rows, 20_000
    X = sp.random(n, d, 50 / d, "csr", random_state=rng)
    y = np.where(X @ rng.normal(size=d) > 0, 1.0, -1.0)
    return Split(X, y, X, y, STAND_IN)


def wisdm(size: Size) -> Split:
    """The wisdm_fft data, dense float32, activities 1, 3, 5 against 2, 4, 6."""
    if size.toy:
        return _split(quadratic(size.wisdm_rows + size.test_rows, 100), size.wisdm_rows, STAND_IN)
    (X, y, _), (X_test, y_test, _) = data.read("wisdm_fft", "wisdm_fft.t", dtype=np.float32)
    drawn = np.random.default_rng(0).permutation(X.shape[0])[: size.wisdm_rows]
    return Split(X[drawn], _odd(y[drawn]), X_test, _odd(y_test))


def _odd(y: Array) -> Array:
    return np.where(y % 2 == 1, 1.0, -1.0)


def _split(rows: tuple[Array, Array], n: int, note: str = "") -> Split:
    X, y = rows
    return Split(X[:n], y[:n], X[n:], y[n:], note)


def quadratic(n: int, d: int, flipped: float = 0.0, seed: int = 0) -> tuple[Array, Array]:
    """Gaussian rows in float32 and the sign of a quadratic function; some labels flipped."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) / 10).astype(np.float32)
    y = np.sign(X[:, 0] + 5 * X[:, 1] * X[:, 2] + 0.05 * rng.normal(size=n))
    if flipped:
        y[rng.random(n) < flipped] *= -1
    return X, np.where(y > 0, 1.0, -1.0)


def quadratic_split(n: int, d: int, size: Size, flipped: float = 0.0) -> Split:
    """`quadratic` rows to learn from and to test on."""
    return _split(quadratic(n + size.test_rows, d, flipped), n)


def blobs(n: int, d: int, classes: int, seed: int = 0) -> tuple[Array, Array]:
    """Overlapping Gaussian clouds in float32, and the number of each row's cloud."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, d))
    y = rng.integers(classes, size=n)
    return (centres[y] + 1.2 * rng.normal(size=(n, d))).astype(np.float32), y


def events(n: int, d: int = 20, seed: int = 0) -> tuple[Array, Array]:
    """Gaussian rows in float64 and the sign of a noisy linear function."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0, 1.0, -1.0)
