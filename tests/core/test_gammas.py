"""Updates of Gamma distributions against quadrature over the precision, and against the paper's equations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import gamma as gamma_distribution
from scipy.stats import norm

from gpbench.core.assumed_density import Gamma

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
