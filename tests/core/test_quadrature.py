"""Rules for normal expectations: exact where they promise it, and near numerical integration elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from gpbench.core.likelihoods import Probit
from gpbench.core.quadrature import gauss_hermite, gaussian_points


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


def test_gradients_of_expected_log_probit_are_the_integrals_of_its_derivatives():
    """dE/dmean = E g' and dE/dvariance = ½ E g'' (Bonnet, Price)."""
    mean, variance = 0.3, 0.7

    def slope(f):
        return np.exp(norm.logpdf(f) - norm.logcdf(f))

    def curve(f):
        return -slope(f) * (f + slope(f))

    def value(m, v):
        return Probit(nodes=40).expected_log_prob(m[None], v[None], jnp.ones(1))[0]

    by_mean, by_variance = jax.grad(value, argnums=(0, 1))(jnp.array(mean), jnp.array(variance))
    np.testing.assert_allclose(by_mean, brute_force(slope, mean, variance), rtol=1e-6)
    np.testing.assert_allclose(by_variance, 0.5 * brute_force(curve, mean, variance), rtol=1e-5)


def test_gaussian_points_have_the_moments_of_the_normal_distribution_up_to_the_third():
    points = gaussian_points(64, 5)
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(points.T @ points / 64, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(np.einsum("si,sj,sk->ijk", points, points, points), 0.0, atol=1e-11)
    assert gaussian_points(64, 5) is points
