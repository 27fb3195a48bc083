"""`vi_g` and `vi_kw`: gradients against NumPy, the exact posterior of a linear model, and a bound on the evidence."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from networks import estimate, features, forward, log_likelihood, losses, parameters_of, sample, vector
from problems import KEY, inputs, predict, regression, start_at, targets, train
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import norm

from gpbench.core.networks import MeanField, normal_network
from gpbench.methods.base import Batch
from gpbench.methods.bnn.base import MeanFieldParameters
from gpbench.methods.bnn.vi_g import VIG
from gpbench.methods.bnn.vi_kw import VIKW
from gpbench.train.batches import whole

NOISE = 0.3


def vi_g(**fields):
    return VIG(**{"name": "vi_g", "optimiser": optax.adam(0.02), "target_noise": NOISE, **fields})


@jax.jit
def gradients(method, parameters, data, keys):
    """The gradient at every key."""
    return jax.vmap(lambda key: method.evaluate(parameters, None, data, key=key)[1])(keys)


def random_parameters(method, data):
    """Parameters away from their start, with standard deviations around 0.4."""
    start = method.init_parameters(data, key=KEY)
    mean, log_std = (normal_network(start.q.mean, key=jax.random.key(seed)) for seed in (1, 2))
    return MeanFieldParameters(MeanField(mean, jax.tree.map(lambda leaf: 0.3 * leaf - 1.0, log_std)), start.likelihood)


def test_gradients_of_a_linear_model_are_those_written_out():
    """Two sampled networks, a minibatch of which a row does not count, and a standard prior."""
    X = inputs(5)
    y, weight = jnp.sin(X[:, 0]), jnp.asarray([1.0, 1.0, 1.0, 1.0, 0.0])
    data, method = Batch(X, y, jnp.arange(5), weight, 20), vi_g(hidden=(), draws=2, prior="standard")
    p = random_parameters(method, data)
    value, gradient, _ = jax.jit(lambda p: method.evaluate(p, None, data, key=KEY))(p)
    w = np.stack([vector(p.q.sample(key=key)) for key in jax.random.split(KEY, 2)])
    m, std = vector(p.q.mean), np.exp(vector(p.q.log_std))
    Phi = features(X, True)
    residual = w @ Phi.T - np.asarray(y)
    rows = residual[:, :, None] * Phi / NOISE  # (draws, rows, weights)
    scale = 20 / 4 * np.asarray(weight)[:, None]
    np.testing.assert_allclose(vector(gradient.q.mean), (scale * rows).sum(1).mean(0) + m, rtol=1e-10)
    fisher = (scale * rows**2).sum(1).mean(0)
    # dL/d log s = 2 s² (½ Fisher + ½ (1 - 1/s²))
    np.testing.assert_allclose(vector(gradient.q.log_std), std**2 * (fisher + 1.0 - 1.0 / std**2), rtol=1e-10)
    noise_slope = 0.5 * (scale[:, 0] * (1.0 - residual**2 / NOISE)).sum(1).mean()
    np.testing.assert_allclose(gradient.likelihood.log_noise, noise_slope, rtol=1e-10)
    each = 0.5 * (np.log(2.0 * np.pi * NOISE) + residual**2 / NOISE)
    np.testing.assert_allclose(value, (scale[:, 0] * each).sum(1).mean() + float(p.q.kl()), rtol=1e-10)


@pytest.mark.parametrize("prior", ["standard", "fitted"])
def test_the_mean_of_a_linear_model_rests_at_regularised_least_squares(prior):
    """The mean gradient there is 0 within four standard errors, and is not where each mean is 5 % of a std away."""
    data, method = regression(), vi_g(hidden=(), prior=prior)
    p = random_parameters(method, data)
    Phi, y, variance = features(data.X, True), np.asarray(data.y), np.exp(2.0 * vector(p.q.log_std))
    m, centre, width = np.zeros(3), 0.0, 1.0
    for _ in range(500):
        precision = np.eye(3) / width + Phi.T @ Phi / NOISE
        m = np.linalg.solve(precision, Phi.T @ y / NOISE + centre / width)
        if prior == "fitted":
            centre = m.mean()
            width = np.mean(variance + (m - centre) ** 2)
    keys = jax.random.split(KEY, 20_000)

    def gradient_at(m):
        places = lambda network: (network.layers[0].weight, network.layers[0].bias)
        mean = eqx.tree_at(places, p.q.mean, (jnp.asarray(m[:2, None]), jnp.asarray(m[2:])))
        at = MeanFieldParameters(MeanField(mean, p.q.log_std), p.likelihood)
        return estimate(vector(gradients(method, at, data, keys).q.mean))

    slope, error = gradient_at(m)
    assert np.all(np.abs(slope) < 4 * error)
    slope, error = gradient_at(m + 0.05 * np.sqrt(variance))
    assert np.all(slope > 4 * error)


def test_the_gradient_of_a_mean_is_unbiased():
    """Within four standard errors of differences of the expected loss in NumPy; each is 5 % of the largest at most."""
    X = inputs(6)[:, :1]
    data, method = whole(X, jnp.sin(2.0 * X[:, 0])), vi_g(hidden=(2,), prior="standard")
    p = random_parameters(method, data)
    ours = [estimate(g) for g in jax.tree.leaves(gradients(method, p, data, jax.random.split(KEY, 20_000)).q.mean)]
    layers, step, checked = sample(p.q, 20_000), 1e-4, 0
    largest = max(np.abs(mean).max() for mean, _ in ours)
    for depth, (weight, bias, _) in enumerate(layers):
        for part, array in enumerate((weight, bias)):
            mean, error = ours[2 * depth + part]
            prior = jax.tree.leaves(p.q.mean)[2 * depth + part]  # the gradient of KL from N(0, I)
            for place in np.ndindex(*array.shape[1:]):
                sides = []
                for sign in (1.0, -1.0):
                    moved = [list(layer) for layer in layers]
                    moved[depth][part] = array.copy()
                    moved[depth][part][:, *place] += sign * step
                    sides.append(-log_likelihood(forward(moved, np.asarray(X)), data.y, NOISE))
                slope, their_error = estimate((sides[0] - sides[1]) / (2 * step))
                combined = np.hypot(error[place], their_error)
                assert abs(mean[place] - slope - prior[place]) < 4 * combined
                assert combined < 0.05 * largest
                checked += 1
    assert checked == 7


def test_the_fitted_prior_has_the_least_kl():
    q = random_parameters(vi_g(hidden=(2,)), regression()).q
    mean, variance = q.best_prior()
    kl = jax.jit(lambda x: q.kl(x[0], jnp.exp(x[1])))
    best = minimize(lambda x: float(kl(x)), np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    np.testing.assert_allclose([mean, np.log(variance)], best.x, atol=1e-6)
    # Σ log(σ / sᵢ) is what is left
    left = sum(float(jnp.sum(0.5 * jnp.log(variance) - leaf)) for leaf in jax.tree.leaves(q.log_std))
    np.testing.assert_allclose(q.kl(mean, variance), left, rtol=1e-10)


class FixedNoise(VIKW):
    """Moves q alone."""

    def trainable(self, parameters):
        return parameters.q


def vi_kw(**fields):
    return FixedNoise(**{"name": "vi_kw", "optimiser": optax.adam(0.02), "target_noise": NOISE, **fields})


@jax.jit
def samples_of(q, keys):
    """A network from q for every key."""
    return jax.vmap(lambda key: q.sample(key=key))(keys)


@pytest.fixture(scope="module")
def tiny():
    """A network of two units, q far from its start, and six rows; all steps of its tests have these shapes."""
    X = inputs(6)[:, :1]
    data, method = whole(X, jnp.sin(2.0 * X[:, 0])), vi_kw(hidden=(2,), samples=50)
    return method, random_parameters(method, data), data


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
