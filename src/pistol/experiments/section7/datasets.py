"""The data of Figure 3: the paper's files where they are at hand, labelled stand-ins where not.

A file is looked for in the folder that PISTOL_DATA names and in the cache directory, to which `gather`
downloads it from the LIBSVM site. Its rows, features and labels are counted and compared with what
is published, whatever way it came. We know the sha256 sums of a9a and a9a.t only: another download
is trusted if the counts agree, and its sum, written beside it, tells later whether it has changed.
Parsed rows are kept in the cache directory too.
"""

from __future__ import annotations

import bz2
import lzma
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import Memory
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file
from sklearn.preprocessing import normalize, scale

from ..._compiled.types import Array
from .download import ChecksumError, Progress, cache_folder, check, fetch

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
UNPACK: dict[str, Any] = {".xz": lzma.decompress, ".bz2": bz2.decompress, "": bytes}
PAIRS = 1000
FIXED, LINEAR = "fixed by the paper", "none: the kernel is linear"
MEDIAN = (
    f"1 / the median squared distance of {PAIRS:,} pairs of training rows, to two digits; "
    "on a9a that would be 0.062, where the paper has 0.04"
)


class DataError(ValueError):
    """A file is not what its name says."""


class File(NamedTuple):
    """A file of LIBSVM text, and what is known of it."""

    url: str  # below SITE; "" if it is not there
    rows: int
    features: int  # the highest that occurs
    labels: Mapping[int, int | None]  # how many rows have which; None where that is not published
    dense: bool = False  # kept as a float32 array
    sha256: str | None = None  # of the text


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


class _Rows(NamedTuple):
    """What a file holds."""

    X: Any
    y: Array
    text: str  # its sha256 sum


FILES = {
    "a9a": File(
        "binary/a9a", 32561, 123, {1: 7841, -1: 24720},
        sha256="f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
    ),
    "a9a.t": File(
        "binary/a9a.t", 16281, 122, {1: 3846, -1: 12435},
        sha256="1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
    ),
    "news20.binary": File("binary/news20.binary.bz2", 19996, 1355191, {1: 9999, -1: 9997}),
    "combined": File(
        "multiclass/vehicle/combined.bz2", 78823, 100, dict.fromkeys((1, 2, 3)), dense=True
    ),
    "combined.t": File(
        "multiclass/vehicle/combined.t.bz2", 19705, 100, dict.fromkeys((1, 2, 3)), dense=True
    ),
    "wisdm_fft": File(
        "", 73292, 100, {1: 12313, 2: 12020, 3: 12020, 4: 12313, 5: 12313, 6: 12313}, dense=True
    ),
    "wisdm_fft.t": File("", 17580, 100, dict.fromkeys(range(1, 7), 2930), dense=True),
}  # fmt: skip
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
        if not _find(file):
            url = FILES[file].url  # we know sums of files that are not packed there
            target = cache_folder() / Path(url).name
            fetch(f"{SITE}/{url}", target, FILES[file].sha256, progress)


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
    return _load(name, tuple(map(_find, PANELS[name].files)), tuple(map(_find, WISDM)))


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
    there = [path for path in paths if path]
    if len(there) == len(panel.files):
        return _problem(name, panel, there)
    missing = panel.files[paths.index(None)]
    why = f"the file {missing} is neither in PISTOL_DATA nor in the cache directory"
    return _stand_in(name, panel, [path for path in wisdm if path], why)


def _find(name: str) -> Path | None:
    """A file of this name, packed or not, in PISTOL_DATA or in the cache."""
    folders = os.environ.get("PISTOL_DATA"), cache_folder()
    paths = (Path(folder, name + ending) for folder in folders if folder for ending in UNPACK)
    return next(filter(Path.is_file, paths), None)


def _problem(name: str, panel: Panel, paths: Sequence[Path]) -> Problem:
    """What the files hold, in the paper's setting."""
    train, *tests = [_read(path, file) for path, file in zip(paths, panel.files, strict=True)]
    test = tests[0] if tests else _Rows(train.X[:0], train.y[:0], "")
    if sp.issparse(test.X):
        test.X.resize(test.X.shape[0], train.X.shape[1])  # not all features occur in a9a.t
    rebuilt = train.text == REBUILT
    return Problem(
        name, f"{panel.source} (rebuilt)" if rebuilt else panel.source, rebuilt * REBUILT_NOTE,
        train.X, _signs(train.y, panel.positive), test.X, _signs(test.y, panel.positive),
        panel.gamma, FIXED if panel.gamma else LINEAR, panel.C, panel.held_out, panel.most,
    )  # fmt: skip


def _stand_in(name: str, panel: Panel, paths: Sequence[Path], why: str) -> Problem:
    """The next best: wisdm_fft for SensIT Vehicle if it is at hand, else data of scikit-learn."""
    if name == "SensIT Vehicle" and len(paths) == len(WISDM):
        panel = panel._replace(files=WISDM, source="wisdm_fft", positive=(1, 3, 5))
        problem, what = _problem(name, panel, paths), WISDM_NOTE
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


def _read(path: Path, name: str) -> _Rows:
    """The rows of a file; parsed and checked once, then kept in the cache under the file's sum."""
    try:
        memory = Memory(cache_folder() / "parsed", verbose=0)
    except OSError:  # nowhere to keep them
        memory = Memory(None)
    return memory.cache(_parsed, ignore=["path"])(path, FILES[name], check(path))


def _parsed(path: Path, known: File, _sum: str) -> _Rows:
    """The rows of a file of LIBSVM text, if they are as many as they should be."""
    try:
        text = UNPACK.get(path.suffix, bytes)(path.read_bytes())
        X, y = load_svmlight_file(BytesIO(text))
    except (lzma.LZMAError, OSError, EOFError, ValueError) as problem:
        raise DataError(f"{path} is not LIBSVM text, delete it: {problem}") from problem
    found = sha256(text).hexdigest()
    if known.sha256 not in (None, found):
        raise ChecksumError(
            f"The text of {path} has the sha256 sum {found}, but {known.sha256} was expected. "
            "Delete the file, and get it anew."
        )
    _check_counts(path, X, y, known)
    if known.dense:
        return _Rows(X.toarray().astype(np.float32), y, found)
    # SciPy picks 32-bit indices here, which is what LIBSVM takes.
    return _Rows(sp.csr_matrix((X.data, X.indices, X.indptr), X.shape), y, found)


def _check_counts(path: Path, X: Any, y: Array, known: File) -> None:
    """Refuse a file that has not the published numbers of rows, features and labels."""
    labels = {int(label): int(n) for label, n in zip(*np.unique(y, return_counts=True))}
    wanted = {label: n or labels.get(label) for label, n in known.labels.items()}
    if (X.shape, labels) != ((known.rows, known.features), wanted):
        raise DataError(
            f"{path} has {X.shape[0]} rows, {X.shape[1]} features and the labels {labels}; "
            f"expected are {known.rows}, {known.features} and {dict(known.labels)}. "
            "It is another file, or a part: delete it, and get it anew."
        )
