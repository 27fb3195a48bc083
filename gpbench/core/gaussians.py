"""The multivariate normal distribution of whitened inducing outputs."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class Normal(eqx.Module):
    """q(w) = N(mean, RᵀR) with R = tril(root), which is the inverse Cholesky factor of q's precision.

    Everything wanted of it is then a product with R.  R's diagonal may have either sign.
    """

    mean: Float[Array, " M"]
    root: Float[Array, "M M"]

    def along(self, V: Float[Array, "M N"]) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
        """Mean and variance of Vₙᵀw for every column of `V`."""
        return V.T @ self.mean, jnp.sum((jnp.tril(self.root) @ V) ** 2, axis=0)

    def kl_from_standard(self) -> Float[Array, ""]:
        """KL[q(w) || N(0, I)] = ½ (|R|² + |mean|² - M) - log|det R|."""
        R = jnp.tril(self.root)
        log_det = jnp.sum(jnp.log(jnp.abs(jnp.diag(R))))
        return 0.5 * (jnp.sum(R**2) + jnp.sum(self.mean**2) - len(self.mean)) - log_det


def standard(m: int, dtype) -> Normal:
    """N(0, I) of m dimensions."""
    return Normal(jnp.zeros(m, dtype), jnp.eye(m, dtype=dtype))
