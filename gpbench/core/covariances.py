"""The prior covariances that a sparse approximation is a function of."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class Covariances(eqx.Module):
    """Kzz and Kzx of the inducing features, and k(x, x) of the rows with any additive noise."""

    zz: Float[Array, "M M"]
    zx: Float[Array, "M N"]
    xx: Float[Array, " N"]


def residual(cov: Covariances, V: Float[Array, "M N"]) -> Float[Array, " N"]:
    """Variance of f given the inducing outputs: k(x, x) + noise - |Vₙ|² with V = L⁻¹Kzx, not below 0."""
    return jnp.maximum(cov.xx - jnp.sum(V**2, axis=0), 0.0)
