"""Predictive distributions over classes."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.predictive.base import Discrete


class Bernoulli(Discrete):
    """Two classes, -1 and +1, by their log probabilities."""

    log_negative: Float[Array, " N"]
    log_positive: Float[Array, " N"]

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log p(y), y in {-1, +1}."""
        return jnp.where(y > 0, self.log_positive, self.log_negative)

    @property
    def log_probs(self) -> Float[Array, "N 2"]:
        return jnp.stack([self.log_negative, self.log_positive], axis=-1)


class Categorical(Discrete):
    """Classes 0 .. C-1 (or, of two, -1 and +1) by their log probabilities up to a constant in each row."""

    logits: Float[Array, "N C"]

    @property
    def log_probs(self) -> Float[Array, "N C"]:
        return jax.nn.log_softmax(self.logits, axis=-1)
