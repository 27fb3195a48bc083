"""GPJax's whitened variational GP with optax's Adam, in its own float64 (a process of `accuracy`)."""

import os

os.environ.setdefault("JAX_ENABLE_X64", "true")

import equinox as eqx
import gpjax as g
import jax
import jax.numpy as jnp
import numpy as np
import optax
from _peer_loop import centres, run
from jax.scipy.stats import norm


def prepare(problem: dict, arrays: dict):
    """A step, predictions of the test rows, and a function that waits for the device."""
    X, y, X_test = (jnp.asarray(arrays[name], float) for name in ("X", "y", "X_test"))
    d, n, is_binary = X.shape[1], len(X), problem["binary"]
    targets = ((y > 0).astype(float) if is_binary else y)[:, None]
    likelihood = g.likelihoods.Bernoulli() if is_binary else g.likelihoods.Gaussian()
    prior = g.gps.Prior(mean_function=g.mean_functions.Zero(), kernel=g.kernels.RBF(lengthscale=jnp.full(d, d**0.5)))
    Z = jnp.asarray(centres(arrays["X"], problem["inducing"]), float)
    q = g.variational_families.WhitenedVariationalGaussian(prior * likelihood, inducing_inputs=Z)
    parameters, rest = eqx.partition(q, eqx.is_inexact_array)
    adam, key = optax.adam(0.01), jax.random.key(0)
    state = [parameters, adam.init(parameters), jnp.asarray(0)]

    @jax.jit
    def advance(parameters, moments, t):
        rows = jax.random.randint(jax.random.fold_in(key, t), (problem["batch"],), 0, n)
        batch = g.Dataset(X[rows], targets[rows], n_total=n)
        loss = lambda p: -g.objectives.elbo(eqx.combine(p, rest), batch)
        updates, moments = adam.update(jax.grad(loss)(parameters), moments)
        return optax.apply_updates(parameters, updates), moments, t + 1

    @jax.jit
    def predictions(parameters, rows):
        latent = eqx.combine(parameters, rest).predict(rows)
        mean, variance = jnp.ravel(latent.mean), jnp.diag(latent.covariance())
        return norm.cdf(mean / jnp.sqrt(1 + variance)) if is_binary else mean

    def step():
        state[:] = advance(*state)

    def predict():
        return np.concatenate([predictions(state[0], X_test[i : i + 500]) for i in range(0, len(X_test), 500)])

    return step, predict, lambda: jax.block_until_ready(state)


if __name__ == "__main__":
    run(prepare)
