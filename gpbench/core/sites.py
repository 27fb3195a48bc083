"""Gaussian sites: one per data point, exp(-½ ν f² + τ f) in the point's own latent value, and their damped update."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class Sites(eqx.Module):
    """Natural parameters of N one-dimensional Gaussian sites: precision ν and precision-times-mean τ."""

    nu: Float[Array, " N"]
    tau: Float[Array, " N"]

    def __getitem__(self, index) -> "Sites":
        return Sites(self.nu[index], self.tau[index])

    def power(self, weight: Float[Array, " N"]) -> "Sites":
        """Each site to the power of its weight; 0 gives the constant site."""
        return Sites(self.nu * weight, self.tau * weight)


def initial_sites(weight: Float[Array, " N"]) -> Sites:
    """Sites without information; ν is tiny rather than 0 so that ratios stay defined, and 0 for rows of weight 0."""
    return Sites(1e-10 * weight, jnp.zeros_like(weight))


def damp(new: Sites, old: Sites, rho: Float[Array, ""] | Float[Array, " N"] | float) -> Sites:
    """ρ new + (1 - ρ) old (paper `sep`, equation 25): ρ = 1 is no damping.  One ρ for all sites, or one for each."""
    return Sites(rho * new.nu + (1.0 - rho) * old.nu, rho * new.tau + (1.0 - rho) * old.tau)


def moment_match(mean: Float[Array, " N"], variance: Float[Array, " N"], slope, curvature) -> Sites:
    """The sites that match the tilted moments, from the cavity and the two derivatives of log Z in the cavity's mean.

    ν = κ / (1 - κ s), τ = α + (mean + α s) ν with slope α and curvature κ (paper `sep`, equation 23, whose print has
    the wrong sign in ν: see the errata).  Any likelihood gives (α, κ): EP, and with other (α, κ) VI and Laplace.
    """
    nu = curvature / (1.0 - curvature * variance)
    return Sites(nu, slope + (mean + slope * variance) * nu)
