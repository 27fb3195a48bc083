"""Generalised squared exponential inducing features (paper `svdgp`, appendix C.1; Walder et al. 2008).

Basis j has a place z_j and for every input a scale of its own c_jd beside the kernel's lengthscale: l_jd = ls_d c_jd.
With c = 1 it is the value of f at z_j, and a wider one is an average of f around there.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.kernels import SquaredExponential


def cross(
    kernel: SquaredExponential, Z: Float[Array, "M D"], log_scale: Float[Array, "M D"], X: Float[Array, "N D"]
) -> Float[Array, "M N"]:
    """Covariances of the features with f(x): amp Π_d √(2 l_j ls/(l_j² + ls²)) exp(-(z_j - x)²/(l_j² + ls²)).

    The denominators depend on j alone, so that products do the work: O(M N D) without an array of that size.
    """
    Z, X = Z / kernel.lengthscales, X / kernel.lengthscales
    w = 1.0 / (1.0 + jnp.exp(2.0 * log_scale))
    exponent = 2.0 * (w * Z) @ X.T - w @ (X**2).T - jnp.sum(w * Z**2, axis=1)[:, None]
    return jnp.exp(jnp.minimum(exponent, 0.0) + kernel.log_amplitude + _log_peak(log_scale)[:, None])


def gram(
    kernel: SquaredExponential,
    Z: Float[Array, "M D"],
    log_scale: Float[Array, "M D"],
    Y: Float[Array, "P D"],
    log_scale_y: Float[Array, "P D"],
) -> Float[Array, "M P"]:
    """Covariances of features with features: amp Π_d √(2 l_i l_j/(l_i² + l_j²)) exp(-(z_i - y_j)²/(l_i² + l_j²)).

    One input after another, forward and backward: O(M P) memory whatever D.
    """
    Z, Y = Z / kernel.lengthscales, Y / kernel.lengthscales

    @jax.checkpoint
    def add(exponent, column):
        z, s, y, r = column
        apart = s[:, None] - r[None, :]
        # √(2 a b/(a² + b²)) = 1/√cosh(log a - log b), and a² + b² = 2 a b cosh(log a - log b)
        half = jnp.exp(s[:, None] + r[None, :]) * jnp.cosh(apart)
        return exponent - 0.5 * (z[:, None] - y[None, :]) ** 2 / half - 0.5 * jnp.log(jnp.cosh(apart)), None

    first = jnp.full((Z.shape[0], Y.shape[0]), kernel.log_amplitude)
    exponent, _ = jax.lax.scan(add, first, (Z.T, log_scale.T, Y.T, log_scale_y.T))
    return jnp.exp(exponent)


def _log_peak(log_scale: Float[Array, "M D"]) -> Float[Array, " M"]:
    return -0.5 * jnp.sum(jnp.log(jnp.cosh(log_scale)), axis=1)
