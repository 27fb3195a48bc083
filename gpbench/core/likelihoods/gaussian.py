"""`gaussian`: normal noise, for which everything has a closed form."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench.core import predictive
from gpbench.core.likelihoods.base import FlooredNoise, above_floor


class Gaussian(FlooredNoise):
    """y = f + ε, ε ~ N(0, noise)."""

    conjugate: ClassVar[bool] = True

    @classmethod
    def initial(cls, noise: float, classes: int, dtype: Any, **options: Any) -> "Gaussian":
        """Starts with noise of this variance, which must be above its floor."""
        above = above_floor("gaussian", noise, options.get("floor", 0.0))
        return cls(jnp.asarray(jnp.log(above), dtype), **options)

    def log_prob(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        """log N(y | f, noise)."""
        return norm.logpdf(y, f, jnp.sqrt(self.noise))

    def expected_log_prob(
        self, mean: Float[Array, " N"], variance: Float[Array, " N"], y: Float[Array, " N"]
    ) -> Float[Array, " N"]:
        """log N(y | mean, noise) - variance / (2 noise)."""
        return norm.logpdf(y, mean, jnp.sqrt(self.noise)) - 0.5 * variance / self.noise

    def log_normaliser(
        self, mean: Float[Array, " N"], variance: Float[Array, " N"], y: Float[Array, " N"], *, alpha: float = 1.0
    ) -> Float[Array, " N"]:
        """log N(y | mean, variance + noise / α) + ½ (1 - α) log(2π noise) - ½ log α."""
        log_z = norm.logpdf(y, mean, jnp.sqrt(variance + self.noise / alpha))
        return log_z + 0.5 * (1.0 - alpha) * jnp.log(2.0 * jnp.pi * self.noise) - 0.5 * jnp.log(alpha)

    def predictive(self, mean: Float[Array, " N"], variance: Float[Array, " N"]) -> predictive.GaussianPredictive:
        """N(mean, variance + noise)."""
        return predictive.GaussianPredictive(mean, variance + self.noise)
