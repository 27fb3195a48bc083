"""The linearised Laplace approximation against dense computations, and its training against the exact evidence."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from networks import features
from problems import KEY, binary, inputs, predict, regression, run_steps
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal

from gpbench.core import laplace
from gpbench.core.likelihoods import Gaussian, Probit, Softmax
from gpbench.core.networks import initial_network
from gpbench.methods.bnn.laplace import LinearisedLaplace

NOISE = 0.3


def method_of(**fields):
    defaults = {
        "name": "laplace",
        "optimiser": optax.adam(0.02),
        "target_noise": NOISE,
        "hidden": (3,),
        "minibatch": 10,
    }
    return LinearisedLaplace(**{**defaults, **fields})


def network_of(outputs, hidden=(3,)):
    """Two inputs, with random biases too."""
    network = initial_network((2, *hidden, outputs), scaled=True, key=KEY, dtype=jnp.float64)
    w, unravel = ravel_pytree(network)
    return unravel(w + 0.3 * jax.random.normal(jax.random.key(1), w.shape))


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_jacobian_is_that_of_differences(outputs):
    network, X = network_of(outputs, (3, 2)), inputs(4)
    w, unravel = ravel_pytree(network)
    at = jax.jit(lambda w: unravel(w)(X).ravel())
    ours = np.asarray(jax.jit(laplace.jacobian)(network, X)).reshape(4 * outputs, -1)
    theirs = approx_fprime(np.asarray(w), lambda w: np.asarray(at(w)), 1e-6)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("rows", [7, 300])
def test_the_gauss_newton_matrix_is_the_sum_over_rows_of_the_dense_products(rows):
    """Of three classes, where Λ = diag p - p pᵀ; 300 rows are more than one chunk, and one row does not count."""
    network, X = network_of(3), inputs(rows)
    y, weight = jnp.arange(rows) % 3.0, jnp.ones(rows).at[2].set(0.0)
    ours = jax.jit(laplace.gauss_newton)(network, Softmax(3), X, y, weight)
    p = np.asarray(jax.jit(lambda network, X: jax.nn.softmax(network(X), axis=1))(network, X))
    J = np.asarray(jax.jit(laplace.jacobian)(network, X))
    dense = sum(J[n].T @ (np.diag(p[n]) - np.outer(p[n], p[n])) @ J[n] for n in range(rows) if n != 2)
    np.testing.assert_allclose(ours, dense, atol=1e-10 * np.abs(dense).max())


def test_without_a_hidden_layer_evidence_and_prediction_are_those_of_bayesian_regression():
    """At the posterior mean, where the model is linear and the approximation exact."""
    data, precision = regression(), jnp.asarray([2.0])
    Phi, y = features(data.X, True), np.asarray(data.y)
    H = Phi.T @ Phi / NOISE + 2.0 * np.eye(3)
    w = np.linalg.solve(H, Phi.T @ y / NOISE)
    network = eqx.tree_at(
        lambda n: (n.layers[0].weight, n.layers[0].bias),
        network_of(1, ()),
        (jnp.asarray(w[:2, None]), jnp.asarray(w[2:])),
    )
    likelihood = Gaussian.initial(NOISE, 0, jnp.float64)

    @jax.jit
    def approximate(network):
        curvature = laplace.gauss_newton(network, likelihood, data.X, data.y, data.weight)
        posterior = laplace.approximate(network, precision, curvature)
        fit = jnp.sum(likelihood.log_prob(network(data.X), data.y))
        return posterior, laplace.log_evidence(posterior, network, precision, fit)

    posterior, evidence = approximate(network)
    exact = multivariate_normal(np.zeros(len(y)), Phi @ Phi.T / 2.0 + NOISE * np.eye(len(y))).logpdf(y)
    np.testing.assert_allclose(evidence, exact, rtol=1e-8)
    X = inputs(5, seed=3)
    New = features(X, True)
    expected = np.einsum("nd,de,ne->n", New, np.linalg.inv(H), New)
    variances = jax.jit(lambda posterior, network, X: posterior.variances(network, X))(posterior, network, X)
    np.testing.assert_allclose(variances[:, 0], expected, rtol=1e-7)


def test_training_a_linear_model_finds_the_largest_evidence():
    """Steps on all rows to the optimum of weights, precision and noise: those of the exact evidence, to 1 %."""
    data = regression(40)
    method = method_of(hidden=(), steps=60, inner_steps=100, minibatch=200, optimiser=optax.adam(0.01))
    state, objective = trained(method, data)
    Phi, y = features(data.X, True), np.asarray(data.y)

    def negative(x):
        cov = Phi @ Phi.T * np.exp(-x[0]) + np.exp(x[1]) * np.eye(40)
        return -multivariate_normal(np.zeros(40), cov).logpdf(y)

    best = minimize(negative, np.zeros(2), method="Nelder-Mead")
    np.testing.assert_allclose(np.log(state.precisions[0]), best.x[0], atol=0.05)
    np.testing.assert_allclose(state.likelihood.log_noise, best.x[1], atol=0.02)
    np.testing.assert_allclose(objective[-1], -best.fun, atol=0.05)


def trained(method, data):
    return_state, info = run_steps(method, data, method.init(data, key=KEY), None, np.arange(method.steps))
    return return_state, np.asarray(info.objective)


def test_a_network_explains_the_targets_and_is_surer_where_rows_are():
    data = regression(60)
    method = method_of(hidden=(10,), steps=20, inner_steps=100, minibatch=30)
    state, objective = trained(method, data)
    assert objective[-1] > objective[2]
    near, far = (predict(method, state, X).summary() for X in (data.X, 5.0 + data.X))
    assert np.mean((near["mean"] - data.y) ** 2) < 0.3 * np.var(data.y)
    assert np.median(far["var"]) > 2.0 * np.median(near["var"])


@pytest.mark.parametrize("steps", [1, 3, 6])
def test_after_every_step_the_approximation_is_that_of_the_states_precisions_and_noise(steps):
    """As a budget of seconds may end training after any step."""
    data, method = regression(), method_of(steps=6, inner_steps=5, evidence_start=0.0)
    state, _ = run_steps(method, data, method.init(data, key=KEY), None, np.arange(steps))
    curvature = laplace.gauss_newton(state.network, state.likelihood, data.X, data.y, data.weight)
    posterior = laplace.approximate(state.network, state.precisions, curvature)
    for ours, theirs in zip(jax.tree.leaves(state.posterior), jax.tree.leaves(posterior), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)
    assert (steps == 1) == bool(jnp.all(state.precisions == 1.0))


def test_classes_have_probit_outputs_and_no_noise():
    data, method = binary(40), method_of(steps=4, inner_steps=50)
    state, _ = trained(method, data)
    assert isinstance(state.likelihood, Probit)
    assert np.mean(predict(method, state, data.X).log_prob(data.y)) > np.log(0.5)
