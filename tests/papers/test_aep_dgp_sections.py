"""What paper `aep_dgp` says of its approximations, by quadrature and enumeration in NumPy."""

import numpy as np
import pytest

from gpbench.core.quadrature import gauss_hermite

NODES, WEIGHTS = gauss_hermite(101)


def log_mean_bias(samples, *, mean=0.5, deviation=1.5, trials=4_000):
    """E log of the average of logistic likelihoods at this many samples of f, less log E, and its standard error."""
    f = mean + deviation * np.random.default_rng(0).normal(size=(trials, samples))
    ratio = np.mean(1 / (1 + np.exp(-f)), axis=1) / (WEIGHTS @ (1 / (1 + np.exp(-mean - deviation * NODES))))
    logs = np.log(ratio) - (ratio - 1)  # the ratio's mean is 1: this has the same mean, and less variance
    return logs.mean(), logs.std() / np.sqrt(trials)


def test_sampled_normalisers_have_a_bias_below_zero_that_falls_as_one_over_the_samples():
    """Appendix F: -Var p / (2 S Z²) to first order, for a likelihood without a closed form."""
    p = 1 / (1 + np.exp(-0.5 - 1.5 * NODES))
    first_order = -0.5 * (WEIGHTS @ p**2 / (WEIGHTS @ p) ** 2 - 1)
    for samples in (10, 40, 160):
        bias, error = log_mean_bias(samples)
        assert bias + 5 * error < 0
        assert bias == pytest.approx(first_order / samples, rel=0.2)
        assert abs(bias) < 0.02


def gram(a, b):
    return np.exp(-0.5 * np.subtract.outer(a, b) ** 2)


def matching_loss(deviation, seed):
    """KL from the exact to the matched density of y in nats, with h ~ N(0, deviation²) below a random layer.

    The layer has lengthscale and amplitude 1, posterior standard deviations of 0.1, and noise variance 0.05.
    """
    rng = np.random.default_rng(seed)
    Z = np.linspace(-4, 4, 12)
    u = np.linalg.cholesky(gram(Z, Z) + 1e-8 * np.eye(12)) @ rng.normal(size=12)
    h = deviation * NODES
    weights = np.linalg.solve(gram(Z, Z) + 1e-8 * np.eye(12), gram(Z, h))
    mean = weights.T @ u
    variance = 0.05 + np.maximum(1 - np.sum(gram(Z, h) * weights, axis=0), 0) + 0.01 * np.sum(weights**2, axis=0)
    centre = WEIGHTS @ mean
    spread = WEIGHTS @ (variance + mean**2) - centre**2
    y = np.linspace(centre - 8 * np.sqrt(spread), centre + 8 * np.sqrt(spread), 801)
    normal = lambda m, v: np.exp(-((y[:, None] - m) ** 2) / (2 * v)) / np.sqrt(2 * np.pi * v)
    exact, matched = normal(mean, variance) @ WEIGHTS, normal(np.array([centre]), spread)[:, 0]
    return np.sum(np.where(exact > 0, exact * np.log(np.maximum(exact, 1e-300) / matched), 0)) * (y[1] - y[0])


def test_a_matched_gaussian_is_accurate_where_a_layer_is_nearly_linear_over_its_uncertain_inputs():
    """Sections 5 and 7: below .02 nats for inputs as sure as a fifth of the lengthscale, above .1 for unsure ones."""
    losses = {deviation: [matching_loss(deviation, seed) for seed in range(10)] for deviation in (0.1, 0.2, 1.0, 2.0)}
    mean = [np.mean(loss) for loss in losses.values()]
    assert np.all(np.diff(mean) > 0)
    assert max(losses[0.1]) < 0.01 and mean[1] < 0.02
    assert max(losses[1.0]) > 0.1
