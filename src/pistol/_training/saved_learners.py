"""How learners and their models are written: rules, kernels, support rows, weights."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from .._compiled.coordinates import FIELDS, GROWTHS
from .._compiled.rows import sq_norms
from .._compiled.types import Scalars
from .._learners import AVERAGES, Coordinates, Dual, Patchwork, Primal, Rule
from .._learners.models import Expansion, Linear
from .._learners.storage import Growing, Store
from .._learners.support import Start, Support
from ..kernels import KERNELS, Kernel, get_kernel, precomputed_base
from ..losses import LOSSES, Loss, built_in
from ..potentials import POTENTIALS
from .forms import FLAG, Choice, Many, Maybe, Number, Numbers, Record, Rows, Source

# Lengths: D features, d of them after scaling, K outputs, Q kernels, w weights per output; of a learner
# n support rows of f entries; of a window m rounds.
COUNT = Number(0, 2**53, whole=True)
WIDTH = Number(1, 2**31 - 1, whole=True)
POSITIVE = Number(1e-308, 1e308)
NOT_NEGATIVE = Number(0.0, 1e308)
JOBS = Maybe(Number(-1024, 1024, whole=True, zero=False))
PER_OUTPUT = Numbers(("K",))


# Losses, kernels and rules


def _own(loss: Loss) -> dict[str, Any]:
    own = loss.own_parts()
    if own is None:
        raise ValueError(
            f"the loss {loss.name!r} is made of functions of your own, and a model file holds no code; "
            "pickle the model, or use one of the losses of pistol.losses"
        )
    return {"name": loss.name, **own}


def _check_loss(loss: Loss, source: Source) -> None:
    usual = LOSSES[loss.name]
    divides = usual.theta > 0 and loss.name != "epsilon_insensitive"
    source.demand(loss.theta > 0 or not divides, "has a theta of zero")
    source.demand(loss.name != "quantile" or loss.theta < 1, "has a quantile that is none")
    source.demand(loss.name == "quantile" or not loss.levels, "has levels")
    if loss.levels:
        source.fit((len(loss.levels),), ("K",))


LOSS = Record(
    "loss", Loss,
    {
        "name": Choice(tuple(LOSSES)), "L": POSITIVE, "H": Number(0.0, inf), "theta": NOT_NEGATIVE,
        "levels": Many(Number(0.0, 1.0), tuple), "ranged": FLAG, "unit": POSITIVE,
    },
    make=lambda name, **own: built_in(name, own), take=_own, check=_check_loss,
)  # fmt: skip


def _numbers(kernel: Kernel) -> dict[str, Any]:
    if not isinstance(kernel.source, str):
        raise ValueError(
            "the kernel is a function of your own, and a model file holds no code; pickle the model, "
            "or use kernel='precomputed'"
        )
    gamma, degree, coef0 = kernel.theta.tolist()
    return {
        "name": kernel.source, "gamma": gamma, "degree": degree, "coef0": coef0,
        "share": kernel.share,
    }  # fmt: skip


KERNEL = Record(
    "kernel", Kernel,
    {
        "name": Choice(tuple(KERNELS)), "gamma": Number(1e-300, 1e200), "degree": Number(0, 10_000),
        "coef0": Number(0.0, 1e200), "share": POSITIVE,
    },
    make=lambda name, **numbers: get_kernel(name, **numbers), take=_numbers,
)  # fmt: skip


def _check_kernels(kernels: Any, source: Source) -> None:
    given = [kernel.base is precomputed_base for kernel in kernels]
    source.demand(not any(given) or len(given) == 1, "has a kernel that is no part of a sum")
    for kernel in kernels:
        gamma, degree, most = kernel.theta
        if kernel.source == "bounded_poly":
            source.demand(degree <= 3, "has a polynomial of an unknown degree")
            source.demand(
                degree * np.log10(gamma * most + 1.0) < 100, "has a kernel that overflows"
            )


KERNELS_OF_SUM = Many(KERNEL, tuple, low=1, high=64, size="Q")
RULE = Record(
    "rule", Rule,
    {
        "loss": LOSS, "potential": Choice(tuple({**POTENTIALS, **GROWTHS})), "a": POSITIVE,
        "b": POSITIVE, "average": Choice(tuple(AVERAGES)),
    },
)  # fmt: skip
PER_KERNEL = Numbers(("Q", "K"))
ONE = Numbers((1, 1), low=0.0, high=1e300)
SCALARS = Record(
    "scalars", Scalars,
    {
        "g_norm_sq": Numbers(("Q", "K"), low=0.0), "alpha": Numbers(("Q", "K"), low=1e-308),
        "c_sum": PER_KERNEL, "t": ONE, "weight": ONE,
    },
)  # fmt: skip


# Learners and models


def growing(x: Any) -> Growing:
    """An array that can grow from here on."""
    out = Growing(x.shape[1:], x.dtype)
    out.restore((x, len(x)))
    return out


def _store(rows: Any) -> Store:
    store = Store(rows)
    parts = [rows.data, rows.indices, rows.indptr] if store.sparse else [rows]
    store.restore([(part, len(part)) for part in parts])
    return store


def _check_rows(kernels: Any, rows: Any, n: int, source: Source) -> None:
    """Support rows are scaled rows, or numbers of columns."""
    _check_kernels(kernels, source)
    given, width = kernels[0].base is precomputed_base, rows.shape[1]
    if n and given:
        inside = width == 1 and isinstance(rows, np.ndarray) and rows.dtype == np.float64
        inside = inside and rows.min() >= 0 and rows.max() < source.sizes["D"]
        source.demand(inside and (rows == np.floor(rows)).all(), "has columns that do not exist")
    elif n:
        source.demand(width == source.sizes["d"], "has rows of the wrong length")
        source.demand(sq_norms(rows).max() <= 1e141, "has rows that are too long")


SUPPORT = Record(
    "support", Support,
    {
        "rows": Rows(("n", "f")), "sq": Numbers(("n",), low=0.0),
        "ids": Numbers(("n",), ("int64",), 0, 2**53), "coef": Numbers(("n", "K")),
        "moved": Numbers(("n", "K"), low=0.0), "u": Numbers(("n", "Q", "K")),
    },
    make=lambda rows, **others: Support(
        _store(rows), **{name: growing(x) for name, x in others.items()}
    ),
    take=lambda support: {"rows": support.rows.rows}
    | {name: x.values for name, x in support._asdict().items() if name != "rows"},
)  # fmt: skip
START = Record(
    "start", Start, {"coef": Numbers(("n", "Q", "K")), "offset": PER_OUTPUT},
    make=lambda coef, offset: Start(growing(coef), offset),
    take=lambda start: {"coef": start.coef.values, "offset": start.offset},
)  # fmt: skip


def _dual(rule: Rule, kernels: Any, n_jobs: Any, since: Any, **state: Any) -> Dual:
    return _with(Dual(rule, kernels, len(since), n_jobs), {"since": since, **state})


def _with(learner: Any, state: dict[str, Any]) -> Any:
    vars(learner).update(state)
    return learner


def _check_dual(learner: Dual, source: Source) -> None:
    source.demand(learner.rule.potential in POTENTIALS, "has a potential for weights of features")
    _check_rows(learner.kernels, learner.support.rows.rows, learner.support.ids.n, source)
    given = learner.kernels[0].base is precomputed_base
    source.demand(learner.max_support is None or not given, "cannot keep some rows only")
    source.demand(learner.projected is None or learner.full, "has projected rows too early")
    check_model(learner, source)


def _check_weights(learner: Any, source: Source) -> None:
    source.fit((1,), ("Q",))
    enough = source.sizes["w"] > source.sizes["d"]
    source.demand(enough, f"has {source.sizes['w']} weights per output, fewer than features")
    per_coordinate = isinstance(learner, Coordinates)
    known = GROWTHS if per_coordinate else POTENTIALS
    source.demand(learner.rule.potential in known, "has a potential that does not fit")
    check_model(learner, source)


WEIGHTS = Numbers(("K", "w"))
DUAL = Record(
    "dual", Dual,
    {
        "rule": RULE, "kernels": KERNELS_OF_SUM, "n_jobs": JOBS, "S": SCALARS,
        "support": SUPPORT, "f_0": Maybe(START), "since": PER_OUTPUT,
        "max_support": Maybe(Number(1, 2**53, whole=True)),
        "projected": Maybe(Numbers(("Q", "n", "K"))),
    },
    make=_dual, own=("n", "f"), check=_check_dual,
)  # fmt: skip
PRIMAL = Record(
    "primal", Primal,
    {
        "rule": RULE, "bias": Number(0.0, 1e9), "S": SCALARS, "g": WEIGHTS, "u": WEIGHTS,
        "f_0": Maybe(WEIGHTS), "since": PER_OUTPUT,
    },
    make=lambda rule, bias, **state: _with(Primal(rule, 1, 1, bias), state),
    check=_check_weights,
)  # fmt: skip
COORDINATES = Record(
    "coordinates", Coordinates,
    {
        "rule": RULE, "bias": Number(0.0, 1e9), "x_max": NOT_NEGATIVE, "S": SCALARS,
        "state": Numbers(("K", "w", FIELDS)), "f_0": Maybe(WEIGHTS), "since": PER_OUTPUT,
    },
    make=lambda rule, bias, x_max, **state: _with(Coordinates(rule, 1, 1, bias, x_max), state),
    check=_check_weights,
)  # fmt: skip


def _expansion(kernels: Any, rows: Any, **parts: Any) -> Expansion:
    given = kernels[0].base is precomputed_base
    sq = np.zeros(len(rows)) if given else sq_norms(rows)
    return Expansion(kernels, rows=rows, sq=sq, **parts)


LINEAR = Record(
    "linear", Linear, {"weights": WEIGHTS},
    check=lambda model, source: source.demand(
        source.sizes["w"] > source.sizes["d"], "has fewer weights than features"
    ),
)  # fmt: skip
EXPANSION = Record(
    "expansion", Expansion,
    {
        "kernels": KERNELS_OF_SUM, "ids": Numbers(("n",), ("int64",), 0, 2**53),
        "rows": Rows(("n", "f")), "coef": Numbers(("Q", "K", "n")), "n_jobs": JOBS,
        "offset": Maybe(PER_OUTPUT),
    },
    make=_expansion, own=("n", "f"),
    check=lambda model, source: _check_rows(model.kernels, model.rows, len(model.ids), source),
)  # fmt: skip


def check_model(learner: Any, source: Source) -> None:
    """The function that was learned is finite, and leaves room for arithmetic."""
    with np.errstate(all="ignore"):
        model = learner.model()
    if isinstance(model, Patchwork):  # its parts were looked at when they were read
        return
    parts = [model.weights] if isinstance(model, Linear) else [model.coef, model.offset]
    finite = all(part is None or bool((np.abs(part) <= 1e200).all()) for part in parts)
    source.demand(finite, "is no finite function")
