"""Predictive densities in closed form: a Gaussian latent value with Gaussian or with Laplace noise."""

import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench.core.predictive.base import Continuous


class Gaussian(Continuous):
    """N(mean, var), noise included."""

    mean: Float[Array, " N"]
    var: Float[Array, " N"]

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log N(y | mean, var)."""
        return norm.logpdf(y, self.mean, jnp.sqrt(self.var))

    def cdf(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """Φ((y - mean) / √var)."""
        return norm.cdf(y, self.mean, jnp.sqrt(self.var))


class Laplace(Continuous):
    """y = f + ε with f ~ N(mean, latent) and ε of a Laplace distribution of variance `noise` = 2 b².

    The normal-Laplace distribution (Reed 2006), whose density and distribution function have closed forms.
    """

    mean: Float[Array, " N"]
    latent: Float[Array, " N"]
    noise: Float[Array, ""]

    @property
    def var(self) -> Float[Array, " N"]:
        return self.latent + self.noise

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log p(y), the convolution of the two densities."""
        b, s, below, above = self._sides(y)
        return jnp.logaddexp(below, above) + 0.5 * (s / b) ** 2 - jnp.log(2.0 * b)

    def cdf(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """Φ(d/s) + ½ e^(d/b + s²/2b²) Φ(-d/s - s/b) - ½ e^(-d/b + s²/2b²) Φ(d/s - s/b), with d = y - mean."""
        b, s, below, above = self._sides(y)
        half = 0.5 * (s / b) ** 2
        return norm.cdf((y - self.mean) / s) + 0.5 * (jnp.exp(below + half) - jnp.exp(above + half))

    def _sides(self, y: Float[Array, " N"]):
        """b, s, and the log terms of noise below and above 0, without their common factor e^(s²/2b²)."""
        b, s = jnp.sqrt(0.5 * self.noise), jnp.sqrt(self.latent)
        d = y - self.mean
        below, above = (sign * d / b + norm.logcdf(-sign * d / s - s / b) for sign in (1.0, -1.0))
        return b, s, below, above
