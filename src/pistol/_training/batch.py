"""`fit`: a race on held-out rows where something is left to choose, then shuffled orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._compiled.memory import kept
from .._compiled.threads import Workers, one_blas_thread, workers
from .._compiled.types import Array, read_only
from .._data.fences import SAMPLE
from .._data.mapped import Mapped
from .._data.ordering import Rounds, as_given, copies, round_size, sampled, shuffled
from .._data.steps import Onwards, onwards
from .._learners import Chunk, Rule
from .families import Candidate, Data
from .fitted import Counts, Fitted, Online, learned_before
from .folds import Folds
from .full_orders import FullOrders
from .metric import levels
from .plan import Plan, Race, make_plan
from .race import Contest, Racer, within
from .stream import begin_stream, learn_stream
from .tasks import Task, mean_error
from .together import learn_many
from .watch import Watch
from .ways import Level, Ways, leading
from .work import Problem, Setup, Work

NEAR = 0.05  # a candidate whose loss on a sample is larger by this share is not tried on all rows


def train(data: Data, problem: Problem, setup: Setup, watch: Watch) -> Fitted:
    """Learn from all rows of a data set."""
    size = round_size(data.weight)
    rounds = as_given(data.weight, size)
    plan = make_plan(
        len(rounds.rows),
        setup.passes,
        setup.orders,
        problem.family.limits,
        data.X.shape[1],
        data.Y.shape[1],
    )
    if plan.orders is None:
        return _train_in_order(data, rounds, problem, setup, plan.passes, size, watch)
    try:
        return _shuffled(data, rounds, problem, setup, plan, size, watch)
    finally:
        kept.offer()


def _train_in_order(
    data: Data, rounds: Rounds, problem: Problem, setup: Setup, passes: int, size: float, watch: Any
) -> Fitted:
    """What `partial_fit` would learn from these rows, for each pass."""
    T = float(data.weight.sum()) * passes
    fitted = begin_stream(data, problem, T, size, setup.columns, setup.settings)
    watch.begin(passes)
    fitted = learn_stream(fitted, data, rounds, problem, passes, setup.n_rows, watch)
    return watch.end(fitted)


def _shuffled(
    data: Data, rounds: Rounds, problem: Problem, setup: Setup, plan: Plan, size: float, watch: Any
) -> Fitted:
    """Shuffled orders, with a race where the plan has one."""
    problem = problem._replace(task=problem.task.suited(data.Y, data.weight))
    targets = problem.task.scaler(data.Y, data.weight)
    work = scaled_work(data, rounds, problem, setup, size, targets)
    if not plan.cell:
        work = work.in_memory()
    if plan.race is None:
        watch.begin(plan.passes * (plan.orders or 1))
        scaled = work.data
        candidate = problem.family.usual(scaled.X, scaled.weight, work.blank.scaler)
        return watch.end(_orders(work, candidate, plan.orders or 1, plan.passes, watch))
    if not plan.race.sample:
        watch.begin(None)
        if plan.trial is not None:
            chosen, work = race_on_sample(work, plan.trial)
            work = work._replace(problem=problem._replace(family=problem.family.settled))
            return watch.end(_race(work, plan.race, watch, chosen.leading).fitted)
        return watch.end(_race(work, plan.race, watch).fitted)
    chosen, work = race_on_sample(work, plan.race)
    if plan.cell:
        return watch.end(learn_many(work, chosen.number, chosen.fitted.passes, plan, watch))
    passes = max(1, min(chosen.fitted.passes, plan.passes))
    watch.begin(passes * (plan.orders or 1))
    return watch.end(_orders(work, chosen.candidate, plan.orders or 1, passes, watch, True))


def scaled_work(
    data: Data, rounds: Rounds, problem: Problem, setup: Setup, size: float, targets: Any
) -> Work:
    """All that is known before anything is learned; dense rows are scaled when they are asked for."""
    task, family = problem.task, problem.family
    # hashes are of the rows as given: scaled values are rounded
    hashes, seen = family.content(data._replace(Y=task.content(data.Y, data.weight)))
    sample = cache(partial(sampled, hashes, rounds, SAMPLE))
    X = family.fenced(data.X, seen, sample)
    scaler = family.scaler(X, data.weight, sample)
    Z = scaler.transform(X) if sp.issparse(X) else Mapped(X).then(scaler.transform)
    scaled = data._replace(X=Z, Y=targets.transform(data.Y) if task.scaled else data.Y)
    counts = Counts(setup.n_rows, len(rounds.rows), size)
    blank = Fitted(
        task, family, setup.columns, scaler, targets, [], 0, Online(), counts,
        settings=setup.settings,
    )  # fmt: skip
    return Work(scaled, rounds, hashes, problem, setup, size, blank)


def race_on_sample(work: Work, race: Race) -> tuple[Chosen, Work]:
    """What a race on some of the rows has chosen, and all rows in the metric that it has found."""
    chosen = _race(work.sample(race.sample), race, None)
    scaler, error = chosen.fitted.scaler, chosen.fitted.held_out_error
    steps = work.problem.family.compact, Onwards(work.blank.scaler, scaler)
    blank, Z = replace(work.blank, scaler=scaler, held_out_error=error), work.data.X
    for step in steps:
        Z = Z.then(step) if isinstance(Z, Mapped) else step(Z)
    return chosen, work._replace(data=work.data._replace(X=Z), blank=blank)


def _orders(
    work: Work,
    candidate: Candidate,
    orders: int,
    passes: int,
    watch: Watch,
    calibrate: bool = False,
) -> Fitted:
    """Learn some shuffled orders of all rows, each some passes long."""
    data, task, targets = work.data, work.problem.task, work.blank.targets
    rule = work.problem.rule(float(data.weight.sum()) * passes, work.size)
    learners = [work.learner(candidate, rule) for _ in range(orders)]
    seeds = work.setup.random().randint(2**31 - 1, size=(orders, passes))
    online, told = Online(), []
    now = partial(replace, work.blank, learners=learners, passes=passes)

    for learner, row in zip(learners, seeds, strict=True):
        for number, seed in enumerate(row):
            watch.begin_pass()
            order, r = shuffled(work.hashes, work.rounds, seed)
            for chunk in learner.play(data.X, data.Y, order, r, data.ids):
                if number == 0:
                    before = learned_before(chunk.r, learner.t - float(chunk.r.sum()))
                    online = online.then(chunk, data.Y, task, targets, rule, before)
                    told.append(chunk)
                if watch.rows(online, partial(now, online=online)):
                    break
            if watch.end_pass(online, partial(now, online=online)):
                break
    T = _temperature(task, told[len(told) // 2 :], data.Y) if calibrate else None
    return now(online=online, temperature=T)


def _temperature(task: Task, chunks: list[Chunk], V: Array) -> float | None:
    """The temperature that suits predictions made before their rows were learned."""
    rows, r, P = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    return task.temperature(P, V[rows], r)


class Chosen(NamedTuple):
    """What a race chose, and what was learned on the way."""

    number: int  # of the candidate
    leading: list[int]  # numbers of the best candidates
    candidate: Candidate
    fitted: Fitted


def _ways_of(
    work: Work,
    plan: Race,
    seed: int,
    threads: Workers,
    numbers: list[int] | None = None,
    watched: bool = False,
) -> Ways:
    """What a race is about: folds of all rows, the scalings to choose from, and the rule."""
    data, task = work.data, work.problem.task
    rounds = shuffled(work.hashes, work.rounds, 0)
    groups = task.groups(data.Y)[rounds.rows]
    copy_of = copies(rounds, work.hashes, data.X, data.Y)
    folds = Folds.of(rounds, copy_of, groups, plan.folds, plan.share, seed)
    rule = work.problem.rule(float(data.weight.sum()), work.size)
    V, few = read_only(data.Y[rounds.rows]), None
    if folds.k > 1:
        some = folds.first()
        few = Contest(data.Y, some, task.held_out_loss(V, some.counted, rule), threads, watched)
    loss = task.held_out_loss(V, folds.counted, rule)
    contest = Contest(data.Y, folds, loss, threads, watched, few)
    return Ways(contest, work.problem.family, data, _scalings_of(work), rule, plan.most, numbers)


def _scalings_of(work: Work) -> list[Any]:
    """The scalers that a race on these rows chooses from."""
    blank, data = work.blank, work.data
    return work.problem.family.scalings(data.X, data.weight, blank.scaler, blank.counts.rounds)


def _error_of(work: Work, ways: Ways, best: Racer) -> float | None:
    """The error of a candidate on held-out rows."""
    folds, task = ways.contest.folds, work.problem.task
    V = read_only(work.data.Y[folds.rounds.rows])
    return mean_error(task, best.held_out, V, folds.counted, work.blank.targets)


def _race(work: Work, plan: Race, watch: Watch | None, numbers: list[int] | None = None) -> Chosen:
    """A race between all candidates or some, and the shuffled orders of all rows that follow it."""
    data, family, task = work.data, work.problem.family, work.problem.task
    seed = work.seed()
    size = len(work.rounds.rows) * data.Y.shape[1]
    with workers(family.n_jobs, size) as threads, one_blas_thread():
        watched = watch is not None and watch.active
        ways = _ways_of(work, plan, seed, threads, numbers, watched)
        folds, rule = ways.contest.folds, ways.rule
        rounds = folds.rounds
        orders = FullOrders(data.Y, rounds, [(seed, plan.folds + i) for i in range(plan.full)])
        settled = plan.full > 0 and folds.k == 1 and not ways.several
        for level in _settled(ways, orders) if settled else levels(ways):
            if watch is not None and watched and _stopped(work, level, rule, watch):
                break
        best, scaler = level.best, level.metric()
        data = data._replace(X=onwards(level.data.X, level.scaler, scaler))
        (candidate,) = family.candidates(data.X, data.weight, scaler, [best.number]).values()
        if plan.full:  # on kernel values of the race, where these are for all rows
            make = best.again or family.runs([candidate], data, rule, threads)[0]
            threads.run(orders.follow(best, make))
    learners = [run.learner() for run in orders.runs]
    T = task.temperature(best.held_out, read_only(data.Y[rounds.rows]), folds.counted)
    fitted = replace(
        work.blank,
        learners=learners,
        scaler=scaler,
        passes=best.passes,
        online=_online(work, best, rule),
        temperature=T,
        held_out_error=_error_of(work, ways, best),
    )
    return Chosen(best.number, leading(_near(level.racers)), candidate, fitted)


def _near(racers: list[Racer]) -> list[Racer]:
    """Those whose loss is larger than the least by some share at most."""
    return [racers[i] for i in within(NEAR, [racer.best for racer in racers])]


def _settled(ways: Ways, orders: FullOrders) -> Iterator[Level]:
    """A race in the only scaling, on kernel values of all rows, which full orders share.

    Threads that the race does not need learn full orders of the best candidate so far.
    """
    contest, data, (scaler,) = ways.contest, ways.data, ways.scalers
    candidates = ways.family.candidates(data.X, data.weight, scaler, ways.numbers)
    columns = contest.folds.columns(None)
    runs = ways.family.runs(list(candidates.values()), data, ways.rule, contest.threads, *columns)
    makers = dict(zip(candidates, runs, strict=True))
    racers = [Racer(number, [make()], make) for number, make in makers.items()]

    def beside() -> list[Callable[[], Any]]:
        best = min(racers, key=lambda racer: racer.best)
        return orders.follow(best, makers[best.number])

    for best in contest._replace(beside=beside).race(racers, ways.most):
        yield Level(best, racers, scaler, data)


def _stopped(work: Work, level: Level, rule: Rule, watch: Watch) -> bool:
    """Show what the race has come to; whether a callback asks to stop."""
    watch.begin_pass()
    return watch.end_pass(_online(work, level.best, rule), lambda: _so_far(work, level, rule))


def _so_far(work: Work, level: Level, rule: Rule) -> Fitted:
    """What the first fold of the best candidate so far has learned."""
    online = _online(work, level.best, rule)
    return replace(
        work.blank,
        learners=[level.best.learner()],
        scaler=level.metric(0),
        passes=level.best.passes,
        online=online,
    )


def _online(work: Work, best: Racer, rule: Rule) -> Online:
    """What the first passes of the best candidate so far say."""
    online, task = Online(), work.problem.task
    for chunk in best.first:
        before = learned_before(chunk.r)
        online = online.then(chunk, work.data.Y, task, work.blank.targets, rule, before)
    return online
