"""Forms of labels, of names of features, and of parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .forms import Form, Source, Written, array

WHOLE = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
KINDS = (*WHOLE, "float16", "float32", "float64")


@dataclass(frozen=True)
class Labels:
    """A vector of numbers or words."""

    def write(self, value: Any, to: Written) -> Any:
        """Numbers as an array, words as a list."""
        if value.dtype.name in KINDS:
            narrow, to.narrow = to.narrow, False
            kept = to.keep(value)
            to.narrow = narrow
            return kept
        words = value.tolist()
        if not all(type(word) is str for word in words):
            raise ValueError(
                "a model file holds labels and names that are numbers or words; got "
                f"{next(word for word in words if type(word) is not str)!r}"
            )
        return {"words": words, "object": value.dtype == object}

    def read(self, found: Any, source: Source) -> Any:
        """The array."""
        if isinstance(found, dict) and set(found) == {"words", "object"}:
            words = found["words"]
            good = isinstance(words, list) and all(type(word) is str for word in words)
            source.demand(good and type(found["object"]) is bool, "must be words")
            out = np.array(words, dtype=object)
            if not found["object"]:
                out = out.astype(str)
        else:
            out = array(found, source, KINDS)
            source.demand(out.ndim == 1 and not (out != out).any(), "must be labels")
        return out


LABELS = Labels()


@dataclass(frozen=True)
class Parameter:
    """What a parameter of an estimator can be."""

    loss: Form

    def write(self, value: Any, to: Written) -> Any:
        """As it is, or with a word that says what it is."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.ndarray):
            return {"array": LABELS.write(value, to)}
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self.write(part, to) for part in value]}
        if isinstance(value, dict):
            pairs = [[self.write(part, to) for part in item] for item in value.items()]
            return {"pairs": pairs}
        if isinstance(value, np.random.RandomState):
            return {"random state": _state(value, to)}
        if hasattr(value, "own_parts"):
            return {"loss": self.loss.write(value, to)}
        if callable(value):
            raise ValueError(
                f"a function of your own, {value!r:.60}, cannot be written: a model file holds no "
                "code. Pickle the model instead"
            )
        raise ValueError(f"{value!r:.60} cannot be written to a model file")

    def read(self, found: Any, source: Source) -> Any:
        """The value."""
        if found is None or isinstance(found, bool | int | float | str):
            return found
        source.demand(isinstance(found, dict) and len(found) == 1, "is no parameter")
        ((kind, content),) = found.items()
        if kind == "pairs":
            pairs = isinstance(content, list) and all(
                isinstance(pair, list) and len(pair) == 2 and all(map(_plain, pair))
                for pair in content
            )
            source.demand(pairs, "must be pairs")
            return dict(content)
        if kind in ("list", "tuple"):
            source.demand(isinstance(content, list) and all(map(_plain, content)), "must be plain")
            return content if kind == "list" else tuple(content)
        if kind == "array":
            return LABELS.read(content, source)
        if kind == "loss":
            return self.loss.read(content, source)
        source.demand(kind == "random state", f"is of an unknown kind: {kind!r:.40}")
        return _generator(content, source)


def _plain(x: Any) -> bool:
    return x is None or isinstance(x, bool | int | float | str)


def _state(value: Any, to: Written) -> dict[str, Any]:
    name, key, position, has_gauss, gauss = value.get_state()
    if name != "MT19937":
        raise ValueError(f"a random state of the kind {name} cannot be written to a model file")
    return {"key": to.keep(key), "numbers": [position, has_gauss, gauss]}


def _generator(content: Any, source: Source) -> Any:
    source.demand(isinstance(content, dict) and set(content) == {"key", "numbers"}, "is no state")
    key, numbers = array(content["key"], source, ("uint32",)), content["numbers"]
    good = isinstance(numbers, list) and [type(x) for x in numbers] == [int, int, float]
    good = good and key.shape == (624,) and 0 <= numbers[0] <= 624 and numbers[1] in (0, 1)
    source.demand(good, "is no random state")
    out = np.random.RandomState(0)
    out.set_state(("MT19937", key, *numbers))
    return out
