"""Psi statistics against quadrature on a grid of inputs, and against the limit of known inputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.core.kernels import SquaredExponential
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


def test_float32_keeps_four_digits_far_from_the_origin():
    far = Moments(MEAN + 30.0, VARIANCE)
    exact = psi2_sum(KERNEL, Z + 30.0, far, W)
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), (KERNEL, Z + 30.0, far, W))
    np.testing.assert_allclose(psi2_sum(*single), exact, rtol=1e-4, atol=1e-4)
