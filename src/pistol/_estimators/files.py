"""Model files: safetensors with a JSON header. Writing is atomic, reading runs no code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from secrets import token_hex
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from .._compiled.types import Array
from .._learners import Finished
from .._training.fitted import Fitted
from .._training.forms import Source, Written
from .._training.labels import Parameter
from .._training.saved import finished, fitted_record
from .._training.saved_learners import LOSS
from .recipes import RECIPES, Recipe

FORMAT = 4  # raised when older versions of the library could not read what is written
PARAMETER = Parameter(LOSS)
DAMAGED = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    ArithmeticError,
    RecursionError,
    AttributeError,
)


class ModelFileError(ValueError):
    """A file that is no model, or a damaged one, or one of a later version."""


class Saved(NamedTuple):
    """What a model file holds. It can predict; `loading.py` makes an estimator of it."""

    header: dict[str, Any]
    parameters: dict[str, Any]
    fitted: Fitted

    @property
    def name(self) -> str:
        """The class of the estimator."""
        return self.header["class"]


def write_model(
    path: Path,
    estimator: Any,
    known: Fitted,
    predict_only: bool = False,
    notes: dict[str, Any] | None = None,
) -> None:
    """Write a fitted estimator, with notes of JSON. An error leaves an older file as it was."""
    cls = type(estimator)
    if cls.__module__.split(".")[0] != __name__.split(".")[0]:
        raise ValueError(f"{cls.__name__} is a class of your own; only pistol's own can be saved")
    to = Written(narrow=predict_only)
    with known.writing:  # not in the middle of a chunk
        fitted = finished(known) if predict_only else known
        header = {
            "format": FORMAT,
            "version": _version(),
            "class": cls.__name__,
            "predict_only": predict_only,
            "notes": notes or {},
            "parameters": _parameters("parameters", estimator.get_params(deep=False), to),
            "settings": _parameters("settings", known.settings, to),
            "fitted": fitted_record(None, {}).write(fitted, to),
        }
        with replacing(path) as temporary:
            save_file(to.arrays, temporary, metadata=sealed(header, to.arrays))


def packed(known: Fitted) -> dict[str, Any]:
    """What was learned as words and arrays, for pickles and skops; ValueError if it has functions."""
    to = Written()
    with known.writing:
        parts = {
            "settings": _parameters("settings", known.settings, to),
            "fitted": fitted_record(None, {}).write(known, to),
        }
        arrays = {name: np.array(x) for name, x in to.arrays.items()}
    return {"format": FORMAT, "version": _version(), "header": json.dumps(parts), "arrays": arrays}


def unpacked(cls: Any, parts: dict[str, Any]) -> Fitted:
    """What `packed` was given; checked as a file is."""
    try:
        _check_version(parts)
        header = json.loads(parts["header"])
        arrays = {name: np.require(x, requirements="W") for name, x in parts["arrays"].items()}
        source = Source(arrays)
        settings = _read_parameters("settings", header["settings"], source)
        return _read_fitted(cls._recipe, settings, header, source)
    except DAMAGED as problem:
        raise ModelFileError(f"this {cls.__name__} cannot be read: {problem}") from None


def _version() -> str:
    try:
        return version("pistol")
    except PackageNotFoundError:
        return "unknown"


def _parameters(name: str, given: dict[str, Any], to: Written) -> dict[str, Any]:
    out = {}
    for key, value in given.items():
        with to.inside(name), to.inside(key):
            try:
                out[key] = PARAMETER.write(value, to)
            except ValueError as problem:
                raise ValueError(f"{key}: {problem}") from None
    return out


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside the path, which takes its place in one step once it is written and on disk."""
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name}.{token_hex(4)}.part")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # so that the new name, too, survives a loss of power
        finally:
            os.close(folder)


def sealed(header: dict[str, Any], arrays: Mapping[str, Array]) -> dict[str, str]:
    """The header as text, with a checksum of all."""
    return {"pistol": json.dumps({"checksum": checksum(header, arrays), **header})}


def checksum(header: dict[str, Any], arrays: Mapping[str, Array]) -> str:
    """Of the header and of all arrays."""
    total = sha256(json.dumps(header).encode())
    for name in sorted(arrays):
        x = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {x.dtype.str} {x.shape}".encode())
        total.update(x.reshape(-1).view(np.uint8))
    return total.hexdigest()


def read_model(path: Path) -> Saved:
    """What a file holds."""
    return understood(path, *_content(path))


def understood(path: Path, text: str, arrays: dict[str, Array]) -> Saved:
    """What a file with this header and these arrays holds."""
    try:
        header = json.loads(text)
        if not isinstance(header, dict) or header.pop("checksum", "") != checksum(header, arrays):
            raise ValueError("it is damaged, its checksum does not match its content")
        _check_version(header)
        return _saved(header, Source(arrays))
    except DAMAGED as problem:
        raise ModelFileError(f"{path} cannot be read: {problem}") from None


def _content(path: Path) -> tuple[str, dict[str, Array]]:
    path.open("rb").close()  # the usual error where it is missing or a folder
    try:
        with safe_open(path, framework="numpy") as file:
            marks = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, *DAMAGED) as problem:
        raise ModelFileError(
            f"{path} is no model file, or it is truncated or damaged ({problem})"
        ) from None
    if "pistol" not in marks:
        raise ModelFileError(f"{path} is a safetensors file, but no model of pistol")
    return marks["pistol"], arrays


def _check_version(header: dict[str, Any]) -> None:
    if type(header.get("format")) is not int or header["format"] < 1:
        raise ValueError("its header has no format")
    if header["format"] < FORMAT:
        raise ValueError(
            f"it was written by pistol {header.get('version')!s:.40} in format {header['format']}; "
            f"this version reads format {FORMAT} only. Train the model again"
        )
    if header["format"] > FORMAT:
        raise ValueError(
            f"it was written by pistol {header.get('version')!s:.40} in format {header['format']}; "
            f"this version reads formats up to {FORMAT}. Upgrade pistol"
        )


def _saved(header: dict[str, Any], source: Source) -> Saved:
    wanted = {"format", "version", "class", "predict_only", "notes", "parameters", "settings"}
    source.demand(set(header) == wanted | {"fitted"}, "has missing or unknown parts")
    source.demand(isinstance(header["version"], str), "has no version")
    source.demand(type(header["predict_only"]) is bool, "has no flag predict_only")
    source.demand(isinstance(header["notes"], dict), "has no notes")
    source.demand(header["class"] in RECIPES, f"names an unknown class: {header['class']!r:.40}")
    parameters, settings = (
        _read_parameters(name, header[name], source) for name in ("parameters", "settings")
    )
    source.demand(parameters.keys() == settings.keys(), "has settings of other parameters")
    fitted = _read_fitted(RECIPES[header["class"]], settings, header, source)
    over = [isinstance(learner, Finished) for learner in fitted.learners]
    source.demand(all(over) if header["predict_only"] else not any(over), "has other learners")
    return Saved(header, parameters, fitted)


def _read_fitted(
    recipe_of: Callable[[Any], Recipe], settings: dict[str, Any], header: Any, source: Source
) -> Fitted:
    """What was learned with these settings."""
    try:
        family = recipe_of(SimpleNamespace(**settings)).family
    except AttributeError:
        raise source.refuse("has settings that are not those of the class") from None
    return fitted_record(family, settings).read(header["fitted"], source)


def _read_parameters(name: str, found: Any, source: Source) -> dict[str, Any]:
    with source.inside(name):
        source.demand(isinstance(found, dict), "are none")
        out = {}
        for key, value in found.items():
            with source.inside(key):
                out[key] = PARAMETER.read(value, source)
    return out
