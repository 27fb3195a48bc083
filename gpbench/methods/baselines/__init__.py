"""Baselines, which any method must beat."""

import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["with_intercept"]


def with_intercept(X: Float[Array, "N D"]) -> Float[Array, "N E"]:
    """The inputs and a column of ones, E = D + 1."""
    return jnp.concatenate([X, jnp.ones((X.shape[0], 1), X.dtype)], axis=1)
