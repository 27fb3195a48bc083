"""`vi_kw`: the exact posterior of a linear model, a bound on the evidence, and local reparameterisation."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from networks import estimate, features, forward, log_likelihood, parameters_of, sample, vector
from problems import KEY, inputs, predict, start_at, targets, train
from scipy.special import logsumexp
from scipy.stats import norm

from gpbench.core.networks import MeanField, normal_network
from gpbench.methods.bnn.base import MeanFieldParameters
from gpbench.methods.bnn.vi_kw import VIKW
from gpbench.train.batches import whole

NOISE = 0.3


class FixedNoise(VIKW):
    """Moves q alone."""

    def trainable(self, parameters):
        return parameters.q


def vi_kw(**fields):
    return FixedNoise(**{"name": "vi_kw", "optimiser": optax.adam(0.02), "target_noise": NOISE, **fields})


@jax.jit
def losses(method, parameters, data, keys):
    """The loss at every key."""
    return jax.vmap(lambda key: method.loss(parameters, data, key=key)[0])(keys)


@jax.jit
def samples_of(q, keys):
    """A network from q for every key."""
    return jax.vmap(lambda key: q.sample(key=key))(keys)


@pytest.fixture(scope="module")
def tiny():
    """A network of two units, q far from its start, and six rows; all steps of its tests have these shapes."""
    X = inputs(6)[:, :1]
    data, method = whole(X, jnp.sin(2.0 * X[:, 0])), vi_kw(hidden=(2,), samples=50)
    parameters = method.init_parameters(data, key=KEY)
    mean, log_std = (normal_network(parameters.q.mean, key=jax.random.key(seed)) for seed in (1, 2))
    q = MeanField(mean, jax.tree.map(lambda leaf: 0.3 * leaf - 1.0, log_std))
    return method, MeanFieldParameters(q, parameters.likelihood), data


@pytest.mark.parametrize("scaled", [True, False])
def test_without_hidden_layers_q_is_the_best_factorised_posterior(scaled):
    """The exact posterior's mean, and variances 1 / diagonal of its precision, to 3 % of the standard deviations.

    The inputs are correlated, so that these variances are far below the posterior's own.
    """
    X = inputs(25) @ jnp.asarray([[1.0, 0.8], [0.0, 0.6]])
    data, adam = whole(X, targets(X)), optax.adam(optax.cosine_decay_schedule(0.05, 500))
    state, _ = train(vi_kw(hidden=(), scaled=scaled, draws=100, initial_std=0.3, optimiser=adam), data, 500)
    Phi, y = features(X, scaled), np.asarray(data.y)
    precision = np.eye(3) + Phi.T @ Phi / NOISE
    std = np.diag(precision) ** -0.5
    assert max(np.diag(np.linalg.inv(precision)) / std**2) > 1.5
    q = state.parameters.q
    np.testing.assert_allclose((vector(q.mean) - np.linalg.solve(precision, Phi.T @ y / NOISE)) / std, 0.0, atol=0.03)
    np.testing.assert_allclose(vector(q.log_std), np.log(std), atol=0.03)


def test_sampled_pre_activations_have_the_bound_of_sampled_weights(tiny):
    """Two estimates of one number differ by less than four standard errors, each of them 1 % of it at most."""
    method, parameters, data = tiny
    ours, our_error = estimate(-losses(method, parameters, data, jax.random.split(KEY, 20_000)))
    f = forward(sample(parameters.q, 20_000), np.asarray(data.X))
    theirs, their_error = estimate(log_likelihood(f, data.y, NOISE) - float(parameters.q.kl()))
    error = np.hypot(our_error, their_error)
    assert error < 0.01 * abs(theirs)
    assert abs(ours - theirs) < 4 * error


def test_the_bound_is_below_the_log_evidence(tiny):
    """The evidence is the likelihood's mean under the prior, known to 5 %; training closes most of the gap to it."""
    method, parameters, data = tiny
    prior = MeanField(*(jax.tree.map(jnp.zeros_like, parameters.q.mean) for _ in range(2)))
    values = log_likelihood(forward(sample(prior, 200_000), np.asarray(data.X)), data.y, NOISE)
    evidence, error = estimate(np.exp(values))
    assert error < 0.05 * evidence
    state, _ = train(method, data, 1000, start_at(method, data, parameters))
    keys = jax.random.split(KEY, 20_000)
    start, start_error = estimate(-losses(method, parameters, data, keys))
    bound, bound_error = estimate(-losses(method, state.parameters, data, keys))
    least = np.log(evidence - 4 * error)
    assert start + 4 * start_error < bound < least - 4 * bound_error
    assert least - bound < 3.0


@pytest.mark.parametrize("mean, variance", [(0.0, 1.0), (0.7, 2.5)])
def test_kl_is_the_expected_log_ratio_of_the_densities(tiny, mean, variance):
    _, parameters, _ = tiny
    q, total = parameters.q, 0.0
    for m, log_s in zip(jax.tree.leaves(q.mean), jax.tree.leaves(q.log_std)):
        for one in map(norm, np.ravel(m), np.exp(np.ravel(log_s))):
            total += one.expect(lambda w, one=one: one.logpdf(w) - norm.logpdf(w, mean, variance**0.5))
    np.testing.assert_allclose(q.kl(jnp.asarray(mean), jnp.asarray(variance)), total, rtol=1e-6)


def test_a_prediction_is_the_average_density_of_networks_from_q(tiny):
    method, parameters, data = tiny
    predictive = predict(method, start_at(method, data, parameters), data.X)
    outputs = forward(parameters_of(samples_of(parameters.q, jax.random.split(KEY, 50))), np.asarray(data.X))
    densities = norm.logpdf(np.asarray(data.y), outputs, np.sqrt(NOISE))
    np.testing.assert_allclose(predictive.log_prob(data.y), logsumexp(densities, axis=0) - np.log(50), rtol=1e-10)
    np.testing.assert_allclose(predictive.mean, np.mean(outputs, axis=0), rtol=1e-10)
    np.testing.assert_allclose(predictive.var, np.var(outputs, axis=0) + NOISE, rtol=1e-10)


def test_samples_of_networks_have_qs_moments(tiny):
    """Means within four standard errors, standard deviations within 6 % (of 4,000 samples: five standard errors)."""
    q = tiny[1].q
    samples = samples_of(q, jax.random.split(KEY, 4_000))
    for draws, m, log_s in zip(*map(jax.tree.leaves, (samples, q.mean, q.log_std))):
        mean, error = estimate(draws)
        assert np.all(np.abs(mean - m) < 4 * error)
        np.testing.assert_allclose(np.std(draws, axis=0), np.exp(log_s), rtol=0.06)
