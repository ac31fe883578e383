"""Callbacks of scikit-learn look on and stop; `verbose` prints."""

import re

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.model_selection import GridSearchCV

from pistol import PistolClassifier
from pistol._learners import Cells
from pistol._training import together
from pistol._training.kernel_family import KernelFamily
from pistol._training.plan import Limits


class Watch:
    """A callback that counts tasks, keeps scores, and may stop at the end of one."""

    def __init__(self, at=None, task="pass", look=None):
        self.at, self.task, self.look = at, task, look
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


# With the settings that users run

SETTINGS = {"defaults": {}, "orders": {"orders": 2, "passes": 2}, "as-given": {"orders": None}}
all_settings = pytest.mark.parametrize("changes", SETTINGS.values(), ids=list(SETTINGS))


class Given:
    """A callback that keeps what each task was given."""

    def __init__(self):
        self.tasks = []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.tasks.append((X, y))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.tasks.append((X, y))
        fitted_estimator.predict(X)


def assert_given(callback, X, y):
    assert callback.tasks
    assert all(given is X and target is y for given, target in callback.tasks)


@all_settings
def test_callbacks_get_the_users_own_rows(untouched, rows, changes):
    model = untouched(random_state=0, **changes)
    X, y = rows(model, n=60)
    callback = Given()
    model.set_callbacks(callback).fit(X, y)
    assert_given(callback, X, y)
    streaming, more = untouched(), Given()
    streaming.set_callbacks(more).partial_fit(X, y)
    assert_given(more, X, y)


def test_callbacks_get_the_users_own_rows_where_there_are_many(rows, monkeypatch):
    monkeypatch.setattr(KernelFamily, "limits", Limits(few=150, sample=80, cell=60, base=150))
    monkeypatch.setattr(together, "few_gradients", lambda work: False)  # cells alone
    model = PistolClassifier(random_state=0)
    X, y = rows(model, n=400, d=2)
    callback = Given()
    model.set_callbacks(callback).fit(X, y)
    assert_given(callback, X, y)
    assert all(isinstance(learner, Cells) for learner in model.fitted_.learners)


@all_settings
def test_the_last_monitored_score_is_that_of_the_model(untouched, rows, changes):
    model = untouched(random_state=0, **changes)
    X, y = rows(model, n=100, d=4)
    X = 50 * X + 1000  # rows that are scaled are not the user's
    name = "accuracy" if is_classifier(model) else "r2"
    monitor = ScoringMonitor(scoring=name)
    score = model.set_callbacks(monitor).fit(X, y).score(X, y)
    log = monitor.get_logs().data_as_pandas
    assert not log[name].isna().any()
    final = log[log.task_name == "fit"]
    assert len(final) == 1
    np.testing.assert_allclose(final[name].iloc[0], score, rtol=1e-12)


@all_settings
def test_verbose_prints_in_fit(untouched, rows, capsys, changes):
    model = untouched(verbose=True, random_state=0, **changes)
    X, y = rows(model, n=60)
    model.fit(X, y)
    assert f"[{type(model).__name__}]" in capsys.readouterr().out


def test_verbose_prints_in_partial_fit(untouched, rows, capsys, assert_same):
    model, silent = untouched(verbose=True), untouched()
    X, y = rows(model, n=60)
    for half in (slice(30), slice(30, None)):
        model.partial_fit(X[half], y[half])
        assert f"[{type(model).__name__}]" in capsys.readouterr().out
        silent.partial_fit(X[half], y[half])
        assert capsys.readouterr().out == ""
    assert_same(model, silent, X, exact=True)
