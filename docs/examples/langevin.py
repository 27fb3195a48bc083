"""Bayesian linear regression by stochastic gradient Langevin dynamics, a sampler (Welling and Teh 2011)."""

import equinox as eqx
import jax
import jax.numpy as jnp

from gpbench.core.predictive import GaussianPredictive, MixturePredictive
from gpbench.methods import Info, Method
from gpbench.schema import setting


class LangevinState(eqx.Module):
    weights: jax.Array
    samples: jax.Array  # the last weights, (S, D + 1)
    count: jax.Array


class Langevin(Method):
    """Half a step along the gradient of the log posterior, and noise of the step's variance."""

    tasks = frozenset({"regression"})

    samples: int = setting(50, "count", "Number of samples that a prediction averages.")
    step_size: float = setting(1e-4, "positive", "Variance of the noise in a step.")
    noise: float = setting(0.1, "positive", "Noise variance of the scaled targets.")

    def init(self, data, *, key):
        weights = jax.random.normal(key, (data.X.shape[1] + 1,), data.X.dtype)
        return LangevinState(weights, jnp.tile(weights, (self.samples, 1)), jnp.asarray(0))

    def log_posterior(self, weights, batch):
        error = batch.y - batch.X @ weights[1:] - weights[0]
        return -0.5 * (batch.sum(error**2) / self.noise + jnp.sum(weights**2))

    def step(self, state, batch, *, key):
        value, gradient = jax.value_and_grad(self.log_posterior)(state.weights, batch)
        noise = jax.random.normal(key, gradient.shape, gradient.dtype)
        weights = state.weights + 0.5 * self.step_size * gradient + self.step_size**0.5 * noise
        samples = state.samples.at[state.count % self.samples].set(weights)
        return LangevinState(weights, samples, state.count + 1), Info(value)

    def predict(self, state, X, *, key):
        density = lambda w: GaussianPredictive(X @ w[1:] + w[0], jnp.full(len(X), self.noise, X.dtype))
        return MixturePredictive(jax.vmap(density)(state.samples), jnp.zeros(self.samples, X.dtype))
