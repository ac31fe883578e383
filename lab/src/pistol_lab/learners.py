"""The library's learners without the estimators around them, for benchmarks and proofs at work.

This is the one module of the lab that uses private names of the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pistol._compiled.types import read_only
from pistol._learners import Coordinates, Dual, Primal, Rule
from pistol._learners.events import KernelEvents, LinearEvents
from pistol._training.saved import finished
from pistol.kernels import gaussian, get_kernel
from pistol.losses import LOSSES, Loss

from .protocol import Array

Bare = Coordinates | Dual | Primal


def rule(
    loss: Loss | str, potential: str, a: float, b: float, average: str | None = "uniform"
) -> Rule:
    """What a learner follows: a loss, a potential with its a and b, and how f_t are averaged."""
    return Rule(LOSSES[loss] if isinstance(loss, str) else loss, potential, a, b, average)


def vector(by: Rule, features: int) -> Bare:
    """One vector of weights: the paper's form, with the linear kernel."""
    return Primal(by, features, 1)


def coordinates(by: Rule, features: int, bias: float = 0.0) -> Bare:
    """One learner per coordinate, as in Appendix A."""
    return Coordinates(by, features, 1, bias=bias)


def expansion(by: Rule, gamma: float, n_jobs: int | None = None) -> Bare:
    """A sum over support rows, with a Gaussian kernel."""
    return Dual(by, (get_kernel("rbf", gamma, 3, 0.0),), 1, n_jobs=n_jobs)


def events(by: Rule, features: int, gamma: float | None = None) -> Any:
    """A learner that is asked and taught one event at a time; with a Gaussian kernel if γ is given."""
    if gamma is None:
        return LinearEvents(by, features, False, 0.0)
    return KernelEvents(by, features, get_kernel("rbf", gamma, 3, 0.0))


def played(learner: Bare, X: Any, y: Array, order: Array | None = None) -> Iterator[Array]:
    """Learn the rows once, in this order or as they come; predictions f_t(x_t), chunk by chunk."""
    n = X.shape[0]
    order, ones = np.arange(n) if order is None else order, np.ones(n)
    for chunk in learner.play(X, read_only(y[:, None]), order, ones[: len(order)]):
        yield chunk.P[:, 0]


def play(learner: Bare, X: Any, y: Array, order: Array | None = None) -> Bare:
    """Learn the rows once and return the learner."""
    for _ in played(learner, X, y, order):
        pass
    return learner


def weights(learner: Any) -> Array:
    """The weights of the averaged f, of a learner that has them; without the intercept."""
    return learner.model().weights[0, :-1]


def decide(learner: Bare, X: Any) -> Array:
    """The averaged f at these rows."""
    return learner.model().decide(X)[:, 0]


def support(learner: Any) -> int:
    """How many support rows an expansion has by now."""
    return int(learner.support.ids.n)


def support_bytes(model: Any) -> tuple[int, int]:
    """Bytes of the support rows of a fitted kernel machine, and of what it keeps for each of them."""
    (learner,) = model.fitted_.learners
    rows, *state = learner.support
    return rows.rows.nbytes, sum(part.values.nbytes for part in state)


def learner_bytes(model: Any) -> int:
    """Bytes of all arrays of a fitted model's learners, spare room included."""
    return _array_bytes(model.fitted_.learners)


def _array_bytes(thing: Any) -> int:
    if isinstance(thing, np.ndarray):
        return (thing.base if isinstance(thing.base, np.ndarray) else thing).nbytes
    if isinstance(thing, tuple | list):
        return sum(map(_array_bytes, thing))
    if type(thing).__module__.startswith("pistol."):
        return sum(map(_array_bytes, vars(thing).values()))
    return 0


def gaussian_tile(m: int, n: int) -> Callable[[], Any]:
    """One call of the loop that fuses bandwidth, exp and coefficients, on an m × n tile of float32."""
    rng = np.random.default_rng(0)
    K, coef = rng.random((m, n), np.float32), rng.random((m, 1), np.float32)
    ones, theta = np.ones(m, np.float32), np.array([0.5, 3, 0], np.float32)
    s_sq, a_sq, theta, G = read_only(ones), read_only(ones[:n]), read_only(theta), 0 * K[:1]
    return lambda: gaussian(K, s_sq, a_sq, theta, coef, G)


def of_support(model: Any, rows: Any, coef: Any) -> None:
    """Give a kernel machine of one kernel and one output other support rows; it learns no more."""
    short = finished(model.fitted_)
    over: Any = short.learners[0]
    old = over.model()
    n = len(rows)
    new = replace(
        old,
        ids=np.arange(n),
        rows=np.asarray(rows, old.rows.dtype),
        sq=np.square(rows).sum(axis=1),
        coef=np.asarray(coef)[None, None],
    )
    model.fitted_ = replace(short, learners=[replace(over, made=new)])
