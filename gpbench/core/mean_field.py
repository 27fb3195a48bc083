"""Independent normal distributions of a network's parameters, the q of mean-field variational inference."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.networks import Network, as_latents, normal_network


class MeanField(eqx.Module):
    """q(w) = Π N(w_i | m_i, s_i²) over all weights and biases w, with `log_std` log s."""

    mean: Network
    log_std: Network

    @classmethod
    def around(cls, mean: Network, std: float) -> "MeanField":
        """The q with these means and the same standard deviation for all parameters."""
        return cls(mean, jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.log(std)), mean))

    def sample(self, *, key: PRNGKeyArray) -> Network:
        """A network from q."""
        move = lambda m, log_s, e: m + jnp.exp(log_s) * e
        return jax.tree.map(move, self.mean, self.log_std, normal_network(self.mean, key=key))

    def sample_outputs(self, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Float[Array, "N ..."]:
        """Outputs of every row under a network of its own: layer by layer, from the pre-activations' normals."""
        keys = jax.random.split(key, len(self.mean.layers))
        for depth, (mean, log_std, key) in enumerate(zip(self.mean.layers, self.log_std.layers, keys)):
            X = jax.nn.relu(X) if depth else X
            variance = X**2 @ jnp.exp(2.0 * log_std.weight) + jnp.exp(2.0 * log_std.bias)
            X = mean(X) + jnp.sqrt(variance) / mean.scale * jax.random.normal(key, variance.shape, X.dtype)
        return as_latents(X)

    def kl(self, mean: Float[Array, ""] | float = 0.0, variance: Float[Array, ""] | float = 1.0) -> Float[Array, ""]:
        """KL of q from the prior N(mean, variance) of every parameter, in nats."""
        # ½ Σ ((s² + (m - μ)²) / v - 1 - log s² + log v)
        each = lambda m, log_s: (
            0.5 * jnp.sum((jnp.exp(2.0 * log_s) + (m - mean) ** 2) / variance - 1.0 - 2.0 * log_s + jnp.log(variance))
        )
        return jnp.sum(jnp.stack(jax.tree.leaves(jax.tree.map(each, self.mean, self.log_std))))

    def best_prior(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Mean and variance of the prior N(mean, variance), shared by all parameters, that has the least `kl`."""
        means, log_stds = (
            jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(part)]) for part in (self.mean, self.log_std)
        )
        mean = jnp.mean(means)
        return mean, jnp.mean(jnp.exp(2.0 * log_stds) + (means - mean) ** 2)
