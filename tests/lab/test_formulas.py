"""Laws of the section on formulas: exponents, roots, counterexamples, and a verdict a claim."""

import re
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pistol import theory
from pistol_lab.reproduction import formulas
from pistol_lab.reproduction.formulas import figures, mistakes, outlook, rates, regret, slopes
from pistol_lab.reproduction.sections import Picture, Table


@pytest.fixture(scope="module")
def section():
    return formulas.section({}, quick=True)


@given(st.floats(-2, 2), st.floats(0.1, 10))
def test_the_slope_of_a_power_is_its_exponent(p, c):
    assert slopes.slope(lambda x: c * x**p) == pytest.approx(p, abs=1e-9)


def test_what_is_wrong_does_not_hold_whatever_the_caveat():
    assert slopes.judged(False) == slopes.judged(False, caveat=True) == "does not hold"
    assert slopes.judged(True, caveat=True) == "holds with a caveat"
    assert slopes.judged(True) == "holds"


@given(st.floats(2.26, 30.0))
def test_the_printed_constant_is_enough_from_one_ratio_on(ratio):
    enough = log(theory.phi_printed(1 / ratio)) >= theory.log_phi(1 / ratio)
    assert enough == (ratio >= slopes.printed_from())


@pytest.mark.parametrize("name", figures.FUNCTIONS)
def test_a_function_belongs_up_to_where_its_sum_converges(name):
    assert figures.edge(name) == pytest.approx(
        (figures.FUNCTIONS[name] - 0.5) / figures.DECAY, abs=1e-3
    )


@pytest.mark.parametrize("name", figures.FUNCTIONS)
def test_sums_grow_with_their_terms_and_with_beta(name):
    found = figures.sums(name, terms=(10, 100, 1_000))
    assert np.all(np.diff(found, axis=0) >= 0)
    assert np.all(np.diff(found, axis=1) > 0)
    assert found[-1, 0] == pytest.approx(1.0)


def test_the_bent_loss_is_one_that_lemma_1_allows():
    x = np.linspace(-2, 2, 40_001)
    values = mistakes.bent(x)
    assert np.all(np.diff(values, 2) > -1e-12)  # convex
    assert np.all(values >= 0)
    assert x[np.argmax(values <= 1e-12)] == pytest.approx(1.0, abs=1e-4)  # its smallest zero
    h = mistakes.BEND / 4
    low, middle, high = mistakes.bent(np.array([-h, 0.0, h]))
    assert (high - low) / (2 * h) == pytest.approx(-1.0)
    assert (high - 2 * middle + low) / h**2 == pytest.approx(1.0, rel=1e-3)


def test_the_bent_loss_is_beyond_lemma_1():
    excess = mistakes._bent_excess()
    assert 0 < excess < mistakes.BEND  # at most MARGIN · BEND by hand
    assert theory.misclassification_bound(excess, 1.0, c_q=1.0, factor=32.0) < mistakes.MARGIN


def test_the_factor_of_the_square_loss_is_two():
    assert mistakes._factor("square") == pytest.approx(2.0, rel=1e-3)


def test_the_third_term_is_never_the_largest():
    most, places = rates._third_term()
    assert most <= 1 + 1e-9
    assert places > 100_000


@given(st.sampled_from([0.1, 0.25, 0.5]), st.floats(1e-9, 1e-3))
def test_the_fast_regime_ends_where_two_terms_are_equal(beta, risk):
    (T,) = rates._leaves(np.array([risk]), beta)
    assert risk + 1 / T == pytest.approx(T ** (-2 * beta / (beta + 1)), rel=1e-6)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=5), st.data())
def test_the_appendix_is_looser_than_the_sum_of_its_copies(u, data):
    n = 500
    sums = data.draw(st.lists(st.floats(0, n), min_size=len(u), max_size=len(u)))
    u, sums = np.array(u), np.array(sums)
    sharp = theory.per_coordinate_bound(u, sums, slopes.A, slopes.L)
    assert sharp <= outlook._appendix_bound(u, sums, n) * (1 + 1e-9)


def test_with_squared_gradients_the_loss_solves_its_inequality():
    n = np.array([1e3, 1e6])
    a, b, L, H = (figures.SETTING[k] for k in "abLH")
    x = outlook._with_squares(n)
    root = np.sqrt(2 * a * (L * L + 4 * H * x) * np.log(np.sqrt(a * L * (n + 1)) / b + 1))
    np.testing.assert_allclose(x, root + b * theory.phi(L / a) * np.log1p(n))


def test_norms_kept_by_increments_are_exact():
    assert regret._norm_by_increments(50) < 1e-12


def test_every_claim_has_a_number_and_a_place(section):
    assert all(re.search(r"\d", claim.measured) for claim in section.claims)
    places = " ".join(claim.where for claim in section.claims)
    for place in ("Section 1", "Section 4", "Section 5", "Section 7", "Appendix A"):
        assert place in places


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("T^(−3β/(2β+1))", "does not hold"),  # the text against the theorem
        ("said not to be covered", "does not hold"),  # a = 0.25, L = 2
        ("for all a ≥ 2.25 L", "holds with a caveat"),
        ("over η is 4‖h‖/√T", "holds with a caveat"),
        ("T^(−2/3) if its risk is 0", "holds"),
    ],
)
def test_verdicts_on_the_errata(section, words, verdict):
    (claim,) = (claim for claim in section.claims if words in claim.claim)
    assert claim.verdict == verdict


def test_the_table_names_functions_that_exist(section):
    (table,) = (part for part in section.parts if isinstance(part, Table))
    for row in table.rows:
        assert len(row) == len(table.head)
        assert callable(getattr(theory, row[1].strip("`")))


def test_pictures_have_names_and_words(section):
    pictures = [part for part in section.parts if isinstance(part, Picture)]
    assert len({p.name for p in pictures}) == len(pictures) == 3
    assert all(p.alt and p.caption and p.title for p in pictures)


def test_formulas_need_no_jobs():
    assert formulas.jobs(quick=False) == formulas.jobs(quick=True) == []
