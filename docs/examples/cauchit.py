"""The Cauchy link of two classes, under which a mislabelled row has little influence."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.likelihoods import Likelihood
from gpbench.core.predictive import BernoulliPredictive
from gpbench.core.quadrature import log_normal_expectation, normal_expectation
from gpbench.schema import setting


class Cauchit(Likelihood):
    """p(y|f) = ½ + arctan(y f / scale) / π for labels y of -1 and +1."""

    tasks: ClassVar[frozenset[str]] = frozenset({"binary"})

    scale: float = setting(1.0, "positive", "Latent value at which the probability is three quarters.")
    nodes: int = setting(40, "count", "Number of Gauss-Hermite nodes.")

    def log_prob(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        z = y * f / self.scale
        # arctan(1 / -z) / π far in the wrong tail, where ½ + arctan(z) / π is a difference of equal numbers
        tail = jnp.arctan(1.0 / jnp.where(z < -1.0, -z, 1.0))
        return jnp.log(jnp.where(z < -1.0, tail, 0.5 * jnp.pi + jnp.arctan(jnp.maximum(z, -1.0)))) - jnp.log(jnp.pi)

    def expected_log_prob(
        self, mean: Float[Array, " N"], variance: Float[Array, " N"], y: Float[Array, " N"]
    ) -> Float[Array, " N"]:
        return normal_expectation(lambda f: self.log_prob(f, y[:, None]), mean, variance, self.nodes)

    def log_normaliser(
        self, mean: Float[Array, " N"], variance: Float[Array, " N"], y: Float[Array, " N"], *, alpha: float = 1.0
    ) -> Float[Array, " N"]:
        return log_normal_expectation(lambda f: alpha * self.log_prob(f, y[:, None]), mean, variance, self.nodes)

    def predictive(self, mean: Float[Array, " N"], variance: Float[Array, " N"]) -> BernoulliPredictive:
        signs = (-jnp.ones_like(mean), jnp.ones_like(mean))
        return BernoulliPredictive(*(self.log_normaliser(mean, variance, sign) for sign in signs))
