"""Moments under uncertain inputs: psi statistics of kernels, and of layers of rectified units."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy.stats import norm

from gpbench.core.assumed_density import output_moments, relu_moments
from gpbench.core.kernels import SquaredExponential
from gpbench.core.networks import Affine, Network
from gpbench.core.psi import Moments, psi1, psi2_cross_sum, psi2_sum
from gpbench.core.quadrature import gauss_hermite

KERNEL = SquaredExponential(jnp.array(0.7), jnp.log(jnp.array([0.8, 1.5])))
ISOTROPIC = SquaredExponential(jnp.array(0.7), jnp.log(jnp.array([0.8])))
RANDOM = np.random.default_rng(0)
Z, Y = (jnp.asarray(RANDOM.normal(size=(m, 2))) for m in (4, 3))
MEAN = jnp.asarray(RANDOM.normal(size=(5, 2)))
VARIANCE = jnp.asarray(RANDOM.uniform(0.05, 0.6, size=(5, 2)))
FACTOR = RANDOM.normal(size=(5, 2, 2)) * 0.4
FULL = jnp.asarray(FACTOR @ FACTOR.transpose(0, 2, 1) + 0.05 * np.eye(2))
W = jnp.asarray(RANDOM.normal(size=(4, 4)))
W = W + W.T


def quadrature(g, cov, nodes=70):
    """E g(h) of every row by a tensor rule; `g` sees one h (1, 2)."""
    x, w = gauss_hermite(nodes)
    points = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    weights = np.outer(w, w).ravel()
    matrices = jnp.asarray(cov if cov.ndim == 3 else np.stack([np.diag(row) for row in np.asarray(cov)]))

    def row(mean, matrix):
        h = mean + points @ jnp.linalg.cholesky(matrix).T
        return jnp.tensordot(weights, jax.vmap(lambda one: g(one[None]))(h), axes=1)

    return jax.vmap(row)(MEAN, matrices)


@pytest.mark.parametrize("kernel", [KERNEL, ISOTROPIC], ids=["ard", "isotropic"])
@pytest.mark.parametrize("cov", [VARIANCE, FULL], ids=["diagonal", "full"])
def test_psi_statistics_are_expectations_of_the_kernel(kernel, cov):
    h = Moments(MEAN, cov)
    k = lambda Z, one: kernel.cross(Z, one)[:, 0]
    np.testing.assert_allclose(psi1(kernel, Z, h), quadrature(lambda one: k(Z, one), cov), rtol=1e-8)
    np.testing.assert_allclose(
        psi2_sum(kernel, Z, h, W), quadrature(lambda one: k(Z, one) @ W @ k(Z, one), cov), rtol=1e-7, atol=1e-9
    )
    cross = quadrature(lambda one: k(Z, one) @ W[:, :3] @ k(Y, one), cov)
    np.testing.assert_allclose(psi2_cross_sum(kernel, Z, Y, h, W[:, :3]), cross, rtol=1e-7, atol=1e-9)


def test_without_variance_they_are_the_kernel_itself():
    h, k = Moments(MEAN, jnp.zeros_like(MEAN)), KERNEL.cross(MEAN, Z)
    np.testing.assert_allclose(psi1(KERNEL, Z, h), k, rtol=1e-12)
    np.testing.assert_allclose(psi2_sum(KERNEL, Z, h, W), jnp.einsum("nm,mk,nk->n", k, W, k), rtol=1e-10)


def test_a_full_covariance_that_is_diagonal_is_the_diagonal_one_with_its_gradients():
    def total(kernel, Z, mean, variance, full):
        h = Moments(mean, jax.vmap(jnp.diag)(variance) if full else variance)
        return jnp.sum(psi1(kernel, Z, h)) + jnp.sum(psi2_sum(kernel, Z, h, W) ** 2)

    one, other = (jax.grad(total, argnums=(0, 1, 2, 3))(KERNEL, Z, MEAN, VARIANCE, full) for full in (False, True))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10), one, other)


def test_the_reverse_rule_of_a_sum_of_pairs_is_the_derivative_by_finite_differences():
    def total(*arrays):
        kernel, Z, Y, mean, variance, W = jax.tree.map(jnp.asarray, arrays)
        h = Moments(mean, variance)
        pairs = psi2_sum(kernel, Z, h, W) + psi2_cross_sum(kernel, Z, Y, h, W[:, :3])
        return jnp.sum(jnp.sin(pairs) * jnp.arange(1.0, 6.0))  # a cotangent that differs between rows

    check_grads(total, (KERNEL, Z, Y, MEAN, VARIANCE, W), order=1, modes=["rev"], rtol=1e-4, atol=1e-4)


def test_float32_keeps_four_digits_far_from_the_origin_and_without_variance_the_mean_is_rectified():
    far = Moments(MEAN + 30.0, VARIANCE)
    exact = psi2_sum(KERNEL, Z + 30.0, far, W)
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), (KERNEL, Z + 30.0, far, W))
    np.testing.assert_allclose(psi2_sum(*single), exact, rtol=1e-4, atol=1e-4)
    m = jnp.array([-2.0, -1e-6, 1e-6, 3.0])
    mean, variance = moments(m, jnp.zeros(4))
    np.testing.assert_allclose(mean, np.maximum(m, 0.0), atol=1e-300)
    np.testing.assert_array_equal(variance, 0.0)


ALPHA = np.array([-37.0, -20.0, -6.0, -5.0, -4.99, -1.0, -0.1, 0.0, 0.1, 1.0, 4.99, 5.0, 8.0, 40.0])
STD = 0.3

moments = jax.jit(relu_moments)
by_mean, by_variance = (
    jax.jit(jax.vmap(jax.jacrev(lambda m, v: jnp.stack(relu_moments(m, v)), argument))) for argument in (0, 1)
)


def by_quadrature(alpha):
    """Mean and variance of max(0, z + alpha), by 300 Gauss-Legendre nodes where the density and z + alpha are not 0."""
    low = max(-alpha, -12.0)
    width = 24.0 if alpha > -2.0 else 45.0 / -alpha
    nodes, weights = np.polynomial.legendre.leggauss(300)
    z = low + 0.5 * width * (nodes + 1.0)
    density = 0.5 * width * weights * norm.pdf(z)
    mean = density @ (z + alpha)
    return mean, density @ (z + alpha - mean) ** 2 + norm.cdf(-alpha) * mean**2


def test_moments_are_the_integrals_to_nine_digits_far_into_the_tail_and_gradients_the_closed_forms():
    expected = np.transpose([by_quadrature(alpha) for alpha in ALPHA])
    mean, variance = moments(jnp.asarray(STD * ALPHA), jnp.full(len(ALPHA), STD**2))
    np.testing.assert_allclose(mean, STD * expected[0], rtol=1e-9)
    np.testing.assert_allclose(variance, STD**2 * expected[1], rtol=1e-9)
    m, v = jnp.asarray(STD * ALPHA), jnp.full(len(ALPHA), STD**2)
    mean, _ = moments(m, v)
    below, above, density = norm.cdf(-ALPHA), norm.cdf(ALPHA), norm.pdf(ALPHA)
    np.testing.assert_allclose(by_mean(m, v), np.transpose([above, 2.0 * mean * below]), rtol=1e-9, atol=1e-300)
    expected = np.transpose([0.5 * density / STD, above - mean * density / STD])
    np.testing.assert_allclose(by_variance(m, v), expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_values_and_gradients_are_finite_down_to_a_variance_of_zero(dtype):
    alpha, v = np.meshgrid([*ALPHA, -1e3, 1e3, -1e9, 1e9], [0.0, 1e-30, 1e-12, 1e-3, 1.0, 1e6])
    for scale in (np.sqrt(v), np.ones_like(v)):
        m = jnp.asarray((alpha * scale).ravel(), dtype)
        args = m, jnp.asarray(v.ravel(), dtype)
        mean, variance = moments(*args)
        assert mean.dtype == variance.dtype == dtype
        assert np.isfinite(mean).all() and (np.asarray(mean) >= np.maximum(m, 0.0)).all()
        assert np.isfinite(variance).all() and (np.asarray(variance) >= 0.0).all()
        assert np.isfinite(by_mean(*args)).all() and np.isfinite(by_variance(*args)).all()


def network(rng, widths):
    """Means and variances of weights, as two networks with the scales √(I + 1)."""

    def layer(i, o, draw):
        return Affine(jnp.asarray(draw((i, o))), jnp.asarray(draw((o,))), (i + 1.0) ** 0.5)

    draws = (lambda shape: rng.normal(size=shape)), (lambda shape: rng.uniform(0.1, 1.0, shape))
    return tuple(Network(tuple(layer(i, o, draw) for i, o in pairwise(widths))) for draw in draws)


@pytest.mark.parametrize("widths", [(2, 1), (2, 3, 1), (2, 3, 2)], ids=str)
def test_moments_of_outputs_are_those_of_sampled_networks_with_one_hidden_layer_or_none(widths):
    """Within 4.5 standard errors, of 200,000 networks; these are estimated from the sample too."""
    rng = np.random.default_rng(0)
    mean, variance = network(rng, widths)
    X = rng.normal(size=(3, 2))
    m, v = jax.jit(output_moments)(mean, variance, jnp.asarray(X))
    S = 200_000
    h = np.broadcast_to(X, (S, 3, 2))
    for depth, (a, b) in enumerate(zip(mean.layers, variance.layers)):
        draw = lambda m, v: np.asarray(m) + np.sqrt(v) * rng.normal(size=(S, *m.shape))
        h = np.maximum(h, 0.0) if depth else h
        h = (h @ draw(a.weight, b.weight) + draw(a.bias, b.bias)[:, None]) / a.scale
    h = h[..., 0] if widths[-1] == 1 else h
    sample_mean, sample_variance = h.mean(0), h.var(0)
    assert m.shape == sample_mean.shape
    assert (np.abs(m - sample_mean) < 4.5 * np.sqrt(sample_variance / S)).all()
    spread = np.sqrt((((h - sample_mean) ** 2 - sample_variance) ** 2).mean(0) / S)
    assert (np.abs(v - sample_variance) < 4.5 * spread).all()


def test_a_linear_layer_has_exact_moments_under_independent_inputs_and_weights():
    """A second layer's mean and variance are Σ E h E w and Σ E h² E w² - (E h E w)², with the first one's moments."""
    rng = np.random.default_rng(1)
    mean, variance = network(rng, (2, 3, 1))
    X = jnp.asarray(rng.normal(size=(4, 2)))
    first = Network(mean.layers[:1]), Network(variance.layers[:1])
    h, s = (np.asarray(part) for part in relu_moments(*output_moments(*first, X)))
    a, b = (np.asarray(part.layers[1].weight)[:, 0] for part in (mean, variance))
    a0, b0 = (np.asarray(part.layers[1].bias) for part in (mean, variance))
    m, v = output_moments(mean, variance, X)
    np.testing.assert_allclose(m, (h @ a + a0) / 2.0, rtol=1e-12)
    np.testing.assert_allclose(v, ((h**2 + s) @ (a**2 + b) - h**2 @ a**2 + b0) / 4.0, rtol=1e-12)
