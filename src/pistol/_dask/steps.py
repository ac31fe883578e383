"""What workers do. Each function depends on its arguments alone, so a lost result is computed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state, compute_class_weight

from .._compiled.types import Array, read_only
from .._data import blocks as counting
from .._data.blocks import Sample, Survey, stacked
from .._data.files.basics import Chunk
from .._data.intake import check_more
from .._data.ordering import size_of
from .._data.tables import Table
from .._data.validation import check_weight, usable
from .._estimators.base import Begun, begin, settings_of
from .._training import spread_cells as cells
from .._training import spread_choice as choice
from .._training import spread_linear as linear
from .._training.families import Data
from .._training.fitted import Counts, Fitted, calibrated
from .._training.plan import Limits, make_plan
from .memory import kept


class Ready(NamedTuple):
    """A plain estimator, and what all blocks are learned with: columns, scaling, choices."""

    estimator: Any
    shared: Any

    @property
    def model(self) -> Any:
        """The estimator with all that is known so far, which is not yet a model to be sent."""
        model = clone(self.estimator)
        model.fitted_ = self.shared.blank
        return model


def family_of(estimator: Any) -> Any:
    """The family that the parameters describe."""
    return estimator._recipe(SimpleNamespace(**settings_of(estimator))).family


def counts_of(survey: Survey) -> Counts:
    """Rows, rounds and their size, for all blocks."""
    size = size_of(survey.rounds, survey.weight, survey.counted)
    return Counts(survey.rows, int(np.ceil(survey.rounds / size)), size)


def weighted(estimator: Any, survey: Survey) -> tuple[Any, Survey]:
    """With class weights as numbers, and counts that have them."""
    given = getattr(estimator, "class_weight", None)
    if given is None or survey.labels is None or survey.shares is None:
        return estimator, survey
    labels, shares = survey.labels, survey.shares
    each = compute_class_weight(given, classes=labels, y=labels, sample_weight=shares)
    total = float(shares @ each)
    if not total > 0:
        raise ValueError("class_weight times sample_weight is zero for all rows")
    survey = survey._replace(weight=total, rounds=total + survey.counted, shares=shares * each)
    factors = dict(zip(labels.tolist(), each.tolist(), strict=True))
    return clone(estimator).set_params(class_weight=factors), survey


def counted(block: Chunk, number: int, blocks: int, classes: bool) -> tuple[Survey, Sample]:
    """Counts of a block, and some of its rows."""
    return counting.survey(block, classes), counting.sample(block, number, blocks)


def counted_together(parts: Sequence[tuple[Survey, Sample]]) -> tuple[Survey, Sample]:
    """The same for some blocks."""
    counts, rows = zip(*parts, strict=True)
    return counting.surveys(counts), counting.samples(rows)


def survey_of(counts: tuple[Survey, Sample]) -> Survey:
    """The counts without the rows, which stay on the workers."""
    return counts[0]


def sample_of(counts: tuple[Survey, Sample]) -> Sample:
    """The rows."""
    return counts[1]


def fit_whole(estimator: Any, blocks: Sequence[Chunk]) -> Fitted:
    """What one machine learns from all rows."""
    rows, alone = stacked(blocks), one_thread(estimator)
    return alone.fit(rows.X, rows.y, sample_weight=rows.weight).fitted_


def _begun(estimator: Any, sample: Sample, survey: Survey) -> Begun:
    """The sample, as a fit of one machine would see it."""
    rows = sample.rows
    begun = begin(estimator, rows.X, rows.y, rows.weight, survey.labels)
    first = np.array(survey.starts())[sample.places[:, 0]] + sample.places[:, 1]
    return begun._replace(data=begun.data._replace(ids=first[begun.data.ids]))


def _ends(begun: Begun, survey: Survey) -> Array | None:
    return None if survey.ends is None else begun.problem.task.encode(survey.ends)


def seeded(estimator: Any) -> Any:
    """An estimator like this one whose tasks draw the same numbers whenever they are computed."""
    if isinstance(estimator.random_state, Integral):
        return estimator
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    return clone(estimator).set_params(random_state=seed)


def one_thread(estimator: Any) -> Any:
    """An estimator like this one that keeps to its thread: Dask says what runs beside it."""
    own = clone(estimator)
    return own.set_params(n_jobs=1) if "n_jobs" in own.get_params() else own


def start_cells(estimator: Any, limits: Limits, survey: Survey, sample: Sample) -> choice.Start:
    """A sample from which cells are chosen; the plan for all rows is that of one machine."""
    begun, total = _begun(one_thread(estimator), sample, survey), counts_of(survey)
    data = begun.data
    shape = data.X.shape[1], data.Y.shape[1]
    plan = make_plan(total.rounds, estimator.passes, estimator.orders, limits, *shape)
    return choice.begin_choice(
        data, begun.problem, begun.setup, plan, total, survey.weight, _ends(begun, survey)
    )


def settled(estimator: Any, start: choice.Start) -> Ready:
    """What races on the sample have chosen."""
    return Ready(estimator, choice.settled(start))


def start_linear(estimator: Any, survey: Survey, sample: Sample) -> Ready:
    """What a sample says for linear models."""
    begun = _begun(estimator, sample, survey)
    common = linear.begin_linear(
        begun.data,
        begun.problem,
        begun.setup,
        counts_of(survey),
        survey.weight,
        _ends(begun, survey),
    )
    return Ready(estimator, common)


def rows_of(ready: Ready, block: Chunk, first: int) -> Data:
    """A block as rows of numbers, targets and weights; `first` is the number of its first row."""
    model, known = ready.model, ready.shared.blank
    X, y, columns = check_more(block.X, block.y, known.columns, type(model).__name__)
    weight = check_weight(block.weight, y, zero=True)
    Y, ids = known.task.encode(y), first + np.arange(len(weight))
    if getattr(model, "class_weight", None) is not None:
        weight = known.task.row_weight(model.class_weight, y, weight)
    if not weight.all():
        keep = np.flatnonzero(weight)
        X = X.among(keep) if isinstance(X, Table) else X[keep]
        Y, weight, ids = Y[keep], weight[keep], ids[keep]
    if not columns.plain:
        assert columns.encoder is not None
        X = usable(columns.encoder.encode(X, 1), columns.encoder.feature_names)
    return Data(X, read_only(Y), weight, ids)


# Cells


def outline(ready: Ready) -> tuple[list[int], list[int]]:
    """How many groups each tree has, and which of the first tree's choose for all."""
    groups = [top.cells for top in ready.shared.tops]
    return groups, cells.probed(ready.shared, groups[0])


def split(ready: Ready, block: Chunk, first: int) -> list[dict[int, cells.Rows]]:
    """The rows of a block by groups."""
    return cells.split(ready.shared, rows_of(ready, block, first))


Part = tuple[int, cells.Rows]  # the number of a block, and some of its rows


def pick(
    numbers: Sequence[int], parts: Sequence[list[dict[int, cells.Rows]]], tree: int, group: int
) -> list[Part]:
    """The rows of one group in the blocks with these numbers."""
    each = zip(numbers, (part[tree].get(group) for part in parts), strict=True)
    return [(number, rows) for number, rows in each if rows is not None]


def _in_order(picked: Sequence[Sequence[Part]]) -> list[cells.Rows]:
    """The rows in the order of the blocks, wherever they come from."""
    parts = [part for some in picked for part in some]
    return [rows for _, rows in sorted(parts, key=itemgetter(0))]


def probe(ready: Ready, group: int, picked: Sequence[Sequence[Part]]) -> Any:
    """A cell of a group."""
    there = _in_order(picked)
    return cells.probe(ready.shared, group, there) if there else None


def race(ready: Ready, probes: Sequence[Any]) -> Any:
    """Kernels and passes for all cells."""
    there = [one for one in probes if one is not None]
    return cells.choose_in_cells(ready.shared, there)


def learn_group(
    ready: Ready, chosen: Any, tree: int, group: int, picked: Sequence[Sequence[Part]]
) -> cells.Grown:
    """Learn all cells of a group."""
    return cells.learn_group(ready.shared, chosen, tree, group, _in_order(picked))


# Linear models


def features(ready: Ready, block: Chunk) -> Any:
    """What the scaling of a block's features needs."""
    return linear.features(ready.shared, rows_of(ready, block, 0))


def scaled(ready: Ready, found: Any) -> Ready:
    """With the scaling that all blocks suggest."""
    return ready._replace(shared=linear.scaled(ready.shared, found))


def prepared(
    ready: Ready, number: int, block: Chunk, first: int
) -> tuple[linear.Block, linear.Block]:
    """Rows to learn from, and rows held out."""
    return linear.prepared(ready.shared, number, rows_of(ready, block, first))


def held_rows(ready: Ready, number: int, block: Chunk, first: int) -> linear.Block:
    """The same without the rows to learn from."""
    return prepared(ready, number, block, first)[1]


def held_of(rows: tuple[linear.Block, linear.Block]) -> linear.Block:
    """The rows held out."""
    return rows[1]


def learn_block(
    ready: Ready, start: linear.Mean | None, number: int, turn: int, rows: Sequence[Any]
) -> linear.Mean:
    """Learn a block from the mean model of the round before."""
    weights = None if start is None else start.weights
    return linear.learn_block(ready.shared, weights, number, turn, rows[0])


def read_and_learn(
    ready: Ready, start: linear.Mean | None, number: int, turn: int, block: Chunk, first: int
) -> linear.Mean:
    """The same for a block that is not kept."""
    return learn_block(ready, start, number, turn, prepared(ready, number, block, first))


def held_out(ready: Ready, mean: linear.Mean, rows: linear.Block) -> tuple[float, float]:
    """The loss on held-out rows of some blocks, and their rounds."""
    return linear.held_out_loss(ready.shared, mean.weights, rows)


def sums(parts: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Sums of numbers, in order."""
    return tuple(float(sum(each)) for each in zip(*parts, strict=True))


# The result


def as_plain(estimator: Any, fitted: Fitted) -> Fitted:
    """The result with the user's own parameters."""
    family = fitted.family
    if hasattr(estimator, "n_jobs"):
        family = replace(family, n_jobs=estimator.n_jobs)
    return replace(fitted, family=family, settings=settings_of(estimator))


def adding_up(ready: Ready, fitted: Fitted, sample: Sample) -> Fitted:
    """With expected counts that add up on a sample."""
    data = rows_of(ready, sample.rows, 0)
    return calibrated(fitted, data.X, data.weight)


def answer(rows: Any, model: Any, method: str) -> Array:
    """What a method of a plain estimator says about rows."""
    if not len(rows) if hasattr(rows, "__len__") else not rows.shape[0]:
        return nothing(model, method)
    with kept():
        return getattr(model, method)(rows)


def nothing(model: Any, method: str) -> Array:
    """The answer for no rows."""
    known = model.fitted_
    if method == "predict_proba":
        return np.empty((0, len(model.classes_)))
    if not is_classifier(model):
        outputs = known.task.outputs or len(known.task.loss.levels)
        return np.empty((0, outputs)) if outputs else np.empty(0)
    if method == "predict":
        return model.classes_[:0]
    return np.empty(0) if len(model.classes_) == 2 else np.empty((0, len(model.classes_)))


def judged(model: Any, block: Chunk) -> tuple[Array, ...]:
    """What the score needs of a block: weight and hits, or weight, means and squares of targets."""
    P, weight = answer(block.X, model, "predict"), check_weight(block.weight, block.y, zero=True)
    total = float(weight.sum())
    if is_classifier(model):
        return np.array(total), np.array(float(weight @ (block.y == P)))
    y, P = (np.asarray(x, float).reshape(len(weight), -1) for x in (block.y, P))
    mean = weight @ y / max(total, 1e-300)
    return np.array(total), mean, weight @ np.square(y - mean), weight @ np.square(y - P)


def judged_together(parts: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    """The same for some blocks."""
    if len(parts[0]) == 2:
        return tuple(np.sum(each, axis=0) for each in zip(*parts, strict=True))
    weight = np.array([part[0] for part in parts])
    total = weight.sum()
    share = weight / max(total, 1e-300)
    means = np.stack([part[1] for part in parts])
    mean = share @ means
    apart = weight @ np.square(means - mean)
    squares, missed = (np.sum([part[k] for part in parts], axis=0) for k in (2, 3))
    return total, mean, squares + apart, missed


def verdict(total: tuple[Array, ...]) -> float:
    """The share of hits, or R² averaged over the outputs."""
    if len(total) == 2:
        return float(total[1] / max(float(total[0]), 1e-300))
    _, _, squares, missed = total
    flat = squares <= 0
    each = 1.0 - np.where(flat, missed > 0, missed / np.where(flat, 1.0, squares))
    return float(np.mean(each))
