"""What a method says of new points.  Each knows the log probability of an outcome; metrics need no more."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench.core.likelihoods import gaussian_expected_log, laplace_expected_log


class Bernoulli(eqx.Module):
    """Two classes -1 and +1 by their log probabilities."""

    log_negative: Float[Array, " N"]
    log_positive: Float[Array, " N"]

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log p(y), y in {-1, +1}."""
        return jnp.where(y > 0, self.log_positive, self.log_negative)

    @property
    def log_probs(self) -> Float[Array, "N 2"]:
        return jnp.stack([self.log_negative, self.log_positive], axis=-1)


def probit_bernoulli(mean: Float[Array, " N"], variance: Float[Array, " N"]) -> Bernoulli:
    """p(y = +1) = Φ(mean / √(1 + variance)) for a Gaussian latent value (paper `sep`, appendix A.7)."""
    z = mean / jnp.sqrt(1.0 + variance)
    return Bernoulli(norm.logcdf(-z), norm.logcdf(z))


class Categorical(eqx.Module):
    """C classes 0 .. C-1 by their log probabilities, or anything that softmax makes so."""

    logits: Float[Array, "N C"]

    @property
    def log_probs(self) -> Float[Array, "N C"]:
        return jax.nn.log_softmax(self.logits, axis=-1)

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log p(y), y in {0, .., C-1} (held as floats, as all targets are)."""
        return jnp.take_along_axis(self.log_probs, y.astype(int)[:, None], axis=-1)[:, 0]


class Gaussian(eqx.Module):
    """A normal predictive density, noise included, in the scaled units of the targets.

    `noise` is the part of the variance that is y's about f, None where a method does not tell it.
    """

    mean: Float[Array, " N"]
    var: Float[Array, " N"]
    noise: Float[Array, ""] | None = None

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log N(y | mean, var)."""
        return norm.logpdf(y, self.mean, jnp.sqrt(self.var))

    def expected_log(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """E log N(y | f, noise) over what the method believes of f."""
        assert self.noise is not None
        return gaussian_expected_log(y, self.mean, self.var - self.noise, self.noise)


class Laplace(eqx.Module):
    """y = f + ε with f ~ N(mean, latent) and ε of a Laplace distribution of variance `noise`, in scaled units."""

    mean: Float[Array, " N"]
    latent: Float[Array, " N"]
    noise: Float[Array, ""]

    @property
    def var(self) -> Float[Array, " N"]:
        return self.latent + self.noise

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log p(y): the convolution of the two, in closed form (Reed 2006, the normal-Laplace distribution)."""
        b, s = jnp.sqrt(0.5 * self.noise), jnp.sqrt(self.latent)
        d = y - self.mean
        sides = (sign * d / b + norm.logcdf(-sign * d / s - s / b) for sign in (1.0, -1.0))
        return jnp.logaddexp(*sides) + 0.5 * (s / b) ** 2 - jnp.log(2.0 * b)

    def expected_log(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """E log p(y|f) over what the method believes of f."""
        return laplace_expected_log(y, self.mean, self.latent, self.noise)
