"""A deep GP of two layers, whose layers are values (Salimbeni and Deisenroth 2017)."""

import equinox as eqx
import jax
import jax.numpy as jnp

from gpbench.core.features import InducingPoints
from gpbench.core.gaussians import Normal, standard_normal
from gpbench.core.likelihoods import Likelihood
from gpbench.core.predictive import MixturePredictive
from gpbench.methods import GradientMethod, LikelihoodMethod, SparseLayer, SparseMethod
from gpbench.schema import setting


class TwoLayerParameters(eqx.Module):
    layers: tuple[tuple[SparseLayer, Normal], ...]  # each with q of its whitened inducing outputs
    likelihood: Likelihood


class TwoLayers(SparseMethod, LikelihoodMethod, GradientMethod):
    """Doubly stochastic variational inference with one hidden unit; samples of it are shared by all rows."""

    tasks = frozenset({"regression"})
    samples: int = setting(10, "count", "Number of paths in a prediction.")

    def init_parameters(self, data, *, key):
        first = self.initial_layer(data, additive_noise=False, key=key)
        Z = first.features.Z
        H = jnp.linspace(-1.0, 1.0, len(Z), dtype=Z.dtype)[:, None]
        second = SparseLayer(self.kernel.initial(H, start="median"), None, InducingPoints(H))
        q = standard_normal(len(Z), Z.dtype)
        hidden = eqx.tree_at(lambda q: q.mean, q, Z.mean(1))  # any start but 0, where the gradient vanishes
        return TwoLayerParameters(((first, hidden), (second, q)), self.initial_likelihood(data))

    def marginals(self, parameters, X, noise):  # mean and variance of the output, given noise of the hidden unit
        for layer, q in parameters.layers:
            V, rest = layer.whitened(X)
            mean, variance = q.project(V)
            X = (mean + noise * jnp.sqrt(variance + rest + 1e-9))[:, None]
        return mean, variance + rest

    def loss(self, parameters, batch, *, key):
        marginals = self.marginals(parameters, batch.X, jax.random.normal(key, batch.y.shape, batch.X.dtype))
        expected = parameters.likelihood.expected_log_prob(*marginals, batch.y)
        return sum(q.kl() for _, q in parameters.layers) - batch.sum(expected), None

    def predict(self, state, X, *, key):
        noise = jax.random.normal(key, (self.samples,), X.dtype)
        path = lambda e: state.parameters.likelihood.predictive(*self.marginals(state.parameters, X, e))
        return MixturePredictive(jax.vmap(path)(noise), jnp.zeros(self.samples, X.dtype))
