"""Threads may predict while another one learns."""

import sys
import threading
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import is_classifier

from pistol import LinearPistolClassifier, LinearPistolRegressor, PistolClassifier, PistolRegressor

pytestmark = pytest.mark.no_cover  # tests of single parts count these lines

FOUR = [PistolClassifier, LinearPistolClassifier, PistolRegressor, LinearPistolRegressor]


@pytest.fixture
def readers():
    """Threads that call a function again and again; what they saw, and what went wrong."""
    stop, threads, seen, failures = threading.Event(), [], [], []

    def start(look, n=2):
        def read():
            while not stop.is_set():
                try:
                    seen.append(look())
                except Exception as failure:
                    failures.append(failure)
                    return

        threads.extend(threading.Thread(target=read) for _ in range(n))
        for thread in threads:
            thread.start()

    def end():
        stop.set()
        for thread in threads:
            thread.join()
        return seen, failures

    yield start, end
    end()


@pytest.mark.parametrize("drift", [False, True])
@pytest.mark.parametrize("make", FOUR)
def test_predictions_during_partial_fit_leave_no_trace(make, rows, scores, readers, drift):
    linear = make in (LinearPistolClassifier, LinearPistolRegressor)
    n = 4000 if linear else 1500
    n = n // 4 if drift else n
    X, y = rows(make(), n=n, d=5)
    more = {"classes": np.unique(y)} if is_classifier(make()) else {}
    cuts = [100, n // 2, n // 2 + 1, n]

    def learn(model):
        for lo, hi in pairwise(cuts):
            model.partial_fit(X[lo:hi], y[lo:hi])
        return model

    model, alone = (make(drift=drift).partial_fit(X[:100], y[:100], **more) for _ in range(2))
    start, end = readers
    start(lambda: scores(model, X[:5]))
    learn(model)
    seen, failures = end()
    assert not failures
    assert seen
    assert np.isfinite(seen).all()
    np.testing.assert_array_equal(scores(model, X), scores(learn(alone), X))


@pytest.mark.parametrize("make", FOUR)
def test_a_reader_sees_the_old_model_or_the_new_one(make, rows, scores, readers):
    X, y = rows(make(), n=300)
    Z, t = rows(make(), n=200, seed=1)
    model = make(random_state=0).fit(X, y)
    old = scores(model, X[:5])
    start, end = readers
    start(lambda: scores(model, X[:5]))
    new = scores(model.fit(Z, t), X[:5])
    seen, failures = end()
    assert not failures
    assert all(np.array_equal(found, old) or np.array_equal(found, new) for found in seen)


@pytest.fixture
def _busy_threads():
    """Threads that take turns often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_busy_threads")
@pytest.mark.parametrize("make", [PistolRegressor, LinearPistolRegressor])
def test_a_reader_of_a_stream_sees_a_model_between_two_calls(make, readers):
    """Never the learners of one and the scaling of another."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 5)) * [1, 10, 1, 1, 1]
    f = X[:, 0] + X[:, 1]
    y = np.where(np.arange(1500) < 500, f, 1e4 + 100 * f)
    model, alone = (make().partial_fit(X[:50], y[:50]) for _ in range(2))
    start, end = readers
    start(lambda: model.predict(X[:5]))
    for lo in range(50, 1500, 50):
        model.partial_fit(X[lo : lo + 50], y[lo : lo + 50])
    seen, failures = end()
    assert not failures
    known = [alone.predict(X[:5])]
    for lo in range(50, 1500, 50):
        known.append(alone.partial_fit(X[lo : lo + 50], y[lo : lo + 50]).predict(X[:5]))
    assert {found.tobytes() for found in seen} <= {found.tobytes() for found in known}
