"""`vi_kw`: variational inference for neural networks with independent normal weights and reparameterised samples.

Kingma and Welling (ICLR 2014), as the paper `aep_dgp` (section 8.2) has it: weights with the prior N(0, 1), and a noise
that is optimised with q.  The pre-activations of a row are sampled, not its weights (Kingma, Salimans and Welling, NIPS
2015): the bound is the same, and the variance of its gradient far smaller.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.methods.base import Batch
from gpbench.methods.bnn.base import MeanFieldMethod, MeanFieldParameters


class VIKW(MeanFieldMethod):
    """A Bayesian neural network by reparameterised variational inference (Kingma and Welling 2014): `vi_kw`."""

    def loss(
        self, parameters: MeanFieldParameters, batch: Batch, *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], None]:
        """KL[q || N(0, I)] - Σ log p(y|f), the sum an unbiased estimate of its expectation under q."""
        q, likelihood = parameters.q, parameters.likelihood
        draw: Any = lambda key: likelihood.log_prob(q.sample_outputs(batch.X, key=key), batch.y)
        expected = jnp.mean(jax.vmap(draw)(jax.random.split(key, self.draws)), axis=0)
        return q.kl() - batch.sum(expected), None
