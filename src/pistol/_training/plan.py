"""How many shuffled orders and passes a fit takes, and what a race on held-out rows chooses.

`make_plan` is a pure function of counts. The tables on the page *Nothing to tune* are its test.
"""

from __future__ import annotations

from typing import NamedTuple

FOLDS, FULL, MOST_PASSES = 5, 3, 256  # of a race on few rounds
SOME, SOME_FOLDS, SOME_FULL, SOME_PASSES = 600, 3, 2, 64  # of a race on more rounds than SOME
TRIAL_PASSES = 8  # of a race that chooses scaling and metric alone
BASE_PASSES = 16  # of a race on a sample whose choice the base of cells has: cells learn the rest
TREES = 2  # partitions into cells, where there are many rows
ALONE = 1 / 3  # the share that a single fold holds out of all rows
FIXED_ORDERS = 5  # where the passes are given and the orders are not


class Limits(NamedTuple):
    """What a family can afford."""

    few: int  # rounds up to which the race is on all rows
    sample: int = 0  # rounds of the race beyond that; 0: no race
    most_repeats: int = 1  # passes after a race on a sample …
    repeated: int = 0  # … and the rounds that all of them may add up to
    cell: int = 0  # rounds of a cell, where many rows are learned in cells
    base: int = 4096  # rounds of the function that all cells start from, at most
    wide: int = 2**62  # features beyond which there is no race
    wide_passes: int = 1
    only_passes: bool = False  # whether a race chooses nothing but the passes
    trial: bool = False  # whether such a sample chooses scaling and metric for fewer rounds, too
    folds: int = SOME_FOLDS  # of a race on more rounds than SOME …
    full: int = SOME_FULL  # … and the shuffled orders that follow it
    single: int = 2**62  # rounds beyond which a single fold is enough


class Race(NamedTuple):
    """A race between candidates: folds, rounds to learn from, and what follows."""

    folds: int  # shuffled orders, each of which holds out its share of the rows
    most: int  # passes at most
    full: int  # shuffled orders of all rows that follow
    sample: int = 0  # rounds of the race, where it is not on all rows …
    learned: int = 0  # … and how many of these a single fold learns; 0: two thirds of all rows

    @property
    def share(self) -> float:
        """The share of its rounds that each fold holds out."""
        if self.folds > 1:
            return 1.0 / self.folds
        return 1.0 - self.learned / self.sample if self.sample else ALONE


class Plan(NamedTuple):
    """What a fit does: a race, shuffled orders, or the rows as they come (`orders` is None)."""

    race: Race | None
    orders: int | None
    passes: int  # of the orders; where a race is on a sample, at most
    cell: int = 0  # rounds of a cell at most, where each order is one of learners in cells
    base: int = 0  # rounds from which the function is learned that all cells start from
    trial: Race | None = None  # on a sample; it chooses scaling and metric for the race


def make_plan(
    rounds: int,
    passes: int | str,
    orders: int | str | None,
    limits: Limits,
    features: int = 1,
    outputs: int = 1,
) -> Plan:
    """The plan for so many rounds, given what the user has set; "auto" leaves it to us."""
    free = orders == "auto"
    chosen = 1 if free or orders is None else int(orders)
    if orders is None:
        return Plan(None, None, 1 if passes == "auto" else int(passes))
    if passes != "auto":
        several = FIXED_ORDERS if rounds <= limits.few else 1
        return Plan(None, several if free else chosen, int(passes))
    if features > limits.wide:
        return Plan(None, chosen, limits.wide_passes)
    if orders == 1:  # one order leaves no held-out rows
        return Plan(None, 1, 1)
    sample = int(limits.sample / outputs**0.125)
    race = _race_on_sample(rounds, sample, limits)
    if rounds <= limits.few:
        whole = _race(rounds, limits, None if free else chosen)
        if not limits.trial or rounds <= sample:
            return Plan(whole, 0, 0)
        # a third of so many rounds is enough, and so is one order
        whole = whole._replace(folds=1, full=1) if free else whole
        return Plan(whole, 0, 0, trial=race._replace(most=TRIAL_PASSES))
    most = max(1, min(limits.most_repeats, limits.repeated // rounds))
    if not limits.sample or (most == 1 and limits.only_passes):
        return Plan(None, chosen, 1)
    if limits.cell:
        trees, most = TREES if free else chosen, race.most
        base = min(rounds * 2 // 3, limits.base)  # other rows choose what cells add to it
        return Plan(race._replace(most=BASE_PASSES), trees, most, limits.cell, base)
    if limits.only_passes:
        race = race._replace(most=most)
    return Plan(race, chosen, most)


def _race_on_sample(rounds: int, sample: int, limits: Limits) -> Race:
    """Two thirds of a sample are learned. Rows are many, so as many others as it has are held out."""
    learned = sample - sample // 3
    most = _race(sample, limits, None).most
    return Race(1, most, 0, min(rounds, learned + sample), learned)


def _race(rounds: int, limits: Limits, orders: int | None) -> Race:
    some = rounds > SOME
    folds, full = (limits.folds, limits.full) if some else (FOLDS, FULL)
    folds = folds if rounds <= limits.single else 1
    if orders is not None:
        folds, full = orders, orders
    return Race(folds, SOME_PASSES if some else MOST_PASSES, full)
