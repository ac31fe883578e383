"""Forms: how values are written as arrays, numbers and words, and checked when they are read.

A form writes a value as JSON, with the arrays beside it, and reads it back. Reading trusts nothing:
every number has bounds, every array a type and a shape. Letters stand for lengths, so that arrays that
belong together must agree. What is wrong is raised as a `FormError` that says where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from .._compiled.types import Array

REALS = ("float64", "float32")


class FormError(ValueError):
    """What was read is not what it should be."""


class Inside:
    """The way to a part while it is written or read; a large model has very many of them."""

    __slots__ = ("name", "of")

    def __init__(self, of: Written | Source, name: Any) -> None:
        self.of, self.name = of, name

    def __enter__(self) -> None:
        self.of.path.append(self.name)

    def __exit__(self, kind: Any, *error: Any) -> None:
        if kind is None:  # an error keeps the way to where it happened
            self.of.path.pop()


@dataclass
class Written:
    """Arrays by name; with `narrow`, as float32 where that loses next to nothing."""

    narrow: bool = False
    arrays: dict[str, Array] = field(default_factory=dict)
    path: list[Any] = field(default_factory=list)

    def inside(self, name: Any) -> Inside:
        """Write a part."""
        return Inside(self, name)

    def keep(self, x: Array) -> dict[str, str]:
        """Keep an array; what stands for it."""
        name, dtype, x = ".".join(map(str, self.path)), str(x.dtype), np.ascontiguousarray(x)
        self.arrays[name] = narrowed(x) if self.narrow else x
        return {"array": name, "dtype": dtype}


def narrowed(x: Array) -> Array:
    """x as float32 if that loses no more than rounding does."""
    if x.dtype != np.float64:
        return x
    with np.errstate(over="ignore", under="ignore"):
        small = x.astype(np.float32)
        return small if np.allclose(small, x, rtol=2.0**-23, atol=0.0) else x


@dataclass
class Source:
    """Arrays by name, and the lengths found so far."""

    arrays: Mapping[str, Array]
    sizes: dict[str, int] = field(default_factory=dict)
    path: list[Any] = field(default_factory=list)

    def inside(self, name: Any) -> Inside:
        """Read a part."""
        return Inside(self, name)

    @contextmanager
    def owning(self, sizes: tuple[str, ...]) -> Iterator[None]:
        """Read a value that has these lengths of its own."""
        outer = {size: self.sizes.pop(size, None) for size in sizes}
        yield
        for size, value in outer.items():
            self.sizes.pop(size, None)
            if value is not None:
                self.sizes[size] = value

    def refuse(self, problem: str) -> FormError:
        """The error to raise."""
        return FormError(f"{'.'.join(map(str, self.path)) or 'the header'} {problem}")

    def demand(self, truth: Any, problem: str) -> None:
        """Refuse what is read, unless this is true."""
        if not truth:
            raise self.refuse(problem)

    def fit(self, shape: tuple[int, ...], sizes: tuple[str | int, ...]) -> None:
        """Refuse a shape that does not agree with lengths that are known."""
        known = len(shape) == len(sizes) and all(
            n == (size if isinstance(size, int) else self.sizes.setdefault(size, n))
            for n, size in zip(shape, sizes)
        )
        self.demand(known, f"has shape {list(shape)}, which does not fit the rest")


class Form(Protocol):
    """A way to write and read values of one kind."""

    def write(self, value: Any, to: Written) -> Any:
        """The value as JSON."""

    def read(self, found: Any, source: Source) -> Any:
        """The value from JSON, checked."""


@dataclass(frozen=True)
class Number:
    """A real or whole number between two others."""

    low: float = -1e308
    high: float = 1e308
    whole: bool = False
    zero: bool = True  # whether it may be zero

    def write(self, value: Any, to: Written) -> Any:
        """The number."""
        return int(value) if self.whole else float(value)

    def read(self, found: Any, source: Source) -> Any:
        """The number."""
        kind = Integral if self.whole else Real
        source.demand(isinstance(found, kind) and not isinstance(found, bool), "must be a number")
        source.demand(self.low <= found <= self.high, f"is out of range: {found!r:.40}")
        source.demand(self.zero or found, "is zero")
        return int(found) if self.whole else float(found)


@dataclass(frozen=True)
class Choice:
    """One of a few words, numbers or None."""

    choices: tuple[Any, ...]

    def write(self, value: Any, to: Written) -> Any:
        """The value itself."""
        return value

    def read(self, found: Any, source: Source) -> Any:
        """The choice that equals it."""
        for choice in self.choices:
            if type(found) is type(choice) and found == choice:
                return choice
        raise source.refuse(f"is unknown: {found!r:.40}")


FLAG = Choice((True, False))


@dataclass(frozen=True)
class Maybe:
    """Something, or None."""

    form: Form

    def write(self, value: Any, to: Written) -> Any:
        """None, or what the form writes."""
        return None if value is None else self.form.write(value, to)

    def read(self, found: Any, source: Source) -> Any:
        """None, or what the form reads."""
        return None if found is None else self.form.read(found, source)


@dataclass(frozen=True)
class Many:
    """Several things of one form, at least and at most so many; their number may have a name."""

    form: Form
    make: Callable[[list[Any]], Any] = list
    low: int = 0
    high: float = inf
    size: str | None = None

    def write(self, value: Any, to: Written) -> Any:
        """A list."""
        out = []
        for number, part in enumerate(value):
            with to.inside(number):
                out.append(self.form.write(part, to))
        return out

    def read(self, found: Any, source: Source) -> Any:
        """All parts."""
        source.demand(isinstance(found, list), "must be a list")
        source.demand(self.low <= len(found) <= self.high, f"has {len(found)} parts")
        if self.size:
            source.fit((len(found),), (self.size,))
        out = []
        for number, part in enumerate(found):
            with source.inside(number):
                out.append(self.form.read(part, source))
        return self.make(out)


@dataclass(frozen=True)
class Numbers:
    """An array whose lengths have names, with finite entries between two numbers, unless `endless`."""

    sizes: tuple[str | int, ...]
    dtypes: tuple[str, ...] = ("float64",)
    low: float = -1e308
    high: float = 1e308
    endless: bool = False

    def write(self, value: Any, to: Written) -> Any:
        """What stands for the array."""
        return to.keep(value)

    def read(self, found: Any, source: Source) -> Array:
        """The array."""
        x = array(found, source, self.dtypes)
        source.fit(x.shape, self.sizes)
        if x.size and self.endless:
            source.demand(not np.isnan(x).any(), "has a value that is no number")
        elif x.size:  # NaN is neither above nor below
            inside = float(x.min()) >= self.low and float(x.max()) <= self.high
            source.demand(inside, "has values that are out of range")
        return x


def array(found: Any, source: Source, dtypes: tuple[str, ...]) -> Array:
    """The array that is meant."""
    named = isinstance(found, dict) and set(found) == {"array", "dtype"}
    source.demand(named and isinstance(found["array"], str), "must be an array")
    source.demand(found["array"] in source.arrays, "is an array that is missing")
    source.demand(found["dtype"] in dtypes, f"has the wrong type: {found['dtype']!r:.40}")
    x, dtype = source.arrays[found["array"]], np.dtype(found["dtype"])
    same = x.dtype == dtype or (x.dtype == np.float32 and dtype == np.float64)
    if not same:  # to write the message takes longer than all else here
        raise source.refuse(f"is an array of {x.dtype}, not of {dtype}")
    return x.astype(dtype, copy=False)


@dataclass(frozen=True)
class Rows:
    """Rows, dense or CSR, whose numbers of rows and of features have names."""

    sizes: tuple[str | int, str | int]

    def write(self, value: Any, to: Written) -> Any:
        """What stands for the arrays."""
        if not sp.issparse(value):
            return to.keep(value[:])
        out: dict[str, Any] = {"shape": list(value.shape)}
        for name in ("data", "indices", "indptr"):
            with to.inside(name):
                out[name] = to.keep(getattr(value, name))
        return out

    def read(self, found: Any, source: Source) -> Any:
        """The rows."""
        if not (isinstance(found, dict) and "indptr" in found):
            return Numbers(self.sizes, REALS, -1e200, 1e200).read(found, source)
        shape: Any = found.get("shape")
        whole = isinstance(shape, list) and len(shape) == 2 and all(type(n) is int for n in shape)
        source.demand(whole and 0 <= shape[1] < 2**31 and shape[0] >= 0, "has no shape")
        source.fit(tuple(shape), self.sizes)
        n, d = shape
        data = Numbers(("",), REALS, -1e200, 1e200).read(found.get("data"), Source(source.arrays))
        indices = array(found.get("indices"), source, ("int32", "int64"))
        indptr = array(found.get("indptr"), source, ("int32", "int64"))
        source.demand(indptr.shape == (n + 1,) and indices.shape == data.shape, "has wrong lengths")
        ends = indptr[0] == 0 and indptr[-1] == len(data) and (np.diff(indptr) >= 0).all()
        source.demand(ends, "has rows that do not follow each other")
        within = not len(indices) or (indices.min() >= 0 and indices.max() < d)
        source.demand(within, "has features that do not exist")
        return sp.csr_array((data, indices, indptr), shape=(n, d), copy=False)


@dataclass(frozen=True)
class Record:
    """A value with parts. `take` reads them off a value, `make` makes a value of them.

    `own` are lengths that are its own; `check` looks at the whole once it is made.
    """

    name: str
    type: type
    parts: dict[str, Form]
    make: Callable[..., Any] | None = None
    take: Callable[[Any], Mapping[str, Any]] | None = None
    own: tuple[str, ...] = ()
    check: Callable[[Any, Source], None] | None = None

    def write(self, value: Any, to: Written) -> Any:
        """All parts by name."""
        given = (
            self.take(value) if self.take else {name: getattr(value, name) for name in self.parts}
        )
        out = {}
        for name, form in self.parts.items():
            with to.inside(name):
                out[name] = form.write(given[name], to)
        return out

    def read(self, found: Any, source: Source) -> Any:
        """The value, made of its parts."""
        source.demand(isinstance(found, dict), f"must be a {self.name}")
        odd = sorted(set(found) ^ set(self.parts))
        source.demand(not odd, f"has a part that is missing or unknown: {odd[:1]!r:.40}")
        given = {}
        with source.owning(self.own):
            for name, form in self.parts.items():
                with source.inside(name):
                    given[name] = form.read(found[name], source)
            value = (self.make or self.type)(**given)
            if self.check:
                self.check(value, source)
        return value


@dataclass(frozen=True)
class OneOf:
    """A value of one of several types, each with its record."""

    records: tuple[Record, ...]

    def write(self, value: Any, to: Written) -> Any:
        """The name of its type, and its parts."""
        for record in self.records:
            if type(value) is record.type:
                return {"is": record.name, **record.write(value, to)}
        raise ValueError(f"a {type(value).__name__} cannot be written to a model file")

    def read(self, found: Any, source: Source) -> Any:
        """The value of the type that is named."""
        source.demand(isinstance(found, dict), "must have parts")
        for record in self.records:
            if found.get("is") == record.name:
                return record.read({k: v for k, v in found.items() if k != "is"}, source)
        raise source.refuse(f"is of an unknown type: {found.get('is')!r:.40}")


@dataclass(frozen=True)
class Either:
    """An array, or else something of another form."""

    array: Form
    other: Form

    def write(self, value: Any, to: Written) -> Any:
        """As an array if it is one."""
        return (self.array if isinstance(value, np.ndarray) else self.other).write(value, to)

    def read(self, found: Any, source: Source) -> Any:
        """An array if it stands for one."""
        return (self.array if isinstance(found, dict) else self.other).read(found, source)


@dataclass(frozen=True)
class Sized:
    """A value that tells a length by which others must go."""

    form: Form
    size: str
    of: Callable[[Any], int]

    def write(self, value: Any, to: Written) -> Any:
        """As the form does."""
        return self.form.write(value, to)

    def read(self, found: Any, source: Source) -> Any:
        """As the form does; its length is known from here on."""
        value = self.form.read(found, source)
        source.fit((self.of(value),), (self.size,))
        return value
