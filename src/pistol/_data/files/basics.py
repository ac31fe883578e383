"""What all readers have in common: chunks, errors, and where bytes come from."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from glob import glob, has_magic
from itertools import count
from pathlib import Path
from shutil import copyfileobj
from tempfile import NamedTemporaryFile
from threading import local
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..._compiled.types import Array, read_only

PIECE = 2**21  # bytes of text that are read together
LONGEST = 2**28  # bytes of a line
STDIN = "-"


class DataFileError(ValueError):
    """A data file that cannot be read, or a line of it."""


class Chunk(NamedTuple):
    """Rows that are read together; y is None where there are no targets, weight where all are 1."""

    X: Any
    y: Array | None
    weight: Array | None = None


@dataclass
class Trouble:
    """What happens to lines that are wrong: the first is an error, or all are left out and counted."""

    skip: bool = False
    skipped: int = field(default=0, init=False)

    def meet(self, count: int, message: str) -> None:
        """Some lines were wrong; the message is about the first of them."""
        if not self.skip:
            raise DataFileError(message)
        self.skipped += count


def at_line(path: str, line: int, text: bytes, problem: str) -> str:
    """A message about a line, with its text as far as that is short."""
    shown = text.decode("utf-8", "replace").strip()
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return f"{path}, line {line}: {problem}: {shown!r}"


def trouble(on_error: str) -> Trouble:
    """What to do about lines that are wrong."""
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error must be 'raise' or 'skip'; got {on_error!r}")
    return Trouble(on_error == "skip")


def expand(paths: Any) -> list[str]:
    """Paths, given as one or several, each of which may be a pattern such as `part-*.svm`."""
    several = paths if isinstance(paths, list | tuple) else [paths]
    out: list[str] = []
    for path in map(str, several):
        found = sorted(glob(path)) if has_magic(path) and not Path(path).exists() else [path]
        if not found:
            raise DataFileError(f"{path}: no file has such a name")
        if path != STDIN and not Path(found[0]).exists():
            raise DataFileError(f"{path} does not exist")
        out += found
    if not out:
        raise ValueError("no file was given")
    return out


def _zstd(file: Any, mode: str) -> Any:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise DataFileError(".zst needs zstandard: pip install 'pistol[files]'") from None
    return io.BufferedReader(Unpacked(file, zstandard.ZstdDecompressor()), PIECE)


PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": _zstd}
STARTS = {
    b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst",
}  # fmt: skip


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked where its name or its start says so; `-` is the standard input."""
    with nullcontext(sys.stdin.buffer) if path == STDIN else open(path, "rb") as file:
        start = file.peek(6) if hasattr(file, "peek") else b""
        found = next((suffix for magic, suffix in STARTS.items() if start.startswith(magic)), None)
        suffix = Path(path).suffix if Path(path).suffix in PACKED else found
        if suffix is None:
            yield file
            return
        with PACKED[suffix](file, "rb") as unpacked:
            yield unpacked


@contextmanager
def on_disk(path: str) -> Iterator[str]:
    """A plain file with these bytes, for formats that are not read from start to end."""
    if path != STDIN and Path(path).suffix not in PACKED:
        yield path
        return
    with NamedTemporaryFile(prefix="pistol-") as copy:
        with damaged(path), opened(path) as file:
            copyfileobj(file, copy, PIECE)
        copy.flush()
        yield copy.name


@contextmanager
def damaged(path: str) -> Iterator[None]:
    """Errors of unpacking as ours, with the path."""
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as problem:
        if isinstance(problem, OSError) and problem.errno is not None:
            raise
        raise DataFileError(f"{path} is damaged: {problem}") from None
    except Exception as problem:
        if type(problem).__name__ != "ZstdError":
            raise
        raise DataFileError(f"{path} is damaged: {problem}") from None


class Unpacked(io.RawIOBase):
    """The content of a .zst file, with an error where it ends too early."""

    def __init__(self, file: Any, tool: Any) -> None:
        self.file, self.tool = file, tool
        self.frame, self.ready = tool.decompressobj(), b""

    def readable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """Close the file, too."""
        self.file.close()
        super().close()

    def readinto(self, into: Any) -> int:
        """Fill a buffer as far as possible."""
        while not self.ready:
            block = self.frame.unused_data if self.frame.eof else b""
            block = block or self.file.read(2**17)
            if not block:
                if not self.frame.eof:
                    raise EOFError("the file ended before the end of the data")
                return 0
            if self.frame.eof:  # several frames may follow each other
                self.frame = self.tool.decompressobj()
            self.ready = self.frame.decompress(block)
        part, self.ready = self.ready[: len(into)], self.ready[len(into) :]
        into[: len(part)] = part
        return len(part)


def inner_suffix(path: str) -> str:
    """The suffix that tells the format: `.svm` of `a.svm.gz`."""
    name = Path(path)
    return Path(name.stem).suffix.lower() if name.suffix in PACKED else name.suffix.lower()


def pieces(path: str, size: int | None = None) -> Iterator[bytes]:
    """The file in pieces that end where a line does."""
    rest, room = b"", bytearray(size or PIECE)
    with damaged(path), opened(path) as file, memoryview(room) as read:
        while end := file.readinto(room):  # type: ignore[attr-defined]
            cut = room.rfind(b"\n", 0, end) + 1
            if not cut and len(rest) + end > LONGEST:
                raise DataFileError(f"{path} has a line of more than {LONGEST} bytes")
            if cut:
                yield b"".join((rest, read[:cut]))
                rest = b""
            rest += read[cut:end]
    if rest:
        yield rest


def in_threads(work: Callable[[Any], Any], parts: Iterator[bytes], n: int) -> Iterator[Any]:
    """What the work makes of each part, in order; a few parts ahead at a time."""
    if n == 1:
        yield from map(work, parts)
        return
    with (
        ThreadPoolExecutor(n) as pool,
        closing(_in_turn((pool.submit(work, part) for part in parts), n)) as found,
    ):
        yield from found


def ahead(parts: Iterator[Any], n: int = 2) -> Iterator[Any]:
    """The parts, of which a thread makes some ahead while others are used."""
    end = object()
    with (
        ThreadPoolExecutor(1) as pool,
        closing(_in_turn((pool.submit(next, parts, end) for _ in count()), n)) as found,
    ):
        for part in found:
            if part is end:
                return
            yield part


def _in_turn(jobs: Iterable[Future[Any]], n: int) -> Generator[Any]:
    """What jobs return or raise, in order; n of them are begun before they are asked for."""
    waiting: deque[Future[Any]] = deque()
    try:
        for job in jobs:
            waiting.append(job)
            if len(waiting) > n:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for job in waiting:
            job.cancel()


class Room(local):
    """Arrays that each thread fills again and again, as memory that is new takes time to touch."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        self.make, self.kept = make, None

    def of(self, size: int) -> Any:
        """Arrays for a text of this size; those for a text of unusual size are not kept."""
        if size > 2 * PIECE:
            return self.make(size)
        if self.kept is None:
            self.kept = self.make(2 * PIECE)
        return self.kept


def line_at(piece: bytes, at: int) -> bytes:
    """The line that this place belongs to."""
    lo, hi = piece.rfind(b"\n", 0, at) + 1, piece.find(b"\n", at)
    return piece[lo : hi if hi >= 0 else len(piece)]


def as_bytes(piece: bytes) -> Array:
    """The bytes as numbers; nothing is copied."""
    return read_only(np.frombuffer(piece, np.uint8))
