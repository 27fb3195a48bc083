"""Marginals and cavities of a Gaussian of whitened inducing outputs, against dense linear algebra."""

import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.core.ep import marginals, removable
from gpbench.core.gaussians import Sites, site_product

M, N = 4, 6
RANDOM = np.random.default_rng(0)
V = jnp.asarray(RANDOM.normal(size=(M, N)) / 2)
SITES = Sites(jnp.asarray(RANDOM.uniform(0.1, 0.6, N)), jnp.asarray(RANDOM.normal(size=N)))
FACTOR = site_product(V, SITES)
Q = FACTOR.posterior()


def test_a_cavity_times_its_site_is_the_marginal():
    at = marginals(Q, V, V, SITES)
    np.testing.assert_allclose(1 / at.cavity_variance + SITES.nu, 1 / at.variance, rtol=1e-12)
    np.testing.assert_allclose(at.cavity_mean / at.cavity_variance + SITES.tau, at.mean / at.variance, rtol=1e-12)


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
