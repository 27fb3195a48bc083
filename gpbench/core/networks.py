"""Fully connected networks with rectified linear units, and independent normal distributions of their weights."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.likelihoods import Likelihood
from gpbench.core.predictive import Predictive


class Affine(eqx.Module):
    """x ↦ (x W + b) / scale, from I inputs to O outputs.  With `scale` √(I + 1) the prior W, b ~ N(0, 1) gives outputs
    whose variance does not grow with I."""

    weight: Float[Array, "I O"]
    bias: Float[Array, " O"]
    scale: float = eqx.field(static=True, default=1.0)

    def __call__(self, X: Float[Array, "N I"]) -> Float[Array, "N O"]:
        return (X @ self.weight + self.bias) / self.scale


class Network(eqx.Module):
    """Affine layers with max(0, x) between them."""

    layers: tuple[Affine, ...]

    def __call__(self, X: Float[Array, "N D"]) -> Float[Array, "N ..."]:
        """The outputs, as latent values (`as_latents`)."""
        for layer in self.layers[:-1]:
            X = jax.nn.relu(layer(X))
        return as_latents(self.layers[-1](X))


def as_latents(outputs: Float[Array, "N P"]) -> Float[Array, "N ..."]:
    """A network's outputs as likelihoods have latent values: (N,) for one output, else (N, P)."""
    return outputs[:, 0] if outputs.shape[1] == 1 else outputs


def initial_network(widths: Sequence[int], *, scaled: bool, key: PRNGKeyArray, dtype: DTypeLike) -> Network:
    """A random network by He's initialisation: weights of variance 2/I, biases 0.  `widths` are the numbers of inputs,
    of units in each hidden layer, and of outputs.  With `scaled` the outputs of a layer are divided by √(I + 1), and
    the weights larger by that factor."""
    layers = []
    keys = jax.random.split(key, len(widths) - 1)
    for layer_key, inputs, outputs in zip(keys, widths, widths[1:]):
        scale = (inputs + 1.0) ** 0.5 if scaled else 1.0
        weight = jax.random.normal(layer_key, (inputs, outputs), dtype) * (scale * (2.0 / inputs) ** 0.5)
        layers.append(Affine(weight, jnp.zeros(outputs, dtype), scale))
    return Network(tuple(layers))


def backpropagate(
    network: Network, X: Float[Array, "N D"], slopes: Float[Array, "N P"]
) -> tuple[tuple[Float[Array, "N I"], Float[Array, "N O"]], ...]:
    """The inputs of every layer and the derivatives in its affine map x W + b, from `slopes`, those in the outputs.
    The gradient of row n in W is the outer product of the two rows n, and that in b the derivatives themselves; sums
    over rows of gradients and of their squares are thus matrix products."""
    inputs = [X]
    for layer in network.layers[:-1]:
        inputs.append(jax.nn.relu(layer(inputs[-1])))
    pairs = []
    for depth in reversed(range(len(inputs))):
        layer = network.layers[depth]
        slopes = slopes / layer.scale
        pairs.append((inputs[depth], slopes))
        slopes = (slopes @ layer.weight.T) * (inputs[depth] > 0.0)
    return tuple(reversed(pairs))


def normal_network(network: Network, *, key: PRNGKeyArray) -> Network:
    """Independent standard normal numbers in the shape of a network's parameters."""
    leaves, structure = jax.tree.flatten(network)
    keys = jax.random.split(key, len(leaves))
    draws = [jax.random.normal(leaf_key, leaf.shape, leaf.dtype) for leaf_key, leaf in zip(keys, leaves)]
    return jax.tree.unflatten(structure, draws)


def log_standard_normal(network: Network) -> Float[Array, ""]:
    """log N(parameters | 0, I)."""
    terms = [jnp.sum(leaf**2 + jnp.log(2.0 * jnp.pi)) for leaf in jax.tree.leaves(network)]
    return -0.5 * jnp.sum(jnp.stack(terms))


class MeanField(eqx.Module):
    """q(w) = Π N(w_i | m_i, s_i²) over all weights and biases w, with `log_std` log s."""

    mean: Network
    log_std: Network

    @classmethod
    def around(cls, mean: Network, std: float) -> "MeanField":
        """q with the given means and the same standard deviation for all parameters."""
        return cls(mean, jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.log(std)), mean))

    def sample(self, *, key: PRNGKeyArray) -> Network:
        """Draws a network from q."""
        move = lambda m, log_s, e: m + jnp.exp(log_s) * e
        return jax.tree.map(move, self.mean, self.log_std, normal_network(self.mean, key=key))

    def sample_outputs(self, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Float[Array, "N ..."]:
        """Draws outputs at X with independent networks for the rows, from the normal pre-activations of each layer."""
        keys = jax.random.split(key, len(self.mean.layers))
        for depth, (mean, log_std, key) in enumerate(zip(self.mean.layers, self.log_std.layers, keys)):
            X = jax.nn.relu(X) if depth else X
            variance = X**2 @ jnp.exp(2.0 * log_std.weight) + jnp.exp(2.0 * log_std.bias)
            X = mean(X) + jnp.sqrt(variance) / mean.scale * jax.random.normal(key, variance.shape, X.dtype)
        return as_latents(X)

    def kl(self, mean: Float[Array, ""] | float = 0.0, variance: Float[Array, ""] | float = 1.0) -> Float[Array, ""]:
        """KL[q || prior] for the prior N(mean, variance) of every parameter, in nats."""
        # ½ Σ ((s² + (m - μ)²) / v - 1 - log s² + log v)
        each = lambda m, log_s: (
            0.5 * jnp.sum((jnp.exp(2.0 * log_s) + (m - mean) ** 2) / variance - 1.0 - 2.0 * log_s + jnp.log(variance))
        )
        return jnp.sum(jnp.stack(jax.tree.leaves(jax.tree.map(each, self.mean, self.log_std))))

    def best_prior(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Mean and variance of the prior N(mean, variance), shared by all parameters, that minimises `kl`."""
        means, log_stds = (ravel_pytree(network)[0] for network in (self.mean, self.log_std))
        mean = jnp.mean(means)
        return mean, jnp.mean(jnp.exp(2.0 * log_stds) + (means - mean) ** 2)


def predict_outputs(network: Network, likelihood: Likelihood, X: Float[Array, "N D"]) -> Predictive:
    """The predictive distribution of a network with known weights, whose outputs at X are a likelihood's latents."""
    outputs = network(X)
    return likelihood.predictive(outputs, jnp.zeros_like(outputs))
