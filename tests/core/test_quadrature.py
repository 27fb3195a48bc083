"""Gauss-Hermite quadrature and the expected log likelihoods, against numerical integration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import laplace, norm

from gpbench.core.likelihoods import gaussian_expected_log, probit_expected_log
from gpbench.core.predictive import Laplace
from gpbench.core.quadrature import gauss_hermite, normal_expectation


def brute_force(g, mean, variance):
    """E g(f) for f ~ N(mean, variance)."""
    sd = np.sqrt(variance)
    return quad(lambda f: g(f) * norm.pdf(f, mean, sd), mean - 12 * sd, mean + 12 * sd, limit=500, epsabs=1e-13)[0]


@pytest.mark.parametrize("nodes", [1, 5, 20, 101])
def test_nodes_integrate_polynomials_up_to_twice_their_number_exactly(nodes):
    x, w = gauss_hermite(nodes)
    np.testing.assert_allclose(w.sum(), 1.0, rtol=1e-14)
    moments = np.cumprod(np.arange(1.0, 2 * min(nodes, 10), 2))  # E x² = 1, E x⁴ = 3, E x⁶ = 15, ...
    for k, moment in enumerate(moments[:-1], start=1):
        np.testing.assert_allclose(w @ x ** (2 * k), moment, rtol=1e-10)
        np.testing.assert_allclose(w @ x ** (2 * k - 1), 0.0, atol=1e-10 * moment)


@pytest.mark.parametrize("nodes, tolerance", [(20, 2e-4), (101, 2e-7)])
@pytest.mark.parametrize("y, mean, variance", [(1, 0.3, 0.7), (-1, 0.3, 0.7), (1, -4.0, 9.0), (1, 2.0, 1e-6)])
def test_expected_log_probit_is_the_integral(nodes, tolerance, y, mean, variance):
    expected = brute_force(lambda f: norm.logcdf(y * f), mean, variance)
    ours = probit_expected_log(*(jnp.array([float(value)]) for value in (y, mean, variance)), nodes)
    np.testing.assert_allclose(ours[0], expected, rtol=tolerance)


def test_gradients_of_expected_log_probit_are_the_integrals_of_its_derivatives():
    """dE/dmean = E g' and dE/dvariance = ½ E g'' (Bonnet, Price)."""
    mean, variance = 0.3, 0.7

    def slope(f):
        return np.exp(norm.logpdf(f) - norm.logcdf(f))

    def curve(f):
        return -slope(f) * (f + slope(f))

    def value(m, v):
        return probit_expected_log(jnp.ones(1), m[None], v[None], 40)[0]

    by_mean, by_variance = jax.grad(value, argnums=(0, 1))(jnp.array(mean), jnp.array(variance))
    np.testing.assert_allclose(by_mean, brute_force(slope, mean, variance), rtol=1e-6)
    np.testing.assert_allclose(by_variance, 0.5 * brute_force(curve, mean, variance), rtol=1e-5)


def test_expected_log_gaussian_is_the_integral():
    y, mean, variance, noise = (jnp.array([value]) for value in (0.4, -0.3, 0.5, 0.2))
    ours = gaussian_expected_log(y, mean, variance, noise[0])
    by_nodes = normal_expectation(lambda f: jax.scipy.stats.norm.logpdf(y, f, jnp.sqrt(noise)), mean, variance, 5)
    np.testing.assert_allclose(ours, by_nodes, rtol=1e-12)
    np.testing.assert_allclose(ours[0], brute_force(lambda f: norm.logpdf(0.4, f, np.sqrt(0.2)), -0.3, 0.5), rtol=1e-9)


@pytest.mark.parametrize("y, mean, latent, noise", [(0.4, -0.3, 0.5, 0.2), (0.4, 0.4, 0.1, 3.0), (-2.0, 1.0, 1.5, 0.1)])
def test_laplace_noise_has_the_integrals_in_closed_form(y, mean, latent, noise):
    b = np.sqrt(noise / 2)
    ours = Laplace(jnp.array([mean]), jnp.array([latent]), jnp.array(noise))
    expected = brute_force(lambda f: laplace.logpdf(y, f, b), mean, latent)
    np.testing.assert_allclose(ours.expected_log(jnp.array([y]))[0], expected, rtol=1e-7)
    density = brute_force(lambda f: laplace.pdf(y, f, b), mean, latent)
    np.testing.assert_allclose(ours.log_prob(jnp.array([y]))[0], np.log(density), rtol=1e-7)


def test_laplace_noise_stays_finite_far_from_its_rows():
    far = Laplace(jnp.zeros(4), jnp.array([1e-9, 1.0, 1e4, 1.0]), jnp.array(1e-3))
    log_prob = far.log_prob(jnp.array([50.0, -50.0, 50.0, 0.0]))
    assert np.isfinite(log_prob).all()
    np.testing.assert_allclose(log_prob[2], norm.logpdf(50.0, 0.0, 100.0), rtol=1e-6)  # the noise is nothing beside f
    b = np.sqrt(0.5 * 1e-3)
    np.testing.assert_allclose(log_prob[0], -50.0 / b - np.log(2 * b), rtol=1e-6)  # and f beside it
