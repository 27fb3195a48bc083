"""Exact Gaussian-process regression, the example of docs/add_a_method.md: O(N^3) a step, so for small data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from gpbench.core.inducing import median_distance
from gpbench.core.kernels import SquaredExponential
from gpbench.core.linalg import inverse_cholesky, log_determinant
from gpbench.core.predictive import Gaussian
from gpbench.methods.base import Info, Method


class Parameters(eqx.Module):
    kernel: SquaredExponential
    log_noise: jax.Array

    def factor(self, X):  # A = L⁻¹, K(X, X) + noise I = L Lᵀ
        return inverse_cholesky(self.kernel.gram(X, X) + jnp.exp(self.log_noise) * jnp.eye(len(X), dtype=X.dtype))


class State(eqx.Module):
    parameters: Parameters
    optimiser: optax.OptState
    X: jax.Array
    y: jax.Array


class ExactGP(Method):
    """Kernel and noise by gradients of the log evidence."""

    tasks = frozenset({"regression"})

    rate: float = eqx.field(static=True, kw_only=True, default=0.1)

    def init(self, data, *, key):
        X, y = data.X[: data.total], data.y[: data.total]  # the rows that count come first
        scale = jnp.log(median_distance(X))
        kernel = SquaredExponential(jnp.zeros((), X.dtype), jnp.full(X.shape[1], 2 * scale, X.dtype))
        parameters = Parameters(kernel, jnp.asarray(jnp.log(0.1), X.dtype))
        return State(parameters, optax.adam(self.rate).init(parameters), X, y)

    def step(self, state, batch, *, key):
        loss, gradient = jax.value_and_grad(lambda p: -log_evidence(p, batch))(state.parameters)
        updates, optimiser = optax.adam(self.rate).update(gradient, state.optimiser)
        return State(optax.apply_updates(state.parameters, updates), optimiser, state.X, state.y), Info(-loss)

    def objective(self, state, data):
        return log_evidence(state.parameters, data)

    def predict(self, state, X):
        kernel, A = state.parameters.kernel, state.parameters.factor(state.X)
        V = A @ kernel.gram(state.X, X)
        variance = kernel.diagonal(X) - jnp.sum(V**2, axis=0) + jnp.exp(state.parameters.log_noise)
        return Gaussian(V.T @ (A @ state.y), variance)


def log_evidence(parameters, data):
    """log N(y | 0, K + noise I)."""
    X, y = data.X[: data.total], data.y[: data.total]
    A = parameters.factor(X)
    return -0.5 * (jnp.sum((A @ y) ** 2) + log_determinant(A) + data.total * jnp.log(2 * jnp.pi))
