"""`sgld` against NumPy: its step, and on a linear model the distribution that its steps have in the long run."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import KEY, inputs, regression, train
from scipy.stats import norm

from gpbench.methods.bnn.sgld import SGLD
from gpbench.train.batches import whole

NOISE = 0.3


def linear(**fields):
    """`sgld` on a network without a hidden layer."""
    settings = {"name": "sgld", "hidden": (), "target_noise": NOISE, "cooling": 0.0, "samples": 1, **fields}
    return SGLD(**settings)


@pytest.fixture(scope="module")
def data():
    return regression(30)


def features(data):
    """The inputs and a constant, divided as a scaled layer divides them."""
    X = np.asarray(data.X)
    return np.hstack([X, np.ones((len(X), 1))]) / np.sqrt(X.shape[1] + 1)


def weights(network):
    """The weights of a linear network with one output, and its bias last."""
    (layer,) = network.layers
    return np.concatenate([np.asarray(layer.weight)[..., 0], np.asarray(layer.bias)], axis=-1)


def posterior(data):
    """Mean and precision of the weights' posterior under the noise variance NOISE."""
    F, y = features(data), np.asarray(data.y)
    precision = F.T @ F / NOISE + np.eye(F.shape[1])
    return np.linalg.solve(precision, F.T @ y / NOISE), precision


def log_joint(data, w, kappa):
    """log p(y, w, κ) in NumPy."""
    noise = np.log1p(np.exp(kappa))
    fit = norm.logpdf(np.asarray(data.y), features(data) @ w, np.sqrt(noise)).sum()
    return fit + norm.logpdf(w).sum() + norm.logpdf(kappa, 0.0, 10.0)


def test_a_step_is_half_of_epsilon_times_the_gradient_and_noise_of_variance_epsilon(data):
    """For weights and κ each with its own ε.  One key means one standard normal vector e, so from two step sizes
    e = (Δ - ½ ε ∇) / √ε must come out the same; ∇ is of NumPy's log joint, by differences."""
    method = linear(step_size=0.6, noise_step_size=0.9, cooling=0.5, cooling_start=3.0)
    step = jax.jit(lambda state: method.step(state, data, key=KEY))
    start = eqx.tree_at(lambda s: s.count, method.init(data, key=KEY), jnp.asarray(5))
    np.testing.assert_allclose([start.step_size, start.noise_step_size], [0.6, 0.9])
    w, kappa = weights(start.position.network), float(start.position.kappa.log_noise)
    np.testing.assert_allclose(np.log1p(np.exp(kappa)), NOISE)
    h = 1e-5 * np.eye(3)
    slope = [(log_joint(data, w + d, kappa) - log_joint(data, w - d, kappa)) / 2e-5 for d in h]
    slope_kappa = (log_joint(data, w, kappa + 1e-5) - log_joint(data, w, kappa - 1e-5)) / 2e-5
    noises = []
    for rates in [(1e-3, 2e-2), (4e-2, 5e-4)]:
        sizes = {name: 30 * rate for name, rate in zip(("step_size", "noise_step_size"), rates)}  # N ε
        state = method.with_settings(start, sizes)
        end, info = step(state)
        np.testing.assert_allclose(info.objective, log_joint(data, w, kappa))
        size, size_kappa = (rate * (1 + 5 / 3) ** -0.5 for rate in rates)
        e = (weights(end.position.network) - w - 0.5 * size * np.array(slope)) / np.sqrt(size)
        e_kappa = (end.position.kappa.log_noise - kappa - 0.5 * size_kappa * slope_kappa) / np.sqrt(size_kappa)
        noises.append([*e, float(e_kappa)])
    np.testing.assert_allclose(*noises, atol=1e-5)
    assert len(set(np.round(noises[0], 6))) == 4


def test_steps_of_constant_size_have_the_stationary_distribution_of_discretised_langevin_dynamics(data):
    """On a linear model with known noise that is N(m, P⁻¹ (I - ¼ ε P)⁻¹), near the posterior N(m, P⁻¹) for small ε.

    Along an eigenvector of P with the eigenvalue λ the steps are an autoregression with ρ = 1 - ½ ε λ, so that the mean
    of T of them has the standard error s √((1+ρ) / (1-ρ) / T), and their variance s² √(2 (1+ρ²) / (1-ρ²) / T).
    """
    mean, precision = posterior(data)
    scales, directions = np.linalg.eigh(precision)
    size = float(0.2 / scales.max())
    steps = 40_000
    method = linear(step_size=30 * size, noise_step_size=0.0, steps=steps, burn_in=0.05, thinning=1, samples=steps)
    state, _ = train(method, data, steps)
    projections = (weights(jax.tree.map(np.asarray, state.samples.in_order()).network) - mean) @ directions
    assert len(projections) == state.samples.count == 38_000
    rho = 1 - 0.5 * size * scales
    variance = 1 / scales / (1 - 0.25 * size * scales)
    error = np.sqrt(variance * (1 + rho) / (1 - rho) / len(projections))
    assert (np.abs(projections.mean(0)) < 4 * error).all() and (error < 0.1 * np.sqrt(variance)).all()
    error = np.sqrt(2 * (1 + rho**2) / (1 - rho**2) / len(projections))
    assert (np.abs(projections.var(0) / variance - 1) < 4 * error).all() and (error < 0.1).all()
    np.testing.assert_allclose(state.position.likelihood.noise, NOISE)  # a step size of 0 leaves it


def test_minibatches_estimate_the_log_joint_without_bias(data):
    method = linear(hidden=(2,))
    position = method.init(data, key=KEY).position
    value = jax.jit(lambda batch: method.log_joint(position, batch))
    parts = [eqx.tree_at(lambda b: b.weight, data, jnp.asarray(np.arange(30) % 3 == k, float)) for k in range(3)]
    np.testing.assert_allclose(np.mean([value(part) for part in parts]), value(data))


def test_a_prediction_averages_the_samples_and_before_the_first_has_the_current_weights(data):
    method = linear(hidden=(2,), steps=6, samples=3, burn_in=0.5, thinning=1)
    predictive = jax.jit(lambda state: method.predict(state, data.X, key=KEY).summary())
    density = jax.jit(lambda network: network(data.X))
    state, _ = train(method, data, 2)
    now = predictive(state)
    np.testing.assert_allclose(now["mean"], density(state.position.network))
    np.testing.assert_allclose(now["var"], state.position.likelihood.noise)
    state, _ = train(method, data, 6)
    means = np.array([density(jax.tree.map(lambda leaf, i=i: leaf[i], state.samples.values.network)) for i in range(3)])
    noise = np.exp(state.samples.values.likelihood.log_noise).mean()
    np.testing.assert_allclose(predictive(state)["mean"], means.mean(0))
    np.testing.assert_allclose(predictive(state)["var"], noise + means.var(0))


def test_a_likelihood_without_parameters_has_no_kappa():
    X = inputs(5)
    state = linear(likelihood="logistic").init(whole(X, jnp.sign(X[:, 0]), 2), key=KEY)
    assert jax.tree.leaves(state.position.kappa) == []
