"""The normal distribution function, and Gaussians of a sparse approximation: prior covariances, sites, and q of the
whitened inducing outputs w."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from gpbench.core.linalg import inverse_cholesky, product

MeanVariance = tuple[Float[Array, " N"], Float[Array, " N"]]
"""Means and variances of N rows."""


def normal_cdf(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """Φ(z), as accurate as `jax.scipy.stats.norm.cdf` in a quarter of its time on a CPU in float64."""
    return 0.5 * jax.scipy.special.erfc(z * -(0.5**0.5))


class Covariances(eqx.Module):
    """Kzz and Kzx of the inducing features, and k(x, x) of the rows with any additive noise."""

    zz: Float[Array, "M M"]
    zx: Float[Array, "M N"]
    xx: Float[Array, " N"]


def residual(cov: Covariances, V: Float[Array, "M N"]) -> Float[Array, " N"]:
    """Variance of f given the inducing outputs: k(x, x) + noise - |Vₙ|², not below 0; V = L⁻¹ Kzx, Kzz = L Lᵀ."""
    return jnp.maximum(cov.xx - jnp.sum(V**2, axis=0), 0.0)


class Sites(eqx.Module):
    """Natural parameters of N one-dimensional Gaussian sites: precision ν and precision-times-mean τ."""

    nu: Float[Array, " N"]
    tau: Float[Array, " N"]

    def __getitem__(self, index: Int[Array, " P"] | slice) -> "Sites":
        return Sites(self.nu[index], self.tau[index])

    def power(self, weight: Float[Array, " N"]) -> "Sites":
        """Raises each site to the power of its weight; 0 gives the constant site."""
        return Sites(self.nu * weight, self.tau * weight)

    def change_from(self, old: "Sites") -> Float[Array, ""]:
        """Largest absolute difference of a precision or a shift from those of `old`."""
        return jnp.maximum(jnp.max(jnp.abs(self.nu - old.nu)), jnp.max(jnp.abs(self.tau - old.tau)))


def initial_sites(weight: Float[Array, " N"]) -> Sites:
    """Sites without information; ν is tiny where the weight is 1, so that ratios stay defined."""
    return Sites(1e-10 * weight, jnp.zeros_like(weight))


def damp(new: Sites, old: Sites, rho: Float[Array, ""] | Float[Array, " N"] | float) -> Sites:
    """Damped sites ρ new + (1 - ρ) old, one ρ for all sites or one for each (paper `sep`, equation 25)."""
    return Sites(rho * new.nu + (1.0 - rho) * old.nu, rho * new.tau + (1.0 - rho) * old.tau)


def moment_match(
    mean: Float[Array, " N"], variance: Float[Array, " N"], slope: Float[Array, " N"], curvature: Float[Array, " N"]
) -> Sites:
    """Sites that match the tilted moments, of cavities with this mean and variance s.  ν = κ / (1 - κ s), τ = α + (mean
    + α s) ν with slope α = ∂ log Z / ∂ mean and curvature κ = -∂² log Z / ∂ mean² (paper `sep`, equation 23, whose
    print has the wrong sign in ν: see the errata).  VI and Laplace are the same match with other (α, κ)."""
    nu = curvature / (1.0 - curvature * variance)
    return Sites(nu, slope + (mean + slope * variance) * nu)


class Normal(eqx.Module):
    """q(w) = N(mean, RᵀR) with R = tril(root), the inverse Cholesky factor of q's precision.  Moments, KL and samples
    of q are then products with R.  R's diagonal may have either sign."""

    mean: Float[Array, " M"]
    root: Float[Array, "M M"]

    def project(self, V: Float[Array, "M N"]) -> MeanVariance:
        """Mean and variance of Vₙᵀw for every column of `V`."""
        return self.mean @ V, jnp.sum(product(jnp.tril(self.root), V) ** 2, axis=0)

    def kl(self) -> Float[Array, ""]:
        """KL[q(w) || N(0, I)] = ½ (|R|² + |mean|² - M) - log|det R|, in nats."""
        R = jnp.tril(self.root)
        log_det = jnp.sum(jnp.log(jnp.abs(jnp.diag(R))))
        return 0.5 * (jnp.sum(R**2) + jnp.sum(self.mean**2) - len(self.mean)) - log_det


class Natural(eqx.Module):
    """The factor exp(-½ wᵀPw + hᵀw) with precision P and shift h: a product of Gaussian sites is one such factor.
    Differences of factors need not be positive definite."""

    precision: Float[Array, "M M"]
    shift: Float[Array, " M"]

    def __add__(self, other: "Natural") -> "Natural":
        return jax.tree.map(jnp.add, self, other)

    def __sub__(self, other: "Natural") -> "Natural":
        return jax.tree.map(jnp.subtract, self, other)

    def posterior(self) -> Normal:
        """The factor times the prior N(0, I), normalised: precision I + P, mean (I + P)⁻¹ h."""
        R = inverse_cholesky(jnp.eye(len(self.shift), dtype=self.shift.dtype) + self.precision)
        return Normal((R @ self.shift) @ R, R)


def standard_normal(m: int, dtype: DTypeLike) -> Normal:
    """The distribution N(0, I) in m dimensions, of precision `dtype`, made on the host: nothing is compiled for it."""
    return Normal(*jax.device_put((np.zeros(m, dtype), np.eye(m, dtype=dtype))))


def unit_factor(m: int, dtype: DTypeLike) -> Natural:
    """The factor 1 in m dimensions, of precision `dtype`: it leaves the prior as it is."""
    return Natural(jnp.zeros((m, m), dtype), jnp.zeros(m, dtype))


def site_product(V: Float[Array, "M B"], sites: Sites) -> Natural:
    """Product of sites on Vₙᵀw as one factor: P = Σ νₙ Vₙ Vₙᵀ, h = Σ τₙ Vₙ."""
    return Natural((V * sites.nu) @ V.T, V @ sites.tau)


def whiten(factor: Natural, A: Float[Array, "M M"], Kzz: Float[Array, "M M"]) -> Natural:
    """Rewrites a factor on u = L w as a factor on w: Lᵀ P L and Lᵀ h, from A = L⁻¹ and Kzz."""
    # Lᵀ = L⁻¹ Kzz
    Lt = A @ Kzz
    return Natural(Lt @ factor.precision @ Lt.T, Lt @ factor.shift)
