"""BLAS keeps to one thread while any of ours is at work, and has its own number again afterwards."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier, get_ident

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info

from pistol import PistolClassifier
from pistol._compiled.threads import MANY, Held, one_blas_thread, workers


def blas():
    """The number of threads of each BLAS in the process."""
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


class Limit:
    """A limit that counts how often it was set and taken back, always by the thread that set it."""

    def __init__(self):
        self.set, self.restored, self.thread = 0, 0, None

    def __call__(self):
        return self

    def __enter__(self):
        assert self.set == self.restored, "set while it is set"
        self.set += 1
        self.thread = get_ident()

    def __exit__(self, *error):
        self.restored += 1
        assert self.set == self.restored
        assert self.thread == get_ident()


@settings(max_examples=50)
@given(moves=st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=30))
def test_it_is_set_while_any_thread_is_inside(moves):
    """Three threads enter and leave in any order, each as often as it likes."""
    limit = Limit()
    held, inside = Held(limit), [0, 0, 0]
    threads = [ThreadPoolExecutor(1) for _ in inside]
    for i, enter in moves:
        if enter:
            threads[i].submit(held.__enter__).result()
            inside[i] += 1
        elif inside[i]:
            threads[i].submit(held.__exit__).result()
            inside[i] -= 1
        assert limit.set - limit.restored == (sum(inside) > 0)
    for thread in (*threads, held.keeper):
        thread.shutdown()


def test_contexts_that_overlap_leave_no_limit_behind():
    before, barrier = blas(), Barrier(4)

    def work(i):
        barrier.wait()
        time.sleep(0.01 * i)
        with one_blas_thread():
            seen = blas()
            barrier.wait()  # when the first leaves, its limit is handed over: nobody looks just then
            time.sleep(0.05 - 0.005 * i)  # the first in is not the first out
        return seen

    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(work, range(4)))
        assert blas() == before  # while the threads live
    assert all(count == 1 for counts in seen for count in counts)
    assert blas() == before


def test_a_failure_inside_leaves_no_limit_behind():
    before = blas()
    with pytest.raises(ZeroDivisionError), one_blas_thread(), one_blas_thread():
        1 / 0  # noqa: B018
    assert blas() == before


def test_predictions_at_once_leave_blas_as_it_was():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    model = PistolClassifier(kernel="rbf", orders=None).fit(X, X[:, 0] > 0)
    expected, before = model.decision_function(X), blas()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: model.decision_function(X), range(40)))
    assert all(np.array_equal(scores, expected) for scores in found)
    assert blas() == before


def test_few_rows_have_one_thread():
    with workers(2, MANY - 1) as few, workers(2, MANY) as many:
        assert (few.n, many.n) == (1, 2)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_inside_workers_of_joblib_there_is_one_thread_unless_more_are_asked_for(backend):
    def threads_of(n_jobs):
        with workers(n_jobs) as threads:
            return threads.n

    with Parallel(2, backend=backend) as parallel:
        found = [parallel([delayed(threads_of)(n) for _ in range(2)]) for n in (None, 2)]
    assert found == [[1, 1], [2, 2]]


def test_one_of_several_tasks_shares_the_memory():
    with workers(2) as threads:
        assert threads.alone.spare is threads.spare
        assert threads.alone.n == 1


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_tasks_of_tasks_return_what_they_would_alone(n_jobs):
    """A task that waits for a thread which waits for it would never end."""

    def several(i):
        return threads.run([partial(pow, i, k) for k in range(7)])

    with workers(n_jobs) as threads:
        found = threads.run([partial(several, i) for i in range(9)])
    assert found == [[i**k for k in range(7)] for i in range(9)]


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_after_an_error_no_task_is_begun(n_jobs):
    begun = []

    def task(i):
        begun.append(i)
        if i == 2:
            raise OverflowError("two")

    with workers(n_jobs) as threads:
        with pytest.raises(OverflowError, match="two"):
            threads.run([partial(task, i) for i in range(1000)])
        assert len(begun) < 1000
        assert threads.run([lambda: 1, lambda: 2]) == [1, 2]
