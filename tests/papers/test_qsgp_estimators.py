"""What paper `qsgp` says of bias and variance of its estimates, on random Fourier features of 100 rows, in NumPy."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import expit
from scipy.stats import norm

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


def lost(site, v):
    """What a site of variance 1 loses where noise of variance v is added to its argument, in nats: the mean of
    log g(f) - E log g(f + noise) over targets that the site itself generates around f."""
    if site == "gaussian":
        return v / 2
    b, r = np.sqrt(0.5), np.linspace(0, 20, 200_001)
    folded = np.sqrt(2 * v / np.pi) * np.exp(-(r**2) / (2 * v)) + r * (1 - 2 * norm.cdf(-r / np.sqrt(v)))
    return trapezoid((folded - r) / b * np.exp(-r / b) / b, r)


def test_laplace_sites_lose_more_than_gaussian_ones_until_draws_are_noisier_than_targets():
    """Of sites of one variance the Gaussian has the least Fisher information, which is what little noise costs."""
    assert lost("laplace", 1e-4) == pytest.approx(2 * lost("gaussian", 1e-4), rel=0.02)
    for v in (0.01, 0.1, 1.0):
        assert lost("laplace", v) > lost("gaussian", v)
    assert lost("laplace", 9.0) < lost("gaussian", 9.0)


def sampled(seed, m, functions, draws=80):
    """Of the logistic bound from some of m functions: its bias per row without and with a covariance, and the gradient.

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


@pytest.mark.parametrize("functions", [50, 200, 400])
def test_more_functions_at_equal_draws_change_the_bias_by_the_covariance_and_the_gradients_relative_variance(functions):
    """From 8 to 64 times as many functions as are drawn, however many that are.  What stays is the bias by the mean,
    and the variance of a gradient's entry."""
    (mean, both, entry, relative), (more_mean, more_both, more_entry, more_relative) = (
        sampled(0, m * functions, functions) for m in (8, 64)
    )
    assert abs(more_mean - mean) < 0.02 and 0.7 < more_entry / entry < 1.5
    assert more_both > 3 * both > 1.0  # nats a row
    assert 5 < more_relative / relative < 13  # as the number of functions: 8


def prior_term(S, mu, draws, size):
    """Estimates of μᵀSμ from two draws of functions, and the mean over entries of the variance of their gradients."""
    m, scale, values, gradients = len(mu), len(mu) / size, [], []
    for i, j in draws:
        left, right = np.zeros(m), np.zeros(m)
        right[i], left[j] = scale * mu[i], scale * mu[j]
        at_left, at_right, gradient = S @ left, S @ right, np.zeros(m)
        gradient[j] += scale * at_right[j]
        gradient[i] += scale * at_left[i]
        values.append(left @ at_right)
        gradients.append(gradient)
    return np.var(values), np.var(gradients, axis=0).mean()


@pytest.mark.parametrize("weights", ["prior", "posterior"])
@pytest.mark.parametrize("lengthscale", [1.5, 2.5, 4.0])
def test_nystroms_control_variate_leaves_less_than_a_twentieth_of_the_variance_of_the_prior_term(lengthscale, weights):
    """Appendix F.2: kernel functions on 500 rows in eight dimensions, draws of 50, and 200 support points beside them;
    lengthscales in standard deviations of the inputs.  Its expectation is a constant, whose gradient is exact."""
    m, rng = 500, np.random.default_rng(0)
    X = rng.normal(size=(m + 200, 8))
    K = np.exp(-0.5 * np.square(X[:, None] - X).sum(-1) / lengthscale**2) + 1e-6 * np.eye(m + 200)
    S, cross = K[:m, :m], K[:m, m:]
    y = np.sin(2 * X[:m, 0]) + X[:m, 1] + 0.1 * rng.normal(size=m)
    prior = np.linalg.solve(np.linalg.cholesky(S).T, rng.normal(size=m))
    mu = prior if weights == "prior" else np.linalg.solve(S + 0.01 * np.eye(m), y)
    draws = [(rng.permutation(m)[:50], rng.permutation(m)[:50]) for _ in range(300)]
    plain, controlled = (
        np.array(prior_term(matrix, mu, draws, 50)) for matrix in (S, S - cross @ np.linalg.solve(K[m:, m:], cross.T))
    )
    assert (controlled < plain / 20).all()
