"""Which learning curves on the circle are computed, and where to find each."""

from __future__ import annotations

from typing import NamedTuple

from ...protocol import Found, Job
from .circle import Problem
from .curves import HORIZON, LEARNERS, ORACLE, PISTOL, Curves, job, read

NOISES: dict[str, float | None] = {"labels ±1": None, "no noise": 0.0}
REGIMES_BETA = 0.5  # as in Figure 2
ORDER_BETA = 0.25  # of the problem whose examples are not independent
ALONE = (PISTOL,)
ORDERED = (PISTOL, HORIZON, ORACLE)
CHECKED = (PISTOL, ORACLE)  # with twice as many frequencies, for the least β


class Plan(NamedTuple):
    """How much is computed."""

    J: int
    octaves: int  # the largest sample has 2^octaves examples
    seeds: int
    betas: tuple[float, ...]
    sigmas: tuple[float, ...]
    holds: tuple[int, ...]
    wrongs: tuple[float, ...]

    def problem(self, beta: float, sigma: float | None) -> Problem:
        """Independent examples."""
        return Problem(self.J, beta, sigma)

    def others(self) -> list[Problem]:
        """Examples that are not quite independent, or not quite from one distribution."""
        labels = self.problem(ORDER_BETA, None)
        held = [labels._replace(hold=hold) for hold in self.holds]
        return held + [labels._replace(wrong=wrong) for wrong in self.wrongs]

    def finer(self, sigma: float | None) -> Problem:
        """The problem of the least β with twice as many frequencies."""
        return Problem(2 * self.J, min(self.betas), sigma)


FULL = Plan(
    512, 17, 12, (0.125, 0.25, 0.4, 0.5), (0.05, 0.1, 0.2, 0.4), (2, 8, 32), (0.01, 0.05)
)  # fmt: skip
QUICK = Plan(128, 13, 3, (0.25, 0.5), (0.1, 0.4), (2, 8), (0.01, 0.05))


def plan(quick: bool) -> Plan:
    """What is computed."""
    return QUICK if quick else FULL


def jobs(quick: bool) -> list[Job]:
    """A job a problem and seed."""
    p = plan(quick)
    found = []
    for seed in range(p.seeds):
        for beta in p.betas:
            found += [job(p.problem(beta, sigma), p.octaves, seed) for sigma in NOISES.values()]
        for sigma in p.sigmas:
            found.append(job(p.problem(REGIMES_BETA, sigma), p.octaves, seed, ALONE))
        found += [job(other, p.octaves - 1, seed, ORDERED) for other in p.others()]
        found += [job(p.finer(sigma), p.octaves, seed, CHECKED) for sigma in NOISES.values()]
    return found


class Results:
    """The curves that the jobs found."""

    def __init__(self, found: Found, quick: bool) -> None:
        self.found, self.plan = found, plan(quick)

    def curves(self, beta: float, sigma: float | None, name: str, what: str = "excess") -> Curves:
        """Of independent examples."""
        return self._read(self.plan.problem(beta, sigma), name, LEARNERS, what)

    def regime(self, sigma: float) -> Curves:
        """PiSTOL's, at the β of Figure 2."""
        if not sigma:
            return self.curves(REGIMES_BETA, 0.0, PISTOL)
        return self._read(self.plan.problem(REGIMES_BETA, sigma), PISTOL, ALONE)

    def other(self, problem: Problem, name: str) -> Curves:
        """Of examples that are not quite independent."""
        return self._read(problem, name, ORDERED, octaves=self.plan.octaves - 1)

    def finer(self, sigma: float | None, name: str) -> Curves:
        """With twice as many frequencies."""
        return self._read(self.plan.finer(sigma), name, CHECKED)

    def _read(
        self,
        problem: Problem,
        name: str,
        names: tuple[str, ...],
        what: str = "excess",
        octaves: int | None = None,
    ) -> Curves:
        size = self.plan.octaves if octaves is None else octaves
        return read(self.found, problem, size, self.plan.seeds, name, names, what)
