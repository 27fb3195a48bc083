"""What paper `qsgp` says of bias and variance of its estimates, on random Fourier features of 100 rows, in NumPy."""

import numpy as np
import pytest
from scipy.special import expit

from gpbench.core.quadrature import gauss_hermite

Z, W = gauss_hermite(32)
ROWS, SCALE = 100, 0.3
"""Number of rows, and the Laplace site's scale."""


def problem(seed, m, n=ROWS):
    """Features Φ (n, m) of a kernel of amplitude 1, targets, and the posterior mean of the weights under noise 0.1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    angles = X @ rng.normal(size=(2, m // 2))
    Phi = np.sqrt(2 / m) * np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    return Phi, y, Phi.T @ np.linalg.solve(Phi @ Phi.T + 0.1 * np.eye(n), y), rng


def log_site(name, f, y):
    """log g(f) of each site; `logistic` takes the signs of y."""
    if name == "logistic":
        return -np.logaddexp(0, -np.sign(y) * f)
    return -np.log(2 * SCALE) - np.abs(y - f) / SCALE


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_theorem_3_has_a_small_bias_of_logistic_sites_and_a_large_bias_of_laplace_ones(seed):
    """A tenth of 400 functions a draw and Σ = 0, where its printed and its corrected form are one.

    The kink of |y - f| is where the residuals are: no argument stays on one of its lines.
    """
    Phi, y, mu, rng = problem(seed, 400)
    drawn = [rng.permutation(400)[:40] for _ in range(400)]
    arguments = np.array([10 * Phi[:, i] @ mu[i] for i in drawn])
    bias, exact = {}, {}
    for name in ("logistic", "laplace"):
        exact[name] = log_site(name, Phi @ mu, y).mean()
        bias[name] = exact[name] - log_site(name, arguments, y).mean()
    assert 0 < bias["logistic"] < 0.25 * abs(exact["logistic"])
    assert bias["laplace"] > 3 * abs(exact["laplace"])


def sampled(seed, m, draws=80, functions=200):
    """Of the logistic bound from 200 of m functions: its bias per row without and with a covariance, and the gradient.

    The covariance is proposition 1's diagonal with noise 4.  Of the gradient in the mean without a covariance: the
    variance averaged over its entries, and that over the mean of the squares of the exact gradient.
    """
    Phi, y, mu, rng = problem(seed, m)
    s, scale = np.sign(y)[:, None], m / functions
    scales2 = 1 / (1 + (Phi**2).sum(0) / 4)
    log_sites = lambda f, v: (-np.logaddexp(0, -s * (f[:, None] + np.sqrt(v)[:, None] * Z)) @ W).mean()
    none, values, gradients = np.zeros(ROWS), [], np.zeros((draws, m))
    for gradient in gradients:
        i = rng.permutation(m)[:functions]
        f, v = scale * Phi[:, i] @ mu[i], scale**2 * Phi[:, i] ** 2 @ scales2[i]
        values.append((log_sites(f, none), log_sites(f, v)))
        gradient[i] = scale * Phi[:, i].T @ (s[:, 0] * expit(-s[:, 0] * f))
    f = Phi @ mu
    exact = np.array([log_sites(f, none), log_sites(f, Phi**2 @ scales2)])
    slope = Phi.T @ (s[:, 0] * expit(-s[:, 0] * f))
    variance = gradients.var(0, ddof=1).mean()
    return *(exact - np.mean(values, axis=0)), variance, variance / np.mean(slope**2)


def test_more_functions_at_equal_draws_change_the_bias_by_the_covariance_and_the_gradients_relative_variance():
    """From 1,600 to 12,800 functions.  What stays is the bias by the mean, and the variance of a gradient's entry."""
    (mean, both, entry, relative), (more_mean, more_both, more_entry, more_relative) = (
        sampled(0, m) for m in (1_600, 12_800)
    )
    assert abs(more_mean - mean) < 0.02 and 0.7 < more_entry / entry < 1.5
    assert more_both > 3 * both > 1.0  # nats a row
    assert 5 < more_relative / relative < 13  # as the number of functions: 8
