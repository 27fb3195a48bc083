"""Sites and cavities of Gaussians, gamma posteriors, and quadrature: closed forms and integrals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import gamma as gamma_distribution
from scipy.stats import norm

from gpbench.core.assumed_density import Gamma
from gpbench.core.ep import marginals, removable
from gpbench.core.gaussians import Sites, damp, initial_sites, moment_match, normal_cdf, site_product
from gpbench.core.likelihoods import Probit
from gpbench.core.quadrature import gauss_hermite, gaussian_points


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


observe = jax.jit(Gamma.observe)


def at(shape, rate, dtype=None):
    return Gamma(jnp.asarray(shape, dtype), jnp.asarray(rate, dtype))


def log_evidence(shape, rate, r, v):
    """log ∫ N(r | 0, v + 1/τ) Gam(τ | shape, rate) dτ, by the trapezoidal rule in log τ."""
    u = np.linspace(-14.0, 6.0, 40_001)
    log_prior = gamma_distribution.logpdf(np.exp(u), shape, scale=1.0 / rate) + u
    return logsumexp(log_prior + norm.logpdf(r, 0.0, np.sqrt(v + np.exp(-u)))) + np.log(u[1] - u[0])


def by_quadrature(shape, rate, r, v):
    """E τ and E τ² after the observation, by quadrature."""
    u = np.linspace(-14.0, 6.0, 40_001)
    log_prior = gamma_distribution.logpdf(np.exp(u), shape, scale=1.0 / rate) + u
    log_posterior = log_prior + norm.logpdf(r, 0.0, np.sqrt(v + np.exp(-u)))
    weight = np.exp(log_posterior - logsumexp(log_posterior))
    return weight @ np.exp(u), weight @ np.exp(2.0 * u)


CASES = [(6.0, 6.0, 0.3, 0.2), (6.0, 6.0, -2.0, 1.0), (20.0, 5.0, 1.0, 0.01)]


@pytest.mark.parametrize("case", CASES)
def test_with_exact_evidences_the_first_two_moments_are_those_of_quadrature(case):
    shape, rate, r, v = case
    z0, z1, z2 = (log_evidence(shape + k, rate, r, v) for k in range(3))
    new = at(shape, rate).matched(jnp.asarray(z1 - z0), jnp.asarray(z2 - 2 * z1 + z0))
    mean, square = by_quadrature(*case)
    np.testing.assert_allclose(new.shape / new.rate, mean, rtol=1e-8)
    np.testing.assert_allclose(new.shape * (new.shape + 1) / new.rate**2, square, rtol=1e-8)


def test_the_change_of_the_mean_precision_approaches_that_of_quadrature_as_the_shape_grows():
    """The normal density in place of Student's: ten times the shape, a relative error at least five times smaller."""
    errors = []
    for shape in (20.0, 200.0, 2000.0):
        new = observe(at(shape, 0.5 * shape), 1.5, 0.3)
        mean, _ = by_quadrature(shape, 0.5 * shape, 1.5, 0.3)
        errors.append(abs((new.shape / new.rate - 2.0) / (mean - 2.0) - 1.0))
    assert errors[1] < errors[0] / 5 and errors[2] < errors[1] / 5 and errors[2] < 5e-3


@pytest.mark.parametrize("case", CASES)
def test_an_observation_is_the_papers_update_as_printed(case):
    a, b, r, v = case
    z0, z1, z2 = (norm.logpdf(r, 0.0, np.sqrt(v + b / (a - 1 + k))) for k in range(3))
    gamma = at(a, b)
    new = observe(gamma, r, v)
    np.testing.assert_allclose(gamma.log_evidence(jnp.asarray(r), jnp.asarray(v)), z0, rtol=1e-12)
    np.testing.assert_allclose(new.shape, 1 / (np.exp(z2 - 2 * z1 + z0) * (a + 1) / a - 1), rtol=1e-10)
    expected = 1 / (np.exp(z2 - z1) * (a + 1) / b - np.exp(z1 - z0) * a / b)
    np.testing.assert_allclose(new.rate, expected, rtol=1e-10)


def test_single_precision_is_enough_and_a_distribution_is_valid_where_the_inverse_has_a_mean():
    """As printed, the equations lose log10(shape) = 5 of 7 digits."""
    single, double = (observe(at(1e5, 3e4, dtype), dtype(0.7), dtype(0.1)) for dtype in (jnp.float32, jnp.float64))
    np.testing.assert_allclose(single.shape, double.shape, rtol=1e-6)
    np.testing.assert_allclose(single.rate, double.rate, rtol=1e-6)
    shapes, rates = jnp.array([1.0, 1.1, 6.0, jnp.nan, jnp.inf]), jnp.array([1.0, 1.0, 0.0, 1.0, 1.0])
    assert jax.vmap(lambda a, b: Gamma(a, b).valid)(shapes, rates).tolist() == [False, True, False, False, False]


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
    ours = Probit(nodes=nodes).expected_log_prob(*(jnp.array([float(value)]) for value in (mean, variance, y)))
    np.testing.assert_allclose(ours[0], expected, rtol=tolerance)


def test_gaussian_points_have_the_moments_of_the_normal_distribution_up_to_the_third():
    points = gaussian_points(64, 5)
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(points.T @ points / 64, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(np.einsum("si,sj,sk->ijk", points, points, points), 0.0, atol=1e-11)
    assert gaussian_points(64, 5) is points
