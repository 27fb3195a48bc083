"""Predictive distributions: what a method says of new rows."""

from gpbench.core.predictive.base import Continuous, Discrete, Predictive
from gpbench.core.predictive.continuous import Gaussian, Laplace
from gpbench.core.predictive.discrete import Bernoulli, Categorical
from gpbench.core.predictive.mixture import Mixture
from gpbench.core.predictive.student_t import StudentT

__all__ = [
    "Bernoulli",
    "Categorical",
    "Continuous",
    "Discrete",
    "Gaussian",
    "Laplace",
    "Mixture",
    "Predictive",
    "StudentT",
]
