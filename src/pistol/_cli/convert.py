"""`pistol convert`: data from one format to another, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

from .._data.files.basics import trouble
from . import common
from .common import Data, Format, OnError, Target, ZeroBased

TABLES = (".csv", ".parquet", ".arrow")


def convert(
    data: Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="A name that ends in .svm, .csv, .parquet, .arrow."),
    ],
    format: Format = None,
    target: Target = None,
    zero_based: ZeroBased = False,
    on_error: OnError = "raise",
) -> None:
    """Convert data files: anything that can be read to svmlight text, tables to other tables.

    pistol convert rows.parquet --target price -o rows.svm
    """
    with common.one_line():
        reader, account = (
            common.reader_of(format, target, None, zero_based),
            trouble(on_error),
        )
        ways: dict[str, Any] = {".svm": _svmlight, **dict.fromkeys(TABLES, _table)}
        if output.suffix not in ways:
            raise ValueError(f"--output: {output} should end in one of {', '.join(ways)}")
        from .._estimators.files import replacing

        rows = 0
        with replacing(output) as temporary, ways[output.suffix](temporary, output.suffix) as write:
            for chunk in reader.sized(data, account).chunks(data, account):
                write(chunk)
                rows += chunk.X.shape[0]
        more = f"; {account.skipped} malformed lines were left out" if account.skipped else ""
        typer.echo(f"{rows:,} rows written to {output}{more}", err=True)


@contextmanager
def _svmlight(path: Path, suffix: str) -> Iterator[Callable[[Any], None]]:
    with path.open("w") as file:

        def write(chunk: Any) -> None:
            X = chunk.X if sp.issparse(chunk.X) else sp.csr_array(np.asarray(chunk.X, np.float64))
            y = np.zeros(X.shape[0]) if chunk.y is None else np.asarray(chunk.y, np.float64)
            indptr, indices, data = X.indptr.tolist(), X.indices.tolist(), X.data.tolist()
            for row, target in enumerate(y.tolist()):
                at = range(indptr[row], indptr[row + 1])
                entries = "".join(f" {indices[k] + 1}:{common.word(data[k])!r}" for k in at)
                file.write(f"{common.word(target)!r}{entries}\n")

        yield write


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
                raise ValueError("only tables are written as tables; write rows of text as .svm")
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
