"""docs/reference/errata.md, paper `sep`: what is printed and what holds.  Corrected forms are functions of gpbench."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from gpbench.core import ep
from gpbench.core.features import InducingPoints
from gpbench.core.gaussians import Sites, initial_sites, moment_match, residual, site_product
from gpbench.core.kernels import SquaredExponential
from gpbench.core.likelihoods import Probit
from gpbench.core.linalg import inverse_cholesky
from gpbench.methods.parts.sparse_layer import SparseLayer


def one(*values):
    """Arrays of one entry each."""
    return [jnp.array([value]) for value in values]


def tilted(y, rest, mean, variance):
    """log Z, mean and variance of Φ(y m / √(1 + rest)) N(m | mean, variance), by quadrature on a fine grid."""
    m = mean + np.sqrt(variance) * np.linspace(-12, 12, 200_001)
    density = norm.cdf(y * m / np.sqrt(1 + rest)) * norm.pdf(m, mean, np.sqrt(variance))
    Z = np.trapezoid(density, m)
    first = np.trapezoid(m * density, m) / Z
    return np.log(Z), first, np.trapezoid((m - first) ** 2 * density, m) / Z


Y, REST, MEAN, VARIANCE = -1.0, 0.3, 0.7, 2.0
LOG_Z, TILTED_MEAN, TILTED_VARIANCE = tilted(Y, REST, MEAN, VARIANCE)
NU = 1 / TILTED_VARIANCE - 1 / VARIANCE
"""The site's precision by brute force: what the tilted distribution has more than its cavity."""


def test_equation_20_has_the_root_of_b():
    h, b = 1e-5, 1 + REST + VARIANCE
    slope = (tilted(Y, REST, MEAN + h, VARIANCE)[0] - tilted(Y, REST, MEAN - h, VARIANCE)[0]) / (2 * h)
    z = Y * MEAN / np.sqrt(b)
    printed = norm.pdf(z) / norm.cdf(z) * Y / b
    log_z, ours, _ = Probit().normaliser_derivatives(*one(MEAN, REST + VARIANCE, Y))
    assert log_z[0] == pytest.approx(LOG_Z)
    assert ours[0] == pytest.approx(slope, rel=1e-6)
    assert abs(printed / slope) == pytest.approx(1 / np.sqrt(b), rel=1e-6)  # 0.55 of what it should be


def test_equation_23_has_a_minus_in_the_sites_precision():
    _, slope, curvature = Probit().normaliser_derivatives(*one(MEAN, REST + VARIANCE, Y))
    printed = 1 / (1 / curvature[0] + VARIANCE)
    ours = moment_match(*one(MEAN, VARIANCE), slope, curvature)
    assert ours.nu[0] == pytest.approx(NU, rel=1e-6)
    assert ours.tau[0] == pytest.approx(TILTED_MEAN / TILTED_VARIANCE - MEAN / VARIANCE, rel=1e-6)
    assert printed < 0.6 * NU


def test_equation_24_gives_the_logarithm_of_the_factors_scale():
    _, slope, curvature = Probit().normaliser_derivatives(*one(MEAN, REST + VARIANCE, Y))
    site = moment_match(*one(MEAN, VARIANCE), slope, curvature)
    nu, tau = float(site.nu[0]), float(site.tau[0])
    g = lambda m, v: 0.5 * np.log(2 * np.pi * v) + 0.5 * m**2 / v
    value = LOG_Z + g(MEAN, VARIANCE) - g(TILTED_MEAN, TILTED_VARIANCE)
    m = MEAN + np.sqrt(VARIANCE) * np.linspace(-12, 12, 20_001)
    mass = np.trapezoid(np.exp(-0.5 * nu * m**2 + tau * m) * norm.pdf(m, MEAN, np.sqrt(VARIANCE)), m)
    assert np.exp(value) * mass == pytest.approx(np.exp(LOG_Z), rel=1e-6)  # "integrates the same"
    assert abs(value * mass / np.exp(LOG_Z) - 1) > 0.5


def test_equation_27_takes_m_for_the_mean_and_s_for_the_variance():
    mean, variance = 0.7, 2.0
    x = np.linspace(-40, 40, 400_001)
    brute = np.log(np.trapezoid(np.exp(mean / variance * x - 0.5 * x**2 / variance), x))
    g = lambda m, S: 0.5 * np.log(2 * np.pi) + 0.5 * np.log(S) + 0.5 * m**2 / S
    assert g(mean, variance) == pytest.approx(brute)
    assert abs(g(variance, mean) - brute) > 1  # "m and S be the variance and the mean"


def gaussians(seed=0, m=4, n=6):
    """Whitened directions V (m, n), sites, q and its marginals, as numbers without a kernel behind them."""
    rng = np.random.default_rng(seed)
    V = jnp.asarray(rng.normal(size=(m, n)) / 2)
    sites = Sites(jnp.asarray(rng.uniform(0.1, 0.6, n)), jnp.asarray(rng.normal(size=n)))
    factor = site_product(V, sites)
    q = factor.posterior()
    return V, sites, factor, q, ep.marginals(q, V, V, sites)


def test_equation_29_has_halves_and_a_minus_before_the_logarithm():
    V, sites, factor, q, at = gaussians()
    y, rest, i = jnp.where(sites.tau > 0, 1.0, -1.0), jnp.full(6, 0.2), 2
    only = jnp.zeros(6).at[i].set(1.0)
    without = ep.log_normaliser(Probit(), y, rest, q, at, factor.shift, sites, jnp.zeros(6))
    ours = ep.log_normaliser(Probit(), y, rest, q, at, factor.shift, sites, only) - without
    ours -= Probit().log_normaliser(at.cavity_mean, rest + at.cavity_variance, y)[i]

    def g(P, shift):  # the log-normaliser but for a constant, from precision and precision times mean
        return -0.5 * np.linalg.slogdet(P)[1] + 0.5 * shift @ np.linalg.solve(P, shift)

    P, shift = np.eye(4) + np.asarray(factor.precision), np.asarray(factor.shift)
    nu, mt, v = float(sites.nu[i]), float(sites.tau[i]), np.asarray(V[:, i])
    brute = g(P - nu * np.outer(v, v), shift - mt * v) - g(P, shift)
    a, s = v @ np.linalg.solve(P, shift), v @ np.linalg.solve(P, v)
    C = nu / (1 - nu * s)
    printed = -2 * mt * a + mt**2 * s + a**2 * C - 2 * a * s * mt * C + mt**2 * C * s**2 + 0.5 * np.log(1 - nu * s)
    assert ours == pytest.approx(brute, rel=1e-9)
    assert abs(printed - brute) > 0.1


def test_equations_6_and_33_are_gradients_of_log_zq():
    rng = np.random.default_rng(3)
    X, y = jnp.asarray(rng.normal(size=(8, 2))), jnp.asarray(np.sign(rng.normal(size=8)))
    ones = jnp.ones(8)

    def prior(log_amplitude):
        kernel = SquaredExponential(log_amplitude, jnp.zeros(2))
        return SparseLayer(kernel, jnp.log(0.1), InducingPoints(X[:3])).covariances(X)

    @jax.jit
    def converged(log_amplitude):
        """log Zq at EP's fixed point, with what it is made of."""
        cov = prior(log_amplitude)
        A = inverse_cholesky(cov.zz)
        V = A @ cov.zx

        def sweep(_, sites):
            at = ep.marginals(site_product(V, sites).posterior(), V, V, sites)
            return ep.refine(Probit(), y, residual(cov, V), at, sites, 0.5)

        sites = jax.lax.fori_loop(0, 200, sweep, initial_sites(ones))
        factor = site_product(V, sites)
        q = factor.posterior()
        at = ep.marginals(q, V, V, sites)
        log_zq = ep.log_normaliser(Probit(), y, residual(cov, V), q, at, factor.shift, sites, ones)
        return log_zq, (cov, A, V, q, at, sites)

    at0, h = jnp.array(0.3), 1e-4
    log_zq, (cov, A, V, q, at, sites) = converged(at0)
    gradient = ep.approximate_gradient(Probit(), y, residual(cov, V), A, V, q, at, sites, ones)
    _, moves = jax.jvp(prior, (at0,), (jnp.ones(()),))
    equation_4 = sum(jnp.sum(g * d) for g, d in zip(jax.tree.leaves(gradient), jax.tree.leaves(moves)))
    above, below = converged(at0 + h)[0], converged(at0 - h)[0]
    assert equation_4 == pytest.approx(float(above - below) / (2 * h), rel=1e-5)
    of_zq = (jnp.exp(above) - jnp.exp(below)) / (2 * h)  # equation 6's left side
    assert of_zq == pytest.approx(float(equation_4 * jnp.exp(log_zq)), rel=1e-4) and abs(of_zq) < 0.1 * abs(equation_4)
    each = Probit().log_normaliser(at.cavity_mean, residual(cov, V) + at.cavity_variance, y)
    assert float(each.max()) < 0 and log_zq < each.min()  # equation 33 prints log Zᵢ on its left: another quantity


def test_the_additive_noise_on_kzz_is_a_model_of_its_own():
    # an inducing point on a row: u is f there without noise, or f with a noise that the row does not share
    amplitude, noise = 1.3, 0.2
    X = jnp.array([[0.4]])
    left = {}
    for both in (False, True):
        kernel = SquaredExponential(jnp.log(amplitude), jnp.zeros(1))
        cov = SparseLayer(kernel, jnp.log(noise), InducingPoints(X), both).covariances(X)
        left[both] = float(residual(cov, inverse_cholesky(cov.zz) @ cov.zx)[0])
    assert left[False] == pytest.approx(noise, rel=1e-6)
    assert left[True] == pytest.approx(amplitude + noise - amplitude**2 / (amplitude + noise), rel=1e-6)
