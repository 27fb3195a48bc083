"""`hmc` and `sgld` on linear models: their samples against quadrature and NumPy, their densities, and divergences."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from networks import features, vector
from problems import KEY, differences, inputs, predict, regression, train
from scipy.integrate import quad
from scipy.stats import invgamma, norm

from gpbench.methods.bnn.hmc import HMC, log_inverse_gamma
from gpbench.methods.bnn.sgld import SGLD
from gpbench.train.batches import whole

SHAPE, NOISE, STEPS = 2.0, 0.3, 800


@pytest.fixture(scope="module")
def data():
    return regression(30)


@pytest.fixture(scope="module")
def method():
    """A network without a hidden layer."""
    fields = {"name": "hmc", "hidden": (), "target_noise": NOISE, "prior_shape": SHAPE, "max_doublings": 5}
    return HMC(**fields, chains=4, warmup=300, steps=STEPS, samples=STEPS)


@pytest.fixture(scope="module")
def run(method, data):
    """The last state, and the objective of every step."""
    return train(method, data, STEPS)


def hyper_prior(log_value, centre):
    """The log density of log v for v ~ InverseGamma(SHAPE, SHAPE · centre), by the change of variables."""
    return invgamma.logpdf(np.exp(log_value), SHAPE, scale=SHAPE * centre) + log_value


def exact_means(data):
    """Posterior means of weights, log v and log noise: of the weights in closed form, then summed over a grid."""
    F, y = features(data.X, True), np.asarray(data.y)
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


def test_the_density_of_a_logarithm_integrates_to_one_and_a_likelihood_without_parameters_has_no_kappa():
    density = lambda log_v: float(np.exp(log_inverse_gamma(jnp.asarray(log_v), 1.5, 0.6)))
    assert quad(density, -8, 25)[0] == pytest.approx(1.0, abs=1e-6)
    precision = quad(lambda log_v: float(np.exp(-log_v)) * density(log_v), -8, 25)[0]
    assert precision == pytest.approx(1.5 / 0.6, rel=1e-6)
    X = inputs(5)
    state = linear(likelihood="logistic").init(whole(X, jnp.sign(X[:, 0]), 2), key=KEY)
    assert jax.tree.leaves(state.position.kappa) == []


def test_the_warm_up_of_another_split_of_that_shape_is_not_traced_again(method, data, monkeypatch):
    first = method.init(data, key=KEY)  # here and not in a fixture: compiled programs can be forgotten between tests
    monkeypatch.setattr(HMC, "log_joint", None)
    state = method.init(eqx.tree_at(lambda d: d.y, data, -data.y), key=jax.random.key(5))
    assert (state.adaptation.step_size != first.adaptation.step_size).all()


def linear(**fields):
    """`sgld` on a network without a hidden layer."""
    settings = {"name": "sgld", "hidden": (), "target_noise": NOISE, "cooling": 0.0, "samples": 1, **fields}
    return SGLD(**settings)


def log_joint(data, w, kappa):
    """log p(y, w, κ) in NumPy."""
    noise = np.log1p(np.exp(kappa))
    fit = norm.logpdf(np.asarray(data.y), features(data.X, True) @ w, np.sqrt(noise)).sum()
    return fit + norm.logpdf(w).sum() + norm.logpdf(kappa, 0.0, 10.0)


def test_a_step_is_half_of_epsilon_times_the_gradient_and_noise_of_variance_epsilon(data):
    """For weights and κ each with its own ε.  One key means one standard normal vector e, so from two step sizes
    e = (Δ - ½ ε ∇) / √ε must come out the same; ∇ is of NumPy's log joint, by differences."""
    method = linear(step_size=0.6, noise_step_size=0.9, cooling=0.5, cooling_start=3.0)
    step = jax.jit(lambda state: method.step(state, data, key=KEY))
    start = eqx.tree_at(lambda s: s.count, method.init(data, key=KEY), jnp.asarray(5))
    np.testing.assert_allclose([start.step_size, start.noise_step_size], [0.6, 0.9])
    w, kappa = vector(start.position.network), float(start.position.kappa.log_noise)
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
        e = (vector(end.position.network) - w - 0.5 * size * np.array(slope)) / np.sqrt(size)
        e_kappa = (end.position.kappa.log_noise - kappa - 0.5 * size_kappa * slope_kappa) / np.sqrt(size_kappa)
        noises.append([*e, float(e_kappa)])
    np.testing.assert_allclose(*noises, atol=1e-5)
    assert len(set(np.round(noises[0], 6))) == 4


def test_steps_of_constant_size_have_the_stationary_distribution_of_discretised_langevin_dynamics(data):
    """On a linear model with known noise that is N(m, P⁻¹ (I - ¼ ε P)⁻¹), near the posterior N(m, P⁻¹) for small ε.

    Along an eigenvector of P with the eigenvalue λ the steps are an autoregression with ρ = 1 - ½ ε λ, so that the mean
    of T of them has the standard error s √((1+ρ) / (1-ρ) / T), and their variance s² √(2 (1+ρ²) / (1-ρ²) / T).
    """
    F = features(data.X, True)
    precision = F.T @ F / NOISE + np.eye(3)  # of the posterior under the noise variance NOISE
    mean = np.linalg.solve(precision, F.T @ np.asarray(data.y) / NOISE)
    scales, directions = np.linalg.eigh(precision)
    size = float(0.2 / scales.max())
    steps = 40_000
    method = linear(step_size=30 * size, noise_step_size=0.0, steps=steps, burn_in=0.05, thinning=1, samples=steps)
    state, _ = train(method, data, steps)
    projections = (vector(jax.tree.map(np.asarray, state.samples.in_order()).network) - mean) @ directions
    assert len(projections) == state.samples.count == 38_000
    rho = 1 - 0.5 * size * scales
    variance = 1 / scales / (1 - 0.25 * size * scales)
    error = np.sqrt(variance * (1 + rho) / (1 - rho) / len(projections))
    assert (np.abs(projections.mean(0)) < 4 * error).all() and (error < 0.1 * np.sqrt(variance)).all()
    error = np.sqrt(2 * (1 + rho**2) / (1 - rho**2) / len(projections))
    assert (np.abs(projections.var(0) / variance - 1) < 4 * error).all() and (error < 0.1).all()
    np.testing.assert_allclose(state.position.likelihood.noise, NOISE)  # a step size of 0 leaves it


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
