"""`vi_g`: variational inference for neural networks with independent normal weights (Graves, NIPS 2011).

The loss is that of all mean-field methods, L = E[-log p(y|w)] + KL[q || prior], the expectation over w from q, and so
is the gradient of its first term in a mean: that of -log p(y|w) at a sample, which is unbiased.  The gradient in a
variance, ½ E[-∂² log p(y|w) / ∂w²], has the empirical Fisher information in place of the second derivative, as he has
for a diagonal Gaussian posterior: ½ Σₙ (∂ log p(yₙ|w) / ∂w)² at the sample.  That is biased; it is never negative.
The fitted prior N(μ, v), shared by all weights and biases, is at its optimum for the current q, in closed form.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.likelihoods import Likelihood
from gpbench.core.networks import Affine, MeanField, Network, backpropagate
from gpbench.methods.base import Batch
from gpbench.methods.bnn.base import MeanFieldMethod, MeanFieldParameters
from gpbench.schema import setting


class VIG(MeanFieldMethod):
    """A Bayesian neural network by mean-field variational inference (Graves 2011): `vi_g`."""

    prior: str = setting(
        "fitted",
        ["fitted", "standard"],
        "Prior of the weights: a normal with mean and variance fitted to q, or N(0, 1).",
    )

    def kl_of(self, q: MeanField) -> Float[Array, ""]:
        """KL of q from the prior, in nats."""
        return q.kl(*q.best_prior()) if self.prior == "fitted" else q.kl()

    def evaluate(
        self, parameters: MeanFieldParameters, extra: Any, batch: Batch, *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], MeanFieldParameters, None]:
        """The sampled loss; the module's gradients for q, and the plain gradient for the likelihood; None."""
        q, likelihood = parameters.q, parameters.likelihood
        draws: Callable[..., Any] = jax.vmap(lambda key: _fit_and_slopes(q.sample(key=key), likelihood, batch))
        value, slope, square, noise_slope = jax.tree.map(
            lambda leaf: jnp.mean(leaf, axis=0), draws(jax.random.split(key, self.draws))
        )
        # dL/d log s = 2 s² dL/ds²
        spread = jax.tree.map(lambda log_s, square: jnp.exp(2.0 * log_s) * square, q.log_std, square)
        kl, kl_slope = jax.value_and_grad(self.kl_of)(q)
        gradient = jax.tree.map(jnp.add, MeanField(slope, spread), kl_slope)
        return value + kl, MeanFieldParameters(gradient, noise_slope), None


def _fit_and_slopes(
    network: Network, likelihood: Likelihood, batch: Batch
) -> tuple[Float[Array, ""], Network, Network, Likelihood]:
    """-Σ log p(y|f) over the rows, Σ of its rows' gradients in the network and of their squares, and the likelihood's.
    Sums over a minibatch are scaled to all rows."""
    f = network(batch.X)
    weight = batch.scale * batch.weight
    loss = lambda likelihood: -jnp.tensordot(weight, likelihood.log_prob(f, batch.y), axes=1)
    value, noise_slope = jax.value_and_grad(loss)(likelihood)
    slopes = -jax.grad(lambda f: jnp.sum(likelihood.log_prob(f, batch.y)))(f).reshape(len(f), -1)
    gradient, squares = [], []
    for layer, (inputs, slope) in zip(network.layers, backpropagate(network, batch.X, slopes)):
        gradient.append(Affine(inputs.T @ (weight[:, None] * slope), weight @ slope, layer.scale))
        squares.append(Affine((inputs**2).T @ (weight[:, None] * slope**2), weight @ slope**2, layer.scale))
    return value, Network(tuple(gradient)), Network(tuple(squares)), noise_slope
