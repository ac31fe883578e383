"""The sums of kernels of `kernel="auto"`, anchored at the scale of the data.

Adding the predictions of parameter-free learners that all learn from the subgradient at the sum costs
no more regret than the best of them plus the others' constants (Cutkosky 2019). So the bandwidth need
not be chosen: one learner per bandwidth, in steps of four. Narrow kernels get a smaller share of b,
which costs them a logarithm and keeps them from fitting what a smooth function explains.

Five candidates, from linear to local; a race on held-out rows picks one (`_training/race.py`). A stream
uses MIXED.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from ..kernels import Kernel, get_kernel

NARROWER = 0.25  # the share of b of a radial kernel, relative to the next wider one


@dataclass(frozen=True)
class Sum:
    """Degrees of polynomials, and powers of four that multiply the anchor of the radial kernels."""

    name: str
    degrees: tuple[int, ...]
    powers: range
    radial: str = "rbf"

    def kernels(self, typical_sq: float, features: float) -> tuple[Kernel, ...]:
        """The kernels for rows whose mean squared distance is `typical_sq`.

        Polynomials are of rows with a mean squared norm of 1, shortened where they are far out.
        """
        size = 0.5 * typical_sq
        most = size * (1.0 + 3.0 * sqrt(2.0 / max(features, 1)))
        polynomials = [get_kernel("bounded_poly", 1.0 / size, m, most) for m in self.degrees]
        first = 1 if self.degrees else 0
        anchor = 1.0 / typical_sq if self.radial == "rbf" else typical_sq**-0.5
        radial = [
            get_kernel(self.radial, 4.0**power * anchor, 1, 0.0, NARROWER ** (first + k))
            for k, power in enumerate(self.powers)
        ]
        return (*polynomials, *radial)


LINEAR = Sum("linear", (0, 1), range(0))
QUADRATIC = Sum("quadratic", (0, 1, 2), range(0))
MIXED = Sum("mixed", (0, 1, 2, 3), range(4))
LOCAL = Sum("local", (), range(-2, 4))
ROUGH = Sum("rough", (), range(-1, 2), "exponential")
SUMS = (LINEAR, QUADRATIC, MIXED, LOCAL, ROUGH)
