"""`pistol convert`: data from one format to another, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

from .._data.files.basics import PACKED, STDIN, inner_suffix, trouble
from . import common
from .common import Data, Format, OnError, Target, ZeroBased

TABLES = (".csv", ".parquet", ".arrow")
TEXT = (".svm", ".vw")


def convert(
    data: Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="A name that ends in .svm or .vw, also packed as .gz, .bz2 or .xz; or, for tables, "
            "in .csv, .parquet, .arrow. With - svmlight text goes to the standard output.",
        ),
    ],
    format: Format = None,
    target: Target = None,
    zero_based: ZeroBased = False,
    on_error: OnError = "raise",
) -> None:
    """Convert data files: anything that can be read to text, tables to other tables.

    pistol convert rows.parquet --target price -o rows.svm.gz

    pistol convert rows.csv -o - | pistol predict model.pistol -
    """
    with common.one_line():
        reader, account = (
            common.reader_of(format, target, None, zero_based),
            trouble(on_error),
        )
        rows = 0
        with _writer(output) as write:
            for chunk in reader.sized(data, account).chunks(data, account):
                write(chunk)
                rows += chunk.X.shape[0]
        more = f"; {common.left_out(account.skipped)}" if account.skipped else ""
        typer.echo(f"{rows:,} rows written to {output}{more}", err=True)


@contextmanager
def _writer(output: Path) -> Iterator[Callable[[Any], None]]:
    """What writes chunks in the format of the name; a failure leaves an older file as it was."""
    if str(output) == STDIN:
        yield lambda chunk: print(*_lines(chunk, ".svm"), sep="", end="", flush=True)
        return
    suffix = inner_suffix(str(output))
    text = suffix in TEXT and output.suffix != ".zst"
    if not text and output.suffix not in TABLES:
        known = ", ".join((*TEXT, *TABLES))
        raise ValueError(f"--output: {output} should end in one of {known}")
    from .._estimators.files import replacing

    with replacing(output) as temporary, ExitStack() as stack:
        if not text:
            yield stack.enter_context(_table(temporary, suffix))
            return
        opener: Any = PACKED.get(output.suffix, open)
        file = stack.enter_context(opener(temporary, "wt"))
        yield lambda chunk: file.writelines(_lines(chunk, suffix))


def _lines(chunk: Any, suffix: str) -> Iterator[str]:
    """The rows of a chunk as text, counted from 1 in svmlight and as they come for Vowpal Wabbit."""
    X, y = _numbers(chunk.X), _target(chunk)
    weight = np.ones(len(y)) if chunk.weight is None else chunk.weight
    if suffix == ".svm" and (weight != 1).any():
        raise ValueError("svmlight text holds no weights; write .vw")
    indptr, data = X.indptr.tolist(), X.data.tolist()
    indices = (X.indices + (suffix == ".svm")).tolist()
    for row, target in enumerate(y.tolist()):
        at = range(indptr[row], indptr[row + 1])
        entries = "".join(f" {indices[k]}:{common.word(data[k])!r}" for k in at)
        label = "" if np.isnan(target) else repr(common.word(target))
        if suffix == ".vw":
            label += "" if weight[row] == 1 else f" {common.word(weight[row])!r}"
            label += " |"
        yield f"{label}{entries}\n"


def _numbers(X: Any) -> Any:
    """Rows as a CSR array; an error that names a column of words."""
    if sp.issparse(X):
        return X
    for name in getattr(X, "column_names", ()):
        try:
            np.asarray(X[name], np.float64)
        except (ValueError, TypeError):
            raise ValueError(f"column {name!r} has words; text of rows holds numbers") from None
    X = np.asarray(X, np.float64)
    if np.isnan(X).any():
        raise ValueError("the table has missing values; text of rows holds numbers")
    return sp.csr_array(X)


def _target(chunk: Any) -> Any:
    if chunk.y is None:
        return np.zeros(chunk.X.shape[0])
    try:
        return np.asarray(chunk.y, np.float64)
    except ValueError:
        raise ValueError(
            f"the targets are words, such as {chunk.y[0]!r}; text of rows holds numbers"
        ) from None


@contextmanager
def _table(path: Path, suffix: str) -> Iterator[Callable[[Any], None]]:
    from .._data.files.tables import arrow

    pa = arrow()
    from pyarrow import csv, parquet

    with ExitStack() as stack:
        sink: Any = None

        def write(chunk: Any) -> None:
            nonlocal sink
            if not isinstance(chunk.X, pa.Table):
                raise ValueError(
                    "only tables are written as tables; write rows of text as .svm or .vw"
                )
            table = (
                chunk.X if chunk.y is None else chunk.X.append_column("target", pa.array(chunk.y))
            )
            if sink is None:
                new = {
                    ".csv": csv.CSVWriter, ".parquet": parquet.ParquetWriter,
                    ".arrow": pa.ipc.new_file,
                }[suffix]  # fmt: skip
                sink = stack.enter_context(new(str(path), table.schema))
            sink.write_table(table)

        yield write
