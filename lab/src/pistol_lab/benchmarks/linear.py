"""Benchmarks of the linear learners: against scikit-learn, river, and ASGD."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegressionCV, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from pistol import LinearPistolClassifier
from pistol.online import Learner

from .. import learners
from ..measure import best_of, error, race
from ..protocol import peer
from .results import Line, Result, Size
from .rows import Split, a9a, events

Make = Callable[[learners.Rule], learners.Bare]
GRIDS = {"alpha": [10.0**k for k in range(-6, -1)], "C": [2.0**k for k in range(-6, 4)]}


def coordinate_passes(data: Split, shuffle: bool = False) -> Callable[[int], None]:
    """A function that plays so many passes of the per-coordinate loop and nothing else."""
    n, d = data.X.shape
    rule = learners.rule("logistic", "pistol_anytime", 1.0, 0.5, "linear")
    order = np.random.default_rng(0).permutation(n) if shuffle else np.arange(n)

    def play(passes: int) -> None:
        learner = learners.coordinates(rule, d, bias=1.0)
        for _ in range(passes):
            learners.play(learner, data.X, data.y, order)

    play(1)
    return play


def sgd(size: Size) -> Result:
    """One pass over sparse rows, against one epoch of SGDClassifier, and tuned linear models."""
    data = a9a(size)
    epoch = {"loss": "log_loss", "max_iter": 1, "tol": None, "random_state": 0}
    models: dict[str, Any] = {
        "LinearPistolClassifier, one pass": LinearPistolClassifier(
            passes=1, orders=1, random_state=0
        ),
        "LinearPistolClassifier(orders=None)": LinearPistolClassifier(orders=None),
        "SGDClassifier, one epoch": SGDClassifier(**epoch),
        "SGDClassifier, one epoch, shuffle=False": SGDClassifier(shuffle=False, **epoch),
    }
    alpha, C = ({name: values} for name, values in GRIDS.items())
    tuned: dict[str, Any] = {
        "SGDClassifier, alpha from a grid of 5, 3 folds": GridSearchCV(
            SGDClassifier(loss="log_loss", random_state=0), alpha, cv=3
        ),
        "LinearSVC, C from a grid of 10, 3 folds": GridSearchCV(LinearSVC(random_state=0), C, cv=3),
        "LogisticRegressionCV, C from a grid of 10, 3 folds": LogisticRegressionCV(
            Cs=10,
            cv=3,
            solver="liblinear",
            scoring="accuracy",
            l1_ratios=(0.0,),
            use_legacy_attributes=False,
        ),
    }
    for model in models.values():
        model.fit(data.X[:50], data.y[:50])
    times = _fits(models, data, 3 * size.repeats) | _fits(tuned, data, 1)
    lines = [Line(k, s, error(m, data.X_test, data.y_test)) for k, (s, m) in times.items()]
    shuffled, as_given = coordinate_passes(data, shuffle=True), coordinate_passes(data)
    ours, _ = best_of(lambda: shuffled(1), 3 * size.repeats)
    given, _ = best_of(lambda: as_given(1), 3 * size.repeats)
    return Result(
        ours="a pass of the per-coordinate loop, rows shuffled",
        peer="an epoch of SGDClassifier, rows shuffled",
        rows=data.X.shape[0],
        features=data.X.shape[1],
        our_seconds=ours,
        peer_seconds=_epoch(data, size, shuffle=True),
        our_error=lines[0].error,
        peer_error=lines[2].error,
        target=0.8,
        goal="at least 0.8 times the speed",
        note=(
            "Passes only: an epoch of SGDClassifier is what a further one adds to fit. The lines "
            f"below are whole fits unless they say otherwise. {data.note}"
        ).strip(),
        lines=(
            Line("a pass of the per-coordinate loop, rows as given", given),
            Line("an epoch of SGDClassifier, rows as given", _epoch(data, size, shuffle=False)),
            *lines,
        ),
    )


def _epoch(data: Split, size: Size, shuffle: bool) -> float:
    """Seconds that an epoch adds to a fit of SGDClassifier."""
    settings: dict[str, Any] = {"loss": "log_loss", "tol": None, "shuffle": shuffle}

    def fit(epochs: int) -> Any:
        return SGDClassifier(max_iter=epochs, **settings).fit(data.X, data.y)

    more = 10
    one, many = (best_of(partial(fit, n), 3 * size.repeats)[0] for n in (1, 1 + more))
    return max(many - one, 1e-9) / more


def _fits(models: dict[str, Any], data: Split, repeats: int) -> dict[str, tuple[float, Any]]:
    with warnings.catch_warnings():  # that one epoch, or a point of a grid, did not converge
        warnings.simplefilter("ignore")
        return race({k: partial(m.fit, data.X, data.y) for k, m in models.items()}, repeats)


def online(size: Size) -> Result:
    """One event at a time from Python, predict then learn, against river's logistic regression."""
    river, scaling = peer("river.linear_model"), peer("river.preprocessing")
    from pistol.river import LinearPistolClassifier as Named

    n, d = size.online_events, 20
    X, y = events(n, d)
    arrays, targets = list(X), y.tolist()
    dicts = [dict(enumerate(x)) for x in X.tolist()]
    labels = [target > 0 for target in targets]

    def ours(k: int) -> float:
        learner, wrong = Learner("logistic"), 0
        for x, target in zip(arrays[:k], targets[:k], strict=True):
            wrong += learner.predict(x) * target <= 0
            learner.learn(x, target)
        return wrong / k

    def steps(k: int) -> float:
        learner, wrong = Learner("logistic"), 0
        for x, target in zip(arrays[:k], targets[:k], strict=True):
            wrong += learner.step(x, target) * target <= 0
        return wrong / k

    def on_dicts(make: Callable[[], Any], k: int) -> float:
        model, wrong = make(), 0
        for x, label in zip(dicts[:k], labels[:k], strict=True):
            wrong += (model.predict_proba_one(x).get(True, 0.5) > 0.5) != label
            model.learn_one(x, label)
        return wrong / k

    def scaled() -> Any:
        return scaling.StandardScaler() | river.LogisticRegression()

    runs: dict[str, Callable[[int], float]] = {
        "ours": steps,
        "theirs": partial(on_dicts, river.LogisticRegression),
        "two": ours,
        "many": lambda k: float((Learner("logistic").learn_many(X[:k], y[:k]) * y[:k] <= 0).mean()),
        "named": partial(on_dicts, Named),
        "scaled": partial(on_dicts, scaled),
    }
    race({name: partial(run, min(n, 100)) for name, run in runs.items()}, 1)  # warm
    times = race({name: partial(run, n) for name, run in runs.items()}, size.repeats)
    return Result(
        ours="pistol.online.Learner('logistic').step",
        peer="river's LogisticRegression()",
        rows=n,
        features=d,
        our_seconds=times["ours"][0],
        peer_seconds=times["theirs"][0],
        our_error=times["ours"][1],
        peer_error=times["theirs"][1],
        target=5.0,
        goal="at least 5 times the events a second",
        note="Synthetic dense events, as arrays for us and as dicts for river, made beforehand. "
        "Errors are online: each event before it is learned.",
        lines=(
            Line("Learner, predict and learn", *times["two"]),
            Line("Learner.learn_many, all events in one call", *times["many"]),
            Line("pistol.river.LinearPistolClassifier, on dicts", *times["named"]),
            Line("river's StandardScaler() | LogisticRegression()", *times["scaled"]),
        ),
        extra={f"{k}_events_per_second": n / times[k][0] for k in ("ours", "theirs")},
    )


def asgd(size: Size) -> Result:
    """A round of PiSTOL, against a round of averaged gradient descent on the same loop."""
    lines, ratios, d = [], [], 100
    both: dict[str, tuple[int, Make]] = {
        "linear": (size.asgd_rows, lambda rule: learners.vector(rule, d)),
        "kernel": (size.asgd_kernel_rows, lambda rule: learners.expansion(rule, 0.01)),
    }
    for name, (n, make) in both.items():
        times = _beside_asgd(make, n, d, 2 * size.repeats)
        lines += [Line(f"{k}, {name}, {n:,} rows", s) for k, s in times.items()]
        ratios += [times["ASGD"] / times["PiSTOL"]]
    worse = 2 * int(np.argmin(ratios))
    ours, theirs = lines[worse], lines[worse + 1]
    return Result(
        ours=ours.what,
        peer=theirs.what,
        rows=list(both.values())[worse // 2][0],
        features=d,
        our_seconds=ours.seconds,
        peer_seconds=theirs.seconds,
        target=1 / 1.1,
        goal="at most 1.1 times the time of ASGD",
        note="Logistic loss, so that every round is an update. Of linear and kernel learner the "
        "one that does worse.",
        lines=tuple(lines),
    )


def _beside_asgd(make: Make, n: int, d: int, repeats: int) -> dict[str, float]:
    """Seconds of n rounds of both with the same learner."""
    X, y = events(n, d)
    choices = {"PiSTOL": ("pistol_anytime", 0.5), "ASGD": ("constant", n**-0.5)}

    def play(potential: str, b: float) -> None:
        learners.play(make(learners.rule("logistic", potential, 1.0, b)), X, y)

    runs = {name: partial(play, *choice) for name, choice in choices.items()}
    race(runs, 1)  # warm
    return {name: seconds for name, (seconds, _) in race(runs, repeats).items()}
