"""What many tests need: estimators by kind, rows for them, and one way to compare two models."""

import gc
import os
import pickle
from collections import defaultdict
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import settings
from sklearn.base import is_classifier

import pistol
from pistol._compiled.cache import INTERPRETED

EXAMPLES = int(os.environ.get("PISTOL_EXAMPLES", "6"))  # of a law; more find rarer failures
settings.register_profile("pistol", deadline=None, max_examples=EXAMPLES)
settings.load_profile("pistol")

EVERY = "PISTOL_ALL" in os.environ  # every combination of the parameters of a test
MOST = 8  # otherwise one combination of so many
COVERED = 6  # one case of so many counts lines, which takes as long as the test


def pytest_collection_modifyitems(config, items):
    """Run every value of every parameter of a test, but not every combination of them."""
    cases = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    chosen = set()
    for same in cases.values():
        kept = same if EVERY else diagonal(same)
        every = 1 if same[0].get_closest_marker("every_case_counts_lines") else COVERED
        kept = kept[::every] if INTERPRETED else kept  # these are run for their lines alone
        chosen.update(kept)
        for number, item in enumerate(kept):
            if (number % every or of_others(item)) and not INTERPRETED:
                item.add_marker(pytest.mark.no_cover)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


gc.set_threshold(100_000, 20, 20)  # few of the many objects that are made while importing go away


def pytest_collection_finish():
    """Modules and tests stay until the end, so that no collection of garbage looks at them again."""
    gc.collect()
    gc.freeze()


def of_others(item):
    """Whether a test is one of scikit-learn's checks; they go where our own tests have been."""
    return hasattr(item, "callspec") and "check" in item.callspec.params


def diagonal(cases):
    """Cases whose numbers add up to a multiple of k, the second largest number of values, or MOST.

    Of the two parameters with at least k values, each goes through all remainders whatever the others
    are, so every value of every parameter is in some case.
    """
    if not hasattr(cases[0], "callspec") or of_others(cases[0]):
        return cases  # scikit-learn's checks are different ones for each estimator
    # one column of names per decorator
    columns = list(zip(*(case.callspec._idlist for case in cases), strict=True))
    values = [list(dict.fromkeys(column)) for column in columns]
    sizes = sorted(map(len, values))
    k = min(MOST, sizes[-2]) if len(sizes) > 1 else 1
    numbers = zip(*([all_.index(one) for one in column] for all_, column in zip(values, columns)))
    return [case for case, each in zip(cases, numbers) if sum(each) % k == 0]


KERNEL = {
    "kernel-classifier": (pistol.PistolClassifier, {"gamma": 0.5}),
    "kernel-regressor": (pistol.PistolRegressor, {"gamma": 0.5}),
    "averaged-sgd": (pistol.AveragedSGDClassifier, {"gamma": 0.5}),
    "perceptron": (pistol.KernelPerceptron, {"gamma": 0.5}),
}
COORDINATES = {
    "linear-classifier": (pistol.LinearPistolClassifier, {}),
    "linear-regressor": (pistol.LinearPistolRegressor, {}),
}
HILBERT = {
    "hilbert-classifier": (pistol.LinearPistolClassifier, {"per_coordinate": False}),
    "hilbert-regressor": (pistol.LinearPistolRegressor, {"per_coordinate": False}),
}
ALL = KERNEL | COORDINATES | HILBERT


def _fixture(machines):
    """A fixture that hands out, for each machine, a function of the parameters to change."""

    @pytest.fixture(scope="session", params=machines.values(), ids=list(machines))
    def machine(request):
        make, own = request.param
        return lambda **changes: make(**{"orders": None, "passes": 1, **own, **changes})

    return machine


@pytest.fixture(scope="session", params=ALL.values(), ids=list(ALL))
def unscaled(request):
    """Machines that learn from sparse rows what they learn from dense ones.

    Linear machines scale dense rows and take sparse ones as they are, unless told otherwise.
    """
    make, own = request.param
    linear = "fit_intercept" in make().get_params()
    fixed = {"scaling": False} if linear else {}
    return lambda **changes: make(**{"orders": None, "passes": 1, **own, **fixed, **changes})


ESTIMATORS = list(dict.fromkeys(make for make, _ in ALL.values()))


@pytest.fixture(scope="session", params=ESTIMATORS, ids=lambda make: make.__name__)
def untouched(request):
    """Every estimator with nothing set but what a test changes."""
    return request.param


def _only(word):
    return {name: machine for name, machine in ALL.items() if word in machine[0].__name__}


machine = _fixture(ALL)
kernel_machine = _fixture(KERNEL)
linear_machine = _fixture(COORDINATES | HILBERT)
coordinate_machine = _fixture(COORDINATES)
classifier = _fixture({k: v for k, v in ALL.items() if k not in _only("Regressor")})
regressor = _fixture(_only("Regressor"))
pistol_machine = _fixture(_only("Pistol"))


@pytest.fixture(scope="session")
def having():
    """The machines, as such functions, that have a parameter of this name."""

    def find(name):
        makers = [
            lambda m=make, o=own, **c: m(**{"orders": None, "passes": 1, **o, **c})
            for make, own in ALL.values()
        ]
        return [make for make in makers if name in make().get_params()]

    return find


@pytest.fixture(scope="session")
def rows():
    """X and y for a model; multiples of 1/16 with some zeros, so that float32 holds them too."""

    def make(model, n=40, d=3, seed=0, labels=2):
        rng = np.random.default_rng(seed)
        X = rng.integers(-32, 33, (n, d)) / 16 * (rng.random((n, d)) < 0.8)
        target = X[:, 0] - X[:, -1] + rng.integers(-8, 9, n) / 16
        ranks = target.argsort(kind="stable").argsort()
        return X, (ranks * labels // n if is_classifier(model) else target)

    return make


@pytest.fixture(scope="session")
def scores():
    """Raw scores of a model, whatever its kind."""
    return lambda model, X: model.decision_function(X) if is_classifier(model) else model.predict(X)


@pytest.fixture(scope="session")
def assert_same(scores):
    """Two models are one function: scores agree to 1e-8 of the largest, or to the last bit.

    Kernel values of float32 rows have the precision of float32.
    """

    def check(model, other, X, other_X=None, *, exact=False, near=1e-8):
        ours, theirs = scores(model, X), scores(other, X if other_X is None else other_X)
        near = 1e-4 if getattr(X, "dtype", None) == np.float32 else near
        atol = 0 if exact else near * np.abs(theirs).max(initial=0.0)
        np.testing.assert_allclose(ours, theirs, rtol=0 if exact else near, atol=atol)

    return check


@pytest.fixture(scope="session")
def stream():
    """Feed rows to partial_fit in chunks that end at the given borders."""

    def feed(model, X, y, borders=(), sample_weight=None, convert=lambda chunk: chunk):
        more = {"classes": np.unique(y)} if is_classifier(model) else {}
        edges = [0, *sorted(borders), X.shape[0]]
        for lo, hi in pairwise(edges):
            weight = None if sample_weight is None else sample_weight[lo:hi]
            model.partial_fit(convert(X[lo:hi]), y[lo:hi], sample_weight=weight, **more)
        return model

    return feed


@pytest.fixture(scope="session")
def trained(rows):
    """A copy of a model that has learned its rows; each machine learns them once."""
    learned = {}

    def copied(model):
        key = type(model), repr(sorted(model.get_params().items()))
        if key not in learned:
            learned[key] = model.fit(*rows(model))
        return deepcopy(learned[key])

    return copied


@pytest.fixture(scope="session")
def refuses(scores, rows):
    """Check that a call fails with this message and leaves a model, trained or not, as it was."""

    def check(model, call, message, X=None, error=ValueError):
        X = rows(model)[0] if X is None else X
        trained = hasattr(model, "fitted_")

        def state():
            seen = vars(model) | {"scores": scores(model, X) if trained else None}
            return {name: pickle.dumps(value) for name, value in seen.items()}

        before = state()
        with pytest.raises(error, match=message):
            call()
        after = state()
        changed = [k for k in before | after if before.get(k) != after.get(k)]
        assert not changed

    return check
