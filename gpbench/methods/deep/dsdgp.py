"""`dsdgp`: doubly stochastic variational inference for deep GPs (Salimbeni and Deisenroth, NIPS 2017).

The bound is Σ E log p(yₙ|fₙ) - Σ KL[q(w) || N(0, I)] over all units, the expectation over one sampled path of every row
through the hidden layers (its equation 16).  Hidden layers have a fixed linear mean, the leading principal components
of the inputs or the identity (its section 3.1), so that no layer starts by forgetting its inputs.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.gaussians import Normal, standard_normal
from gpbench.core.likelihoods import Likelihood
from gpbench.core.predictive import Predictive
from gpbench.methods.base import Batch
from gpbench.methods.parts.deep_layers import DeepLayer, DeepMethod, LayerPosterior, of_output
from gpbench.methods.parts.gradient import GradientState, SampledMethod
from gpbench.methods.parts.stopping import StopMethod

_HIDDEN_ROOT = 0.01  # standard deviation of the initial q of hidden layers: nearly no noise


class _DsdgpParameters(eqx.Module):
    """Arguments of the bound; `means` (D, P) of the hidden layers are fixed."""

    layers: tuple[DeepLayer, ...]
    q: tuple[Normal, ...]
    likelihood: Likelihood
    means: tuple[Float[Array, "_ _"], ...]


class DSDGP(DeepMethod, SampledMethod, StopMethod):
    """A deep Gaussian process by doubly stochastic inference (Salimbeni and Deisenroth 2017): `dsdgp`.  `hidden=[]` is
    `svi`'s model and bound."""

    sample_weights: ClassVar[bool] = True
    shares_points: ClassVar[bool] = True  # a layer has one set of inducing points, as in the paper

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> _DsdgpParameters:
        self.require_paths(data)
        likelihood, means = self.initial_likelihood(data), self._linear_means(data)
        layers = self.initial_layers(data, likelihood.latents(), means, key=key)
        q = []
        for layer, units in zip(layers, (*self.widths(data.X), likelihood.latents())):
            start = standard_normal(layer.Z.shape[1], data.X.dtype)
            if layer is not layers[-1]:
                start = Normal(start.mean, _HIDDEN_ROOT * start.root)
            q.append(jax.tree.map(lambda leaf, units=units: jnp.broadcast_to(leaf, (units, *leaf.shape)), start))
        return _DsdgpParameters(layers, tuple(q), likelihood, means)

    def _linear_means(self, data: Batch) -> tuple[Float[Array, "_ _"], ...]:
        """Linear mean of each hidden layer: principal axes of the inputs for the first, the identity for the others."""
        means, width = [], data.X.shape[1]
        for depth, units in enumerate(self.widths(data.X)):
            axes = np.eye(width)
            if depth == 0 and units < width:
                X = np.asarray(data.X[: data.total])
                axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2].T
            W = np.zeros((width, units))
            W[:, : min(width, units)] = axes[:, : min(width, units)]
            means.append(jnp.asarray(W, data.X.dtype))
            width = units
        return tuple(means)

    def trainable(self, parameters: _DsdgpParameters) -> Any:
        """All parameters but the fixed means."""
        return parameters.layers, parameters.q, parameters.likelihood

    def loss(self, parameters: _DsdgpParameters, batch: Batch, *, key: PRNGKeyArray) -> tuple[Float[Array, ""], None]:
        noise = jax.random.normal(key, (len(batch.y), sum(self.widths(batch.X))), batch.X.dtype)
        mean, variance = self._output(parameters, batch.X, noise)
        expected = parameters.likelihood.expected_log_prob(mean, variance, batch.y)
        kl = sum(jnp.sum(jax.vmap(Normal.kl)(q)) for q in parameters.q)
        bound = batch.sum(expected) - kl
        return -bound - self.log_prior(parameters.layers), None

    def _output(self, parameters: _DsdgpParameters, X: Float[Array, "N D"], noise: Float[Array, "#N H"]) -> Any:
        """Mean and variance of the output, (N,) or (N, P) each, along the path of this noise of the H hidden units."""
        parts = jnp.split(noise, np.cumsum(self.widths(X))[:-1], axis=1) if self.hidden else []
        layers = self.posteriors(parameters)
        for layer, W, e in zip(layers, parameters.means, parts):
            h = layer.moments_at(X)
            X = h.mean + X @ W + jnp.sqrt(h.cov) * e
        return of_output(layers[-1].moments_at(X))

    def posteriors(self, parameters: _DsdgpParameters) -> list[LayerPosterior]:
        return [LayerPosterior.create(layer, q) for layer, q in zip(parameters.layers, parameters.q)]

    def predict(
        self, state: GradientState[_DsdgpParameters], X: Float[Array, "N D"], *, key: PRNGKeyArray
    ) -> Predictive:
        parameters = state.parameters

        def predictive(noise: Float[Array, " H"]) -> Predictive:
            return parameters.likelihood.predictive(*self._output(parameters, X, noise[None]))

        if not self.hidden:
            return predictive(jnp.zeros(0, X.dtype))
        return self.average_paths(predictive, X)
