"""The tiles' share of the machine's limit in float32, from few to many features."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pistol import PistolClassifier

from .. import learners
from ..measure import best_of
from .kernels import exp_rate, sgemm_rate
from .results import Line, Result, Size
from .rows import quadratic

FEATURES = (10, 100, 784)


def shares(size: Size) -> Result:
    """Learning and predicting, few to many features, against the limit of float32."""
    flops, exps = sgemm_rate(size.sgemm), exp_rate()
    found: list[tuple[str, float, float, int]] = []  # what, seconds, seconds at the limit, features
    for d in FEATURES:
        for what, seconds, values in (*_single(d, size), _sum(d, size)):
            limit = values * (2.0 * d / flops + 1.0 / exps)
            found.append((f"{what}, {d} features", seconds, limit, d))
    worst = min(found, key=lambda line: line[2] / line[1])
    return Result(
        ours=worst[0],
        peer="its products and exponentials alone",
        rows=size.share_rows,
        features=worst[3],
        our_seconds=worst[1],
        peer_seconds=worst[2],
        target=0.6,
        goal="at least 0.6 of the limit in float32",
        note="Limit: the products at the rate of a large sgemm, and one exponential per pair of rows. "
        "One Gaussian has float32 rows; the sum of kernels has float64 rows. Of all lines the one "
        "with the least share.",
        lines=tuple(
            Line(f"{what}: {limit / s:.2f} of the limit", s) for what, s, limit, _ in found
        ),
        extra={"sgemm_gflops": flops / 1e9, "exponentials_per_second": exps},
    )


def _single(d: int, size: Size) -> list[tuple[str, float, int]]:
    """One Gaussian kernel: a pass, and predictions; seconds and kernel values of each."""
    X, y = quadratic(size.share_rows, d)
    rule = learners.rule("smooth_hinge", "pistol_anytime", 0.25, 0.5, "linear")

    def play(m: int = len(X)) -> tuple[Any, int]:
        learner, values = learners.expansion(rule, 50.0 / d), 0
        for p in learners.played(learner, X[:m], y[:m]):
            values += len(p) * learners.support(learner)
        return learner, values

    play(300)
    fit, (learner, values) = best_of(play, size.repeats)
    model, asked = learner.model(), X[: size.share_asked]
    predict, _ = best_of(partial(model.decide, asked), 2 * size.repeats)
    scored = len(asked) * learners.support(learner)
    return [("a Gaussian, fit", fit, values), ("a Gaussian, predict", predict, scored)]


def _sum(d: int, size: Size) -> tuple[str, float, int]:
    """The sum of kernels that `kernel="auto"` chooses: predictions of float64 rows."""
    n, (X, y) = size.share_few, quadratic(size.share_few + size.share_asked, d)
    X = X.astype(np.float64)
    model = PistolClassifier(random_state=0).fit(X[:n], y[:n])
    seconds, _ = best_of(partial(model.decision_function, X[n:]), 2 * size.repeats)
    return "a sum, predict", seconds, size.share_asked * len(model.support_)
