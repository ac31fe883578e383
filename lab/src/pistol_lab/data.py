"""Data sets as LIBSVM text: found, downloaded on request, checked, and parsed once.

A file is looked for in the folder that PISTOL_DATA names and in the cache directory, to which `get`
downloads it from the LIBSVM site. Its rows, features and labels are counted and compared with what
is known of it, whatever way it came. We know the sha256 sums of a9a and a9a.t only: another download
is trusted if the counts agree, and its sum, written beside it, tells later whether it has changed.
Parsed rows are kept in the cache directory too.
"""

from __future__ import annotations

import bz2
import lzma
import os
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import Memory
from sklearn.datasets import load_svmlight_file

from .download import ChecksumError, Progress, cache_folder, check, fetch
from .protocol import Array, SkipError

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
UNPACK: dict[str, Any] = {".xz": lzma.decompress, ".bz2": bz2.decompress, "": bytes}


class DataError(ValueError):
    """A file is not what its name says."""


class File(NamedTuple):
    """A file of LIBSVM text, and what is known of it."""

    url: str  # below SITE; "" if it is not there
    rows: int
    features: int  # the highest that occurs
    labels: Mapping[int, int | None]  # how many rows have which; None where that is not published
    dense: bool = False  # kept as an array, not as CSR
    sha256: str | None = None  # of the text


class Rows(NamedTuple):
    """What a file holds."""

    X: Any  # CSR with 32-bit indices, or a C-contiguous array
    y: Array
    text: str  # the sha256 sum of the unpacked text


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
    "w8a": File("binary/w8a", 49749, 300, {1: 1479, -1: 48270}),
    "sensit_sample": File("", 1860, 100, {1: 1023, -1: 837}, dense=True),
}  # fmt: skip


def find(name: str) -> Path | None:
    """A file of this name, packed or not, in PISTOL_DATA or in the cache."""
    folders = os.environ.get("PISTOL_DATA"), cache_folder()
    paths = (Path(folder, name + ending) for folder in folders if folder for ending in UNPACK)
    return next(filter(Path.is_file, paths), None)


def get(name: str, progress: Progress | None = None) -> None:
    """Download a file that is not at hand into the cache directory.

    Parameters
    ----------
    name : str
        One of `FILES`.
    progress : callable, optional
        Called with the bytes that are there and their total, or None.

    Raises
    ------
    OSError
        If there is no network, or no such file, or no place to put it.
    ChecksumError
        If a file came that is not the one it should be.
    """
    if not find(name):
        url = FILES[name].url  # we know sums of files that are not packed there
        fetch(f"{SITE}/{url}", cache_folder() / Path(url).name, FILES[name].sha256, progress)


def read(*names: str, dtype: Any = np.float64) -> list[Rows]:
    """The rows of some files that belong together, such as one to learn from and one to test on.

    All get as many features as the first has. Only dense rows take another dtype.

    Raises
    ------
    SkipError
        If a file is not at hand.
    ChecksumError, DataError
        If a file is there, but is not the one it should be.
    """
    parts = [_read(name) for name in names]
    for X, _, _ in parts:
        if sp.issparse(X):
            X.resize(X.shape[0], parts[0].X.shape[1])  # not all features occur in a9a.t
    return [p if sp.issparse(p.X) else p._replace(X=p.X.astype(dtype, copy=False)) for p in parts]


def _read(name: str) -> Rows:
    """The rows of a file; parsed and checked once, then kept in the cache under the file's sum."""
    path = find(name)
    if path is None:
        raise SkipError(
            f"no data: set PISTOL_DATA to a directory with {name} as LIBSVM text, packed (.xz, .bz2) "
            "or not"
        )
    try:
        memory = Memory(cache_folder() / "parsed", verbose=0)
    except OSError:  # nowhere to keep them
        memory = Memory(None)
    return memory.cache(_parsed, ignore=["path"])(path, FILES[name], check(path))


def _parsed(path: Path, known: File, _sum: str) -> Rows:
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
        return Rows(X.toarray(), y, found)
    # SciPy picks 32-bit indices here, which is what LIBSVM takes.
    return Rows(sp.csr_matrix((X.data, X.indices, X.indptr), X.shape), y, found)


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
