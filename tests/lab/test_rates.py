"""The circle is what it is said to be, its learners are the paper's, and fits are honest."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pistol import reference
from pistol_lab.reproduction import rates
from pistol_lab.reproduction.rates import circle, curves, plan, predictions
from pistol_lab.reproduction.rates.circle import Problem
from pistol_lab.reproduction.sections import Picture, Table

J = 32
BETAS = (0.125, 0.25, 0.5)
TINY = plan.Plan(32, 11, 3, (0.25, 0.5), (0.1, 0.4), (2,), (0.01,))
NOISES = (None, 0.0, 0.3)
problems = st.builds(Problem, st.just(J), st.sampled_from(BETAS), st.sampled_from(NOISES))


def random_function(seed: int, size: float) -> np.ndarray:
    """z of a function of this size."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=len(circle.frequencies(J))) * np.exp(2j * np.pi * rng.random())
    z *= np.sqrt(circle.eigenvalues(J))
    return z * size / np.abs(circle.on_grid(z, J)).max()


# The problem.


def test_the_kernel_is_one_on_the_diagonal_and_has_the_eigenvalues():
    x = np.random.default_rng(0).random(6)
    X = circle.features(x, J)
    turns = np.subtract.outer(x, x)[:, :, None] * circle.frequencies(J)
    K = (2 * circle.eigenvalues(J) * np.cos(2 * np.pi * turns)).sum(axis=2)
    np.testing.assert_allclose(X @ X.T, K, atol=1e-9)
    np.testing.assert_allclose(np.diag(K), 1.0)


def test_features_and_coefficients_give_the_same_function():
    z = random_function(1, 1.0)
    values = circle.on_grid(z, J)
    at = np.array([0, 1, 5, 77, 1000])
    X = circle.features(at / len(values), J)
    np.testing.assert_allclose(X @ circle.to_weights(z, J), values[at], atol=1e-9)
    np.testing.assert_allclose(circle.from_weights(circle.to_weights(z, J), J), z)


@pytest.mark.parametrize("beta", BETAS)
def test_the_target_is_in_the_range_exactly_below_beta(beta):
    """What an octave adds to Σ|z|² λ^(-2β′) falls geometrically below β, and is constant at it."""
    z, lam = circle.target(J, beta), circle.eigenvalues(J)

    def octaves(power: float) -> np.ndarray:
        terms = np.abs(z) ** 2 * lam ** (-2 * power)
        first = [terms[J // 4 : J // 2].sum(), terms[J // 2 : J].sum()]
        return np.array([*first, *terms[J:]])

    np.testing.assert_allclose(octaves(beta), octaves(beta)[-1], rtol=0.05)
    below = octaves(beta - 0.1)
    np.testing.assert_allclose(below[3:] / below[2:-1], 2 ** (-0.2 * circle.DECAY), rtol=1e-6)


@pytest.mark.parametrize("beta", BETAS)
def test_the_target_is_as_high_as_said_and_stays_bounded(beta):
    heights = []
    for size in (J, 8 * J):
        z = circle.target(size, beta)
        assert np.abs(circle.on_grid(z, size)).max() == pytest.approx(circle.HEIGHT)
        heights.append(circle.HEIGHT / (np.abs(z[0]) / circle.eigenvalues(size)[0] ** beta))
    assert heights[1] < 1.5 * heights[0]  # in phase it would be 8^(1/2 - 1.25 β) at least


@given(problems, st.integers(0, 99), st.floats(0.05, 0.75))
def test_parseval_is_quadrature_while_the_loss_is_quadratic(problem, seed, size):
    z = random_function(seed, size)
    by_grid = circle.risk(circle.on_grid(z, J), problem) - circle.best_risk(problem)
    assert circle.excess(z, problem) == pytest.approx(by_grid, abs=1e-12)
    assert circle.excess(z, problem) == pytest.approx(circle.distance(z, problem) / 4)


@pytest.mark.parametrize("sigma", NOISES)
def test_large_functions_pay_the_linear_part(sigma):
    """Against the library's loss, target by target."""
    problem, z = Problem(J, 0.25, sigma), random_function(3, 6.0)
    value, n = curves.HUBER.value, 0
    f, best = circle.on_grid(z, J)[::37], circle.on_grid(circle.target(J, 0.25), J)[::37]
    total = 0.0
    for p, q in zip(f, best, strict=True):
        law = (
            {1.0: (1 + q) / 2, -1.0: (1 - q) / 2}
            if sigma is None
            else ({q: 1.0} if sigma == 0 else {q + sigma: 0.5, q - sigma: 0.5})
        )
        n += 1
        total += sum(
            w * (value(y, p, circle.DELTA) - value(y, q, circle.DELTA)) for y, w in law.items()
        )
    assert circle.excess(z, problem) == pytest.approx(total / n, rel=0.02)
    assert circle.excess(z, problem) < 0.9 * circle.distance(z, problem) / 4


@pytest.mark.parametrize("sigma", NOISES)
def test_no_function_is_better_than_the_target(sigma):
    problem = Problem(J, 0.25, sigma)
    best = circle.target(J, 0.25)
    assert circle.excess(best, problem) == pytest.approx(0, abs=1e-12)
    for seed in range(5):
        assert circle.excess(best + random_function(seed, 0.1), problem) > 1e-5


def test_targets_have_the_mean_that_is_to_be_learned():
    (X, y), = circle.stream(Problem(J, 0.5), 0, [2000])  # fmt: skip
    f = X @ circle.to_weights(circle.target(J, 0.5), J)
    assert set(y) == {-1.0, 1.0}
    assert abs(np.mean((y - f) * f)) < 4 * np.std((y - f) * f) / np.sqrt(len(y))
    (X, y), = circle.stream(Problem(J, 0.5, 0.3), 0, [2000])  # fmt: skip
    np.testing.assert_allclose(np.abs(y - f), 0.3)


def test_deviations_are_as_large_as_said():
    X = np.concatenate([X for X, _ in circle.stream(Problem(J, 0.5, hold=4), 0, [64, 4000])])
    assert np.mean(X[1:, 0] == X[:-1, 0]) == pytest.approx(0.75, abs=0.03)
    (X, y), = circle.stream(Problem(J, 0.5, 0.0, wrong=0.2), 0, [2000])  # fmt: skip
    f = X @ circle.to_weights(circle.target(J, 0.5), J)
    assert np.mean(np.abs(y - f) > 1e-9) == pytest.approx(0.2, abs=0.03)


@given(problems, st.floats(1e-5, 1.0), st.integers(0, 99), st.floats(1e-3, 1.0))
def test_a_compromise_cannot_be_improved(problem, gamma, seed, size):
    h = circle.compromise(problem, gamma)
    z = h.z + random_function(seed, size)
    other = circle.distance(z, problem) + gamma * np.sum(np.abs(z) ** 2 / circle.eigenvalues(J))
    least = h.distance + gamma * h.norm_sq
    assert least <= other
    assert least <= gamma ** (2 * problem.beta) * circle.source_norm(problem) ** 2  # the lemma


# The learners.


def square_gradient(y: float, p: float) -> float:
    return 2 * (p - y)


def huber_gradient(y: float, p: float) -> float:
    return float(np.clip((p - y) / circle.DELTA, -1, 1))


@pytest.mark.parametrize("name", curves.LEARNERS)
def test_learners_are_the_papers(name):
    """The curve's first point, from the pseudo-code on the kernel of the circle."""
    problem, T = Problem(J, 0.25, 0.3), 2**curves.FIRST
    (X, y), = circle.stream(problem, 7, [T])  # fmt: skip
    rounds = list(zip(X, y, strict=True))
    if name in (curves.ORACLE, curves.AGNOSTIC):
        r = 1 / 3 if name == curves.ORACLE else 1 / 2
        played = reference.averaged_sgd(rounds, square_gradient, np.dot, 0.25 * T**-r)
    else:
        a = 1 / 8 if name == curves.PAPER else 3.0
        b = 1.0 if name == curves.PISTOL else np.sqrt(2 * a * T)
        played = reference.pistol(rounds, huber_gradient, np.dot, a, b, 1.0)
    w = sum(weight * x for _, f in played for weight, x in f) / T
    found = curves.learn(problem, curves.FIRST, 7, [name])
    z = circle.from_weights(w, J)
    assert found["excess"][name] == pytest.approx([circle.excess(z, problem)], rel=1e-6)
    assert found["distance"][name] == pytest.approx([circle.distance(z, problem)], rel=1e-6)


def test_a_job_finds_the_same_again_and_another_seed_something_else():
    first, again, other = (curves.job(Problem(J, 0.25), 8, seed) for seed in (0, 0, 1))
    assert first.work(*first.args) == again.work(*again.args) != other.work(*other.args)
    assert first.name == again.name != other.name


@pytest.mark.parametrize("quick", [False, True])
def test_no_two_jobs_have_one_name(quick):
    names = [job.name for job in rates.jobs(quick)]
    assert len(set(names)) == len(names)


# Fits.


def simulated(r: float, noise: float, seeds: int, seed: int) -> curves.Curves:
    """Curves T^-r whose octaves are off together, as those of one sample are."""
    rng, T = np.random.default_rng(seed), np.array(curves.sizes(14))
    walk = np.cumsum(rng.normal(scale=noise, size=(seeds, len(T))), axis=1)
    return curves.Curves(T, T**-r * np.exp(walk))


@given(st.floats(0.05, 1.5))
def test_an_exact_power_is_recovered(r):
    fit = curves.exponent(simulated(r, 0.0, 3, 0))
    assert fit.r == pytest.approx(r)
    assert fit.error == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(curves.local_exponents(simulated(r, 0.0, 3, 0)), r)


def test_standard_errors_are_honest():
    fits = [curves.exponent(simulated(0.4, 0.1, 12, seed)) for seed in range(200)]
    scores = [(fit.r - 0.4) / fit.error for fit in fits]
    assert 0.8 < np.std(scores) < 1.3
    assert abs(np.mean(scores)) < 0.3


def test_verdicts_on_exponents():
    fit = curves.Exponent(0.4, 0.01)
    assert predictions.judged(fit, 0.41, 0.41) == "holds"
    assert predictions.judged(fit, 0.43, 0.41) == "holds with a caveat"
    assert predictions.judged(fit, 0.5, 0.45) == "does not hold"


# The section.


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "QUICK", TINY)
        return {job.name: job.work(*job.args) for job in rates.jobs(quick=True)}


@pytest.fixture
def tiny(monkeypatch):
    for size in ("QUICK", "FULL"):
        monkeypatch.setattr(plan, size, TINY)


@pytest.mark.parametrize("quick", [False, True])
def test_the_section_can_be_read(found, tiny, quick):
    section = rates.section(found, quick)
    tables = [part for part in section.parts if isinstance(part, Table)]
    assert all(len(row) == len(table.head) for table in tables for row in table.rows)
    for part in section.parts:
        if isinstance(part, Picture):
            part.drawing.savefig(BytesIO())
    text = str([(claim.measured, part) for claim in section.claims for part in section.parts])
    assert "nan" not in text
    assert "inf " not in text
    assert len(section.claims) == (8 if quick else 14)


def changed(found, factor):
    """Every curve times a factor of T."""

    def one(curve):
        return [value * factor(k) for k, value in enumerate(curve)]

    return {
        name: {what: {learner: one(by[learner]) for learner in by} for what, by in cell.items()}
        for name, cell in found.items()
    }


def verdicts(found):
    claims = rates.section(found, quick=False).claims
    return {f"{claim.where}: {claim.claim[:20]}": claim.verdict for claim in claims}


def test_bounds_that_are_broken_are_found_out(found, tiny):
    good, bad = verdicts(found), verdicts(changed(found, lambda k: 1e4))
    moved = {where for where in good if good[where] == "holds" and bad[where] == "does not hold"}
    assert any("equation (3)" in where for where in moved)
    assert any("The guarantees" in where for where in moved)


def test_curves_that_do_not_fall_break_the_rates(found, tiny):
    def promises(factor):
        read = verdicts(changed(found, factor)).items()
        return {v for where, v in read if "Theorem" in where and "after" not in where}

    assert promises(lambda k: 2.0**k) == {"does not hold"}
    assert promises(lambda k: 4.0**-k) == {"holds"}


def exact(found, r):
    """Every curve a power of T."""
    return {
        name: {
            what: {n: [2.0 ** (-r * k) for k in range(6)] for n in by} for what, by in cell.items()
        }
        for name, cell in found.items()
    }


def test_windows_do_not_matter_for_a_power(found, tiny):
    results = plan.Results(exact(found, 0.6), quick=False)
    assert rates._verdicts(results, 3) == rates._verdicts(results, 4)
    assert "0, 0 or 0 of the 4 verdicts" in rates._rule(results)


def test_one_regime_is_not_two(found, tiny):
    for r in (0.6, 0.8):  # too slow for the first, too fast for the last
        read = verdicts(exact(found, r))
        assert {v for where, v in read.items() if "Figure 2" in where} == {"does not hold"}


def test_a_limit_is_never_seen(found, tiny):
    read = verdicts(exact(found, 2.0))
    assert {v for where, v in read.items() if "consistent" in where} == {"holds with a caveat"}


def test_bounds_fall_with_more_examples():
    T = np.array(curves.sizes(16))
    for sigma in (None, 0.0):
        problem = Problem(J, 0.25, sigma)
        for bound in (predictions.corollary_2, predictions.theorem_2):
            values = bound(problem, curves.PISTOL, T)
            assert all(b < a for a, b in pairwise(values))
        assert np.all(
            predictions.corollary_2(problem, curves.PISTOL, T)
            <= predictions.theorem_2(problem, curves.PISTOL, T) * 1.01
        )
