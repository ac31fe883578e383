"""The paper's results as functions: what is guaranteed, in numbers.

Orabona (2014), *Simultaneous Model Selection and Optimization through Parameter-free Stochastic
Learning*. Where a statement and its proof differ, the functions compute what the proof gives, and
the notes say what is printed. All take floats or arrays and return a float where all are floats.

>>> from pistol import theory
>>> a, b, L = 3.0, 1.0, 1.0
>>> round(theory.phi(L / a), 2)
5.29
>>> round(theory.regret_bound(2.0, s_sum=100.0, a=a, b=b, L=L), 1)
117.5
>>> theory.rate_exponent(0.5), theory.rate_exponent(0.5, noise=False)
(0.5, 0.6666666666666666)
"""

from ._checks import MIN_A
from .baselines import Tuned, asgd_bound, asgd_bound_tuned, perceptron_mistake_bound
from .mistakes import comparison_constant, misclassification_bound, misclassification_exponent
from .regret import (
    MAX_X,
    log_phi,
    per_coordinate_bound,
    phi,
    phi_printed,
    regret_bound,
    regret_bound_printed,
    smooth_regret_bound,
)
from .risk import (
    crossover,
    excess_risk_bound,
    l1_excess_bound,
    l1_rate_exponent,
    optimal_regularisation,
    rate_exponent,
    rates,
    risk_bound,
)

__all__ = [
    "MAX_X",
    "MIN_A",
    "Tuned",
    "asgd_bound",
    "asgd_bound_tuned",
    "comparison_constant",
    "crossover",
    "excess_risk_bound",
    "l1_excess_bound",
    "l1_rate_exponent",
    "log_phi",
    "misclassification_bound",
    "misclassification_exponent",
    "optimal_regularisation",
    "per_coordinate_bound",
    "perceptron_mistake_bound",
    "phi",
    "phi_printed",
    "rate_exponent",
    "rates",
    "regret_bound",
    "regret_bound_printed",
    "risk_bound",
    "smooth_regret_bound",
]
