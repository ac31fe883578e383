"""Learners of single events whose features have names, and come and go as they please.

A feature gets a slot when it is first learned. A number is a feature of its own; a word is one feature
per word that was seen under its name. What an event does not have, or has as None or NaN, is absent.
"""

from __future__ import annotations

from math import inf
from numbers import Real
from struct import Struct, error
from typing import Any

import numpy as np

from .._compiled import named as _named
from .._compiled.cache import INTERPRETED
from .._compiled.coordinates import ENTRIES, FIELDS
from .._compiled.named import (
    ALPHA,
    COLUMNS,
    COUPLED,
    END,
    GRAD,
    GROWTH,
    HEAD,
    NEWEST,
    POWER,
    ROOM,
    SIZE,
    VALUE,
    A,
    B,
    L,
)
from .._compiled.plugs import address
from .._compiled.types import Array
from .primal import widened
from .rule import Rule

REAL = np.dtype(np.float64)
NOTHING: tuple[Any, ...] = ()


class Names:
    """Slots of features, by name; those of words by name and word."""

    def __init__(self) -> None:
        self.slots: dict[Any, int] = {}
        self.words: list[bool] = []  # whether a slot is that of a word

    def read(self, x: Any, grow: bool) -> tuple[list[int], list[float], bool]:
        """Slots and values of an event, and whether its values are numbers in the order of its keys.

        Unknown features get a slot, or else are left out.
        """
        if not hasattr(x, "items"):
            raise ValueError(f"an event must be a dict of features; got {type(x).__name__}")
        columns, values, plain = [], [], True
        found = [(name, *_value(name, value)) for name, value in x.items()]
        for name, word, value in found:
            key = name if word is None else (name, word, "word")
            slot = self.slots.get(key)
            if value is None or (slot is None and not grow):
                plain = False
                continue
            if slot is None:
                slot = self.slots[key] = len(self.slots)
                self.words.append(word is not None)
            plain = plain and word is None
            columns.append(slot)
            values.append(value)
        return columns, values, plain


def _value(name: Any, value: Any) -> tuple[str | None, float | None]:
    """A word with the value 1, a number, or neither where there is nothing."""
    if isinstance(value, str):
        return value, 1.0
    if value is None:
        return None, None
    if isinstance(value, Real | np.bool_):
        number = float(value)
        if abs(number) == inf:
            raise ValueError(f"the feature {name!r} is infinite; a number must be finite")
        return None, None if number != number else number
    raise ValueError(
        f"the feature {name!r} must be a number or a word; got {type(value).__name__}: {value!r:.60}"
    )


class NamedCoordinates:
    """A linear learner per coordinate for events with named features."""

    def __init__(self, rule: Rule, outputs: int = 1) -> None:
        self.rule, self.names = rule, Names()
        self.state = np.zeros((outputs, 9, FIELDS))
        self.means = np.zeros((8, 2))
        self.t, self.begun = 0, 0  # events learned, and features that have a mean
        head = np.zeros(HEAD)
        head[[ALPHA, SIZE, A, B, L, POWER]] = (
            rule.alpha_0,
            1.0,
            rule.a,
            rule.b,
            rule.loss.L,
            rule.power,
        )
        self._lay_out(head, 8)

    def _lay_out(self, head: Array, room: int) -> None:
        """Make the vectors anew, with room for events of so many features."""
        rule, outputs = self.rule, len(self.state)
        self.floats = np.zeros(HEAD + 3 * outputs + 2 * room)
        self.floats[:HEAD], self.floats[HEAD : HEAD + outputs] = head[:HEAD], rule.theta(outputs)
        self.integers = np.zeros(COLUMNS + room, object if INTERPRETED else np.int64)
        self.integers[[GRAD, VALUE]] = address(rule.loss.grad, 3), address(rule.loss.value, 3)
        plugs = rule.plugs_per_coordinate(outputs)
        self.integers[[COUPLED, GROWTH, ROOM]] = plugs.coupled, plugs.growth, room
        self.scores = self.floats[HEAD + outputs : HEAD + 2 * outputs]  # what was predicted last
        self._at, self._keys, self._pack = 8 * (HEAD + 2 * outputs), NOTHING, Struct("").pack_into
        self._no_target = (0.0,) * outputs
        self._learn = _named.learn_named.compiled(REAL)
        self._predict = _named.predict_named.compiled(REAL)

    def __getstate__(self) -> dict[str, Any]:
        kept = ("rule", "names", "state", "means", "t", "begun")
        return {name: getattr(self, name) for name in kept} | {"head": self.floats[:HEAD].copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        head = state.pop("head")
        vars(self).update(state)
        self._lay_out(head, 8)

    def fresh(self) -> NamedCoordinates:
        """A learner of the same kind that has learned nothing yet."""
        return NamedCoordinates(self.rule, len(self.state))

    def _read(self, x: Any, y: tuple[float, ...], grow: bool) -> None:
        """Write the event into the vectors; numbers alone if the names are those of the last one."""
        try:
            if tuple(x) == self._keys:
                self._pack(self.floats, self._at, *y, *x.values())
                return
        except (TypeError, AttributeError, error):  # not all of them numbers
            pass
        columns, values, plain = self.names.read(x, grow)
        n = len(columns)
        self._widen()
        if n > self.integers[ROOM]:
            self._lay_out(self.floats, 2 * n)
        self.integers[END], self.integers[COLUMNS : COLUMNS + n] = n, columns
        at, J = HEAD + 2 * len(self.state), len(self.state)
        self.floats[at : at + J], self.floats[at + J : at + J + n] = y, values
        self._keys = tuple(x) if plain and n else NOTHING
        self._pack = Struct(f"{J + n}d").pack_into

    def _widen(self) -> None:
        """Room for all names."""
        known, n = len(self.means), len(self.names.slots)
        if n > known:
            self.means = np.vstack([self.means, np.zeros((max(n, 2 * known) - known, 2))])
            self.state = widened(self.state, len(self.means))
        if n > self.begun:
            self.means[self.begun : n, NEWEST] = ~np.array(self.names.words[self.begun : n])
            self.begun = n

    def predict(self, x: Any) -> Array:
        """f_t of the event, of shape (outputs,); overwritten by the next call."""
        self._read(x, self._no_target, False)
        if self._predict(self.floats, self.integers, self.state, self.means) == inf:
            self._again(x)
            return self.predict(x)
        return self.scores

    def learn(self, x: Any, y: tuple[float, ...]) -> float:
        """Learn the event with one target per output; the loss suffered. `scores` has what f_t was."""
        self._read(x, y, True)
        loss = self._learn(self.floats, self.integers, self.state, self.means)
        if loss == inf:
            self._again(x)
            return self.learn(x, y)
        self.t += 1
        return loss

    def _again(self, x: Any) -> None:
        """A value is NaN, which means absent, and the event has to be read again; or far too large."""
        if self._keys:
            self._keys = NOTHING
            return
        raise ValueError(f"an event must have finite numbers of moderate size; got {x!r:.200}")

    def add_outputs(self, outputs: int, first: int = 0) -> None:
        """Go on with more outputs; those that there are come after `first` new ones."""
        state = np.zeros((outputs, *self.state.shape[1:]))
        state[first : first + len(self.state)] = self.state
        state[0, -1, ENTRIES] = self.state[0, -1, ENTRIES]
        self.state = state
        self._lay_out(self.floats, int(self.integers[ROOM]))
