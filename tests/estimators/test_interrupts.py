"""A call that fails or is interrupted leaves the estimator exactly as it was."""

import contextlib
import copy
import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.metrics.pairwise import rbf_kernel

from pistol import LinearPistolClassifier, LinearPistolRegressor, PistolClassifier, PistolRegressor

pytestmark = pytest.mark.no_cover  # tests of single parts count these lines

FOUR = [PistolClassifier, LinearPistolClassifier, PistolRegressor, LinearPistolRegressor]
four = pytest.mark.parametrize("make", FOUR)
errors = pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])


class Failing:
    """A callback that raises an error when a task begins or ends."""

    def __init__(self, error, task="pass", when="end", at=1):
        self.error, self.task, self.when, self.left = error, task, when, at
        self.torn_down = False

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.torn_down = True

    def on_fit_task_begin(self, estimator, context):
        self._look("begin", context)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self._look("end", context)

    def _look(self, when, context):
        if when == self.when and context.task_name == self.task:
            self.left -= 1
            if self.left == 0:
                raise self.error("stop")


def state(model):
    """All that a model has, to the last bit."""
    return {name: pickle.dumps(value) for name, value in vars(model).items() if name[0] != "_"}


def fitted_attributes(model):
    names = [name for name in dir(type(model)) if name.endswith("_") and not name.startswith("_")]
    return {name: pickle.dumps(getattr(model, name)) for name in names if hasattr(model, name)}


def two_problems(rows, model, n=80):
    """Two data sets that differ in features, classes and scale."""
    X, y = rows(model, n=n, d=3)
    Z, t = rows(model, n=n + 20, d=5, seed=1, labels=3)
    return (X, y), (1e3 * Z + 7, t if is_classifier(model) else 1e6 * t + 1e9)


def assert_undone(model, X, call, error):
    """The call fails, and afterwards the model is as it was before."""
    before, attributes = state(model), fitted_attributes(model)
    predictions = model.predict(X)
    with pytest.raises(error):
        call()
    assert state(model) == before
    assert fitted_attributes(model) == attributes
    np.testing.assert_array_equal(model.predict(X), predictions)


@errors
@pytest.mark.parametrize("when", ["begin", "end"])
@pytest.mark.parametrize("task", ["pass", "fit"])
def test_an_interrupted_refit_leaves_the_old_model(untouched, rows, task, when, error):
    model = untouched(random_state=0)
    (X, y), other = two_problems(rows, model)
    model.fit(X, y)
    callback = Failing(error, task, when)
    assert_undone(model.set_callbacks(callback), X, lambda: model.fit(*other), error)
    assert callback.torn_down


@errors
@pytest.mark.parametrize("task", ["rows", "pass", "fit"])
@pytest.mark.parametrize("changes", [{"orders": None, "passes": 2}, {"orders": 2, "passes": 2}])
def test_so_it_is_with_other_orders(machine, rows, task, changes, error):
    model = machine(random_state=0, **changes)
    (X, y), other = two_problems(rows, model)
    model.fit(X, y).set_callbacks(Failing(error, task, at=2 if task != "fit" else 1))
    assert_undone(model, X, lambda: model.fit(*other), error)


def test_an_interrupted_first_fit_leaves_an_unfitted_estimator(untouched, rows):
    model = untouched(random_state=0)
    X, y = rows(model)
    model.set_callbacks(Failing(KeyboardInterrupt))
    for call in (model.fit, model.partial_fit):
        with pytest.raises(KeyboardInterrupt):
            call(X, y)
        model.set_callbacks(Failing(KeyboardInterrupt))
        assert not hasattr(model, "fitted_")


@pytest.mark.parametrize(("task", "drift"), [("rows", False), ("rows", True), ("fit", True)])
@four
def test_an_interrupted_stream_goes_on_as_if_nothing_had_happened(make, rows, task, drift):
    X, y = rows(make(), n=700)
    X[300:] = 30 * X[300:] + 5  # so that features and targets are scaled anew
    y = y if is_classifier(make()) else np.where(np.arange(700) < 300, y, 100 * y - 50)
    more = {"classes": np.unique(y)} if is_classifier(make()) else {}
    model, other = (make(drift=drift).partial_fit(X[:280], y[:280], **more) for _ in range(2))
    rest = X[280:600], y[280:600]
    for at in (1, 2) if task == "rows" else (1,):
        model.set_callbacks(Failing(KeyboardInterrupt, task, at=at))
        assert_undone(model, X, lambda: model.partial_fit(*rest), KeyboardInterrupt)
    model.set_callbacks()
    for part in (rest, (X[600:], y[600:])):
        model.partial_fit(*part)
        other.partial_fit(*part)
        assert fitted_attributes(model) == fitted_attributes(other)
        np.testing.assert_array_equal(model.predict(X), other.predict(X))


class Fragile:
    """A Gaussian kernel that is interrupted in one of its calls."""

    def __init__(self):
        self.left = -1

    def __call__(self, A, B):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return rbf_kernel(A, B, gamma=0.5)

    def __reduce__(self):
        return Fragile, ()


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_an_interrupt_may_come_from_a_kernel_function(kernel_machine, rows, call):
    kernel = Fragile()
    model = kernel_machine(kernel=kernel, orders=2, random_state=0)
    X, y = rows(model, n=700)
    model.fit(X[:40], y[:40])
    for left in (1, 2, 4):
        before, scored = state(model), model.predict(X)
        kernel.left = left
        with pytest.raises(KeyboardInterrupt):
            getattr(model, call)(X[40:], y[40:])
        kernel.left = -1
        assert state(model) == before
        np.testing.assert_array_equal(model.predict(X), scored)


# At any moment

CTRL_C = """
import copy, pickle, signal, time
import numpy as np
import pistol

def interrupt(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
rng = np.random.default_rng(0)
X, Z = rng.normal(size=(100, 3)), 10 * rng.normal(size=(200, 3)) + 3
for name in ("PistolClassifier", "LinearPistolClassifier", "PistolRegressor", "LinearPistolRegressor"):
    y, t = X[:, 0] - X[:, 1], 1e3 * Z[:, 0]
    if name.endswith("Classifier"):
        y, t = y > 0, t > 3e3
    model = getattr(pistol, name)(random_state=0).fit(X, y)
    for call in ("fit", "partial_fit"):
        finished = copy.deepcopy(model)
        getattr(finished, call)(Z, t)
        timed = copy.deepcopy(model)
        began = time.perf_counter()
        getattr(timed, call)(Z, t)
        took = time.perf_counter() - began
        states = [pickle.dumps(each.fitted_) for each in (model, finished)]
        cut = 0
        for share in rng.uniform(0, 0.9, 20):
            if cut == 2:
                break
            tried = copy.deepcopy(model)
            try:
                signal.setitimer(signal.ITIMER_REAL, max(share * took, 1e-4))
                getattr(tried, call)(Z, t)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                cut += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if pickle.dumps(tried.fitted_) not in states:
                print(f"{name}.{call} is neither the old model nor the new one")
        if not cut:
            print(f"{name}.{call} was never interrupted")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no timer signals here")
def test_ctrl_c_at_any_moment_leaves_the_old_model_or_the_new_one():
    """In a process of its own: an interrupt may hit whatever runs, also what measures coverage."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    command = [sys.executable, "-c", CTRL_C]
    done = subprocess.run(command, env=plain, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


class Steps:
    """Counts the calls into modules of some packages; at the n-th of them comes an interrupt.

    This is where CPython looks for signals: when a function, or a generator again, begins to run.
    """

    packages = tuple(f"pistol._{room}" for room in ("data", "learners", "training", "estimators"))

    def __init__(self, at=None):
        self.at, self.n = at, 0

    def __call__(self, frame, event, arg):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith((*self.packages, "contextlib")):
            self.n += 1
            if self.n == self.at:
                sys.settrace(None)
                raise KeyboardInterrupt


@contextlib.contextmanager
def traced(steps):
    before = sys.gettrace()
    sys.settrace(steps)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("drift", [False, True])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@four
def test_an_interrupt_between_any_two_calls_leaves_the_old_model_or_the_new(
    make, rows, layout, drift
):
    X, y = rows(make(), n=80)
    X = layout(np.repeat([1.0, 40.0], [30, 50])[:, None] * X)
    model = make(drift=drift, **({"n_jobs": 1} if hasattr(make(), "n_jobs") else {}))
    model.partial_fit(X[:30], y[:30])
    finished, steps = copy.deepcopy(model), Steps()
    with traced(steps):
        finished.partial_fit(X[30:], y[30:])
    old, new = state(model)["fitted_"], state(finished)["fitted_"]
    assert old != new
    last = range(steps.n - 12, steps.n + 1)  # the end, where what was learned is handed over
    for at in sorted({*np.linspace(1, steps.n, 15).astype(int), *last}):
        tried = copy.deepcopy(model)
        with contextlib.suppress(KeyboardInterrupt), traced(Steps(at)):
            tried.partial_fit(X[30:], y[30:])
        assert state(tried)["fitted_"] in (old, new), f"call {at} of {steps.n}"
