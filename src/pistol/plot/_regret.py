"""The regret of an online learner and its bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compiled.types import Array
from ..online import Comparator, Learner
from ._axes import PISTOL, THEORY, axes


class RegretDisplay:
    """The regret of an online learner over time, beneath what bounds it.

    Parameters
    ----------
    t : array of shape (n,)
        Rounds.
    regret, bound : array of shape (n,)
        The regret after these rounds, and what it cannot exceed.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    regret_line_, bound_line_ : matplotlib Line2D
        The two lines.

    See Also
    --------
    pistol.online.Learner.regrets, pistol.online.Learner.bounds
    """

    def __init__(self, t: Any, regret: Any, bound: Any) -> None:
        self.t, self.regret, self.bound = (np.asarray(v, np.float64) for v in (t, regret, bound))

    @classmethod
    def from_learner(
        cls,
        learner: Learner,
        h: Comparator,
        ax: Any = None,
        h_norm: float | None = None,
        *,
        name: str = "regret",
        log: bool = True,
    ) -> RegretDisplay:
        """Draw the regret of a learner against h.

        Parameters
        ----------
        learner : Learner
            Created with `record=True`, in a setting that a theorem covers.
        h : array of shape (n_features,), pair (coef, points), or callable
            The comparator, as in :meth:`pistol.online.Learner.regret`.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        h_norm : float or None, default=None
            ‖h‖ in the RKHS, where h is a function.
        name : str, default="regret"
            What the legend calls the regret.
        log : bool, default=True
            Logarithmic axes, as in `plot`.

        Returns
        -------
        display : RegretDisplay
            As drawn.
        """
        regret, bound = learner.regrets(h), learner.bounds(h, h_norm)
        return cls(np.arange(1, len(regret) + 1), regret, bound).plot(ax, name=name, log=log)

    def plot(self, ax: Any = None, *, name: str = "regret", log: bool = True) -> RegretDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        name : str, default="regret"
            What the legend calls the regret.
        log : bool, default=True
            Logarithmic axes. A regret may be negative: around zero the vertical one is linear.

        Returns
        -------
        self : RegretDisplay
            With the attributes above.
        """
        ax = axes() if ax is None else ax
        (self.bound_line_,) = ax.plot(self.t, self.bound, "--", color=THEORY, label="bound")
        (self.regret_line_,) = ax.plot(self.t, self.regret, color=PISTOL, label=name)
        if log:
            ax.set_xscale("log")
            _log_scale(ax, self.regret, self.bound)
        if self.regret.min(initial=0.0) < 0:
            ax.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        elif ax.get_yscale() != "log":
            ax.set_ylim(bottom=0.0)
        ax.set(xlabel="rounds t", ylabel="cumulative regret")
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _log_scale(ax: Any, regret: Array, bound: Array) -> None:
    """A vertical axis in powers of ten, but linear around zero where the regret gets there."""
    if regret.min(initial=1.0) > 0:
        ax.set_yscale("log")
        return
    largest = np.abs(np.concatenate([regret, bound[np.isfinite(bound)]])).max(initial=1e-300)
    ax.set_yscale("symlog", linthresh=10 ** np.floor(np.log10(largest) - 1.5))
