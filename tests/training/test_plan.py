"""How many orders and passes a fit takes: a pure function, and the table in the documentation."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pistol._training.kernel_family import KernelFamily
from pistol._training.linear_family import LinearFamily
from pistol._training.plan import Limits, Plan, Race, make_plan

PAGE = Path(__file__).parents[2] / "docs" / "nothing-to-tune.md"
HEADER = "| rounds | folds | held out by each | full orders | most passes |"
LINEAR_HEADER = "| rounds, linear estimators | folds | held out by each | full orders | passes |"
KERNELS, ONE, GRAM, LINEAR = (
    KernelFamily("auto").limits,
    KernelFamily("rbf").limits,
    KernelFamily("precomputed").limits,
    LinearFamily().limits,
)
all_limits = pytest.mark.parametrize("limits", [KERNELS, GRAM, LINEAR], ids=["k", "gram", "l"])
rounds = st.integers(1, 200_000)
passes = st.one_of(st.just("auto"), st.integers(1, 300))
orders = st.one_of(st.just("auto"), st.none(), st.integers(1, 9))


def auto(n, limits, **more):
    return make_plan(n, "auto", "auto", limits, **more)


def read_table(header):
    """The rows of a table in the documentation: rounds, folds, share held out, orders, passes."""
    lines = PAGE.read_text(encoding="utf-8").split(header)[1].strip().splitlines()[1:]
    cells = []
    for line in lines:
        if not line.startswith("|"):
            break
        cells.append([cell.strip() for cell in line.strip("|").split("|")])
    return cells


def number(text):
    """The first whole number in a cell, or None."""
    found = re.search(r"\d[\d,]*", text)
    return int(found[0].replace(",", "")) if found else None


def test_the_documentations_table_is_the_plan():
    """For kernels; with more rounds the race is on a sample, and trees of cells follow."""
    table = read_table(HEADER)
    some, alone, many, more = (number(row[0]) for row in table)
    assert (some, alone, many) == (600, KERNELS.sample, KERNELS.few)
    assert table[3][0].startswith("more")
    assert more == KERNELS.sample
    assert f"up to {auto(many + 1, KERNELS).race.most} passes" in table[3][0]
    for n, row in zip((some, alone, many, 10**6), table, strict=True):
        plan = auto(n, KERNELS)
        assert plan.race is not None
        orders, most = (
            (plan.orders, plan.passes) if plan.race.sample else (plan.race.full, plan.race.most)
        )
        share = f"1/{round(1 / plan.race.share)}" if n <= many else f"{KERNELS.sample:,} rounds"
        assert row[1:] == [str(plan.race.folds), share, str(orders), str(most)]
    for n in (some, alone, many):
        assert auto(n, KERNELS) != auto(n + 1, KERNELS)


def test_the_table_of_linear_estimators_is_the_plan():
    few, several, some, many, more, wide = read_table(LINEAR_HEADER)
    for row in (few, several, some):
        race = auto(number(row[0]), LINEAR).race
        assert race is not None
        share = f"1/{round(1 / race.share)}"
        expected = [str(race.folds), share, str(race.full), f"at most {race.most}"]
        assert row[1:] == expected
        assert auto(number(row[0]) + 1, LINEAR) != auto(number(row[0]), LINEAR)
    plan = auto(number(some[0]) + 1, LINEAR)
    assert plan.race == Race(1, number(many[4]), 0, 5462 + 8192, 5462)
    assert many[1:3] == ["1, of a sample", "8,192 rounds"]
    assert many[3:] == [str(plan.orders), f"at most {plan.passes}"]
    assert auto(number(many[0]), LINEAR).passes > 1
    plan = auto(number(many[0]) + 1, LINEAR)
    assert more == ["more", "–", "–", str(plan.orders), str(plan.passes)]
    plan = auto(10, LINEAR, features=number(wide[0]) + 1)
    assert wide[1:] == ["–", "–", str(plan.orders), str(plan.passes)]
    assert auto(10, LINEAR, features=number(wide[0])).race is not None


def test_few_rounds():
    for limits, full in ((KERNELS, 2), (GRAM, 2), (LINEAR, 1)):
        assert auto(600, limits) == Plan(Race(5, 256, 3), 0, 0)
        assert auto(601, limits) == Plan(Race(3, 64, full), 0, 0)


def test_many_rounds():
    assert auto(5000, KERNELS).race == Race(1, 64, 1)
    assert make_plan(5000, "auto", 4, KERNELS).race == Race(4, 64, 4)
    assert auto(2048, KERNELS).trial is None
    assert auto(2049, KERNELS).trial == Race(1, 8, 0, 2049, 1366)
    assert auto(5000, KERNELS).trial == auto(5001, KERNELS).race._replace(most=8)
    assert auto(5001, KERNELS) == Plan(Race(1, 16, 0, 1366 + 2048, 1366), 2, 64, 5000, 3334)
    assert auto(6000, KERNELS).base == 4000
    assert auto(6144, KERNELS).base == KERNELS.base
    assert auto(10**6, KERNELS) == auto(6144, KERNELS)
    assert auto(4097, ONE) == Plan(Race(1, 64, 0, 1366 + 2048, 1366), 1, 10)
    assert auto(10_000, ONE).passes == 5
    assert auto(10**6, ONE).passes == 1
    assert auto(4097, GRAM) == Plan(None, 1, 1)
    assert auto(2048, LINEAR).race == Race(3, 64, 1)
    assert auto(30_000, LINEAR).race == Race(1, 64, 1)
    assert make_plan(30_000, "auto", 4, LINEAR).race == Race(4, 64, 4)
    assert auto(30_001, LINEAR) == Plan(Race(1, 4, 0, 5462 + 8192, 5462), 1, 4)
    assert auto(200_001, LINEAR) == Plan(None, 1, 1)


def test_many_features_or_outputs():
    assert auto(100, LINEAR, features=100_000).race is not None
    assert auto(100, LINEAR, features=100_001) == Plan(None, 1, 8)
    one, many = (auto(5001, KERNELS, outputs=k).race for k in (1, 256))
    assert (many.sample, many.learned) == (one.sample // 2, one.learned // 2)


@given(n=rounds)
def test_a_sample_learns_two_thirds_and_holds_out_as_many_rounds_as_there_are(n):
    for limits in (KERNELS, ONE, LINEAR):
        plan = auto(n, limits)
        race = plan.trial or plan.race
        if race is not None and race.sample:
            held_out = race.sample - race.learned
            assert race.share == pytest.approx(held_out / race.sample)
            assert race.learned == pytest.approx(limits.sample * 2 / 3, abs=1)
            assert held_out == min(limits.sample, n - race.learned)
            assert held_out >= n / 3 or held_out == limits.sample


@all_limits
@given(n=rounds, k=st.integers(1, 300))
def test_passes_that_are_given_are_taken(limits, n, k):
    plan = make_plan(n, k, "auto", limits)
    assert plan.race is None
    assert plan.passes == k
    assert plan.orders == (5 if n <= limits.few else 1)
    assert make_plan(n, k, 7, limits) == Plan(None, 7, k)


@all_limits
@given(n=rounds, k=st.integers(2, 9))
def test_orders_that_are_given_are_taken(limits, n, k):
    plan = make_plan(n, "auto", k, limits)
    if n <= limits.few:
        assert plan.race is not None
        assert (plan.race.folds, plan.race.full) == (k, k)
    else:
        assert plan.orders == k


@all_limits
@given(n=rounds, passes=passes)
def test_rows_as_they_come_are_not_shuffled(limits, n, passes):
    plan = make_plan(n, passes, None, limits)
    assert plan == Plan(None, None, 1 if passes == "auto" else passes)


@all_limits
@given(n=rounds)
def test_one_order_leaves_no_held_out_rows(limits, n):
    assert make_plan(n, "auto", 1, limits) == Plan(None, 1, 1)


def most_passes(plan):
    return max(plan.race.most if plan.race and not plan.race.sample else 0, plan.passes)


@all_limits
@given(n=rounds, more=st.integers(0, 100_000), passes=passes, orders=orders)
def test_more_rounds_never_take_more_passes(limits, n, more, passes, orders):
    few, many = (make_plan(k, passes, orders, limits) for k in (n, n + more))
    assert most_passes(many) <= most_passes(few)
    assert len_of(many) <= len_of(few)


def len_of(plan):
    """Models of all space that are averaged, at most; trees of cells are parts of one."""
    if plan.race is None or plan.race.sample:
        return 1 if plan.cell else plan.orders or 1
    return plan.race.full


@given(
    n=rounds,
    passes=passes,
    orders=orders,
    few=st.integers(0, 10_000),
    sample=st.integers(0, 5000),
    features=st.integers(1, 200_000),
    outputs=st.integers(1, 50),
)
def test_the_same_counts_give_the_same_plan(n, passes, orders, few, sample, features, outputs):
    limits = Limits(few, sample, 10, 50_000, wide=100_000, wide_passes=8)
    ours, theirs = (make_plan(n, passes, orders, limits, features, outputs) for _ in range(2))
    assert ours == theirs
    assert ours.race is not None or ours.orders is None or ours.orders >= 1
    assert ours.race is None or (ours.race.folds >= 1 and ours.race.most >= 1)
