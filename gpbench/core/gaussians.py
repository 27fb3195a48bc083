"""The pair of types for Gaussians of whitened inducing outputs w: `Normal`, and `Natural` for factors."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.linalg import inverse_cholesky
from gpbench.core.sites import Sites


class Normal(eqx.Module):
    """q(w) = N(mean, RᵀR) with R = tril(root), the inverse Cholesky factor of q's precision.

    Everything that is needed of q is then a product with R.  R's diagonal may have either sign.
    """

    mean: Float[Array, " M"]
    root: Float[Array, "M M"]

    def project(self, V: Float[Array, "M N"]) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
        """Mean and variance of Vₙᵀw for every column of `V`."""
        return V.T @ self.mean, jnp.sum((jnp.tril(self.root) @ V) ** 2, axis=0)

    def kl(self) -> Float[Array, ""]:
        """KL[q(w) || N(0, I)] = ½ (|R|² + |mean|² - M) - log|det R|, in nats."""
        R = jnp.tril(self.root)
        log_det = jnp.sum(jnp.log(jnp.abs(jnp.diag(R))))
        return 0.5 * (jnp.sum(R**2) + jnp.sum(self.mean**2) - len(self.mean)) - log_det


class Natural(eqx.Module):
    """The factor exp(-½ wᵀPw + hᵀw) with precision P and shift h: a product of Gaussian sites is one such factor.

    Differences of factors need not be positive definite.
    """

    precision: Float[Array, "M M"]
    shift: Float[Array, " M"]

    def __add__(self, other: "Natural") -> "Natural":
        return jax.tree.map(jnp.add, self, other)

    def __sub__(self, other: "Natural") -> "Natural":
        return jax.tree.map(jnp.subtract, self, other)

    def posterior(self) -> Normal:
        """The factor times the prior N(0, I), normalised: precision I + P, mean (I + P)⁻¹ h."""
        R = inverse_cholesky(jnp.eye(len(self.shift), dtype=self.shift.dtype) + self.precision)
        return Normal(R.T @ (R @ self.shift), R)


def standard_normal(m: int, dtype) -> Normal:
    """N(0, I) in m dimensions."""
    return Normal(jnp.zeros(m, dtype), jnp.eye(m, dtype=dtype))


def unit_factor(m: int, dtype) -> Natural:
    """The factor 1, which leaves the prior as it is."""
    return Natural(jnp.zeros((m, m), dtype), jnp.zeros(m, dtype))


def site_product(V: Float[Array, "M B"], sites: Sites) -> Natural:
    """The product of sites on Vₙᵀw as one factor: P = Σ νₙ Vₙ Vₙᵀ, h = Σ τₙ Vₙ."""
    return Natural((V * sites.nu) @ V.T, V @ sites.tau)


def whiten(factor: Natural, A: Float[Array, "M M"], Kzz: Float[Array, "M M"]) -> Natural:
    """A factor on u = L w as a factor on w: Lᵀ P L and Lᵀ h, with Lᵀ = A Kzz."""
    Lt = A @ Kzz
    return Natural(Lt @ factor.precision @ Lt.T, Lt @ factor.shift)
