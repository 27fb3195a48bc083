"""Gamma distributions over a precision τ, and their updates by assumed-density filtering.

Hernández-Lobato and Adams (ICML 2015, section 3), for the precisions of the noise and of the weights' prior.
"""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float


class Gamma(eqx.Module):
    """Gam(τ | shape, rate)."""

    shape: Float[Array, ""]
    rate: Float[Array, ""]

    @property
    def noise(self) -> Float[Array, ""]:
        """E 1/τ = rate / (shape - 1), the variance of a residual of precision τ; positive where `valid`."""
        return self.rate / (self.shape - 1.0)

    @property
    def valid(self) -> Bool[Array, ""]:
        """Whether it is a distribution with a finite E 1/τ."""
        return jnp.isfinite(self.shape) & jnp.isfinite(self.rate) & (self.shape > 1.0) & (self.rate > 0.0)

    def log_evidence(self, residual: Float[Array, ""], variance: Float[Array, ""]) -> Float[Array, ""]:
        """log Z of an observation: log N(residual | 0, variance + E 1/τ).

        The paper's approximation of the Student t density by the normal one of the same variance.
        """
        return norm.logpdf(residual, 0.0, jnp.sqrt(variance + self.noise))

    def observe(self, residual: Float[Array, ""], variance: Float[Array, ""]) -> "Gamma":
        """After an observation with `log_evidence`; the paper's Z, Z₁ and Z₂ have shape, shape + 1 and shape + 2.

        The approximation can make it invalid: see `valid`.
        """
        v0, v1, v2 = (variance + self.rate / (self.shape + k) for k in (-1.0, 0.0, 1.0))

        def log_ratio(old, new, gap):
            """log N(residual | 0, new) / N(residual | 0, old), gap = old - new."""
            return -0.5 * (jnp.log1p(-gap / old) + residual**2 * gap / (old * new))

        first = log_ratio(v0, v1, self.rate / (self.shape * (self.shape - 1.0)))
        return self.matched(first, log_ratio(v1, v2, self.rate / (self.shape * (self.shape + 1.0))) - first)

    def matched(self, first: Float[Array, ""], second: Float[Array, ""]) -> "Gamma":
        """Matches E τ and E τ² where first = log Z₁/Z and second = log Z₂ Z / Z₁².

        The paper's updates of α and β, whose differences of numbers that grow with the shape are taken in closed form:
        1 / shape' = D / shape and rate' = rate Z / (Z₁ D) with D = e^second + shape (e^second - 1).
        """
        D = jnp.exp(second) + self.shape * jnp.expm1(second)
        return Gamma(self.shape / D, self.rate * jnp.exp(-first) / D)
