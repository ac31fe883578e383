"""Fast equals reference, after every round, for every loss × kernel × layout × dtype × chunking."""

from math import exp, sqrt

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis.strategies import integers, lists
from numpy.testing import assert_allclose

from pistol import reference
from pistol._compiled import coordinates as _one
from pistol._compiled import tiles as _tiles
from pistol._compiled.cache import INTERPRETED
from pistol._compiled.types import read_only
from pistol._learners import Coordinates, Dual, Primal, Rule
from pistol.kernels import get_kernel
from pistol.losses import LOSSES

pytestmark = pytest.mark.interpreted

N, D = 14, 3
GAMMA, DEGREE, COEF0 = 0.3, 2.0, 0.5

KERNELS = {
    "rbf": lambda x, z: exp(-GAMMA * ((x - z) ** 2).sum()),
    "laplacian": lambda x, z: exp(-GAMMA * abs(x - z).sum()),
    "poly": lambda x, z: (GAMMA * (x @ z) + COEF0) ** DEGREE,
    "linear": lambda x, z: x @ z,
    "cosine": lambda x, z: x @ z / sqrt((x @ x) * (z @ z)) if x.any() and z.any() else 0.0,
}
LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array}

all_losses = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
all_kernels = pytest.mark.parametrize("kernel", KERNELS)
all_layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
all_dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])
streams = given(seed=integers(0, 10**6), cuts=lists(integers(0, N), max_size=4))
few = settings(max_examples=1 if INTERPRETED else 2, deadline=None)


def make_stream(seed, dtype=np.float64):
    """Rows of norm about 1, some entries and one row zero, and labels that serve as targets too."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(N, D)) / sqrt(D) * (rng.random((N, D)) < 0.8)).astype(dtype)
    X[rng.integers(N)] = 0.0
    return X, rng.choice([-1.0, 1.0], size=N)


def play(learner, X, y, cuts):
    """Predictions of all rounds, played in the chunks between the cuts."""
    Y, out = read_only(y.reshape(N, -1)), []
    for lo, hi in zip(sorted([0, *cuts]), sorted([*cuts, N]), strict=True):
        rounds = read_only(np.arange(lo, hi)), read_only(np.ones(hi - lo))
        out += [chunk.P for chunk in learner.play(X, Y, *rounds)]
    return np.concatenate(out)


def grad_of(loss):
    return lambda y, p: loss.grad(y, p, loss.theta)


def f_bar(rounds, weights, k, X):
    """The reference's average at the rows of X."""
    f = reference.average([f for _, f in rounds], weights)
    return [reference.inner(f, [(1.0, x)], k) for x in X]


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    """Blocks and tiles of a few rows, so that short streams cross their borders."""
    monkeypatch.setattr("pistol._learners.dual.BLOCK", 4)
    monkeypatch.setattr("pistol._learners.primal.CHUNK", 5)
    monkeypatch.setattr("pistol._learners.coordinates.CHUNK", 5)
    monkeypatch.setattr(_tiles, "TILE", 3)


@all_losses
@all_kernels
@all_layouts
@all_dtypes
def test_dual_pistol_is_algorithm_3(loss, kernel, layout, dtype):
    @few
    @streams
    def law(seed, cuts):
        X, y = make_stream(seed, dtype)
        a, b, k = 2.25 * loss.L, 1.0, KERNELS[kernel]
        rows = X.astype(np.float64)
        rounds = list(reference.pistol(zip(rows, y), grad_of(loss), k, a, b, loss.L))
        rule = Rule(loss, "pistol", a, b, "uniform")
        learner = Dual(rule, (get_kernel(kernel, GAMMA, DEGREE, COEF0),), 1, n_jobs=1)
        near = (1e-4, 1e-6) if dtype == np.float32 else (1e-8, 1e-12)  # tiles have X's precision
        assert_allclose(play(learner, layout(X), y, cuts)[:, 0], [p for p, _ in rounds], *near)
        expected = f_bar(rounds, [1.0] * N, k, rows)
        assert_allclose(learner.model().decide(layout(X))[:, 0], expected, *near)

    law()


@all_losses
@all_layouts
@all_dtypes
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_primal_pistol_is_algorithm_3_with_the_linear_kernel(loss, layout, dtype, bias):
    @few
    @streams
    def law(seed, cuts):
        X, y = make_stream(seed, dtype)
        a, b = 2.25 * loss.L, 1.0
        rows, k = np.hstack([X.astype(np.float64), np.full((N, 1), bias)]), KERNELS["linear"]
        rounds = list(reference.pistol(zip(rows, y), grad_of(loss), k, a, b, loss.L))
        learner = Primal(Rule(loss, "pistol", a, b, "linear"), D, 1, bias)
        assert_allclose(
            play(learner, layout(X), y, cuts)[:, 0], [p for p, _ in rounds], 1e-8, 1e-12
        )
        expected = f_bar(rounds, list(range(1, N + 1)), k, rows)
        assert_allclose(learner.model().decide(layout(X))[:, 0], expected, 1e-8, 1e-12)

    law()


@all_losses
@all_layouts
@all_dtypes
@pytest.mark.parametrize("potential", ["pistol_anytime", "pistol_shared"])
@pytest.mark.parametrize("x_max", [0.0, 1.0, 4.0], ids=lambda m: f"x_max={m:g}")
@pytest.mark.parametrize("parts", [1, 2], ids=lambda n: f"parts={n}")
def test_coordinates_are_appendix_A(monkeypatch, loss, layout, dtype, x_max, potential, parts):
    if parts == 2:
        for limit in ("WIDE", "LONG", "MANY"):
            monkeypatch.setattr(f"pistol._learners.sharing.{limit}", 0)

    @few
    @streams
    def law(seed, cuts):
        X, y = make_stream(seed, dtype)
        X[np.random.default_rng(seed).random(X.shape) < 0.3] = 0.0
        a, b, rows = 2.25 * loss.L, reference.anytime, X.astype(np.float64)
        m = [x_max] * D
        play_reference = reference.pistol_per_coordinate
        shared = potential == "pistol_shared"
        rounds = list(play_reference(zip(rows, y), grad_of(loss), a, b, loss.L, m, shared))
        learner = Coordinates(Rule(loss, potential, a, 0.5, "linear"), D, 1, x_max=x_max)
        assert_allclose(
            play(learner, layout(X), y, cuts)[:, 0], [p for p, _ in rounds], 1e-8, 1e-12
        )
        expected = np.average([w for _, w in rounds], axis=0, weights=range(1, N + 1))
        assert_allclose(learner.model().weights[0, :D], expected, 1e-8, 1e-12)

    law()


@all_kernels
@few
@streams
def test_averaged_sgd_is_algorithm_1(kernel, seed, cuts):
    X, y = make_stream(seed)
    loss, k = LOSSES["logistic"], KERNELS[kernel]
    rounds = list(reference.averaged_sgd(zip(X, y), grad_of(loss), k, eta=0.25))
    rule = Rule(loss, "constant", 1.0, 0.25, "uniform")
    learner = Dual(rule, (get_kernel(kernel, GAMMA, DEGREE, COEF0),), 1)
    assert_allclose(play(learner, X, y, cuts)[:, 0], [p for p, _ in rounds], 1e-9, 1e-12)
    assert_allclose(learner.model().decide(X)[:, 0], f_bar(rounds, [1.0] * N, k, X), 1e-9, 1e-12)


@all_kernels
@few
@streams
def test_the_perceptron_is_algorithm_2(kernel, seed, cuts):
    X, y = make_stream(seed)
    k = KERNELS[kernel]
    rounds = list(reference.kernel_perceptron(zip(X, y), k))
    rule = Rule(LOSSES["perceptron"], "constant", 1.0, 1.0, None)
    learner = Dual(rule, (get_kernel(kernel, GAMMA, DEGREE, COEF0),), 1)
    assert_allclose(play(learner, X, y, cuts)[:, 0], [p for p, _ in rounds], 1e-9, 1e-12)


@few
@streams
def test_the_anytime_and_horizon_forms_differ_only_in_b(seed, cuts):
    X, y = make_stream(seed)
    loss, k = LOSSES["smooth_hinge"], KERNELS["rbf"]
    for b, potential, number in [(reference.anytime, "pistol_anytime", 0.5), (3.0, "pistol", 3.0)]:
        rounds = reference.pistol(zip(X, y), grad_of(loss), k, 0.25, b, loss.L)
        learner = Dual(
            Rule(loss, potential, 0.25, number, None), (get_kernel("rbf", GAMMA, 1, 0),), 1
        )
        assert_allclose(play(learner, X, y, cuts)[:, 0], [p for p, _ in rounds], 1e-8, 1e-12)


@few
@streams
def test_outputs_learn_as_if_alone(seed, cuts):
    X, y = make_stream(seed)
    Y = np.stack([y, -y, np.roll(y, 1)], axis=1)
    kernel = (get_kernel("rbf", GAMMA, 1, 0),)
    rule = Rule(LOSSES["logistic"], "pistol_anytime", 0.5, 0.5, "linear")
    makers = [
        lambda outputs: Dual(rule, kernel, outputs),
        lambda outputs: Primal(rule, D, outputs, 1.0),
        lambda outputs: Coordinates(rule, D, outputs, 1.0),
    ]
    for make in makers:
        together = play(make(3), X, Y, cuts)
        for j in range(3):
            alone = play(make(1), X, np.ascontiguousarray(Y[:, j]), cuts)
            assert_allclose(together[:, j], alone[:, 0], 1e-12, 1e-14)


@few
@streams
def test_several_kernels_share_one_gradient_at_their_sum(seed, cuts):
    """Each kernel plays Algorithm 3 on the s_t taken at the sum of all predictions."""
    X, y = make_stream(seed)
    loss, gammas, a, b = LOSSES["smooth_hinge"], (0.1, 1.0), 0.5, 2.0
    kernels = tuple(get_kernel("rbf", gamma, 1, 0) for gamma in gammas)
    learner = Dual(Rule(loss, "pistol", a, b, "uniform"), kernels, 1)
    P = play(learner, X, y, cuts)[:, 0]

    def shared(grads):
        return lambda y_t, p_t: next(grads)

    s = [loss.grad(y_t, p_t, 0.0) for y_t, p_t in zip(y, P)]
    parts = [
        [p for p, _ in reference.pistol(zip(X, y), shared(iter(s)), k, a, b, loss.L)]
        for k in (lambda x, z, g=g: exp(-g * ((x - z) ** 2).sum()) for g in gammas)
    ]
    assert_allclose(P, np.sum(parts, axis=0), 1e-9, 1e-12)


def stream_play(learner, X, y, passes=1):
    order, r = read_only(np.arange(len(y))), read_only(np.ones(len(y)))
    for _ in range(passes):
        for _ in learner.play(X, read_only(y[:, None]), order, r):
            pass


@all_layouts
def test_cached_scalars_equal_recomputed_ones(layout):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.choice([-1.0, 1.0], size=60)
    loss, a, k = LOSSES["logistic"], 0.5, (get_kernel("rbf", 0.2, 1, 0),)
    rule = Rule(loss, "pistol_anytime", a, 0.5, "uniform")

    dual = Dual(rule, k, 1)
    stream_play(dual, layout(X), y, passes=2)
    support = dual.support
    Z = support.rows.rows if layout is np.asarray else support.rows.rows.toarray()
    K = np.exp(-0.2 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    coef = support.coef.values[:, 0]
    ids = support.ids.values
    assert len(np.unique(ids)) == len(ids) <= 60  # the second pass stores no row twice
    assert_allclose(dual.S.g_norm_sq[0, 0], coef @ K @ coef, 1e-11)
    assert_allclose(support.sq.values, (Z**2).sum(axis=1), 1e-12)
    assert dual.S.t[0, 0] == dual.S.weight[0, 0] == 120

    primal = Primal(rule, 4, 1, bias=1.0)
    stream_play(primal, layout(X), y)
    assert_allclose(primal.S.g_norm_sq[0, 0], primal.g[0] @ primal.g[0], 1e-12)

    coordinates = Coordinates(rule, 4, 1, bias=1.0)
    stream_play(coordinates, layout(X), y)
    Z = coordinates.state[0]
    m, theta, G = Z[:, _one.M], Z[:, _one.THETA], Z[:, _one.G_SUM]
    h, alpha = theta / m, a * (loss.L + G / m)
    w = 0.5 * np.sqrt(2 * alpha) / alpha * np.exp(h**2 / (2 * alpha)) * h / m
    assert_allclose(Z[:, _one.W], w, 1e-12)
    assert_allclose(m, np.append(abs(X).max(axis=0), 1.0))


@all_layouts
def test_a_feature_has_no_weight_before_its_first_gradient(layout):
    """Not even in units so small that one over them is infinite."""
    X = np.array([[1.0, 0.0]] * 50 + [[1.0, 5e-324]])
    learner = Coordinates(Rule(LOSSES["hinge"], "pistol_anytime", 0.5, 0.5, None), 2, 1)
    with np.errstate(invalid="ignore"):  # of 0 · ∞, which is not used; compiled code is silent
        stream_play(learner, layout(X), np.ones(51))
    (w, G), unit = (
        learner.state[0, :2, [_one.W, _one.G_SUM]],
        learner.state[0, 1, _one.M],
    )
    assert w[0] >= 1.0, "the last round has no gradient"
    assert G[1] == w[1] == 0.0
    assert unit == 5e-324


@pytest.mark.parametrize("average", ["uniform", "linear"])
def test_the_averaging_identity_survives_passes_and_repeated_rows(average):
    """Σ ω c g = C g - Σ C Δ, against the plain average of the f_t."""
    rng = np.random.default_rng(1)
    X, y = np.repeat(rng.normal(size=(10, 2)), 2, axis=0), rng.choice([-1.0, 1.0], size=20)
    loss, k = LOSSES["hinge"], KERNELS["rbf"]
    stream = list(zip(X, y)) * 2
    rounds = list(reference.pistol(stream, grad_of(loss), k, 1.0, 1.0, loss.L))
    weights = [1.0] * 40 if average == "uniform" else list(range(1, 41))
    learner = Dual(Rule(loss, "pistol", 1.0, 1.0, average), (get_kernel("rbf", GAMMA, 1, 0),), 1)
    stream_play(learner, X, y, passes=2)
    assert_allclose(learner.model().decide(X)[:, 0], f_bar(rounds, weights, k, X), 1e-9)


@few
@streams
def test_the_lazy_form_of_averaged_sgd_divides_by_the_root_of_t(seed, cuts):
    """The default step of AveragedSGDClassifier: f_t = g_{t-1} / √t."""
    X, y = make_stream(seed)
    loss, g, expected = LOSSES["logistic"], np.zeros(D), []
    for t, (x_t, y_t) in enumerate(zip(X, y), start=1):
        expected.append(g @ x_t / sqrt(t))
        g = g - loss.grad(y_t, expected[-1], 0.0) * x_t
    learner = Primal(Rule(loss, "decaying", 1.0, 1.0, None), D, 1)
    assert_allclose(play(learner, X, y, cuts)[:, 0], expected, 1e-9, 1e-12)


@few
@given(seed=integers(0, 10**6))
def test_a_fraction_of_a_round_is_a_fraction_of_its_gradient_and_of_its_time(seed):
    """Round t of size r is Algorithm 3 with the loss r ℓ, and f_t counts r times in the average."""
    X, y = make_stream(seed)
    r = np.random.default_rng(seed).uniform(0.1, 1.0, size=N)
    loss, k, sizes = LOSSES["logistic"], KERNELS["rbf"], iter(r)
    rounds = list(
        reference.pistol(
            zip(X, y), lambda y, p: next(sizes) * loss.grad(y, p, 0.0), k, 0.5, 1.0, loss.L
        )
    )
    kernel = get_kernel("rbf", GAMMA, 1, 0)
    learner = Dual(Rule(loss, "pistol", 0.5, 1.0, "uniform"), (kernel,), 1)
    order, Y = read_only(np.arange(N)), read_only(y.reshape(N, 1))
    P = np.concatenate([chunk.P for chunk in learner.play(X, Y, order, read_only(r))])
    assert_allclose(P[:, 0], [p for p, _ in rounds], 1e-9, 1e-12)
    assert_allclose(learner.model().decide(X)[:, 0], f_bar(rounds, list(r), k, X), 1e-9, 1e-12)
    assert learner.S.t[0, 0] == pytest.approx(r.sum())
