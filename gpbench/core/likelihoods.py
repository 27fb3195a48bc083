"""Likelihoods, as the per-point quantities that EP and variational inference need of them."""

import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench.core.quadrature import normal_expectation


def probit_log_normaliser(
    y: Float[Array, " N"], mean: Float[Array, " N"], variance: Float[Array, " N"]
) -> Float[Array, " N"]:
    """log ∫ Φ(y f) N(f | mean, variance) df = log Φ(y mean / √(1 + variance)), labels y in {-1, +1}."""
    return norm.logcdf(y * mean / jnp.sqrt(1.0 + variance))


def probit_derivatives(
    y: Float[Array, " N"], mean: Float[Array, " N"], variance: Float[Array, " N"]
) -> tuple[Float[Array, " N"], Float[Array, " N"], Float[Array, " N"]]:
    """(log Z, d log Z / d mean, -d² log Z / d mean²) of `probit_log_normaliser`.

    Paper `sep`, equations 20 and 23; equation 20 prints y/b where y/√b holds (errata).  The ratio pdf/cdf goes
    through logarithms, so that it is right far in the wrong tail too.
    """
    b = 1.0 + variance
    z = y * mean / jnp.sqrt(b)
    log_cdf = norm.logcdf(z)
    alpha = jnp.exp(norm.logpdf(z) - log_cdf) * y / jnp.sqrt(b)
    return log_cdf, alpha, alpha**2 + alpha * mean / b


def probit_expected_log(
    y: Float[Array, " N"], mean: Float[Array, " N"], variance: Float[Array, " N"], nodes: int = 20
) -> Float[Array, " N"]:
    """∫ log Φ(y f) N(f | mean, variance) df by Gauss-Hermite quadrature, labels y in {-1, +1}."""
    return normal_expectation(norm.logcdf, y * mean, variance, nodes)


def gaussian_expected_log(
    y: Float[Array, " N"], mean: Float[Array, " N"], variance: Float[Array, " N"], noise: Float[Array, ""]
) -> Float[Array, " N"]:
    """∫ log N(y | f, noise) N(f | mean, variance) df = log N(y | mean, noise) - variance / (2 noise)."""
    return norm.logpdf(y, mean, jnp.sqrt(noise)) - 0.5 * variance / noise


def laplace_expected_log(
    y: Float[Array, " N"], mean: Float[Array, " N"], variance: Float[Array, " N"], noise: Float[Array, ""]
) -> Float[Array, " N"]:
    """∫ log Laplace(y | f) N(f | mean, variance) df, Laplace of variance `noise` = 2 b²: -E|y - f| / b - log 2b.

    E|y - f| is the mean of a folded normal distribution, in closed form; quadrature misses the kink at f = y.
    """
    b, s = jnp.sqrt(0.5 * noise), jnp.sqrt(variance)
    z = (y - mean) / s
    distance = s * (2.0 * norm.pdf(z) + z * (2.0 * norm.cdf(z) - 1.0))
    return -distance / b - jnp.log(2.0 * b)
