"""Covariance functions.  A kernel is an Equinox module whose array leaves are its unconstrained parameters."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class SquaredExponential(eqx.Module):
    """k(x, x') = amp · exp(-½ Σ_d (x_d - x'_d)² / l_d), with a squared lengthscale l_d for every input.

    Amplitude and squared lengthscales are kept as logarithms, as the authors of the paper `sep` do.
    """

    log_amplitude: Float[Array, ""]
    log_lengthscale2: Float[Array, " D"]

    @property
    def amplitude(self) -> Float[Array, ""]:
        return jnp.exp(self.log_amplitude)

    @property
    def lengthscales(self) -> Float[Array, " D"]:
        """√l_d, in the units of the inputs."""
        return jnp.exp(0.5 * self.log_lengthscale2)

    def gram(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows."""
        scale = jnp.exp(-0.5 * self.log_lengthscale2)
        X, Y = X * scale, Y * scale
        # -½|x-y|² = x·y - ½|x|² - ½|y|², so that the product does the work; at most 0 but for rounding
        exponent = X @ Y.T - 0.5 * jnp.sum(X**2, 1)[:, None] - 0.5 * jnp.sum(Y**2, 1)[None, :]
        return jnp.exp(jnp.minimum(exponent, 0.0) + self.log_amplitude)

    def diagonal(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        """k(x, x) for every row."""
        return jnp.broadcast_to(self.amplitude, X.shape[:1])

    def describe(self) -> str:
        """The parameters in words, for error messages."""
        l = self.lengthscales
        return f"squared exponential kernel (amplitude {self.amplitude:.3g}, lengthscales {l.min():.3g}..{l.max():.3g})"
