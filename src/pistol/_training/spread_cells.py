"""Cells that are learned on several machines.

A sample of all rows has chosen the scaling, the kernels, the metric, the base, and groups of cells
(`spread_choice`). The rows of each group are brought together, and the group is learned where they are:
its rows divide it into cells. Each step is a function of its arguments alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._compiled.threads import one_blas_thread, workers
from .._compiled.types import Array
from .._data.ordering import as_given, fingerprints, learned_share, shuffled
from .._learners import Cells, Dual, Rule
from .._learners.cells import members
from .._learners.trees import Tree, grafted, grow_tree
from . import cell_choice
from .cell_choice import Chosen
from .cells import _then, learn_cell
from .families import Data, stacked
from .fitted import Fitted, Online, joined
from .ground import Cell, Ground
from .spread_choice import Shared, compact
from .work import Problem, Work

PROBED = 3  # groups whose largest cells are looked at before all cells are learned


class Rows(NamedTuple):
    """Scaled rows of a group, values of the base, and how much it has learned of rows like each."""

    data: Data
    start: Array
    known: Array


class Grown(NamedTuple):
    """What was learned of a group."""

    tree: Tree
    centres: list[Array]
    learners: list[Dual]
    online: Online


def split(shared: Shared, data: Data) -> list[dict[int, Rows]]:
    """The rows of a block by groups, for each tree."""
    blank = shared.blank
    Z = compact(blank, data.X)
    data = data._replace(X=Z, Y=blank.targets.transform(data.Y), weight=np.array(data.weight))
    prints = fingerprints(Z, data.Y)
    rows = Rows(data, shared.start(Z, prints), shared.learned.of(prints))
    return [{group: _some(rows, at) for group, at in members(top, Z)} for top in shared.tops]


def _some(rows: Rows, at: Array) -> Rows:
    return Rows(Data(*(part[at] for part in rows.data)), rows.start[at], rows.known[at])


def together(parts: Sequence[Rows]) -> Rows:
    """The rows of a group, one block after the other."""
    start, known = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    return Rows(stacked([part.data for part in parts]), start, known)


def _as_ground(shared: Shared, rows: Rows) -> Ground:
    """What the cells of a group are learned from."""
    blank = shared.blank
    problem = Problem(blank.task, blank.family, partial(_fixed, shared.rule))
    hashes, _ = blank.family.content(rows.data)
    rounds = as_given(rows.data.weight, shared.size)
    setup: Any = None  # nothing is left to set
    work = Work(rows.data, rounds, hashes, problem, setup, shared.size, blank)
    order = shuffled(hashes, rounds, 0)
    _, first = np.unique(hashes, return_index=True)  # rows that are alike are in one group
    known = learned_share(hashes, rows.data.weight, first, rows.known[first])
    return Ground(work, shared.base, rows.start, known, order, shared.plan.cell)


def _fixed(rule: Rule, *_: Any) -> Rule:
    return rule


def _seed(shared: Shared, tree: int, group: int) -> tuple[int, ...]:
    return shared.seed, tree, group


def probe(shared: Shared, group: int, parts: Sequence[Rows]) -> tuple[Cell, Array]:
    """A cell of a group of the first tree, and how much the base has learned of rows like each."""
    rows = together(parts)
    ground = _as_ground(shared, rows)
    cell = cell_choice.probe(ground, ground.cells(grow_tree_of(ground, _seed(shared, 0, group))))
    return cell, rows.known[cell.rows]


def grow_tree_of(ground: Ground, seed: tuple[int, ...]) -> Tree:
    """The partition of a group into cells."""
    random = np.random.default_rng(seed)
    return grow_tree(ground.work.data.X, ground.most, random, ground.order.rows)


def probed(shared: Shared, groups: int) -> list[int]:
    """The groups whose largest cells are looked at; one of these cells chooses for all."""
    order = np.random.default_rng(shared.seed).permutation(groups)
    return [int(group) for group in order[:PROBED]]


def choose_in_cells(shared: Shared, probes: Sequence[tuple[Cell, Array]]) -> Chosen:
    """Kernels and passes with the least loss on held-out rows of the cell that has the most of them."""
    cell, known = max(probes, key=lambda one: int((one[1] == 0).sum()))
    cell = cell._replace(rows=np.arange(len(cell.rows)))
    ground = _as_ground(shared, Rows(cell.data, cell.start, known))
    with workers(1) as threads, one_blas_thread():
        return cell_choice.race_in_cell(ground, cell, shared.plan, shared.seed, threads)


def learn_group(
    shared: Shared, chosen: Chosen, tree: int, group: int, parts: Sequence[Rows]
) -> Grown:
    """Divide a group into cells and learn each of them."""
    outputs = shared.base.coef.shape[1]
    if not parts:  # no row was there but in the sample
        nothing = Tree(np.array([-1]), np.zeros(1), np.zeros((1, 2), np.int64))
        centre = np.zeros(shared.base.rows.shape[1], np.float32)
        return Grown(
            nothing, [centre], [Dual(shared.rule, shared.base.kernels, outputs, 1)], Online()
        )
    ground, seed = _as_ground(shared, together(parts)), _seed(shared, tree, group)
    own = grow_tree_of(ground, seed)
    centres, learners, online = [], [], Online()
    with workers(1) as thread, one_blas_thread():
        for number, rounds in enumerate(ground.cells(own)):
            cell, learner, first = learn_cell(ground, rounds, chosen, (*seed, number), thread)
            centres.append(cell.centre)
            learners.append(learner)
            online = _then(online, ground, cell, first) if tree == 0 else online
    return Grown(own, centres, learners, online)


def assembled(shared: Shared, chosen: Chosen, grown: Sequence[Sequence[Grown]]) -> Fitted:
    """The model of all cells, given the groups of each tree."""
    learners: list[Any] = []
    for top, groups in zip(shared.tops, grown, strict=True):
        tree = grafted(top, [group.tree for group in groups])
        centres = [centre for group in groups for centre in group.centres]
        own = [learner for group in groups for learner in group.learners]
        for learner in own:
            learner.rule = shared.rule
        learners.append(Cells(tree, centres, own, shared.base, shared.forest))
    return replace(
        shared.blank,
        learners=learners,
        passes=chosen.passes,
        online=joined([group.online for group in grown[0]]),
        temperature=chosen.temperature,
    )
