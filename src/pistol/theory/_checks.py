"""Checks of arguments, and logarithms and exponentials that may be infinite."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

Number = Any  # a float, or an array where an argument is one

MIN_A = 2.25  # Theorem 1 asks for a ≥ 2.25 L


def parameters(a: Number, b: Number, L: Number) -> tuple[Number, Number, Number]:
    """a, b and L, if Theorem 1 holds for them."""
    a, b, L = positive("a", a), positive("b", b), positive("L", L)
    if not np.all(a >= MIN_A * L * (1 - 1e-12)):
        raise ValueError(f"a must be at least 2.25 L (Theorem 1); got a = {a!r}, L = {L!r}")
    return a, b, L


def rounds(T: Number) -> Number:
    """A number of rounds or of examples."""
    return checked("T", T, lambda v: (v >= 1) & (v < inf), "finite and at least 1")


def positive(name: str, value: Number) -> Number:
    """The value, if finite and above 0."""
    return checked(name, value, lambda v: (v > 0) & (v < inf), "finite and above 0")


def at_least_0(name: str, value: Number) -> Number:
    """The value, if finite and not below 0."""
    return checked(name, value, lambda v: (v >= 0) & (v < inf), "finite and at least 0")


def finite(name: str, value: Number) -> Number:
    """The value, if finite."""
    return checked(name, value, np.isfinite, "finite")


def checked(name: str, value: Number, holds: Callable[[Any], Any], expected: str) -> Number:
    """The value as float64, if all of it is as expected."""
    try:
        numbers = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, {expected}; got {value!r}") from None
    if not np.all(holds(numbers)):
        raise ValueError(f"{name} must be {expected}; got {value!r}")
    return plain(numbers)


def plain(value: Number) -> Number:
    """A float for an array without axes, any other value as it is."""
    return float(value) if np.ndim(value) == 0 else value


def log(value: Number) -> Number:
    """The logarithm, -inf at 0."""
    with np.errstate(divide="ignore"):
        return np.log(value)


def exp(value: Number) -> Number:
    """The exponential, inf where it is too large for a float."""
    with np.errstate(over="ignore"):
        return plain(np.exp(value))
