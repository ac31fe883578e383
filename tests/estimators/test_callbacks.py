"""Callbacks of scikit-learn look on, stop and interrupt; `verbose` prints."""

import re

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.model_selection import GridSearchCV


class Watch:
    """A callback that counts tasks, keeps scores, and may stop or fail at the end of one."""

    def __init__(self, at=None, task="pass", error=None, look=None):
        self.at, self.task, self.error, self.look = at, task, error, look
        self.begun, self.ended, self.seen = [], [], []

    def setup(self, estimator, context):
        self.torn_down = False

    def teardown(self, estimator, context):
        self.torn_down = True

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.ended.append(context.task_name)
        if self.look is not None:
            self.seen.append((fitted_estimator, self.look(fitted_estimator, X)))
        if self.at is None or self.ended.count(self.task) < self.at:
            return False
        if self.error is not None:
            raise self.error
        return context.task_name == self.task


def test_every_task_that_begins_ends(machine, rows, assert_same):
    X, y = rows(machine(), n=300)
    watch = Watch()
    model = machine(orders=2, passes=3, random_state=0)
    watched = clone(model).set_callbacks(watch).fit(X, y)
    assert sorted(watch.begun) == sorted(watch.ended)
    assert watch.ended.count("pass") == 6
    assert watch.ended[-1] == "fit"
    assert watch.torn_down
    assert_same(watched, model.fit(X, y), X, exact=True)


def test_progress_bar_runs(machine, rows, capsys, stream):
    X, y = rows(machine())
    model = machine(orders=2, random_state=0).set_callbacks(ProgressBar()).fit(X, y)
    stream(model, X, y, [10])
    assert type(model).__name__ in capsys.readouterr().out


def test_progress_bar_reaches_into_a_search(machine, rows, capsys):
    X, y = rows(machine())
    search = GridSearchCV(machine(), {"passes": [1, 2]}, cv=2).set_callbacks(ProgressBar())
    assert search.fit(X, y).predict(X).shape == y.shape
    assert "GridSearchCV" in capsys.readouterr().out


def test_stopping_early_is_training_for_fewer_passes(machine, rows, assert_same):
    X, y = rows(machine())
    stopped = machine(passes=5).set_callbacks(Watch(at=2)).fit(X, y)
    assert_same(stopped, machine(passes=2).fit(X, y), X, exact=True)
    assert stopped.t_ == 2 * len(X)


def test_stopping_between_blocks_is_training_on_fewer_rows(kernel_machine, rows, assert_same):
    X, y = rows(kernel_machine(), n=700)
    stopped = kernel_machine().set_callbacks(Watch(at=9, task="rows")).fit(X, y)
    n = int(stopped.t_)
    assert 0 < n < len(X)
    assert_same(stopped, kernel_machine().fit(X[:n], y[:n]), X)


def test_a_stopped_model_learns_on(machine, rows, stream, scores):
    X, y = rows(machine())
    stopped = machine(passes=5).set_callbacks(Watch(at=1)).fit(X, y)
    stream(stopped.set_callbacks(), X, y)
    assert stopped.t_ == 2 * len(X)
    assert np.isfinite(scores(stopped, X)).all()


@pytest.mark.parametrize("orders", [None, 3])
def test_an_interrupt_keeps_the_rounds_that_were_played(machine, rows, assert_same, orders):
    X, y = rows(machine())
    watch = Watch(at=1, error=KeyboardInterrupt())
    model = machine(passes=2, orders=orders, random_state=0).set_callbacks(watch)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert watch.torn_down
    assert model.t_ == len(X)
    assert_same(model, machine(orders=orders and 1, random_state=0).fit(X, y), X)


def test_an_interrupted_partial_fit_keeps_what_was_learned(machine, rows, scores, stream):
    X, y = rows(machine(), n=300)
    model = stream(machine(), X[:40], y[:40])
    model.set_callbacks(Watch(at=1, task="rows", error=KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        stream(model, X[40:], y[40:])
    assert 40 < model.t_ <= 300
    assert np.isfinite(scores(model, X)).all()


def test_scores_are_monitored(machine, rows):
    X, y = rows(machine())
    name = "accuracy" if is_classifier(machine()) else "r2"
    monitor = ScoringMonitor(scoring=name)
    model = machine(passes=3).set_callbacks(monitor).fit(X, y)
    log = monitor.get_logs().data_as_pandas
    passes = log[log.task_name == "pass"]
    assert len(passes) == 3
    np.testing.assert_allclose(passes[name].iloc[-1], model.score(X, y))


def test_a_callback_sees_the_model_as_of_its_task(machine, rows, scores):
    X, y = rows(machine())
    watch = Watch(look=scores)
    machine(passes=3).set_callbacks(watch).fit(X, y)
    for model, then in watch.seen:  # a snapshot: later rounds do not reach it
        np.testing.assert_array_equal(scores(model, X), then)


def test_a_failing_callback_of_fit_leaves_the_model_as_it_was(machine, rows, scores):
    X, y = rows(machine(), n=300)
    model, watch = machine().fit(X[:40], y[:40]), Watch(at=1, error=RuntimeError("no"))
    before = scores(model, X)
    with pytest.raises(RuntimeError, match="no"):
        model.set_callbacks(watch).fit(X[40:], y[40:])
    assert watch.torn_down
    assert model.t_ == 40
    np.testing.assert_array_equal(scores(model, X), before)


def test_after_a_failing_callback_a_stream_goes_on(machine, rows, stream, assert_same):
    X, y = rows(machine(), n=300)
    model, watch = stream(machine(), X[:40], y[:40]), Watch(at=1, error=RuntimeError("no"))
    with pytest.raises(RuntimeError, match="no"):
        stream(model.set_callbacks(watch), X[40:290], y[40:290])
    assert watch.torn_down
    t = int(model.t_)  # all or nothing of the chunk: the model is what its rounds make of it
    assert_same(model, machine().fit(X[:t], y[:t]), X)
    assert_same(stream(model.set_callbacks(), X[t:], y[t:]), machine().fit(X, y), X)


def test_verbose_prints_loss_and_error_as_rounds_double(machine, rows, capsys):
    X, y = rows(machine(), n=700)
    machine().fit(X, y)
    assert capsys.readouterr().out == ""
    model = machine(verbose=True).fit(X, y)
    line = rf"\[{type(model).__name__}\] (\d+) rounds, online loss (\S+), online error (\S+)"
    found = re.findall(line, capsys.readouterr().out)
    rounds = [int(number) for number, _, _ in found]
    assert rounds == sorted(rounds)
    assert 1 <= len(rounds) <= 10
    assert float(found[-1][2]) == pytest.approx(model.online_error_, rel=0.25, abs=0.2)
