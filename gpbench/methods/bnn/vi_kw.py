"""`vi_kw`: variational inference for neural networks with independent normal weights and reparameterised samples.

Kingma and Welling (ICLR 2014), as the paper `aep_dgp` (section 8.1) has it: weights with the prior N(0, 1), and a noise
that is optimised with q.  The pre-activations of a row are sampled, not its weights (Kingma, Salimans and Welling, NIPS
2015): the bound is the same, and the variance of its gradient far smaller.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.likelihoods import Likelihood
from gpbench.core.networks import Network, normal_network
from gpbench.core.predictive import Mixture, Predictive
from gpbench.methods.base import Batch
from gpbench.methods.bnn.base import NetworkMethod
from gpbench.methods.gradient import GradientMethod, GradientState


class Parameters(eqx.Module):
    """q's means and logarithms of standard deviations, and the likelihood."""

    mean: Network
    log_std: Network
    likelihood: Likelihood


class VIKW(NetworkMethod, GradientMethod):
    """Configuration of `vi_kw`; see the module's docstring."""

    initial_std: float = eqx.field(static=True, kw_only=True, default=0.05)
    """Of every weight under the initial q."""
    draws: int = eqx.field(static=True, kw_only=True, default=1)
    """Samples of every row's pre-activations in a step."""
    samples: int = eqx.field(static=True, kw_only=True, default=100)
    """How many networks a prediction averages."""

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> Parameters:
        likelihood = self.initial_likelihood(data)
        mean = self.initial_network(data, likelihood.latents(), key=key)
        log_std = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.log(self.initial_std)), mean)
        return Parameters(mean, log_std, likelihood)

    def loss(self, parameters: Parameters, batch: Batch, *, key: PRNGKeyArray) -> tuple[Float[Array, ""], None]:
        draw = lambda key: parameters.likelihood.log_prob(sample_outputs(parameters, batch.X, key=key), batch.y)
        expected = jnp.mean(jax.vmap(draw)(jax.random.split(key, self.draws)), axis=0)
        return kl(parameters) - batch.scale * jnp.sum(batch.weight * expected), None

    def predict(self, state: GradientState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        parameters = state.parameters

        def density(key):
            noise = normal_network(parameters.mean, key=key)
            move = lambda mean, log_std, e: mean + jnp.exp(log_std) * e
            outputs = jax.tree.map(move, parameters.mean, parameters.log_std, noise)(X)
            return parameters.likelihood.predictive(outputs, jnp.zeros_like(outputs))

        components = jax.vmap(density)(jax.random.split(key, self.samples))
        return Mixture(components, jnp.zeros(self.samples, X.dtype))


def kl(parameters: Parameters) -> Float[Array, ""]:
    """KL of q from the prior N(0, I), in nats."""
    # ½ Σ (s² + m² - 1 - log s²)
    each = lambda m, log_s: 0.5 * jnp.sum(jnp.exp(2.0 * log_s) + m**2 - 1.0 - 2.0 * log_s)
    return jnp.sum(jnp.stack(jax.tree.leaves(jax.tree.map(each, parameters.mean, parameters.log_std))))


def sample_outputs(parameters: Parameters, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Float[Array, "N ..."]:
    """Outputs of every row under weights of its own: sampled layer by layer, from the pre-activations' normals."""
    keys = jax.random.split(key, len(parameters.mean.layers))
    for depth, (mean, log_std, key) in enumerate(zip(parameters.mean.layers, parameters.log_std.layers, keys)):
        X = jax.nn.relu(X) if depth else X
        variance = X**2 @ jnp.exp(2.0 * log_std.weight) + jnp.exp(2.0 * log_std.bias)
        X = mean(X) + jnp.sqrt(variance) / mean.scale * jax.random.normal(key, variance.shape, X.dtype)
    return X[:, 0] if X.shape[1] == 1 else X
