"""CSV and TSV files, parsed in pieces that end where a record does.

Plain numbers are read by our own loop, which is faster. Where there is anything else, such as words,
gaps or quotes, pyarrow reads the piece.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ..._compiled import csv_text as _text
from .basics import PIECE, Chunk, DataFileError, Trouble, as_bytes, at_line, in_threads, pieces
from .tables import Roles, arrow, resolved, split

PATIENCE = 16 * PIECE  # bytes up to which the end of a quoted value is looked for
WORDS, NUMBERS = "words", "numbers"
MUCH = 2**17  # bytes of text from which our own loop is worth fetching
KINDS = {"double": _text.REAL, "int64": _text.WHOLE}  # of columns that our own loop can read


class Form(NamedTuple):
    """How the records of one file are parsed."""

    separator: str
    names: list[str]
    types: dict[str, Any]
    wanted: list[str]

    def table(self, text: bytes) -> Any:
        """The columns that are wanted; an error of pyarrow where a record is wrong."""
        found = self._numbers(text) if len(text) >= MUCH and self._plain else None
        return self._parsed(text) if found is None else found

    @property
    def _plain(self) -> bool:
        """Whether all columns are known to hold numbers."""
        kinds = [str(self.types.get(name)) for name in self.wanted]
        return bool(kinds) and set(kinds) <= set(KINDS)

    def _numbers(self, text: bytes) -> Any:
        """The columns, read by our own loop; None where a field is anything but a plain number."""
        pa = arrow()
        text = text if text.endswith(b"\n") else text + b"\n"
        place = {name: k for k, name in enumerate(self.wanted)}
        shortest = len(self.names) + len(place)  # bytes of a record
        most = min(text.count(b"\n"), len(text) // shortest)
        kinds = [KINDS[str(self.types[n])] if n in place else _text.SKIPPED for n in self.names]
        starts = [most * place.get(name, 0) for name in self.names]
        values = np.empty(most * len(self.wanted))
        columns = np.array(kinds), np.array(starts), most, values, values.view(np.uint64)
        rows = _text.numbers(as_bytes(text), ord(self.separator), *columns)
        if rows < 1:
            return None
        found = []
        for name, column in zip(self.wanted, values.reshape(-1, most), strict=True):
            kind = self.types[name]
            own = pa.py_buffer(column[:rows].astype(kind.to_pandas_dtype(), copy=False))
            found.append(pa.Array.from_buffers(kind, rows, [None, own]))
        return pa.Table.from_arrays(found, self.wanted)

    def _parsed(self, text: bytes) -> Any:
        """The columns, read by pyarrow."""
        from pyarrow import csv as reading

        return reading.read_csv(
            arrow().BufferReader(text),
            reading.ReadOptions(
                column_names=self.names, use_threads=False, block_size=len(text) + 1
            ),
            reading.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            reading.ConvertOptions(column_types=self.types, include_columns=self.wanted),
        )


class Parsed(NamedTuple):
    """The tables of a piece, how many lines it has, and what is wrong: line, text and problem."""

    tables: list[Any]
    lines: int
    wrong: list[tuple[int, bytes, str]]


def parse(piece: bytes, form: Form) -> Parsed:
    """All records of a piece that are right; the others are found by cutting it in halves."""
    lines = piece.count(b"\n")
    try:
        return Parsed([form.table(piece)] if piece.strip() else [], lines, [])
    except arrow().ArrowInvalid:
        tables, wrong = [], []
        for part in _sorted_out(records(piece), form):
            if isinstance(part, tuple):
                wrong.append(part)
            else:
                tables.append(part)
        return Parsed(tables, lines, wrong)


def _sorted_out(found: list[tuple[int, bytes]], form: Form) -> Iterator[Any]:
    """Tables of records that are right, and each that is wrong with its line and the problem."""
    text = b"".join(record for _, record in found)
    if not text.strip():
        return
    try:
        yield form.table(text)
    except arrow().ArrowInvalid as problem:
        if len(found) == 1:
            yield found[0][0], found[0][1], plainly(str(problem), form)
            return
        half = len(found) // 2
        yield from _sorted_out(found[:half], form)
        yield from _sorted_out(found[half:], form)


def plainly(problem: str, form: Form) -> str:
    """What pyarrow says of one record, in our words."""
    first = problem.splitlines()[0]
    if found := re.search(r"Expected (\d+) columns, got (\d+)", first):
        return f"{found[1]} columns were expected, there are {found[2]}"
    column = re.search(r"In CSV column #(\d+)", first)
    value = re.search(r"conversion error to (\S+): invalid value '(.*)", first)
    if column and value:
        name = form.names[int(column[1])]
        kind = "number" if value[1] in ("double", "int64") else value[1]
        return f"column {name!r} should hold a {kind}, not {value[2].rstrip(chr(39))!r}"
    if column and "UTF8" in first:
        return f"column {form.names[int(column[1])]!r} is not in UTF-8"
    return first


def records(piece: bytes) -> list[tuple[int, bytes]]:
    """The records of a piece, each with the number of its first line; quotes may hold several lines."""
    out: list[tuple[int, bytes]] = []
    open_ = False
    for number, line in enumerate(piece.splitlines(keepends=True)):
        if open_:
            out[-1] = out[-1][0], out[-1][1] + line
        else:
            out.append((number, line))
        open_ ^= line.count(b'"') % 2 == 1
    return out


def whole_records(path: str) -> Iterator[bytes]:
    """The file in pieces that end where a record does, not within quotes."""
    held: list[bytes] = []
    odd, size = False, 0
    for piece in pieces(path):
        held.append(piece)
        odd, size = odd ^ (piece.count(b'"') % 2 == 1), size + len(piece)
        if not odd or size > PATIENCE:
            yield held[0] if len(held) == 1 else b"".join(held)
            held, odd, size = [], False, 0
    if held:
        yield b"".join(held)


def read_csv(
    path: str, trouble: Trouble, roles: Roles, separator: str = ",", threads: int = 2
) -> Iterator[Chunk]:
    """Chunks of a CSV file; columns of whole numbers are real ones.

    The first line has the names, unless it holds nothing but numbers.
    """
    parts = whole_records(path)
    first = next(parts, b"").removeprefix(b"\xef\xbb\xbf")
    if not first.strip():
        raise DataFileError(f"{path} is empty")
    names, body, lines = _names(path, first, separator)
    roles = resolved(names, roles, path)
    form = _form(names, body, roles, separator)
    rows = 0
    for parsed in in_threads(partial(parse, form=form), chain([body], parts), threads):
        if parsed.wrong:
            line, text, problem = parsed.wrong[0]
            trouble.meet(len(parsed.wrong), at_line(path, lines + line + 1, text, problem))
        for table in parsed.tables:
            yield from split(table, roles, path, trouble, rows)
            rows += table.num_rows
        lines += parsed.lines


def _names(path: str, first: bytes, separator: str) -> tuple[list[str], bytes, int]:
    """Names of the columns, the text after them, and how many lines they take."""
    _, header = records(first[:PIECE])[0]
    try:
        names = next(csv.reader([header.decode().rstrip("\r\n")], delimiter=separator), [])
    except (UnicodeDecodeError, csv.Error) as problem:
        raise DataFileError(
            f"{path}: the names in the first line cannot be read: {problem}"
        ) from None
    if _all_numbers(names):
        return [str(number) for number in range(len(names))], first, 0
    return names, first[len(header) :], header.count(b"\n")


def _all_numbers(names: list[str]) -> bool:
    """Whether a first line is data; 0, 1, 2, … and 1, 2, 3, … are taken for names."""
    try:
        values = [float(name) for name in names]
    except ValueError:
        return False
    n = len(names)
    return bool(names) and values not in (list(range(n)), list(range(1, n + 1)))


def _form(names: list[str], body: bytes, roles: Roles, separator: str) -> Form:
    """Types from the first records, but for columns whose kind is known."""
    pa = arrow()
    wanted = list(dict.fromkeys([*(roles.features or ()), *roles.others]))
    form = Form(separator, names, {}, wanted)
    found = {}
    for table in parse(body[: _end(body)], form).tables[:1]:
        found = {field.name: field.type for field in table.schema}
    kinds = {WORDS: pa.string(), NUMBERS: pa.float64()}
    types = {}
    for name, kind in found.items():
        whole = pa.types.is_integer(kind)
        known = kinds.get((roles.kinds or {}).get(name, ""))
        if whole and name != roles.target:
            kind = pa.float64()
        elif pa.types.is_binary(kind):
            kind = pa.string()  # so that text in another encoding is an error
        if known is not None and name in (roles.features or ()):
            kind = known
        if not pa.types.is_null(kind):
            types[name] = kind
    return form._replace(types=types)


def _end(body: bytes) -> int:
    """Where the records end that types are learned from."""
    return len(body) if len(body) <= PIECE else body.rfind(b"\n", 0, PIECE) + 1 or len(body)
