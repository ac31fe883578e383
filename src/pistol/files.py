"""Data files: svmlight, Vowpal Wabbit's text, CSV, TSV, Parquet, Arrow and NumPy.

The format is told by the name of the file: `.svm`, `.vw`, `.csv`, `.tsv`, `.parquet`, `.arrow`, `.npy`.
Text may be packed as `.gz`, `.bz2`, `.xz` or `.zst`. CSV, Parquet and Arrow files and `.zst` need the
extra `files`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._data.files.basics import Chunk, DataFileError, trouble
from ._data.files.reading import Reader, joined, threads_here
from ._data.files.tables import Roles
from ._data.files.vowpal import BITS

__all__ = ["Chunk", "Chunks", "DataFileError", "chunks", "read"]


class Chunks:
    """An iterator over chunks of rows, each a tuple (X, y, weight)."""

    def __init__(self, reader: Reader, paths: Any, on_error: str) -> None:
        self._trouble = trouble(on_error)
        self._chunks = reader.chunks(paths, self._trouble)

    @property
    def skipped(self) -> int:
        """Lines left out so far."""
        return self._trouble.skipped

    def __iter__(self) -> Iterator[Chunk]:
        return self._chunks


def chunks(
    paths: Any,
    *,
    format: str | None = None,
    target: str | int | None = None,
    weight: str | int | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    bits: int = BITS,
    on_error: str = "raise",
) -> Chunks:
    """Read files in chunks of bounded memory, for `partial_fit`.

    Parameters
    ----------
    paths : str, path-like, or list of them
        Files, read one after the other. A pattern such as ``"part-*.svm.gz"`` stands for all files
        that it fits, in the order of their names, and ``"-"`` for the standard input. Or anything that
        hands out an Arrow stream, such as a polars frame.
    format : str, default=None
        "svmlight", "vw", "csv", "tsv", "parquet", "arrow" or "npy"; None goes by the name.
    target : str or int, default=None
        The column of a table that is the target, by name or number. None takes the one that is called
        "target", "label", "y" or "class", else the last one.
    weight : str or int, default=None
        The column of a table that holds sample weights.
    n_features : int, default=None
        Of svmlight rows. None reads the files once to find it; where that is not possible, as from
        the standard input, the first chunk tells.
    zero_based : bool, default=False
        Whether feature numbers of svmlight rows begin at 0.
    bits : int, default=18
        Features of Vowpal Wabbit's text are hashed to 2^bits.
    on_error : {"raise", "skip"}, default="raise"
        What to do about a line that is wrong: an error that names it, or leave it out and count it.

    Returns
    -------
    chunks : iterable of tuples (X, y, weight)
        X is a CSR array, an array or a pyarrow table; weight is None where all weights are 1. The
        attribute `skipped` is the number of lines left out so far.

    Examples
    --------
    >>> from pistol import LinearPistolClassifier
    >>> from pistol.files import chunks
    >>> model = LinearPistolClassifier()
    >>> for X, y, weight in chunks("rows-*.svm.gz"):  # doctest: +SKIP
    ...     model.partial_fit(X, y, classes=[-1, 1], sample_weight=weight)
    """
    roles = Roles(target, weight)
    reader = Reader(format, roles, n_features, zero_based, bits, threads_here())
    return Chunks(reader.sized(paths, trouble(on_error)), paths, on_error)


def read(paths: Any, **options: Any) -> Chunk:
    """Read files whole.

    Parameters
    ----------
    paths : str, path-like, or list of them
        As in :func:`chunks`.
    **options
        As in :func:`chunks`.

    Returns
    -------
    X, y, weight : tuple
        All rows; weight is None where all weights are 1.

    Examples
    --------
    >>> from pistol.files import read
    >>> X, y, weight = read("rows.csv", target="price")  # doctest: +SKIP
    """
    return joined(list(chunks(paths, **options)), paths)
