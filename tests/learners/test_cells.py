"""One learner per cell is a sum of kernels that vanish outside their cell."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol._compiled.types import read_only
from pistol._learners import Cells, Dual, Rule
from pistol._learners import cells as _cells
from pistol._learners.cells import Patchwork, centred
from pistol._learners.gradients import gradients_of, mean_squares
from pistol._learners.models import Expansion, mean_model
from pistol._learners.trees import grow_tree
from pistol.kernels import get_kernel
from pistol.losses import LOSSES

few = settings(max_examples=5, deadline=None)
seeds = st.integers(0, 10**6)
N, D = 60, 3
RBF = (get_kernel("rbf", 0.5, 1, 0.0),)
SMOOTH = (get_kernel("bounded_poly", 0.5, 1, 1e6), get_kernel("rbf", 0.5, 1, 0.0, 0.25))


def make(seed, outputs=2):
    rng = np.random.default_rng(seed)
    Z, Y = rng.normal(size=(N, D)), read_only(rng.normal(size=(N, outputs)))
    return Z, Y, read_only(rng.permutation(N)), read_only(rng.uniform(0.2, 1.0, N))


def rule_of(average="linear"):
    return Rule(LOSSES["huber"], "pistol_anytime", 1.0, 0.5, average)


def nothing(kernels=RBF, outputs=2):
    return Dual(rule_of(), kernels, outputs, 1).model()


def base_of(seed, kernels=SMOOTH):
    """A function of all space."""
    Z, Y, order, r = make(seed + 1)
    learner = Dual(rule_of(), kernels, Y.shape[1], 1)
    play(learner, Z, Y, order, r)
    return learner.model()


def cells_of(Z, seed, base, kernels=RBF, average="linear", centre=True):
    tree = grow_tree(Z, 20, np.random.default_rng(seed))
    cell = tree.cell_of(Z)
    centres = [centre * Z[cell == number].mean(axis=0) for number in range(tree.cells)]
    return Cells(tree, centres, [Dual(rule_of(average), kernels, 2, 1) for _ in centres], base)


def play(learner, Z, Y, order, r, **more):
    return np.concatenate([chunk.P for chunk in learner.play(Z, Y, order, r, **more)])


@few
@given(seed=seeds)
def test_cells_are_a_sum_of_kernels_of_one_cell_each(seed):
    """All predictions and the last f; a sum has one clock, so that its average has other weights."""
    Z, Y, order, r = make(seed)
    cells = cells_of(Z, seed, nothing(), average=None, centre=False)

    def inside(number):
        def kernel(A, S):
            both = np.outer(cells.tree.cell_of(A) == number, cells.tree.cell_of(S) == number)
            return both * np.exp(-0.5 * ((A[:, None] - S[None]) ** 2).sum(axis=2))

        return get_kernel(kernel, 1, 1, 0)

    kernels = [inside(number) for number in range(cells.tree.cells)]
    parts = [Dual(rule_of(None), (kernel,), 2, 1) for kernel in kernels]
    cell = cells.tree.cell_of(Z)
    theirs = np.zeros((N, 2))
    for number, dual in enumerate(parts):  # outside its cell a kernel is zero: nothing is learned
        own = np.flatnonzero(cell[order] == number)
        theirs[own] = play(dual, Z, Y, read_only(order[own]), read_only(r[own]))
    chunks = list(cells.play(Z, Y, order, r))
    ours = np.empty((N, 2))
    ours[np.concatenate([chunk.rows for chunk in chunks])] = np.concatenate([c.P for c in chunks])
    assert_allclose(ours[order], theirs, atol=1e-9)
    other = np.random.default_rng(seed + 2).normal(size=(40, D))
    expected = sum(dual.model().decide(other) for dual in parts)
    assert_allclose(cells.model().decide(other), expected, atol=1e-9)


@few
@given(seed=seeds)
def test_cells_learn_what_the_base_leaves(seed):
    """With the base's values as f_0, each cell is a learner of its own rows."""
    Z, Y, order, r = make(seed)
    base = base_of(seed)
    cells = cells_of(Z, seed, base)
    cell, start = cells.tree.cell_of(Z), base.decide(Z)
    for _ in range(2):
        play(cells, Z, Y, order, r)
    out = np.zeros((N, 2))
    for number, centre in enumerate(cells.centres):
        alone, own = Dual(rule_of(), RBF, 2, 1), np.flatnonzero(cell == number)
        rows = read_only(np.searchsorted(own, order[np.isin(order, own)]))
        sizes = read_only(r[np.isin(order, own)])
        inside = centred(Z[own], centre)
        for _ in range(2):
            play(alone, inside, read_only(Y[own]), rows, sizes, start=start[own])
        out[own] = start[own] + alone.model().decide(inside)
    assert_allclose(cells.model().decide(Z), out, atol=1e-9)


@few
@given(seed=seeds)
def test_the_mean_of_trees_is_the_mean_of_their_functions(seed):
    Z, Y, order, r = make(seed)
    base, models = base_of(seed), []
    for tree in range(3):
        cells = cells_of(Z, seed + tree, base)
        play(cells, Z, Y, order, r)
        models.append(cells.model())
    mean = mean_model(models)
    assert isinstance(mean, Patchwork)
    assert_allclose(mean.decide(Z), np.mean([model.decide(Z) for model in models], axis=0))
    shares = mean.shares()
    assert sum(shares.values()) == pytest.approx(1.0)
    assert min(shares.values()) >= 0.0
    assert "rbf in cells" in shares


@few
@given(seed=seeds)
def test_what_is_learned_can_be_undone_and_pickled(seed):
    Z, Y, order, r = make(seed)
    cells = cells_of(Z, seed, base_of(seed))
    half = N // 2
    play(cells, Z, Y, order[order < half], r[order < half])
    before, mark = cells.model().decide(Z), cells.mark(slice(None))
    copy = pickle.loads(pickle.dumps(cells))
    play(cells, Z[half:], read_only(Y[half:]), read_only(np.arange(N - half)), read_only(r[half:]),
         ids=np.arange(half, N))  # fmt: skip
    assert not np.array_equal(cells.model().decide(Z), before)
    cells.roll_back(mark)
    assert_array_equal(cells.model().decide(Z), before)
    assert_array_equal(copy.model().decide(Z), before)
    assert cells.fresh().t == 0 < cells.t


@few
@given(seed=seeds)
def test_a_restart_multiplies_and_shifts(seed):
    Z, Y, order, r = make(seed)
    cells = cells_of(Z, seed, base_of(seed))
    play(cells, Z, Y, order, r)
    before, factor, offset = cells.model().decide(Z), np.array([0.5, 3.0]), np.array([2.0, -1.0])
    cells.restart(factor, offset, np.array([0, 1]))
    assert_allclose(cells.model().decide(Z), factor * before + offset, atol=1e-6)


@few
@given(seed=seeds)
def test_gradients_are_those_of_the_function(seed):
    Z, Y, order, r = make(seed)
    cells = cells_of(Z, seed, base_of(seed), SMOOTH)
    play(cells, Z, Y, order, r)
    model, step = cells.model(), 1e-5
    inner = [x for x in Z[:10] if _far_from_borders(cells.tree, x, step)]
    G = gradients_of(model)(np.array(inner).reshape(-1, D))
    for i, x in enumerate(inner):
        for feature, unit in enumerate(np.eye(D)):
            up, down = (model.decide((x + s * step * unit)[None])[0] for s in (1, -1))
            assert_allclose(G[:, i, feature], (up - down) / (2 * step), rtol=1e-3, atol=1e-4)
    squares = mean_squares(model, np.array(inner).reshape(-1, D), np.ones(len(inner)))
    assert_allclose(squares, np.square(G).sum(axis=0).mean(axis=0), rtol=1e-6)


def _far_from_borders(tree, x, step):
    around = [x + s * step * unit for s in (-2, 0, 2) for unit in np.eye(D)]
    return len(set(tree.cell_of(np.array(around)))) == 1


def test_expansions_add_up_to_the_whole():
    Z, Y, order, r = make(3)
    cells = cells_of(Z, 3, base_of(3))
    play(cells, Z, Y, order, r)
    parts = cells.model().expansions()
    assert isinstance(parts[0][0], Expansion)
    assert parts[0][1] == 1.0
    rows = np.concatenate([part.rows for part, _ in parts[1:]])
    ids = np.concatenate([part.ids for part, _ in parts[1:]])
    assert_allclose(rows, Z[ids], atol=1e-12)


@few
@given(seed=seeds)
def test_threads_share_out_cells_and_change_nothing(seed):
    Z, Y, order, r = make(seed)
    learners = [cells_of(Z, seed + tree, base_of(seed)) for tree in range(2)]
    for learner in learners:
        play(learner, Z, Y, order, r)
    model = mean_model([learner.model() for learner in learners])
    alone = model.decide(Z)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cells, "LITTLE", 0)
        threaded = replace(model, base=replace(model.base, n_jobs=3))
        assert_array_equal(threaded.decide(Z), alone)


def test_what_has_learned_nothing_is_no_work():
    assert nothing().work(100.0) == 0.0
    model = base_of(0)
    assert model.work(200.0) == 2 * model.work(100.0) > 0.0
