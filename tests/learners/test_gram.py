"""Rounds on a Gram matrix are the rounds of `Dual`, and its values are those of the kernels."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pistol._compiled.panels import width
from pistol._compiled.rows import sq_norms
from pistol._compiled.threads import workers
from pistol._compiled.tiles import kernel_values
from pistol._compiled.types import read_only
from pistol._data.sums import SUMS
from pistol._learners import Dual, Rule, step_by_step
from pistol._learners import gram_matrix as _gram
from pistol._learners.gradients import mean_squares
from pistol._learners.gram import GramRun
from pistol._learners.gram_matrix import Gram
from pistol.kernels import get_kernel
from pistol.losses import LOSSES, MULTINOMIAL

pytestmark = pytest.mark.interpreted

few = settings(max_examples=4, deadline=None)
seeds = st.integers(0, 10**6)
N, D = 20, 3
KERNELS = {sum_.name: sum_.kernels(2.0 * D, D) for sum_ in SUMS} | {
    f"{name} alone": (get_kernel(name, 0.3, 2, 0.5),)
    for name in ("rbf", "laplacian", "poly", "linear", "cosine")
}
every_sum = pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)


def make(seed, outputs=1):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.9)
    Z[0] *= 4  # far out
    Y = read_only(np.where(rng.random((N, outputs)) < 0.5, -1.0, 1.0))
    order = read_only(rng.integers(N, size=3 * N))  # rows come again, some never
    return Z, Y, order, read_only(rng.uniform(0.1, 1.0, len(order)))


def runs(kernels, rule, Z, outputs):
    with workers(1) as threads:
        gram = Gram(Z, kernels, threads)
    return GramRun(gram, kernels, rule, outputs, Z, np.arange(N), 1), Dual(
        rule, kernels, outputs, 1
    )


def rule_of(loss, average="linear"):
    return Rule(LOSSES.get(loss, MULTINOMIAL), "pistol_anytime", 1.0, 0.5, average)


def assert_near(ours, theirs, tolerance=1e-5):
    """Equal to the size of the largest: the values of a kernel are kept in steps of 2^-36 of it."""
    assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * max(1.0, np.abs(theirs).max()))


def assert_same_state(run, dual):
    for ours, theirs in zip(run.S, dual.S, strict=True):
        assert_near(ours, theirs)


@every_sum
@pytest.mark.parametrize("loss", ["smooth_hinge", "logistic", "huber", "multinomial"])
@few
@given(seed=seeds)
def test_rounds_are_those_of_the_dual_learner(kernels, loss, seed):
    outputs = 3 if loss == "multinomial" else 2
    Z, Y, order, r = make(seed, outputs)
    run, dual = runs(kernels, rule_of(loss), Z, outputs)
    for at in (slice(0, 7), slice(7, len(order))):  # ‖g‖² is computed anew in between
        ours = run.learn(Y, order[at], r[at])
        theirs = np.concatenate([chunk.P for chunk in dual.play(Z, Y, order[at], r[at])])
        assert_near(ours, theirs)
        assert_same_state(run, dual)
    assert_near(run.scores(np.arange(N)), dual.model().decide(Z))


@every_sum
@pytest.mark.parametrize("average", ["linear", "uniform", None])
@few
@given(seed=seeds)
def test_scores_on_the_way_are_those_at_that_time(kernels, average, seed):
    Z, Y, order, r = make(seed, 2)
    rule, at = rule_of("huber", average), np.array([4, 2, 11])
    ours, steps = (runs(kernels, rule, Z, 2)[0] for _ in range(2))
    ends, marks = read_only(np.array([7, 30, 41, len(order)])), np.array([1, 2, 4])
    P, scores = ours.learn_and_score(Y, order, r, ends, marks, at)
    P_steps, found = step_by_step(steps, Y, order, r, ends, marks, at)
    assert_array_equal(P, P_steps)
    assert_array_equal(scores, found)
    assert_array_equal(scores[-1], ours.scores(at))
    assert_near(scores[-1], ours.expansion().decide(Z[at]))


@every_sum
@few
@given(seed=seeds)
def test_passes_together_are_passes_one_by_one(kernels, seed):
    Z, Y, order, r = make(seed, 2)
    together, apart = (runs(kernels, rule_of("huber"), Z, 2)[0] for _ in range(2))
    ends = np.array([7, 30, len(order)])
    P = together.learn(Y, order, r, ends)
    parts = [slice(lo, hi) for lo, hi in zip([0, *ends], ends)]
    assert_array_equal(P, np.concatenate([apart.learn(Y, order[at], r[at]) for at in parts]))
    for ours, theirs in zip(together.S, apart.S, strict=True):
        assert_array_equal(ours, theirs)
    assert_array_equal(together.model(), apart.model())


@every_sum
@few
@given(seed=seeds)
def test_scores_are_those_of_the_expansion(kernels, seed):
    Z, Y, order, r = make(seed)
    run, _ = runs(kernels, rule_of("huber", "uniform"), Z, 1)
    run.learn(Y, order, r)
    model = run.learner().model()
    assert_near(run.scores(np.arange(N)), model.decide(Z))
    assert run.scores(np.arange(0)).shape == (0, 1)


@every_sum
@few
@given(seed=seeds)
def test_the_norm_of_g_is_that_of_its_expansion(kernels, seed):
    Z, Y, order, r = make(seed)
    run, _ = runs(kernels, rule_of("logistic"), Z, 1)
    run.learn(Y, order, r)
    for q, kernel in enumerate(kernels):
        K = values(kernel, Z)
        norm_sq = run.coef[:, 0] @ K @ run.coef[:, 0]
        assert_allclose(run.S.g_norm_sq[q, 0], max(norm_sq, 0.0), rtol=1e-6, atol=1e-6)


@every_sum
def test_a_snapshot_is_where_a_learner_goes_on(kernels):
    Z, Y, order, r = make(0)
    run, dual = runs(kernels, rule_of("smooth_hinge"), Z, 1)
    run.learn(Y, order[:30], r[:30])
    kept = run.snapshot()
    run.learn(Y, order[30:], r[30:])
    resumed = run.learner(kept)
    for learner, at in ((dual, slice(None)), (resumed, slice(30, None))):
        for _ in learner.play(Z, Y, order[at], r[at]):
            pass
    assert_near(resumed.model().decide(Z), dual.model().decide(Z))
    assert_same_state(resumed, dual)
    assert_near(run.learner().model().decide(Z), dual.model().decide(Z))


def test_many_rows_are_kept_in_single_precision(monkeypatch):
    monkeypatch.setattr(_gram, "PRECISE", 5)
    Z, Y, order, r = make(1)
    run, dual = runs(KERNELS["mixed"], rule_of("smooth_hinge"), Z, 1)
    assert run.values.dtype == np.float32
    P = run.learn(Y, order, r)
    theirs = np.concatenate([chunk.P for chunk in dual.play(Z, Y, order, r)])
    assert_allclose(P, theirs, rtol=0, atol=1e-2)
    large, _ = runs((get_kernel("poly", 1.0, 9, 1e6),), rule_of("huber"), Z, 1)
    assert large.values.dtype == np.float64


@few
@given(seed=seeds)
def test_sums_share_the_matrices_of_a_gram(seed):
    """Each learns as if it had a Gram of its own; two Gaussians are enough for both kinds of sums."""
    Z, Y, order, r = make(seed)
    sums = [KERNELS[each.name] for each in SUMS]
    with workers(1) as threads:
        shared = Gram(Z, [kernel for kernels in sums for kernel in kernels], threads)
    assert len(shared.matrices) == 4  # inner products, two Gaussians and an exponential
    for kernels in sums:
        ours = GramRun(shared, kernels, rule_of("huber"), 1, Z, np.arange(N), 1)
        theirs, _ = runs(kernels, rule_of("huber"), Z, 1)
        assert_near(ours.learn(Y, order, r), theirs.learn(Y, order, r), 1e-6)
        assert_near(ours.scores(np.arange(N)), theirs.scores(np.arange(N)), 1e-6)


@few
@given(seed=seeds, some=st.sets(st.sampled_from(range(8)), min_size=1))
def test_any_part_of_a_sum_has_the_values_of_its_kernels(seed, some):
    Z, Y, order, r = make(seed)
    kernels = tuple(KERNELS["mixed"][q] for q in sorted(some | {1}))
    run, dual = runs(kernels, rule_of("huber"), Z, 1)
    ours = run.learn(Y, order, r)
    theirs = np.concatenate([chunk.P for chunk in dual.play(Z, Y, order, r)])
    assert_near(ours, theirs)
    assert_near(run.scores(np.arange(N)), dual.model().decide(Z))


def test_rows_may_be_sparse():
    Z, Y, order, r = make(2)
    ours, theirs = (
        runs(KERNELS["mixed"], rule_of("huber"), layout(Z), 1)[0].learn(Y, order, r)
        for layout in (sp.csr_array, np.asarray)
    )
    assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


# Kernels


def values(kernel, Z):
    sq = (Z**2).sum(axis=1)
    return kernel_values((kernel,), Z, Z, sq, sq)[0]


@few
@given(seed=seeds, gamma=st.floats(1e-3, 1.0))
def test_the_fourth_power_of_a_gaussian_is_the_next(seed, gamma):
    Z = make(seed)[0]
    sq, (wide, narrow) = (
        (Z**2).sum(axis=1),
        (get_kernel("rbf", g, 1, 0) for g in (gamma, 4 * gamma)),
    )
    assert narrow.follows(wide)
    assert not wide.follows(narrow)
    assert not narrow.follows(get_kernel("laplacian", gamma, 1, 0))
    _, powers = kernel_values((wide, narrow), Z, Z, sq, sq)
    distances = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    assert_allclose(powers, np.exp(-4 * gamma * distances), rtol=1e-6, atol=1e-12)
    assert_allclose(powers, values(narrow, Z), rtol=1e-6, atol=1e-12)


@few
@given(seed=seeds, degree=st.integers(0, 3), most=st.floats(0.1, 10.0))
def test_bounded_polynomials_draw_far_rows_in(seed, degree, most):
    Z = make(seed)[0]
    size = np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-300)
    drawn = Z * np.minimum(1.0, np.sqrt(most) / size)
    kernel = get_kernel("bounded_poly", 0.7, degree, most)
    K = values(kernel, Z)
    assert_allclose(K, (0.7 * drawn @ drawn.T) ** degree, rtol=1e-9, atol=1e-9)
    assert np.linalg.eigvalsh(K).min() > -1e-9 * max(np.abs(K).max(), 1.0)
    assert_allclose(
        kernel.diagonal(None, (Z**2).sum(axis=1), kernel.theta), K.diagonal(), atol=1e-9
    )


def test_a_degree_is_a_whole_number():
    with pytest.raises(ValueError, match="degree must be a whole number"):
        get_kernel("bounded_poly", 1.0, 1.5, 1.0)


def test_kernels_with_impossible_values_are_refused():
    Z = make(0)[0]
    for function, message in (
        (lambda A, B: -(A @ B.T), ">= 0"),
        (lambda A, B: 1e200 * A @ B.T, "most"),
    ):
        with workers(1) as threads, pytest.raises(ValueError, match=message):
            Gram(Z, (get_kernel(function, 1, 1, 0),), threads)


@pytest.mark.parametrize("d", [3, _gram.WIDE + 1])
@pytest.mark.parametrize("kernels", [KERNELS["mixed"], KERNELS["rough"], KERNELS["cosine alone"]])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_lines_are_learned_rows_and_columns_all_rows(kernels, d, n_jobs):
    """However rows are arranged, whether half of the values are copied or not."""
    rng = np.random.default_rng(0)
    n, m = 3 * width(np.float64) + 1, 2 * width(np.float64) + 3
    Z, rows = rng.normal(size=(n, d)), rng.permutation(n)
    with workers(n_jobs) as threads:
        gram = Gram(Z, kernels, threads, rows, m)
    assert_array_equal(gram.learned, rows[:m])
    assert_array_equal(rows[gram.place], np.arange(n))
    for _, _, number, _ in (chain for chain in gram.values(kernels).chains if chain[3]):
        K = gram.matrices[number]
        assert not K[:, n:].any(), "lines are filled up with zeros"
        start = next(kernel for kernel in kernels if gram.numbers.get(kernel.key) == number)
        expected = values(start, Z)[np.ix_(rows[:m], rows)]
        assert_allclose(K[:, :n], expected, rtol=1e-6, atol=1e-6)


@few
@given(seed=seeds)
def test_held_out_rows_anywhere_have_the_scores_of_the_expansion(seed):
    rng = np.random.default_rng(seed)
    Z, Y, _, r = make(seed, 3)
    columns, m = rng.permutation(N), int(rng.integers(1, N + 1))
    with workers(1) as threads:
        gram = Gram(Z, KERNELS["mixed"], threads, columns, m)
    run = GramRun(gram, KERNELS["mixed"], rule_of("smooth_hinge"), 3, Z, np.arange(N), 1)
    run.learn(Y, read_only(rng.choice(columns[:m], 2 * N)), r[: 2 * N])
    at = rng.permutation(N)[: int(rng.integers(1, N))]
    assert_near(run.scores(at), run.expansion().decide(Z[at]))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_gradients_ask_for_rows_that_are_not_copied_at_once(layout):
    Z, Y, order, r = make(0, 2)
    run, _ = runs(KERNELS["mixed"], rule_of("smooth_hinge"), layout(Z), 2)
    run.learn(Y, order, r)
    picked = run.expansion()
    whole = replace(picked, rows=layout(Z)[run.gram.learned])
    assert_array_equal(picked.sq, sq_norms(whole.rows))
    assert_array_equal(picked.decide(layout(Z)), whole.decide(layout(Z)))
    squares = [mean_squares(model, layout(Z), np.ones(N)) for model in (picked, whole)]
    assert_array_equal(*squares)


@pytest.mark.parametrize("usual", [0.0, 0.7])
@pytest.mark.parametrize("n", [60, 300])
@pytest.mark.parametrize("name", ["mixed", "rough"])
def test_values_of_flags_are_those_of_any_rows(usual, n, name):
    """Their products are those of what is unusual about them, and numbers that every row has."""
    rng, d = np.random.default_rng(n), 90
    Z = np.where(rng.random((n, d)) < 0.05, rng.normal(size=(n, d)), usual)
    order, m = rng.permutation(n), n - 7
    with workers(2) as threads:
        gram = Gram(Z, KERNELS[name], threads, order, m)
    for kernel in KERNELS[name]:
        if kernel.key in gram.numbers:
            found = gram.matrices[gram.numbers[kernel.key]][:, :n]
            sq = np.square(Z[order]).sum(axis=1)
            (exact,) = kernel_values([kernel], Z[order], Z[order], sq, sq)
            assert_allclose(found, exact[:m], rtol=0, atol=1e-4 if n > 256 else 1e-8)
            if kernel.radial:
                assert_array_equal(np.diag(found), 1.0)


def test_precomputed_values_of_some_rows_that_are_learned():
    Z, rows = make(0)[0], np.random.default_rng(0).permutation(N)
    kernel = get_kernel("precomputed", 1.0, 1, 0.0)
    with workers(1) as threads:
        gram = Gram(Z @ Z.T, (kernel,), threads, rows, N // 2)
    assert_array_equal(gram.matrices[0, :, :N], (Z @ Z.T)[np.ix_(rows[: N // 2], rows)])
