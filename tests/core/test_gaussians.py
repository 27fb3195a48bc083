"""Sites, probit moments, cavities and marginals of Gaussians against dense algebra and quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from gpbench.core.ep import marginals, removable
from gpbench.core.gaussians import Sites, damp, initial_sites, moment_match, normal_cdf, site_product
from gpbench.core.likelihoods import Probit


def tilted_moments(y, mean, variance, extra):
    """Normaliser, mean and variance of Φ(y f/√(1+extra)) N(f | mean, variance), by numerical integration."""

    def weight(f):
        return norm.cdf(y * f / np.sqrt(1 + extra)) * norm.pdf(f, mean, np.sqrt(variance))

    lo, hi = mean - 12 * np.sqrt(variance), mean + 12 * np.sqrt(variance)
    z = quad(weight, lo, hi, epsabs=1e-14)[0]
    m = quad(lambda f: f * weight(f), lo, hi, epsabs=1e-14)[0] / z
    v = quad(lambda f: (f - m) ** 2 * weight(f), lo, hi, epsabs=1e-14)[0] / z
    return z, m, v


@pytest.mark.parametrize("y, mean, variance, extra", [(1, 0.3, 0.7, 0.2), (-1, 0.3, 0.7, 0.2), (1, -2.5, 3.0, 0.0)])
def test_matched_site_gives_the_tilted_distribution_its_moments(y, mean, variance, extra):
    z, m, v = tilted_moments(y, mean, variance, extra)
    at = [jnp.array([float(value)]) for value in (mean, variance, variance + extra, y)]
    log_z, slope, curvature = Probit().normaliser_derivatives(at[0], at[2], at[3])
    site = moment_match(at[0], at[1], slope, curvature)
    posterior_precision = 1 / variance + site.nu[0]
    posterior_mean = (mean / variance + site.tau[0]) / posterior_precision
    np.testing.assert_allclose(np.exp(log_z[0]), z, rtol=1e-9)
    np.testing.assert_allclose([posterior_mean, 1 / posterior_precision], [m, v], rtol=1e-7)


def test_probit_has_the_closed_forms_of_its_derivatives_and_stays_finite_far_in_the_wrong_tail():
    """As the committed results have them."""
    mean, variance, y = jnp.array([0.4, -3.0]), jnp.array([0.5, 2.0]), jnp.array([1.0, 1.0])
    log_z, slope, curvature = Probit().normaliser_derivatives(mean, variance, y)
    b = 1.0 + variance
    z = y * mean / jnp.sqrt(b)
    log_cdf = jax.scipy.stats.norm.logcdf(z)
    a = jnp.exp(jax.scipy.stats.norm.logpdf(z) - log_cdf) * y / jnp.sqrt(b)
    for ours, expected in ((log_z, log_cdf), (slope, a), (curvature, a**2 + a * mean / b)):
        np.testing.assert_array_equal(ours, expected)
    log_z, slope, _ = Probit().normaliser_derivatives(jnp.array([-60.0]), jnp.array([0.0]), jnp.array([1.0]))
    np.testing.assert_allclose(log_z, norm.logcdf(-60.0), rtol=1e-12)
    np.testing.assert_allclose(slope, 60.0 + 1 / 60.0, rtol=1e-4)  # the Mills ratio's expansion


@pytest.mark.parametrize("dtype, tolerance", [("float64", 5e-15), ("float32", 1e-5)])
def test_the_normal_distribution_function_is_exact_in_both_tails(dtype, tolerance):
    z = np.linspace(-8.0, 8.0, 1001, dtype=dtype)
    np.testing.assert_allclose(normal_cdf(jnp.asarray(z)), norm.cdf(z.astype("float64")), rtol=tolerance)


def test_initial_sites_have_no_information_damping_keeps_fixed_points_and_a_cavity_times_its_site_is_the_marginal():
    sites = initial_sites(jnp.array([1.0, 0.0]))
    np.testing.assert_array_equal(sites.tau, 0.0)
    assert 0.0 < sites.nu[0] <= 1e-9 and sites.nu[1] == 0.0
    old, new = Sites(jnp.array([1.0]), jnp.array([0.0])), Sites(jnp.array([3.0]), jnp.array([1.0]))
    half = damp(new, old, 0.5)
    assert (float(half.nu[0]), float(half.tau[0])) == (2.0, 0.5)
    assert float(damp(old, old, 0.3).nu[0]) == 1.0
    at = marginals(Q, V, V, SITES)
    np.testing.assert_allclose(1 / at.cavity_variance + SITES.nu, 1 / at.variance, rtol=1e-12)
    np.testing.assert_allclose(at.cavity_mean / at.cavity_variance + SITES.tau, at.mean / at.variance, rtol=1e-12)


M, N = 4, 6
RANDOM = np.random.default_rng(0)
V = jnp.asarray(RANDOM.normal(size=(M, N)) / 2)
SITES = Sites(jnp.asarray(RANDOM.uniform(0.1, 0.6, N)), jnp.asarray(RANDOM.normal(size=N)))
FACTOR = site_product(V, SITES)
Q = FACTOR.posterior()


@pytest.mark.parametrize("same", [True, False], ids=["along the site", "along another direction"])
def test_a_cavity_is_q_without_the_site_seen_along_the_points_own_direction(same):
    W = V if same else V + 0.1 * jnp.asarray(RANDOM.normal(size=(M, N)))
    q = site_product(W, SITES).posterior()
    at = marginals(q, V, W, SITES)
    for n in range(N):
        others = np.arange(N) != n
        precision = np.eye(M) + (W[:, others] * SITES.nu[others]) @ W[:, others].T
        mean, v = np.linalg.solve(precision, W[:, others] @ SITES.tau[others]), np.asarray(V[:, n])
        np.testing.assert_allclose(at.cavity_mean[n], v @ mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(at.cavity_variance[n], v @ np.linalg.solve(precision, v), rtol=1e-9)


def test_of_a_site_with_nearly_all_of_the_precision_only_a_share_is_removable():
    large = Sites(jnp.where(jnp.arange(N) == 2, 50.0, SITES.nu), SITES.tau)
    part = removable(Q, V, large)
    _, variance = Q.project(V)
    np.testing.assert_allclose(part.nu[2] * variance[2], 0.99, rtol=1e-12)
    np.testing.assert_allclose(part.tau[2] / part.nu[2], large.tau[2] / large.nu[2], rtol=1e-12)
    others = jnp.arange(N) != 2
    np.testing.assert_array_equal(part.nu[others], SITES.nu[others])
