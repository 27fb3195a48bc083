"""Quadratic regression, the method of the tutorial: a linear model of the inputs and their products."""

import equinox as eqx
import jax
import jax.numpy as jnp

from gpbench.core.predictive import GaussianPredictive
from gpbench.methods import GradientMethod
from gpbench.schema import setting


class Parameters(eqx.Module):
    weights: jax.Array
    log_noise: jax.Array


class Quadratic(GradientMethod):
    """y = w·φ(x) + noise, with a normal prior on w and φ(x) = all products of two of (1, x₁, ..., x_D)."""

    tasks = frozenset({"regression"})

    ridge: float = setting(1.0, "positive", "Prior precision of the weights.")

    def init_parameters(self, data, *, key):
        features = (data.X.shape[1] + 1) ** 2
        return Parameters(jnp.zeros(features, data.X.dtype), jnp.zeros((), data.X.dtype))

    def distribution(self, parameters, X):
        ones = jnp.pad(X, ((0, 0), (1, 0)), constant_values=1.0)
        mean = jnp.einsum("ni,nj->nij", ones, ones).reshape(len(X), -1) @ parameters.weights
        return GaussianPredictive(mean, jnp.full_like(mean, jnp.exp(parameters.log_noise)))

    def loss(self, parameters, batch, *, key):
        log_prob = self.distribution(parameters, batch.X).log_prob(batch.y)
        return 0.5 * self.ridge * jnp.sum(parameters.weights**2) - batch.sum(log_prob), None

    def predict(self, state, X, *, key):
        return self.distribution(state.parameters, X)
