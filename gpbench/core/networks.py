"""Fully connected networks with rectified linear units, as values: weights of Bayesian and other neural networks."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


class Affine(eqx.Module):
    """x ↦ (x W + b) / scale, from I inputs to O outputs.

    With `scale` √(I + 1) the prior W, b ~ N(0, 1) gives outputs whose variance does not grow with I.
    """

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


def initial_network(widths: Sequence[int], *, scaled: bool, key: PRNGKeyArray, dtype) -> Network:
    """A network from widths[0] inputs to widths[-1] outputs, He initialisation: weights of variance 2/I, biases 0.

    `scaled` divides the outputs of a layer by √(I + 1), and the weights are larger by that.
    """
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
    """Of every layer its inputs and the slopes of each row at its affine map x W + b, from those at the outputs.

    The gradient of row n in W is the outer product of the two rows n, and that in b the slopes themselves; sums over
    rows of gradients and of their squares are thus matrix products.
    """
    inputs = [X]
    for layer in network.layers[:-1]:
        inputs.append(jax.nn.relu(layer(inputs[-1])))
    parts = []
    for depth in reversed(range(len(inputs))):
        layer = network.layers[depth]
        slopes = slopes / layer.scale
        parts.append((inputs[depth], slopes))
        slopes = (slopes @ layer.weight.T) * (inputs[depth] > 0.0)
    return tuple(reversed(parts))


def normal_network(network: Network, *, key: PRNGKeyArray) -> Network:
    """Independent standard normal numbers in the shape of a network's parameters."""
    leaves, structure = jax.tree.flatten(network)
    keys = jax.random.split(key, len(leaves))
    draws = [jax.random.normal(leaf_key, leaf.shape, leaf.dtype) for leaf_key, leaf in zip(keys, leaves)]
    return jax.tree.unflatten(structure, draws)


def log_standard_normal(network: Network) -> Float[Array, ""]:
    """log N(parameters | 0, I)."""
    parts = [jnp.sum(leaf**2 + jnp.log(2.0 * jnp.pi)) for leaf in jax.tree.leaves(network)]
    return -0.5 * jnp.sum(jnp.stack(parts))
