"""The oracle itself: rounds worked by hand, and the algorithms' relations to each other."""

from math import exp, log, sqrt

import pytest

from pistol import reference

pytestmark = pytest.mark.interpreted
approx = pytest.approx


def linear(x, z):
    return x * z


def hinge_grad(y, p):
    return -y if y * p < 1 else 0.0


def test_three_rounds_of_pistol_by_hand():
    """Linear kernel on the line, hinge loss, a = 2, b = 1, L = 1."""
    stream = [(1.0, 1.0), (1.0, 1.0), (-0.5, 1.0)]
    (p1, _), (p2, _), (p3, f3) = reference.pistol(stream, hinge_grad, linear, a=2.0, b=1.0, L=1.0)
    assert p1 == 0.0  # g_0 = 0
    # round 2: g_1 = 1, α_1 = 2 + 2·1·1 = 4, c_2 = 1/4 exp(1/8)
    assert p2 == approx(exp(1 / 8) / 4)
    # round 3: g_2 = 2, α_2 = 6, c_3 = 1/6 exp(4/12), x_3 = -1/2
    assert p3 == approx(-0.5 * 2 * exp(1 / 3) / 6)
    assert sum(w * x for w, x in f3) == approx(2 * exp(1 / 3) / 6)


def test_two_rounds_of_averaged_sgd_by_hand():
    rounds = list(reference.averaged_sgd([(2.0, 1.0), (1.0, -1.0)], hinge_grad, linear, eta=0.25))
    assert [p for p, _ in rounds] == [0.0, 0.5]  # f_2 = 0.25 · 2
    assert sum(w * x for w, x in rounds[1][1]) == 0.5  # the step descends: y = +1 raised f


def test_the_perceptron_learns_on_mistakes_only():
    stream = [(1.0, 1.0), (1.0, 1.0), (1.0, -1.0), (1.0, -1.0)]
    predictions = [p for p, _ in reference.kernel_perceptron(stream, linear)]
    assert predictions == [0.0, 1.0, 1.0, 0.0]  # updates in rounds 1, 3 (and 4: zero is a mistake)


def test_per_coordinate_in_one_dimension_is_algorithm_3():
    stream = [(1.0, 1.0), (-0.3, -1.0), (0.8, 1.0), (0.5, -1.0)]
    ours = reference.pistol(stream, hinge_grad, linear, a=2.25, b=1.0, L=1.0)
    vectors = [([x], y) for x, y in stream]
    theirs = reference.pistol_per_coordinate(vectors, hinge_grad, a=2.25, b=1.0, L=1.0, m=[1.0])
    assert [p for p, _ in ours] == approx([p for p, _ in theirs])


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_learning_the_unit_of_a_coordinate_makes_it_not_matter(unit):
    stream = [([1.0, 2.0], 1.0), ([-3.0, 0.0], -1.0), ([0.5, 8.0], 1.0), ([2.0, -1.0], -1.0)]
    scaled = [([x[0] * unit, x[1]], y) for x, y in stream]

    def play(rounds):
        grad, b = hinge_grad, reference.anytime
        return [
            p for p, _ in reference.pistol_per_coordinate(rounds, grad, 1.0, b, 1.0, [0.0, 0.0])
        ]

    assert play(stream) == approx(play(scaled), rel=1e-12)


def test_the_average_weighs_every_f():
    f = reference.average([[], [(2.0, "x")], [(4.0, "z")]], [1.0, 2.0, 3.0])
    assert f == [(approx(4 / 6), "x"), (approx(12 / 6), "z")]


def test_anytime_b_is_the_square_root_of_alpha():
    assert reference.anytime(8.0) == approx(0.5 * sqrt(16.0))


def test_three_rounds_of_vowpal_wabbits_rule_by_hand():
    """One feature, hinge loss, a = 2, b = 3; its unit grows to 2 in the third round."""
    stream = [([1.0], 1.0), ([0.01], 1.0), ([2.0], -1.0)]
    (p1, _), (p2, _), (p3, w3) = reference.vowpal(stream, hinge_grad, a=2.0, b=3.0, features=1)
    assert p1 == 0.0
    # round 2: θ = G = m = 1, A = 2·1·(1 + 1) = 4
    assert p2 == approx(0.01 * 3 * exp(1 / 8) / 4)
    # round 3: θ = G = 1.01, m = 2, A = 2·2·(1.01 + 2)
    A = 12.04
    assert w3 == [approx(3 * sqrt(1.01) * 1.01 / A * exp(1.01**2 / (2 * A)))]
    assert p3 == approx(2 * w3[0])


def test_vowpal_wabbits_rule_is_appendix_a_with_another_b():
    """With m = 1 throughout, α = a (1 + G) says what G is."""
    stream = [([1.0], 1.0), ([-0.3], -1.0), ([0.8], 1.0), ([0.5], -1.0)]
    ours = reference.vowpal(stream, hinge_grad, a=2.0, b=0.5, features=1)
    theirs = reference.pistol_per_coordinate(
        stream, hinge_grad, 2.0, lambda alpha: 0.5 * sqrt(alpha / 2.0 - 1.0), 1.0, [1.0]
    )
    assert [p for p, _ in ours] == approx([p for p, _ in theirs])


def test_the_multinomial_gradient_by_hand():
    assert reference.d_multinomial(0, [log(2.0), 0.0, 0.0]) == approx([-0.5, 0.25, 0.25])


def test_columns_of_the_product_space_share_a_gradient():
    """Two rounds of two classes on the line, a = b = L = 1: each column is fed ∓½."""
    stream = [(1.0, 0), (1.0, 1)]
    rounds = list(
        reference.product_space(
            lambda grad: reference.pistol(stream, grad, linear, a=1.0, b=1.0, L=1.0),
            reference.d_multinomial,
            2,
        )
    )
    assert [p for p, _ in rounds[0]] == [0.0, 0.0]
    p = 0.5 * exp(0.25 / 3) / 1.5  # g_1 = ±½, α_1 = 1 + ½
    assert [p for p, _ in rounds[1]] == approx([p, -p])
