"""Hostile sequences: what is played is the paper's, and a bound that fails is caught."""

from copy import deepcopy
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

from pistol import reference, theory
from pistol.losses import LOSSES
from pistol.online import Learner
from pistol_lab.learners import events, rule
from pistol_lab.reproduction import bounds
from pistol_lab.reproduction.bounds import claims, growth, hostile
from pistol_lab.reproduction.bounds.batches import (
    _true,
    batch,
    hindsight,
    mistake_bound,
    mistakes,
    stakes_of,
    together,
)  # fmt: skip
from pistol_lab.reproduction.bounds.hostile import A_OVER_L, GAMMA, OPPONENTS, arena_of, play
from pistol_lab.reproduction.bounds.worst import Stakes, judge, minimise, printed, proved

approx = pytest.approx
KINDS = ("PiSTOL", "kernel", "per coordinate")


@cache
def played(kind, number):
    """A game that is played once for all tests; none may change it."""
    game = play(*arena_of(kind, number))
    for values in (game.X, game.y, game.p, game.s):
        values.setflags(write=False)
    return game


def games(kind, n):
    return [played(kind, number) for number in range(n)]


def rbf(x, z):
    return np.exp(-GAMMA * ((x - z) ** 2).sum())


def reference_predictions(game, kind):
    stream, (a, b, ell) = list(zip(game.X, game.y)), (game.arena.a, game.arena.b, game.arena.loss)
    k = rbf if game.arena.gaussian else np.dot

    def grad(y, p):
        return ell.grad(y, p, ell.theta)

    if kind == "Perceptron":
        rounds = reference.kernel_perceptron(stream, k)
    elif kind == "per coordinate":
        d = game.X.shape[1]
        rounds = reference.pistol_per_coordinate(stream, grad, a, b, ell.L, [1.0] * d)
    else:
        rounds = reference.pistol(stream, grad, k, a, b, ell.L)
    return [p for p, _ in rounds]


@pytest.mark.parametrize("kind", OPPONENTS)
def test_what_is_played_is_the_algorithm_of_the_paper(kind):
    left = set(OPPONENTS[kind])
    for number in range(1000):
        arena, opponent = arena_of(kind, number)
        if arena.T in range(5, 13) and opponent in left:
            left.remove(opponent)
            game = play(arena, opponent)
            expected = reference_predictions(game, kind)
            assert game.p == approx(expected, rel=1e-9, abs=1e-9 * (1 + np.abs(expected).max()))
        if not left:
            break
    assert not left


@pytest.mark.parametrize("kind", OPPONENTS)
def test_opponents_keep_to_the_assumptions(kind):
    for game in games(kind, 30 if kind == "kernel" else 120):
        norm = np.abs(game.X).max() if game.arena.cube else np.sqrt(game.gram().diagonal().max())
        assert norm <= 1 + 1e-9
        assert np.abs(game.s).max() <= game.arena.loss.L * (1 + 1e-12)
        assert np.abs(game.y).max() <= 1
        assert len(game.y) == game.arena.T


def test_a_number_names_a_sequence():
    one, two = (play(*arena_of("PiSTOL", 17)) for _ in range(2))
    assert one.opponent == two.opponent
    assert (one.X == two.X).all()
    assert (one.p == two.p).all()


def test_opponents_do_what_they_say():
    for game in games("PiSTOL", 150):
        if game.opponent in ("spiteful", "worst of several") and game.arena.loss.name == "hinge":
            assert (game.y * game.p <= 0).all()
        if game.opponent == "orthogonal" and game.arena.d > 1:
            assert np.abs(game.p).max() <= 1e-6 * (1 + game.arena.b)


# The worst comparator.


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_judged_is_what_the_learner_reports(kind):
    """Norms, bounds and linearised regrets of an h of norm 2 along g_T, each worked out anew."""
    some = games(kind, 40)
    stakes = stakes_of(some)
    r = 2.0 * (np.arange(stakes.g.shape[1]) < stakes.columns[:, None])
    expected = (r * stakes.g).sum(axis=1) + stakes.suffered
    for i, game in enumerate(some):
        K = game.X @ game.X.T
        if game.arena.gaussian:
            K = np.exp(-GAMMA * ((game.X[:, None] - game.X) ** 2).sum(axis=2))
        if game.arena.cube:
            h = -2.0 * np.sign(game.s @ game.X)
            values = game.X @ h
        else:
            coef = -2.0 * game.s / max(np.sqrt(game.s @ K @ game.s), 1e-9)
            h, values = (coef, game.X), K @ coef
        if (np.abs(stakes.g[i, : int(stakes.columns[i])]) > 1e-6).all():
            assert game.learner.bound(h) == approx(proved(stakes).at(r)[i], rel=1e-6)
        regret = game.s @ (game.p - values)
        assert regret == approx(expected[i], rel=1e-6, abs=1e-6)
        if not game.arena.cube:
            a, b, ell = game.arena.a, game.arena.b, game.arena.loss
            before = np.abs(game.s[:-1]).sum()
            limit = theory.regret_bound_printed(2.0, before, len(game.s), a, b, ell.L)
            assert printed(stakes).at(r)[i] == approx(limit)


def random_stakes(n=40, seed=0):
    rng = np.random.default_rng(seed)
    L, T = 10 ** rng.uniform(-1, 1, n), rng.integers(1, 100, n)
    s_sum = L * T * rng.uniform(0.2, 1, n)
    before = np.maximum(s_sum - L, 0)
    a, b = L * rng.choice(A_OVER_L[1:], n), 10 ** rng.uniform(-3, 3, n)
    g, one = s_sum * rng.uniform(0, 1, n), np.ones(n)
    suffered = -rng.uniform(0, 1, n) * b
    return Stakes(g[:, None], suffered, s_sum[:, None], before[:, None], a, b, L, T, one)


def theorem_1(stakes, i, r):
    return theory.regret_bound(r, stakes.s_sum[i, 0], stakes.a[i], stakes.b[i], stakes.L[i])


def theorem_1_printed(stakes, i, r):
    known = stakes.s_before[i, 0], stakes.T[i], stakes.a[i], stakes.b[i], stakes.L[i]
    return theory.regret_bound_printed(r, *known)


@pytest.mark.parametrize(("form", "bound"), [(proved, theorem_1), (printed, theorem_1_printed)])
def test_no_norm_on_a_grid_is_worse_than_the_worst(form, bound):
    stakes = random_stakes()
    judged = judge(form(stakes), stakes.suffered)
    grid = np.concatenate([[0.0], np.geomspace(1e-9, 1e60, 30_000)])
    for i in range(len(stakes.a)):
        regret, limit = grid * stakes.g[i, 0] + stakes.suffered[i], bound(stakes, i, grid)
        size = np.abs(stakes.suffered[i]) + limit[0]
        assert judged.slack[i] == approx((limit - regret).min(), rel=1e-4, abs=1e-4 * size)
        assert judged.slack[i] <= (limit - regret).min() + 1e-9 * size
        most = (regret / limit).max()
        assert judged.ratio[i] == approx(most, rel=1e-3) or most < 1e-3
        assert judged.violated[i] == ((limit - regret).min() < 0)


def test_per_coordinate_all_weights_are_as_bad_as_they_can_be():
    some = games("per coordinate", 60)
    stakes = stakes_of(some)
    judged = judge(proved(stakes), stakes.suffered)
    rng = np.random.default_rng(0)
    for i, game in enumerate(some):
        d = game.arena.d
        for size in 10 ** rng.uniform(-3, 3, 10):
            u = rng.normal(size=d) * size
            regret = game.s @ (game.p - game.X @ u)
            bound = theory.per_coordinate_bound(
                u, stakes.s_sum[i, :d], stakes.a[i], stakes.L[i], stakes.b[i]
            )
            assert bound - regret >= judged.slack[i] * (1 - 1e-9) - 1e-9 * abs(regret)


def test_the_corollary_of_appendix_A_as_printed():
    some = [game for game in games("per coordinate", 40) if game.arena.d > 1]
    stakes = stakes_of(some)
    bound = printed(stakes)
    for i, game in enumerate(some):
        a, L, T, d = game.arena.a, game.arena.loss.L, game.arena.T, game.arena.d
        sums = np.abs(game.s[:-1, None] * game.X[:-1]).sum(axis=0)
        for r in (0.0, 0.3, 20.0):
            first = r * np.sqrt(2 * a * (L + sums) * np.log(d * r * np.sqrt(a * L * T) + 1)).sum()
            expected = first + theory.phi_printed(L / a) * np.log1p(T)
            assert bound.at(np.full((len(some), 1), r))[i] == approx(expected)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_solver_finds_a_minimum_at_a_kink(d):
    target = np.linspace(-0.7, 0.4, d)

    def value_and_slope(h):
        return np.abs(h - target).sum() + 0.1 * h @ h, np.sign(h - target) + 0.2 * h

    assert minimise(value_and_slope, d, 10.0) == approx(target, abs=1e-5)


@pytest.mark.parametrize("kind", ["PiSTOL", "per coordinate"])
def test_no_other_comparator_is_worse_in_hindsight(kind):
    some = [g for g in games(kind, 60) if g.arena.d <= 3 and np.isfinite(g.arena.loss.H)][:12]
    for game in some:
        bound, ell = proved(stakes_of([game])), game.arena.loss

        def cost(h, game=game, bound=bound, ell=ell):
            r = np.abs(h) if game.arena.cube else [np.linalg.norm(h)]
            losses = [ell.value(y, v, ell.theta) for y, v in zip(game.y, game.X @ h)]
            return sum(losses) + bound.first(np.array([r]))[0]

        h = hindsight(game)
        other = minimize(cost, h + 0.01, method="Nelder-Mead", options={"maxiter": 300})
        assert cost(h) <= other.fun + 1e-6 * (1 + other.fun)


# The bounds at work, and that they could fail.


@pytest.mark.parametrize(("kind", "n"), [("PiSTOL", 250), ("kernel", 30), ("per coordinate", 150)])
def test_no_sequence_breaks_a_bound(kind, n):
    found = batch(kind, 10**6, n)
    assert sum(cell["sequences"] for cell in found["a"].values()) == n
    for cell in found["a"].values():
        for form in ("proved", "printed", "true"):
            assert cell[form]["violations"] == 0, cell[form]
        assert cell["printed"]["ratio"] < 1


@pytest.mark.parametrize("form", ["hindsight", "zero"])
def test_no_sequence_breaks_corollary_1(form):
    smooth = [g for g in games("PiSTOL", 90) if np.isfinite(g.arena.loss.H) and g.arena.d <= 6]
    assert len(smooth) > 20
    for game in smooth:
        a, b, ell, T = game.arena.a, game.arena.b, game.arena.loss, game.arena.T
        h = hindsight(game) if form == "hindsight" else np.zeros(game.arena.d)
        regret = game.learner.regret(h)
        h_loss = max(game.learner.cumulative_loss - regret, 0.0)
        bound = theory.smooth_regret_bound(np.linalg.norm(h), h_loss, T, a, b, ell.L, ell.H)
        assert regret <= bound * (1 + 1e-9)


def test_the_perceptron_makes_no_more_mistakes_than_it_may():
    found = mistakes(10**6, 150)
    assert found["violations"] == 0, found["numbers"]
    assert found["ratio"] == approx(1)  # an opponent that is never guessed reaches the bound


def test_the_mistake_bound_is_no_more_than_that_of_any_multiple_of_the_perceptron():
    for game in games("Perceptron", 60):
        coef = game.y * (game.y * game.p <= 0)
        bound, K = mistake_bound(game, False), game.gram()
        for scale in (0.0, 1.0):
            D = np.maximum(1 - game.y * (K @ coef) * scale, 0.0).sum()
            norm = scale * np.sqrt(max(coef @ K @ coef, 0.0))
            assert bound <= theory.perceptron_mistake_bound(norm, D) * (1 + 1e-9)


def test_a_bound_that_is_too_small_is_caught():
    stakes = stakes_of(games("PiSTOL", 150))
    bound = proved(stakes)
    small = bound._replace(phi=np.full(len(stakes.a), 0.02), alpha=bound.alpha * 0.1)
    assert judge(small, stakes.suffered).violated.sum() > 50
    no_price = bound._replace(phi=np.zeros(len(stakes.a)))
    assert judge(no_price, stakes.suffered).violated.sum() > 5


@pytest.mark.parametrize(("potential", "a", "b"), [("constant", 3.0, 1.0), ("pistol", 0.05, 1.0)])
def test_a_learner_with_another_multiplier_is_caught(potential, a, b):
    """Constant steps, and an a that no theorem covers, judged by the bound for a = 3 L, b = 1."""
    violated = 0
    for number in range(24):
        rng, ell = np.random.default_rng(number), LOSSES["hinge"]
        learner = events(rule(ell, potential, a, b, None), 2)
        arena = hostile.Arena(rng, 100, 2, False, False, learner, ell, 3.0, 1.0)
        stakes = stakes_of([play(arena, hostile.worst_of_several)])
        violated += judge(proved(stakes), stakes.suffered).violated[0]
    assert violated > 20


@pytest.mark.parametrize(("regret", "violated"), [(0.9, False), (1.1, True)])
def test_a_true_regret_beyond_the_bound_is_caught(regret, violated):
    told = SimpleNamespace(regret=lambda h: regret, bound=lambda h: 1.0, cumulative_loss=2.0)
    game = next(g for g in games("PiSTOL", 9) if g.arena.d <= 6 and g.arena.loss.name != "linear")
    assert _true(game._replace(learner=told)) == (regret, violated)


def test_mistakes_beyond_the_bound_are_caught():
    """Four fifths of (5) is not enough."""
    some = games("Perceptron", 120)
    assert sum((g.y * g.p <= 0).sum() > 0.8 * mistake_bound(g, False) for g in some) > 20


def test_batches_add_up():
    one, two = batch("PiSTOL", 0, 30), batch("PiSTOL", 30, 30)
    whole, both = batch("PiSTOL", 0, 60), together([one, two])
    assert both["opponent"] == whole["opponent"]
    for a, cell in whole["a"].items():
        assert both["a"][a]["sequences"] == cell["sequences"]
        for key in ("violations", "ratio", "slack", "needed"):
            assert both["a"][a]["printed"][key] == cell["printed"][key]
    assert together([{"slack": None}, {"slack": None}]) == {"slack": None}


# Growth.


@pytest.fixture
def learners(monkeypatch):
    """Those that `growth` makes, with a record of their rounds."""
    made, theorem = [], Learner.theorem

    def make(*args, **parameters):
        made.append(theorem(*args, record=True, **parameters))
        return made[-1]

    monkeypatch.setattr(growth.Learner, "theorem", make)
    return made


@pytest.mark.parametrize("flipped", [0.0, 0.1])
def test_the_regret_of_a_stream_is_that_against_its_h(learners, flipped):
    cell = growth.stream(flipped, 4, 200, 0)
    h = np.eye(growth.FEATURES)[0] * growth.NORM
    regrets, t = learners[0].regrets(h), np.array(cell["t"])
    assert regrets[t - 1] == approx(np.array(cell["loss"]) - cell["h_loss"])
    assert (regrets <= learners[0].bounds(h)).all()
    assert (cell["h_loss"][-1] > 0) == (flipped > 0)


def test_the_regret_per_coordinate_is_that_against_u(learners):
    cell, u = growth.scale(4.0, 200, 0), 4.0 * growth.WEIGHTS
    assert learners[0].regret(u) == approx(cell["pistol"])
    assert learners[0].bound(u) == approx(theory.per_coordinate_bound(u, cell["s_sums"], 3.0, 1.0))


def test_at_right_angles_the_regret_is_the_root_of_T():
    cell = growth.over_time("orthogonal", "hinge", 200, 20, 1.0, 0)
    assert cell["regret"][-1] == approx(np.sqrt(200))
    assert (np.array(cell["regret"]) <= cell["bound"]).all()


# The section.

T = [10, 31, 100, 316, 1000, 3162, 10_000]
CAVEAT, NO = "holds with a caveat", "does not hold"


def streams(loss, s_sum=T):
    cell = {"t": T, "loss": loss, "s_sum": s_sum, "h_loss": [0.0] * len(T)}
    return dict.fromkeys(claims.STREAMS, cell)


@pytest.mark.parametrize(
    ("loss", "verdict"),
    [
        ([10, 31, 100, 200, 210, 210, 210], "holds"),
        ([10, 20, 20, 60, 210, 210, 210], CAVEAT),
        (T, NO),
        ([10**5] * 7, NO),
    ],
)
def test_verdicts_on_corollary_1(loss, verdict):
    assert claims.corollary_1(streams(loss)).verdict == verdict


def test_verdicts_on_the_sum_of_gradients():
    assert claims.depends_on_gradients(streams([100] * 7, [310.0] * 7)).verdict == "holds"
    assert claims.depends_on_gradients(streams([100] * 7, T)).verdict == NO
    assert claims.depends_on_gradients(streams([10**5] * 7, [310.0] * 7)).verdict == NO


@pytest.mark.parametrize(("ratio", "verdict"), [(1.1, "holds"), (1.5, CAVEAT), (3.0, NO)])
def test_verdicts_on_times(ratio, verdict):
    assert claims.complexity({"one": {"pistol": ratio, "asgd": 1.0}}).verdict == verdict


@pytest.mark.parametrize(
    ("size", "power", "adagrad", "verdict"),
    [(100.0, 1, 2, CAVEAT), (100.0, 2, 2, NO), (100.0, 1, 1, NO), (1e6, 1, 2, NO)],
)
def test_verdicts_on_the_norm_of_u(found, size, power, adagrad, verdict):
    scales = [
        {"pistol": size * n**power, "adagrad": n**adagrad, "s_sums": [1e4] * 5}
        for n in claims.NORMS
    ]
    cells = together([v for name, v in found.items() if "/per coordinate/" in name])["a"]
    assert claims.appendix_a(cells, scales)[1].verdict == verdict


@pytest.fixture(scope="module")
def found():
    patch = pytest.MonkeyPatch()
    patch.setattr(bounds, "QUICK", dict.fromkeys(KINDS, (40, 20)))
    patch.setattr(bounds, "MISTAKES", {True: (40, 20), False: (9, 3)})
    patch.setattr(bounds, "ROUNDS", {True: (100, 1000, 300), False: (100, 1000, 500)})
    patch.setattr(bounds, "TIMED", {"Gaussian kernel": (200, 5, True), "linear": (500, 5, False)})
    yield {job.name: job.work(*job.args) for job in bounds.jobs(True)}
    patch.undo()


@pytest.fixture(scope="module")
def verdicts(found):
    """On every claim, by its place in the paper."""
    return {claim.where: claim.verdict for claim in bounds.section(found, True).claims}


def test_the_section_tells_what_was_found(found):
    section = bounds.section(found, True)
    by_place = {claim.where: claim for claim in section.claims}
    assert len(by_place) == 8
    assert by_place["Section 4, Theorem 1"].verdict == "holds"
    assert by_place["Section 4, Theorem 1 as printed"].verdict == "holds with a caveat"
    cells = [v["a"] for name, v in found.items() if "/PiSTOL/" in name or "/kernel/" in name]
    testable = sum(c["sequences"] for part in cells for a, c in part.items() if a != "2.25")
    assert f"{testable} sequences with a > 2.25 L" in by_place["Section 4, Theorem 1"].measured


@pytest.mark.parametrize(
    ("kind", "form", "where"),
    [
        ("PiSTOL", "proved", "Section 4, Theorem 1"),
        ("PiSTOL", "true", "Section 4, Theorem 1"),
        ("kernel", "proved", "Section 4, Theorem 1"),
        ("kernel", "printed", "Section 4, Theorem 1 as printed"),
        ("per coordinate", "proved", "Appendix A, the corollary"),
        ("per coordinate", "printed", "Appendix A, the corollary"),
        ("per coordinate", "true", "Appendix A, the corollary"),
        ("Perceptron", None, "Section 3, equation (5)"),
    ],
)
def test_a_violation_is_told(found, verdicts, kind, form, where):
    name = next(name for name in found if name.startswith(f"bounds/hostile/{kind}/"))
    changed = deepcopy(found)
    cell = changed[name] if form is None else changed[name]["a"]["3"][form]
    cell |= {"violations": 1, "numbers": [4711]}
    told = {claim.where: claim for claim in bounds.section(changed, True).claims}
    assert told[where].verdict == NO
    assert "4711" in told[where].measured
    assert verdicts[where] != NO


def test_job_names_are_their_own(found):
    for quick in (True, False):
        jobs = bounds.jobs(quick)
        assert len({job.name for job in jobs}) == len(jobs)
