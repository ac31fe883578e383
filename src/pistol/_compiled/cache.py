"""Compilation by numba, with the machine code kept on disk under a stamp of all it was made from.

numba's own cache stamps a function by its file alone and would go on with old machine code when a
function that it calls, in another file, has changed. Here one stamp covers all code that may be
compiled, so that a change anywhere makes all of it new. A file holds one specialisation and its name
is a digest of whatever it depends on: processes that start at once cannot mix theirs up.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from shutil import rmtree
from threading import Timer
from time import perf_counter
from types import CodeType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.caching import _Cache
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

INTERPRETED = bool(getattr(config, "DISABLE_JIT", False))
PACKAGE = Path(__file__).parents[1]
# Modules with code that may be compiled, or with constants of such code.
STAMPED = (
    *sorted(
        f"pistol._compiled.{module.name}" for module in iter_modules([str(PACKAGE / "_compiled")])
    ),
    "pistol.kernels",
    "pistol.losses",
    "pistol.potentials",
)
NAME = "pistol-code-"  # of folders, followed by a stamp
KEPT = 4  # stamps of which code is kept in a folder: other versions of us, of Python, of numba
PATIENCE = 1.0  # seconds of compilation before a word is said about it

# Said of every function: numba would take the first three from whoever has it compiled first. Nobody
# calls the wrappers for C.
_PINNED: dict[str, Any] = {
    "error_model": "numpy",
    "forceinline": False,
    "fastmath": False,
    "no_cfunc_wrapper": True,
}


def jit(function: Any = None, **options: Any) -> Any:
    """Decorate a function of ours that Python calls: as numba's `njit`, with its code kept on disk."""
    if function is None:
        return lambda function: jit(function, **options)
    if INTERPRETED:
        return function
    options = _PINNED | options
    dispatcher = numba.njit(**options)(function)
    dispatcher._cache = Kept(function, options)
    return dispatcher


def helper(function: Any = None, **options: Any) -> Any:
    """Decorate a function that compiled code alone calls; it is kept with whoever calls it."""
    if function is None:
        return lambda function: helper(function, **options)
    options = _PINNED | {"no_cpython_wrapper": True} | options
    return numba.njit(**options)(function)


@contextmanager
def uncollected() -> Iterator[None]:
    """Compile without Python's search for cycles: it would go through all that was imported, often."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def plain(function: Any = None, **options: Any) -> Any:
    """Decorate a helper that takes arrays, but neither makes nor returns any; views of them are fine.

    numba counts references to the arrays that a function is given, which takes longer than many a
    helper does. Here it need not. Of one that returns arrays, even in tuples, the caller would free
    memory that is in use.
    """
    return helper(function, _nrt=False, **options)


def c_function(function: Callable[..., Any], signature: Any) -> Any:
    """A C function of this signature, with its `address`."""
    python = getattr(function, "py_func", function)
    if python.__module__ not in STAMPED:  # a user's own, whose changes no stamp would tell
        return numba.cfunc(signature)(python)
    sides = signature.args, signature.return_type
    compiled: Any = CFunc(python, sides, locals={}, options=_PINNED)
    compiled._cache = Kept(python, {"c": True})
    with uncollected():
        compiled.compile()
    return compiled


def _parts(code: CodeType) -> Iterator[Any]:
    """Whatever makes a piece of code what it is, without the numbers of its lines.

    Its flags are left out, too: a loop that is called under a profiler has other ones.
    """
    yield code.co_name, code.co_code, code.co_argcount, code.co_kwonlyargcount
    yield code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)
        else:
            yield constant


def _text(x: Any) -> str:
    """As `repr`, with sets in order: theirs changes from process to process."""
    if isinstance(x, set | frozenset):
        return f"set{sorted(map(_text, x))}"
    if isinstance(x, dict):
        return f"dict{sorted((_text(key), _text(value)) for key, value in x.items())}"
    return f"({','.join(map(_text, x))})" if isinstance(x, list | tuple) else repr(x)


def _digest(*parts: Any) -> str:
    return sha256(_text(parts).encode()).hexdigest()[:20]


def _stamp() -> str | None:
    """Of all code that may be compiled, as Python loads it, and of the versions that compile it.

    Source files would not do: where their dates do not tell, Python itself runs older code than they.
    """
    codes = []
    for name in STAMPED:
        spec = find_spec(name)
        code = getattr(spec.loader, "get_code", lambda name: None)(name) if spec else None
        if code is None:
            return None
        codes.append(list(_parts(code)))
    versions = sys.version, numba.__version__, llvmlite.__version__, np.__version__
    return _digest(codes, versions)


# Taken on import: should a file change later, what is in memory is still what the stamp says.
STAMP = None if INTERPRETED else _stamp()


def folders() -> list[Path]:
    """Where machine code is looked for; it is written to the first that can be written to."""
    if STAMP is None:
        return []
    named = getattr(config, "CACHE_DIR", "")  # NUMBA_CACHE_DIR
    shared = Path(AppDirs("pistol", appauthor=False).user_cache_dir)
    chosen = [Path(named)] if named else [PACKAGE / "__pycache__", shared]
    return [folder / f"{NAME}{STAMP}" for folder in chosen]


class Kept(_Cache):
    """The machine code of one function on disk, as numba asks for it; no failure to keep it matters."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.depends = list(_parts(function.__code__)), options

    cache_path = property(lambda self: str(next(iter(folders()), None)))

    def _file(self, sig: Any, codegen: Any) -> str:
        return f"{self.name}-{_digest(self.depends, str(sig), codegen.magic_tuple())}.pickle"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        name = self._file(sig, target_context.codegen())
        for folder in folders():
            try:
                payload = pickle.loads((folder / name).read_bytes())
                return CompileResult._rebuild(target_context, *payload)
            except Exception:  # not there, not readable, or not what we wrote
                continue
        news.begin()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        news.end()
        content = dumps(data._reduce())
        for folder in folders():
            try:
                return write(folder / self._file(sig, data.codegen), content)
            except OSError:
                continue
        news.warn()

    def enable(self) -> None: ...

    def disable(self) -> None: ...

    def flush(self) -> None: ...


def write(path: Path, content: bytes) -> None:
    """All of the content or nothing; code of older stamps goes away."""
    new = not path.parent.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(part, 0o644)  # another user may run what the image's builder compiled
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    if new:
        with suppress(OSError):  # another process may be at the same
            stamps = path.parent.parent.glob(f"{NAME}*")
            for folder in sorted(stamps, key=lambda folder: folder.stat().st_mtime)[:-KEPT]:
                rmtree(folder, ignore_errors=True)


class News:
    """What is said about compilation, once each: that it takes a while, that it cannot be kept."""

    def __init__(self) -> None:
        self.seconds, self.said, self.warned = 0.0, False, False
        self.timer: Timer | None = None

    def begin(self) -> None:
        """A compilation begins."""
        self.end()
        self.started = perf_counter()
        if not self.said:
            self.timer = Timer(max(PATIENCE - self.seconds, 0.0), self.say)
            self.timer.daemon = True
            self.timer.start()

    def end(self) -> None:
        """It is over."""
        if self.timer is not None:
            self.timer.cancel()
            self.seconds += perf_counter() - self.started
            self.timer = None

    def say(self) -> None:
        """On stderr, in one line."""
        self.said = True
        print(
            "pistol: compiling its loops for this machine, once; this takes a few seconds",
            file=sys.stderr,
            flush=True,
        )

    def warn(self) -> None:
        """That the next process has to compile again."""
        if not self.warned:
            self.warned = True
            warnings.warn(
                "pistol can write its machine code to none of these folders, so every process has to "
                f"compile it anew: {', '.join(map(str, folders())) or 'no source to stamp it by'}. "
                "Set NUMBA_CACHE_DIR to a folder that can be written to.",
                stacklevel=2,
            )


news = News()
