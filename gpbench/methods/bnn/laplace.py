"""`laplace`: the linearised Laplace approximation of a network, whose prior and noise the evidence chooses.

MacKay (1992); Immer, Bauer, Fortuin, Rätsch and Khan (ICML 2021, algorithm 1): a network is trained to the maximum of
the log joint, and between its steps the prior precision of each layer and the noise variance move towards larger
Laplace evidence, here by MacKay's fixed-point updates

    δ_l ← γ_l / |w_l|²,    σ² ← Σ (y - f)² / (N - Σ γ_l),    γ_l = P_l - δ_l tr (H⁻¹)_ll,

with the full generalised Gauss-Newton matrix H.  Predictions have the outputs linear in the weights.  As all of this
holds at a maximum, the step of the optimiser falls to 0 before every update, as a cosine.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.core import laplace
from gpbench.core.likelihoods import Gaussian, Likelihood
from gpbench.core.networks import Network
from gpbench.core.predictive import Predictive
from gpbench.methods.base import Batch, Info
from gpbench.methods.bnn.base import NetworkMethod, minibatch
from gpbench.methods.parts.settings import AllRowsMethod
from gpbench.schema import setting

_LEAST = 1e-6  # smallest noise variance, where nothing else bounds it, and smallest sum of squares that divides


class _LaplaceState(eqx.Module):
    """The network and its optimiser, the layers' prior precisions, the likelihood, the approximation, and the count of
    steps."""

    network: Network
    optimiser: Any
    precisions: Float[Array, " L"]
    likelihood: Likelihood
    posterior: laplace.WeightPosterior
    count: Int[Array, ""]


class LinearisedLaplace(AllRowsMethod, NetworkMethod):
    """A network with a linearised Laplace approximation (Immer et al. 2021): `laplace`."""

    likelihoods: ClassVar[tuple[str, ...] | None] = ("gaussian", "probit", "logistic", "softmax")

    optimiser: optax.GradientTransformation = setting(range="optimiser", meaning="Optimiser of the weights.")
    inner_steps: int = setting(
        1000, "count", "Number of the optimiser's steps between two updates of prior precisions and noise."
    )
    minibatch: int = setting(100, "count", "Number of rows in each of the optimiser's steps, drawn with replacement.")
    evidence_start: float = setting(
        0.1, "below_one", "Fraction of the steps before the first update of prior precisions and noise."
    )

    def init(self, data: Batch, *, key: PRNGKeyArray) -> _LaplaceState:
        """Raises ConfigError for likelihoods of regression other than gaussian."""
        likelihood = self.gaussian_likelihood(data)
        network = self.initial_network(data, likelihood.latents(), key=key)
        precisions = jnp.ones(len(network.layers), data.X.dtype)
        posterior = laplace.WeightPosterior(jnp.eye(ravel_pytree(network)[0].size, dtype=data.X.dtype))
        return _LaplaceState(network, self.optimiser.init(network), precisions, likelihood, posterior, jnp.asarray(0))

    def log_joint(
        self, network: Network, likelihood: Likelihood, precisions: Float[Array, " L"], batch: Batch
    ) -> Float[Array, ""]:
        """log p(y|w) - ½ Σ δ |w|², or an unbiased estimate of it from a minibatch."""
        fit = batch.sum(likelihood.log_prob(network(batch.X), batch.y))
        return fit - 0.5 * jnp.sum(precisions * laplace.by_layer(ravel_pytree(network)[0] ** 2, network))

    def step(self, state: _LaplaceState, batch: Batch, *, key: PRNGKeyArray) -> tuple[_LaplaceState, Info]:
        """New precisions and noise, and then `inner_steps` of the optimiser, of falling size, and the approximation.
        The objective is the log evidence."""
        # before and not after, so that a state's approximation is that of its precisions and its noise
        new = self.updated(state.posterior, state.network, state.precisions, state.likelihood, batch)
        is_due = state.count - 1 >= self.evidence_start * self.steps
        precisions, likelihood = jax.tree.map(
            lambda new, old: jnp.where(is_due, new, old), new, (state.precisions, state.likelihood)
        )

        def move(carry: Any, inputs: Any) -> Any:
            (network, optimiser), (key, size) = carry, inputs
            rows = minibatch(batch, self.minibatch, key=key)
            slope = jax.grad(lambda n: -self.log_joint(n, likelihood, precisions, rows))(network)
            updates, optimiser = self.optimiser.update(slope, optimiser, network)
            updates = jax.tree.map(lambda leaf: size * leaf, updates)
            return (optax.apply_updates(network, updates), optimiser), None

        sizes = 0.5 * (1.0 + jnp.cos(jnp.pi * jnp.arange(self.inner_steps, dtype=batch.X.dtype) / self.inner_steps))
        keys = jax.random.split(key, self.inner_steps)
        (network, optimiser), _ = jax.lax.scan(move, (state.network, state.optimiser), (keys, sizes))
        curvature = laplace.gauss_newton(network, likelihood, batch.X, batch.y, batch.weight)
        posterior = laplace.approximate(network, precisions, curvature)
        fit = jnp.sum(batch.weight * likelihood.log_prob(network(batch.X), batch.y))
        evidence = laplace.log_evidence(posterior, network, precisions, fit)
        return _LaplaceState(network, optimiser, precisions, likelihood, posterior, state.count + 1), Info(evidence)

    def updated(
        self,
        posterior: laplace.WeightPosterior,
        network: Network,
        precisions: Float[Array, " L"],
        likelihood: Likelihood,
        data: Batch,
    ) -> tuple[Float[Array, " L"], Likelihood]:
        """MacKay's updates of the precisions, and of the noise in regression."""
        effective = posterior.effective(precisions, network)
        sizes = laplace.by_layer(ravel_pytree(network)[0] ** 2, network)
        precisions = effective / (sizes + _LEAST)
        if not isinstance(likelihood, Gaussian):
            return precisions, likelihood
        squares = jnp.sum(data.weight * (data.y - network(data.X)) ** 2)
        noise = squares / jnp.maximum(data.total - jnp.sum(effective), 1.0)
        above = jnp.maximum(noise - likelihood.floor, _LEAST)
        return precisions, eqx.tree_at(lambda model: model.log_noise, likelihood, jnp.log(above))

    def predict(self, state: _LaplaceState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        f = state.network(X)
        variances = state.posterior.variances(state.network, X)
        return state.likelihood.predictive(f, variances.reshape(f.shape))
