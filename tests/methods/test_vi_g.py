"""`vi_g`: its gradients against NumPy, where they vanish, and the prior that is fitted to q."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from networks import estimate, features, forward, log_likelihood, parameters_of, sample, vector
from problems import KEY, inputs, regression, train
from scipy.optimize import minimize

from gpbench.core.networks import MeanField, normal_network
from gpbench.methods.base import Batch
from gpbench.methods.bnn.base import MeanFieldParameters
from gpbench.methods.bnn.vi_g import VIG
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


def test_training_raises_the_bound_and_explains_the_targets():
    data, method = regression(40), vi_g(hidden=(4,), samples=50)
    state, objective = train(method, data, 500)
    assert np.mean(objective[-50:]) > np.mean(objective[:50]) + 10
    f = forward(parameters_of(state.parameters.q.mean), np.asarray(data.X))
    assert np.mean((f - data.y) ** 2) < 0.5 * np.var(data.y)
