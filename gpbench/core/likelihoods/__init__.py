"""Likelihoods: how targets depend on latent values."""

from gpbench.core.likelihoods.base import Likelihood
from gpbench.core.likelihoods.binary import Logistic, Probit
from gpbench.core.likelihoods.counts import NegativeBinomial, Poisson
from gpbench.core.likelihoods.heteroscedastic import Heteroscedastic
from gpbench.core.likelihoods.multiclass import RobustMax, Softmax
from gpbench.core.likelihoods.noise import Gaussian, Laplace
from gpbench.core.likelihoods.spec import Spec, likelihood_spec
from gpbench.core.likelihoods.student_t import StudentT

__all__ = [
    "Gaussian",
    "Heteroscedastic",
    "Laplace",
    "Likelihood",
    "Logistic",
    "NegativeBinomial",
    "Poisson",
    "Probit",
    "RobustMax",
    "Softmax",
    "Spec",
    "StudentT",
    "likelihood_spec",
]
