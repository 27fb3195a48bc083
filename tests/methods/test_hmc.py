"""`hmc` against quadrature on a linear model, its density against SciPy and finite differences, and divergences."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import KEY, differences, predict, regression, train
from scipy.integrate import quad
from scipy.stats import invgamma, norm

from gpbench.methods.bnn.hmc import HMC, log_inverse_gamma

SHAPE, NOISE, STEPS = 2.0, 0.3, 800


@pytest.fixture(scope="module")
def data():
    return regression(30)


@pytest.fixture(scope="module")
def method():
    """A network without a hidden layer."""
    return HMC(
        name="hmc",
        hidden=(),
        target_noise=NOISE,
        prior_shape=SHAPE,
        chains=4,
        warmup=300,
        steps=STEPS,
        samples=STEPS,
        max_doublings=5,
    )


@pytest.fixture(scope="module")
def run(method, data):
    """The last state, and the objective of every step."""
    return train(method, data, STEPS)


def hyper_prior(log_value, centre):
    """The log density of log v for v ~ InverseGamma(SHAPE, SHAPE · centre), by the change of variables."""
    return invgamma.logpdf(np.exp(log_value), SHAPE, scale=SHAPE * centre) + log_value


def exact_means(data):
    """Posterior means of weights, log v and log noise: of the weights in closed form, then summed over a grid."""
    X, y = np.asarray(data.X), np.asarray(data.y)
    F = np.hstack([X, np.ones((len(X), 1))]) / np.sqrt(3.0)
    scales, directions = np.linalg.eigh(F @ F.T)
    projections = directions.T @ y
    log_v, log_noise = (part.ravel()[:, None] for part in np.meshgrid(np.linspace(-4, 6, 81), np.linspace(-4, 2, 81)))
    v, noise = np.exp(log_v), np.exp(log_noise)
    # log N(y | 0, v F Fᵀ + noise I), and the posterior mean v Fᵀ (v F Fᵀ + noise I)⁻¹ y
    variances = v * scales + noise
    evidence = norm.logpdf(projections, 0.0, np.sqrt(variances)).sum(1)
    logs = evidence + hyper_prior(log_v, 1.0)[:, 0] + hyper_prior(log_noise, NOISE)[:, 0]
    means = np.hstack([(v * projections / variances) @ directions.T @ F, log_v, log_noise])
    density = np.exp(logs - logs.max())
    return density @ means / density.sum()


def test_the_samples_have_the_posterior_means_of_a_linear_model(method, data, run):
    """Of weights, log v and log noise, within 4 standard errors, from the effective sample sizes."""
    from blackjax.diagnostics import effective_sample_size

    position, _ = run[0].samples.in_order()
    draws = np.concatenate([np.asarray(leaf).reshape(STEPS, 4, -1) for leaf in jax.tree.leaves(position)], axis=-1)
    size = np.asarray(jax.jit(partial(effective_sample_size, chain_axis=1, sample_axis=0))(draws))
    error = draws.std((0, 1)) / np.sqrt(size)
    assert (size > 400).all()
    gap = draws.mean((0, 1)) - exact_means(data)
    assert (np.abs(gap) < 4 * error).all(), (gap, error)


def test_the_diagnostics_of_chains_that_agree_and_of_one_that_does_not(method, run):
    state = run[0]
    diagnostics = jax.jit(method.diagnostics)
    scalars = diagnostics(state)
    assert 0.99 < scalars["rhat"] < 1.02 and 400 < scalars["ess"] <= 4 * 4 * STEPS
    assert scalars["divergences"] == state.divergences.sum() < 0.01 * 4 * STEPS
    apart = eqx.tree_at(lambda s: s.samples.values[1], state, state.samples.values[1].at[:, 0].add(100.0))
    scalars = diagnostics(apart)
    assert scalars["rhat_outputs"] > 1.5 and scalars["ess_outputs"] < 40
    only = eqx.tree_at(lambda s: s.samples.values[1], state, state.samples.values[1].at[:, 0, 0].add(100.0))
    scalars = diagnostics(only)
    assert scalars["rhat"] > 1.5 and scalars["ess"] < 40 and scalars["rhat_outputs"] < 1.02
    scalars = diagnostics(eqx.tree_at(lambda s: s.samples.count, state, jnp.asarray(STEPS - 1)))
    assert np.isnan(scalars["rhat"]) and np.isnan(scalars["ess"])


def test_a_prediction_averages_all_chains_samples(method, data, run):
    position, quantities = run[0].samples.values
    assert quantities.shape == (STEPS, 4, 1 + 5)  # the log joint and the outputs at five rows
    summary = predict(method, run[0], data.X[:5]).summary()
    outputs = np.asarray(quantities[:, :, 1:]).reshape(-1, 5)
    np.testing.assert_allclose(summary["mean"], outputs.mean(0))
    noise = np.exp(position.likelihood.log_noise).mean()
    np.testing.assert_allclose(summary["var"], noise + outputs.var(0))


def test_a_chain_that_always_diverges_makes_the_run_a_diverged_one(method, data, run):
    """With an absurd step size in one of four chains; the state itself stays finite."""
    start = method.init(data, key=KEY)
    assert method.diagnose(start) == "" and method.diagnose(run[0]) == ""
    start = eqx.tree_at(lambda s: s.adaptation.step_size, start, start.adaptation.step_size.at[1].set(1e6))
    state, objective = train(method, data, STEPS, state=start)
    assert np.isfinite(objective[:-1]).all() and np.isnan(objective[-1])
    assert state.divergences[1] == STEPS
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.position))
    total = int(state.divergences.sum())
    assert method.diagnose(state) == f"every transition of a chain diverged ({total} of {4 * STEPS} of all chains)"


def test_the_log_joint_is_that_of_scipy_and_its_gradient_that_of_differences(data):
    """With a hidden layer of two units: normal weights, inverse gamma variances of both layers and of the noise."""
    method = HMC(name="hmc", hidden=(2,), target_noise=NOISE, prior_shape=SHAPE)
    position = method.initial_position(data, key=KEY)
    flat, unflatten = ravel_pytree(position)
    flat = flat + 0.3 * jnp.asarray(np.random.default_rng(3).normal(size=flat.size))
    function = lambda flat: method.log_joint(unflatten(flat), data)
    value, gradient = jax.jit(jax.value_and_grad(function))(flat)
    position = unflatten(flat)
    (W, b), (V, c) = ((np.asarray(layer.weight), np.asarray(layer.bias)) for layer in position.network.layers)
    hidden = np.maximum((np.asarray(data.X) @ W + b) / np.sqrt(3.0), 0.0)
    outputs = ((hidden @ V + c) / np.sqrt(3.0))[:, 0]
    log_noise, logs = float(position.likelihood.log_noise), np.asarray(position.log_variances)
    expected = norm.logpdf(np.asarray(data.y), outputs, np.exp(0.5 * log_noise)).sum()
    for parts, log_v in zip([(W, b), (V, c)], logs):
        expected += sum(norm.logpdf(part, 0.0, np.exp(0.5 * log_v)).sum() for part in parts) + hyper_prior(log_v, 1.0)
    np.testing.assert_allclose(value, expected + hyper_prior(log_noise, NOISE))
    np.testing.assert_allclose(gradient, differences(function, flat), rtol=1e-6, atol=1e-6)


def test_the_density_of_a_logarithm_integrates_to_one_and_has_the_mean_precision():
    density = lambda log_v: float(np.exp(log_inverse_gamma(jnp.asarray(log_v), 1.5, 0.6)))
    assert quad(density, -8, 25)[0] == pytest.approx(1.0, abs=1e-6)
    precision = quad(lambda log_v: float(np.exp(-log_v)) * density(log_v), -8, 25)[0]
    assert precision == pytest.approx(1.5 / 0.6, rel=1e-6)


def test_the_warm_up_of_another_split_of_that_shape_is_not_traced_again(method, data, monkeypatch):
    first = method.init(data, key=KEY)  # here and not in a fixture: compiled programs can be forgotten between tests
    monkeypatch.setattr(HMC, "log_joint", None)
    state = method.init(eqx.tree_at(lambda d: d.y, data, -data.y), key=jax.random.key(5))
    assert (state.adaptation.step_size != first.adaptation.step_size).all()
