"""`laplace`: noise with exponential tails, under which outliers have less influence.  Everything in closed form."""

from typing import Any

import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench.core import predictive
from gpbench.core.likelihoods.base import FlooredNoise, above_floor


class Laplace(FlooredNoise):
    """y = f + ε, ε of a Laplace distribution of variance `noise` = 2 b²."""

    @classmethod
    def initial(cls, noise: float, classes: int, dtype: Any, **options: Any) -> "Laplace":
        """Starts with noise of this variance, which must be above its floor."""
        above = above_floor("laplace", noise, options.get("floor", 0.0))
        return cls(jnp.asarray(jnp.log(above), dtype), **options)

    @property
    def scale(self) -> Float[Array, ""]:
        """b = √(noise / 2), the mean distance of y from f."""
        return jnp.sqrt(0.5 * self.noise)

    def log_prob(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        """-|y - f| / b - log 2b."""
        return -jnp.abs(y - f) / self.scale - jnp.log(2.0 * self.scale)

    def expected_log_prob(
        self, mean: Float[Array, " N"], variance: Float[Array, " N"], y: Float[Array, " N"]
    ) -> Float[Array, " N"]:
        """-E|y - f| / b - log 2b.

        E|y - f| is the mean of a folded normal distribution, in closed form; quadrature misses the kink at f = y.
        """
        b, s = self.scale, jnp.sqrt(variance)
        z = (y - mean) / s
        distance = s * (2.0 * norm.pdf(z) + z * (2.0 * norm.cdf(z) - 1.0))
        return -distance / b - jnp.log(2.0 * b)

    def log_normaliser(
        self, mean: Float[Array, " N"], variance: Float[Array, " N"], y: Float[Array, " N"], *, alpha: float = 1.0
    ) -> Float[Array, " N"]:
        """The log density of y under noise of scale b / α, + (1 - α) log 2b - log α."""
        tempered = predictive.LaplacePredictive(mean, variance, self.noise / alpha**2)
        return tempered.log_prob(y) + (1.0 - alpha) * jnp.log(2.0 * self.scale) - jnp.log(alpha)

    def predictive(self, mean: Float[Array, " N"], variance: Float[Array, " N"]) -> predictive.LaplacePredictive:
        """The normal-Laplace distribution."""
        return predictive.LaplacePredictive(mean, variance, self.noise)
