"""A deep GP of two layers, the third example of docs/add_a_method.md (Salimbeni and Deisenroth 2017)."""

import equinox as eqx
import jax
import jax.numpy as jnp

from gpbench.core.features import InducingPoints, inducing_points
from gpbench.core.gaussians import Normal, residual, standard_normal
from gpbench.core.kernels import kernel_spec
from gpbench.core.likelihoods import Likelihood, likelihood_spec
from gpbench.core.linalg import inverse_cholesky
from gpbench.core.predictive import MixturePredictive
from gpbench.methods.parts.gradient import GradientMethod
from gpbench.methods.parts.sparse_layer import SparseLayer


class Parameters(eqx.Module):
    layers: tuple[tuple[SparseLayer, Normal], ...]  # each with q of its whitened inducing outputs
    likelihood: Likelihood


class TwoLayers(GradientMethod):
    """Doubly stochastic variational inference with one hidden unit; samples of it are shared by all rows."""

    tasks = frozenset({"regression"})

    inducing: int = eqx.field(static=True, kw_only=True, default=10)
    samples: int = eqx.field(static=True, kw_only=True, default=10)

    def init_parameters(self, data, *, key):
        X = data.X[: data.total]
        Z = inducing_points(X, self.inducing, "rows", key=key)
        H = jnp.linspace(-1.0, 1.0, self.inducing, dtype=X.dtype)[:, None]
        prior = lambda Z: SparseLayer(kernel_spec("matern52").initial(Z, start="median"), None, InducingPoints(Z))
        q = standard_normal(self.inducing, X.dtype)
        hidden = eqx.tree_at(lambda q: q.mean, q, Z.mean(1))  # any start but 0, where the gradient vanishes
        likelihood = likelihood_spec("auto").initial(data.task, data.classes, noise=0.1, dtype=X.dtype)
        return Parameters(((prior(Z), hidden), (prior(H), q)), likelihood)

    def marginals(self, parameters, X, noise):  # of the output, given the noise of the hidden unit
        for layer, q in parameters.layers:
            cov = layer.covariances(X)
            V = inverse_cholesky(cov.zz) @ cov.zx
            mean, variance = q.project(V)
            variance = variance + residual(cov, V)
            X = (mean + noise * jnp.sqrt(variance + 1e-9))[:, None]
        return mean, variance

    def loss(self, parameters, batch, *, key):
        noise = jax.random.normal(key, (len(batch.y),), batch.X.dtype)
        expected = parameters.likelihood.expected_log_prob(*self.marginals(parameters, batch.X, noise), batch.y)
        return sum(q.kl() for _, q in parameters.layers) - batch.scale * jnp.sum(batch.weight * expected), None

    def predict(self, state, X, *, key):
        noise = jax.random.normal(key, (self.samples,), X.dtype)
        sample = lambda e: state.parameters.likelihood.predictive(*self.marginals(state.parameters, X, e))
        return MixturePredictive(jax.vmap(sample)(noise), jnp.zeros(self.samples, X.dtype))
