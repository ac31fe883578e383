"""The comparator that a bound fares worst against, and by how much.

A linearised regret ⟨h, g_T⟩ + Σ s_t f_t(x_t) is never less than the regret. Against an h of norm r it
is largest along g_T, and every bound here is r √(2 α log(r √α′/b + 1)) plus a price that does not
depend on h. So the worst case over all h is one over r. With u = r √α′/b and q = ‖g_T‖/√α it is the
maximum of q u - u √(2 log(1 + u)), for which q = w + (1 - exp(-w²/2))/w where w = √(2 log(1 + u)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pistol import theory

from ...protocol import Array

ROUNDING = 1e-9  # of the largest number that enters a difference
W_MAX = 24.0  # u = e^288


class Stakes(NamedTuple):
    """What sequences leave for h to be judged by; one column per coordinate, or one for all of them."""

    g: Array  # ‖g_T‖, or |θ_i|
    suffered: Array  # Σ s_t f_t(x_t), a number a sequence
    s_sum: Array  # Σ|s_t|, or Σ|s_t x_{t,i}|
    s_before: Array  # the same without the last round
    a: Array
    b: Array
    L: Array
    T: Array
    columns: Array  # how many there are: d, or 1


class Bound(NamedTuple):
    """Σ r √(2 α log(r √α′/b + 1)) + price over columns; one row per sequence."""

    g: Array
    alpha: Array
    alpha_log: Array  # α′
    b: Array
    phi_log: Array  # the price is b φ times this
    phi: Array

    def first(self, r: Array) -> Array:
        """The term that grows with the norms r."""
        inside = np.log1p(r * np.sqrt(self.alpha_log) / self.b[:, None])
        return (r * np.sqrt(2 * self.alpha * inside)).sum(axis=1)

    def at(self, r: Array) -> Array:
        """The bound against h of norms r."""
        return self.first(r) + self.price()

    def price(self) -> Array:
        """What is to be paid against any h."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(self.phi_log > 0, self.b * self.phi * self.phi_log, 0.0)

    def worst(self, share: Array) -> Array:
        """The norms r that maximise ⟨h, g_T⟩ less this share of the bound."""
        w = _solve(self.g / np.sqrt(self.alpha) / share[:, None])
        return self.b[:, None] / np.sqrt(self.alpha_log) * np.expm1(w * w / 2)


def proved(stakes: Stakes) -> Bound:
    """Theorem 1 and Appendix A as their proofs have them: `theory.regret_bound`, column by column."""
    a, b, L = (v[:, None] for v in (stakes.a, stakes.b, stakes.L))
    alpha = a * (L + stakes.s_sum)
    log_term = np.log1p(stakes.s_sum / L).sum(axis=1)
    return Bound(stakes.g, alpha, alpha, b[:, 0], log_term, theory.phi(stakes.L / stakes.a))


def printed(stakes: Stakes) -> Bound:
    """Theorem 1 and Appendix A as stated; the appendix has b = 1/d and is in terms of max |u_i|."""
    a, b, L = (v[:, None] for v in (stakes.a, stakes.b, stakes.L))
    there = np.arange(stakes.g.shape[1]) < stakes.columns[:, None]
    roots = np.where(there, np.sqrt(a * (L + stakes.s_before)), 0.0)
    alpha, g = roots.sum(axis=1, keepdims=True) ** 2, stakes.g.sum(axis=1, keepdims=True)
    alpha_log, log_term = a * L * stakes.T[:, None], stakes.columns * np.log1p(stakes.T)
    phi = theory.phi_printed(stakes.L / stakes.a)
    return Bound(g, alpha, alpha_log, b[:, 0], log_term, phi)


class Judged(NamedTuple):
    """A number a sequence, each over all h."""

    slack: Array  # least of bound less linearised regret
    ratio: Array  # largest linearised regret / bound
    needed: Array  # least φ that would have done; nan where rounding hides it
    violated: Array  # whether slack is negative beyond rounding


def judge(bound: Bound, suffered: Array) -> Judged:
    """The worst over all h."""
    one = np.ones(len(suffered))
    r = bound.worst(one)
    gained = (r * bound.g).sum(axis=1)
    slack = bound.at(r) - gained - suffered
    largest = gained + np.abs(suffered) + bound.first(r)
    excess = gained + suffered - bound.first(r)
    scale = bound.b * bound.phi_log
    clear = (scale > 0) & (largest * ROUNDING < 1e-3 * scale)
    needed = np.where(clear, excess / np.where(clear, scale, 1.0), np.nan)
    return Judged(slack, _largest_ratio(bound, suffered), needed, slack < -ROUNDING * largest)


def _largest_ratio(bound: Bound, suffered: Array) -> Array:
    """max over h of (⟨h, g⟩ + suffered) / bound: the largest share of the bound that some h reaches."""
    low, high = np.full(len(suffered), -7.0), np.full(len(suffered), 2.5)  # logarithms
    for _ in range(32):
        middle = (low + high) / 2
        share = np.exp(middle)
        r = bound.worst(share)
        reached = (r * bound.g).sum(axis=1) + suffered > share * bound.at(r)
        low, high = np.where(reached, middle, low), np.where(reached, high, middle)
    return np.where(low > -7.0, np.exp(low), 0.0)


def _solve(q: Array) -> Array:
    """w with w + (1 - exp(-w²/2))/w = q, by Newton's method from a close guess."""
    w = np.minimum(q - q / (3.0 + q * q), W_MAX)
    for _ in range(5):
        small = np.maximum(w, 1e-150)
        rest = -np.expm1(-small * small / 2)  # 1 - exp(-w²/2)
        slope = 2.0 - rest - rest / small / small
        w = np.clip(w - (w + rest / small - q) / slope, 0.0, np.minimum(q, W_MAX))
    return w


def minimise(
    value_and_slope: Callable[[Array], tuple[float, Array]], d: int, radius: float
) -> Array:
    """The minimiser of a convex function within a ball, by shrinking ellipsoids.

    No smoothness is needed. It ends when the ellipsoid allows no more than a tiny improvement.
    """
    n = max(d, 2)  # a line is a plane on which one coordinate does nothing
    centre, P = np.zeros(n), radius**2 * np.eye(n)
    best, least = centre, np.inf
    for _ in range(40 * n * n + 200):
        value, slope = value_and_slope(centre[:d])
        if value < least:
            best, least = centre, value
        slope = np.append(slope, 0.0) if d == 1 else slope
        step = P @ slope
        width = float(np.sqrt(np.maximum(slope @ step, 0.0)))
        if width <= 1e-7 * (1.0 + abs(least)):
            break
        step /= width
        centre = centre - step / (n + 1)
        P = n * n / (n * n - 1.0) * (P - 2.0 / (n + 1) * np.outer(step, step))
    return best[:d]
