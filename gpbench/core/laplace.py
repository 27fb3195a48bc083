"""The Laplace approximation of a network's posterior, with the generalised Gauss-Newton matrix as curvature.  All
weights and biases are one vector of P numbers, in the order of `ravel_pytree`; every layer has a prior precision δ.
Daxberger et al., Laplace Redux (NeurIPS 2021); Immer et al., Scalable Marginal Likelihood Estimation (ICML 2021)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from gpbench.core.likelihoods import Likelihood
from gpbench.core.linalg import inverse_cholesky, log_determinant
from gpbench.core.networks import Network, backpropagate

_CHUNK = 256  # number of rows whose Jacobians are in memory at a time


class WeightPosterior(eqx.Module):
    """N(w, H⁻¹) around a network's weights w, with A H Aᵀ = I for the precision H = Σ Jᵀ Λ J + diag δ."""

    A: Float[Array, "P P"]

    def effective(self, precisions: Float[Array, " L"], network: Network) -> Float[Array, " L"]:
        """Effective number of parameters of every layer, γ = P_l - δ_l tr (H⁻¹)_ll (MacKay 1992)."""
        variances = jnp.sum(self.A**2, axis=0)
        sizes, traces = by_layer(jnp.ones_like(variances), network), by_layer(variances, network)
        return sizes - precisions * traces

    def variances(self, network: Network, X: Float[Array, "N D"]) -> Float[Array, "N K"]:
        """Variances of the outputs at X, linearised in the weights: diag J H⁻¹ Jᵀ."""
        variance = lambda x: jnp.sum((jacobian(network, x[None])[0] @ self.A.T) ** 2, axis=-1)
        return jax.lax.map(variance, X, batch_size=_CHUNK)


def by_layer(values: Float[Array, " P"], network: Network) -> Float[Array, " L"]:
    """Sums of a vector of P numbers over each layer's numbers."""
    _, unravel = ravel_pytree(network)
    return jnp.stack([jnp.sum(layer.weight) + jnp.sum(layer.bias) for layer in unravel(values).layers])


def spread(precisions: Float[Array, " L"], network: Network) -> Float[Array, " P"]:
    """Each layer's precision, repeated for all of its numbers."""
    layers = [jax.tree.map(lambda a, k=k: jnp.full_like(a, precisions[k]), v) for k, v in enumerate(network.layers)]
    return ravel_pytree(layers)[0]


def jacobian(network: Network, X: Float[Array, "N D"]) -> Float[Array, "N K P"]:
    """Derivatives of the K outputs in the P parameters, for every row of X."""
    K = network.layers[-1].bias.size

    def derivatives(direction: Array) -> Array:
        slopes = backpropagate(network, X, jnp.broadcast_to(direction, (len(X), K)))
        blocks = [((x[:, :, None] * s[:, None, :]).reshape(len(X), -1), s) for x, s in slopes]
        return jnp.concatenate([block for pair in blocks for block in pair], axis=1)

    return jax.vmap(derivatives, out_axes=1)(jnp.eye(K, dtype=X.dtype))


def gauss_newton(
    network: Network, likelihood: Likelihood, X: Float[Array, "N D"], y: Float[Array, " N"], weight: Float[Array, " N"]
) -> Float[Array, "P P"]:
    """Generalised Gauss-Newton matrix Σ weight Jᵀ Λ J over the rows, Λ = -∂² log p(y|f) / ∂f².  `_CHUNK` Jacobians are
    in memory at a time; the weight is 0 for rows that fill a batch up."""
    chunk = min(_CHUNK, len(y))
    chunks = -(-len(y) // chunk)
    hessians = jax.vmap(jax.hessian(likelihood.log_prob))

    def split(array: Array) -> Array:
        missing = [(0, chunks * chunk - len(y))] + [(0, 0)] * (array.ndim - 1)
        return jnp.pad(array, missing).reshape(chunks, chunk, *array.shape[1:])

    def add(total: Array, rows: tuple[Array, Array, Array]) -> tuple[Array, None]:
        X, y, weight = rows
        J = jacobian(network, X)
        n, K, P = J.shape
        curvature = -weight[:, None, None] * hessians(network(X), y).reshape(n, K, K)
        return total + J.reshape(-1, P).T @ jnp.einsum("nkl,nlp->nkp", curvature, J).reshape(-1, P), None

    P = ravel_pytree(network)[0].size
    total, _ = jax.lax.scan(add, jnp.zeros((P, P), X.dtype), (split(X), split(y), split(weight)))
    return total


def approximate(network: Network, precisions: Float[Array, " L"], curvature: Float[Array, "P P"]) -> WeightPosterior:
    """Laplace approximation around a network, with the matrix of `gauss_newton` and each layer's prior precision."""
    return WeightPosterior(inverse_cholesky(curvature + jnp.diag(spread(precisions, network))))


def log_evidence(
    posterior: WeightPosterior, network: Network, precisions: Float[Array, " L"], fit: Float[Array, ""]
) -> Float[Array, ""]:
    """Laplace estimate of log p(y): log p(y|w), the `fit`, + log N(w | 0, δ⁻¹) + ½ P log 2π - ½ log|H|, in nats."""
    delta, w = spread(precisions, network), ravel_pytree(network)[0]
    return fit + 0.5 * jnp.sum(jnp.log(delta) - delta * w**2) - 0.5 * log_determinant(posterior.A)
