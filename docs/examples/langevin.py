"""A small Bayesian neural network by stochastic gradient Langevin dynamics, the second example of add_a_method.md."""

import equinox as eqx
import jax
import jax.numpy as jnp

from gpbench.core.predictive import GaussianPredictive, MixturePredictive
from gpbench.methods.base import Info, Method


class State(eqx.Module):
    weights: dict
    samples: dict  # the last weights, with a leading axis
    count: jax.Array


class SGLD(Method):
    """Welling and Teh (2011): half a step along the gradient of the log posterior, and noise of the step's variance."""

    tasks = frozenset({"regression"})

    units: int = eqx.field(static=True, kw_only=True, default=20)
    samples: int = eqx.field(static=True, kw_only=True, default=50)
    step_size: float = eqx.field(static=True, kw_only=True, default=1e-4)
    noise: float = eqx.field(static=True, kw_only=True, default=0.1)

    def init(self, data, *, key):
        shapes = {"in": (data.X.shape[1] + 1, self.units), "out": (self.units + 1,)}
        keys = jax.random.split(key)
        weights = {n: jax.random.normal(k, s, data.X.dtype) / s[0] ** 0.5 for k, (n, s) in zip(keys, shapes.items())}
        samples = jax.tree.map(lambda w: jnp.repeat(w[None], self.samples, 0), weights)
        return State(weights, samples, jnp.asarray(0))

    def network(self, weights, X):
        ones = jnp.ones((len(X), 1), X.dtype)
        hidden = jnp.tanh(jnp.hstack([X, ones]) @ weights["in"])
        return jnp.hstack([hidden, ones]) @ weights["out"]

    def log_posterior(self, weights, batch):
        error = batch.y - self.network(weights, batch.X)
        prior = sum(jnp.sum(w**2) for w in jax.tree.leaves(weights))
        return -0.5 * (batch.scale * jnp.sum(batch.weight * error**2) / self.noise + prior)

    def step(self, state, batch, *, key):
        value, gradient = jax.value_and_grad(self.log_posterior)(state.weights, batch)
        keys = dict(zip(state.weights, jax.random.split(key)))
        noise = {name: jax.random.normal(keys[name], w.shape, w.dtype) for name, w in state.weights.items()}
        move = lambda w, g, e: w + 0.5 * self.step_size * g + self.step_size**0.5 * e
        weights = jax.tree.map(move, state.weights, gradient, noise)
        samples = jax.tree.map(lambda s, w: s.at[state.count % self.samples].set(w), state.samples, weights)
        return State(weights, samples, state.count + 1), Info(value)

    def predict(self, state, X, *, key):
        density = lambda weights: GaussianPredictive(self.network(weights, X), jnp.full(len(X), self.noise, X.dtype))
        return MixturePredictive(jax.vmap(density)(state.samples), jnp.zeros(self.samples, X.dtype))
