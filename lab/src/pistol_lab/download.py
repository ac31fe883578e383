"""Files from the web, once: resumed where they broke off, checked, and kept in a cache directory."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import file_digest
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

TRIES = 3
PAUSE = 1.0  # seconds before the second try; doubled before each further one
TIMEOUT = 20.0  # seconds without a byte
BLOCK = 1 << 16
Progress = Callable[[int, int | None], None]  # bytes there, of how many (None: not said)


class DownloadError(OSError):
    """A file could not be downloaded; the message names its address and the reason."""


class ChecksumError(ValueError):
    """A file is not the one it should be."""


def cache_folder() -> Path:
    """`$PISTOL_CACHE`, else `$XDG_CACHE_HOME/pistol`, else `~/.cache/pistol`."""
    if own := os.environ.get("PISTOL_CACHE"):
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "pistol"


def fetch(
    url: str, target: Path, sha256: str | None = None, progress: Progress | None = None
) -> Path:
    """Download a file, unless it is there.

    Bytes go to `target.part` first, and are renamed when all are there and right. What a broken
    or interrupted download left is continued if the server vouches that the file is still the same,
    and thrown away if not. Of several processes, one downloads and the others wait.

    Parameters
    ----------
    url : str
    target : Path
        Where the file goes; its folder is made.
    sha256 : str, optional
        What the file has to sum up to. Without it, the sum of the first download is written to
        `target.sha256`: that does not prove that the download was right, only that the file has
        not changed since.
    progress : callable, optional
        Called with the bytes that are there and their total (None where the server does not say).

    Returns
    -------
    Path
        `target`.

    Raises
    ------
    DownloadError
        If the server cannot be reached, refuses, or breaks off time and again.
    ChecksumError
        If the file has another sum.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(_beside(target, ".lock")):
        if target.exists():
            check(target, sha256)
            return target
        part = _beside(target, ".part")
        _insist(url, part, progress)
        _beside(part, ".etag").unlink(missing_ok=True)
        found = sum_of(part)
        if sha256 not in (None, found):
            part.unlink()
            raise ChecksumError(
                f"{url} has the sha256 sum {found}, but {sha256} was expected. What was downloaded "
                f"is deleted. Try again; if the sum stays, get the file from somewhere else."
            )
        if sha256 is None:
            _beside(target, ".sha256").write_text(f"{found}  {target.name}\n", encoding="ascii")
        part.replace(target)
    return target


def check(path: Path, sha256: str | None = None) -> str:
    """The sum of a file, after a look whether it is the given one or that of the `.sha256` beside."""
    beside, found = _beside(path, ".sha256"), sum_of(path)
    if sha256 is None and beside.exists():
        sha256 = beside.read_text(encoding="ascii").split()[0]
    if sha256 not in (None, found):
        raise ChecksumError(
            f"{path} has the sha256 sum {found}, but {sha256} was expected. "
            "Delete the file, and get it anew."
        )
    return found


def sum_of(path: Path) -> str:
    """The sha256 sum of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time; the system frees the lock of one that dies."""
    with path.open("a") as file:
        if sys.platform == "win32":
            while True:
                try:
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError:  # still taken after ten seconds
                    continue
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file frees the lock


def _insist(url: str, part: Path, progress: Progress | None) -> None:
    """All bytes, in a few tries."""
    for again in range(TRIES):
        if again:
            time.sleep(PAUSE * 2 ** (again - 1))
        try:
            return _continue(url, part, progress)
        except HTTPError as problem:
            reason = f"the server answered {problem.code} {problem.reason}"
            problem.close()
            if problem.code < 500:
                break
        except (OSError, HTTPException) as problem:  # URLError and timeouts are OSErrors
            reason = str(getattr(problem, "reason", problem)) or type(problem).__name__
    raise DownloadError(f"{url} could not be downloaded: {reason}")


def _continue(url: str, part: Path, progress: Progress | None) -> None:
    """The bytes that are missing, or all of them if the file may have changed."""
    note = _beside(part, ".etag")
    done = part.stat().st_size if part.exists() else 0
    mark = note.read_text(encoding="ascii") if done and note.exists() else ""
    headers = {"User-Agent": "pistol", "Accept-Encoding": "identity"}
    if mark:
        headers |= {"Range": f"bytes={done}-", "If-Range": mark}
    try:
        answer = urlopen(Request(url, headers=headers), timeout=TIMEOUT)
    except HTTPError as problem:
        if problem.code != 416:
            raise
        note.unlink()  # there is nothing after what we have: begin anew
        raise ConnectionError("what was there is not a part of the file") from problem
    with answer:
        rest = answer.status == 206
        if rest and not _fits(answer.headers, mark, done):
            note.unlink()
            raise ConnectionError("the file has changed")
        done = done if rest else 0
        length = answer.headers["Content-Length"]
        total = None if length is None else done + int(length)
        with part.open("ab" if rest else "wb") as file:
            if not rest:
                note.write_text(_mark(answer.headers), encoding="ascii")
            while block := answer.read(BLOCK):
                file.write(block)
                done += len(block)
                if progress:
                    progress(done, total)
    if total not in (None, done):
        raise ConnectionError(f"it broke off after {done} of {total} bytes")


def _mark(headers: HTTPMessage) -> str:
    """What tells this version of the file from others; "" where the server does not say."""
    etag = headers["ETag"] or ""
    return headers["Last-Modified"] or "" if etag.startswith("W/") or not etag else etag


def _fits(headers: HTTPMessage, mark: str, done: int) -> bool:
    """Whether an answer goes on with the same file where ours ends."""
    span = headers["Content-Range"] or ""
    return span.startswith(f"bytes {done}-") and _mark(headers) in ("", mark)
