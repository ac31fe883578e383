"""The data of Figure 3: the paper's files where they are at hand, labelled stand-ins where not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import normalize, scale

from ... import data
from ...download import Progress
from ...protocol import Array

PAIRS = 1000
FIXED, LINEAR = "fixed by the paper", "none: the kernel is linear"
MEDIAN = (
    f"1 / the median squared distance of {PAIRS:,} pairs of training rows, to two digits; "
    "on a9a that would be 0.062, where the paper has 0.04"
)


class Panel(NamedTuple):
    """A panel of Figure 3, and the protocol that Appendix C gives for it."""

    files: tuple[str, ...]  # rows to learn from and, unless they are drawn, to test on
    source: str
    positive: tuple[int, ...]  # the labels that are +1; others are -1
    gamma: float | None
    C: tuple[float, ...]
    held_out: int = 0
    most: int | None = None


class Problem(NamedTuple):
    """Rows with labels ±1, and how they are to be learned."""

    name: str  # the panel of Figure 3 that it fills
    source: str  # what was really used
    stand_in: str  # "" if it is the paper's data, else what stands in and why
    X: Any  # CSR with 32-bit indices, or a C-contiguous array
    y: Array
    X_test: Any  # without rows if they are drawn in each shuffle
    y_test: Array
    gamma: float | None  # of the Gaussian kernel; None: the linear kernel
    gamma_rule: str
    C: tuple[float, ...]  # the grid of the SVM
    held_out: int = 0  # rows to draw for testing in each shuffle
    most: int | None = None  # rows to learn from in a shuffle, at most


PANELS = {
    "a9a": Panel(("a9a", "a9a.t"), "a9a", (1,), 0.04, (0.5, 1, 2, 4, 8)),
    "SensIT Vehicle": Panel(
        ("combined", "combined.t"), "SensIT Vehicle (combined)", (3,), 0.125,
        (1, 2, 4, 8, 16, 32, 64), most=58_000,
    ),
    "news20.binary": Panel(
        ("news20.binary",), "news20.binary", (1,), None, (2, 4, 8, 16), held_out=10_000
    ),
}  # fmt: skip
WISDM = ("wisdm_fft", "wisdm_fft.t")
WISDM_NOTE = (
    "wisdm_fft (spectra of wrist accelerometers: walking, stairs and standing against jogging, "
    "sitting and kicking; tested on other persons; windows overlap, so that folds drawn at random "
    "are too easy)"
)
REBUILT_NOTE = (
    "A rebuilt news20.binary stands in for the LIBSVM file: it was made from the raw messages by the "
    "recipe reported for it, and has as many rows, features and labels, but their order is another, "
    "and some values may be."
)
REBUILT = "957b5acabb9a7d8cd4863a417f8b0452b7c0ee8392b5df5e8493e6b3b2dbcd20"


def gather(name: str, progress: Progress | None = None) -> None:
    """Download what a panel of Figure 3 needs and is not at hand, into the cache directory.

    Parameters
    ----------
    name : {"a9a", "SensIT Vehicle", "news20.binary"}
    progress : callable, optional
        Called with the bytes that are there and their total, or None.

    Raises
    ------
    OSError
        If there is no network, or no such file, or no place to put it.
    ChecksumError
        If a file came that is not the one it should be.
    """
    for file in PANELS[name].files:
        data.get(file, progress)


def load(name: str) -> Problem:
    """The data for a panel of Figure 3, or what stands in for them where a file is missing.

    What was loaded is remembered: do not write to it.

    Parameters
    ----------
    name : {"a9a", "SensIT Vehicle", "news20.binary"}

    Returns
    -------
    Problem
        Where there is no test file it has no test rows: `shuffled` draws them.

    Raises
    ------
    ChecksumError, DataError
        If a file is there, but is not the one it should be.
    """
    return _load(name, tuple(map(data.find, PANELS[name].files)), tuple(map(data.find, WISDM)))


def shuffled(problem: Problem, shuffle: int) -> Problem:
    """The rows in the order of this shuffle; test rows are drawn anew where there is no test file."""
    X, y, drawn = problem.X, problem.y, problem.held_out
    order = np.random.default_rng(shuffle).permutation(len(y))
    test, train = order[:drawn], order[drawn:][: problem.most]
    if drawn:
        problem = problem._replace(X_test=X[test], y_test=y[test], held_out=0)
    return problem._replace(X=X[train], y=y[train])


def median_gamma(X: Any) -> float:
    """1 / the median squared distance of 1,000 random pairs of rows, to two digits.

    On a9a this is 0.062, where the paper has 0.04.
    """
    rng, n = np.random.default_rng(0), X.shape[0]
    i = rng.integers(n, size=PAIRS)
    j = (i + rng.integers(1, n, size=PAIRS)) % n  # another row than i
    gaps = X[i] - X[j]
    squares = gaps.multiply(gaps) if sp.issparse(gaps) else gaps * gaps
    return float(f"{1 / np.median(np.asarray(squares.sum(axis=1))):.2g}")


@lru_cache(maxsize=len(PANELS))
def _load(name: str, paths: tuple[Path | None, ...], wisdm: tuple[Path | None, ...]) -> Problem:
    """What `load` does, once for the files it has found."""
    panel = PANELS[name]
    if all(paths):
        return _problem(name, panel)
    missing = panel.files[paths.index(None)]
    why = f"the file {missing} is neither in PISTOL_DATA nor in the cache directory"
    return _stand_in(name, panel, all(wisdm), why)


def _problem(name: str, panel: Panel) -> Problem:
    """What the files hold, in the paper's setting."""
    train, *tests = data.read(*panel.files, dtype=np.float32)
    test = tests[0] if tests else data.Rows(train.X[:0], train.y[:0], "")
    rebuilt = train.text == REBUILT
    return Problem(
        name, f"{panel.source} (rebuilt)" if rebuilt else panel.source, rebuilt * REBUILT_NOTE,
        train.X, _signs(train.y, panel.positive), test.X, _signs(test.y, panel.positive),
        panel.gamma, FIXED if panel.gamma else LINEAR, panel.C, panel.held_out, panel.most,
    )  # fmt: skip


def _stand_in(name: str, panel: Panel, wisdm: bool, why: str) -> Problem:
    """The next best: wisdm_fft for SensIT Vehicle if it is at hand, else data of scikit-learn."""
    if name == "SensIT Vehicle" and wisdm:
        panel = panel._replace(files=WISDM, source="wisdm_fft", positive=(1, 3, 5))
        problem, what = _problem(name, panel), WISDM_NOTE
    else:
        what, X, y = _toy(name)
        problem = Problem(
            name, what, "", X, y, X[:0], y[:0], None, LINEAR, panel.C, held_out=len(y) // 3
        )
    if panel.gamma:
        problem = problem._replace(gamma=median_gamma(problem.X), gamma_rule=MEDIAN)
    return problem._replace(stand_in=f"{what} stands in for {name}: {why}.")


def _signs(y: Array, positive: Sequence[int]) -> Array:
    return np.where(np.isin(y, positive), 1.0, -1.0)


def _toy(name: str) -> tuple[str, Any, Array]:
    """Data of scikit-learn, in a fit scale: columns of variance 1, pixels up to 1, rows of length 1."""
    if name == "a9a":
        X, y = load_breast_cancer(return_X_y=True)
        return "scikit-learn breast cancer", scale(X), _signs(y, (1,))
    X, y = load_digits(return_X_y=True)
    if name == "SensIT Vehicle":
        return "scikit-learn digits (odd or even)", X / 16, _signs(y % 2, (1,))
    return "scikit-learn digits (0–4 or 5–9)", sp.csr_matrix(normalize(X)), _signs(y, range(5))
