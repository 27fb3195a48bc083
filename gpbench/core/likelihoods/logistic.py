"""`logistic`: two classes, with p(y|f) = 1 / (1 + e^(-y f))."""

from typing import ClassVar

import jax
from jaxtyping import Array, Float

from gpbench.core.likelihoods.base import Likelihood
from gpbench.core.predictive import BernoulliPredictive
from gpbench.core.quadrature import log_normal_expectation, normal_expectation
from gpbench.schema import setting


class Logistic(Likelihood):
    """Labels -1 and +1 with p(y|f) = σ(y f); expectations by Gauss-Hermite quadrature.

    With 20 nodes, errors in log Z are below 2e-5 for variances up to 4, 2e-3 up to 10 and 2.2e-2 up to 25.
    """

    tasks: ClassVar[frozenset[str]] = frozenset({"binary"})
    log_concave: ClassVar[bool] = True

    nodes: int = setting(20, "count", "Number of Gauss-Hermite nodes.")

    def log_prob(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        """log σ(y f)."""
        return jax.nn.log_sigmoid(y * f)

    def expected_log_prob(
        self, mean: Float[Array, " N"], variance: Float[Array, " N"], y: Float[Array, " N"]
    ) -> Float[Array, " N"]:
        """E log σ(y f)."""
        return normal_expectation(jax.nn.log_sigmoid, y * mean, variance, self.nodes)

    def log_normaliser(
        self, mean: Float[Array, " N"], variance: Float[Array, " N"], y: Float[Array, " N"], *, alpha: float = 1.0
    ) -> Float[Array, " N"]:
        """log E σ(y f)^α."""
        return log_normal_expectation(lambda f: alpha * jax.nn.log_sigmoid(f), y * mean, variance, self.nodes)

    def predictive(self, mean: Float[Array, " N"], variance: Float[Array, " N"]) -> BernoulliPredictive:
        """E σ(±f); the nodes are symmetric, so that the two sum to 1."""
        negative, positive = (
            log_normal_expectation(jax.nn.log_sigmoid, sign * mean, variance, self.nodes) for sign in (-1.0, 1.0)
        )
        return BernoulliPredictive(negative, positive)
