"""The one safe Cholesky."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.core.linalg import describe_failure, inverse_cholesky, log_determinant, product, whitened


def positive_definite(n, seed=0, dtype=jnp.float64):
    G = np.random.default_rng(seed).normal(size=(n, n + 5))
    return jnp.asarray(G @ G.T / n + np.eye(n), dtype)


@pytest.mark.parametrize("n", [1, 3, 128, 129, 261])
def test_inverse_factor_is_lower_triangular_and_whitens(n):
    K = positive_definite(n)
    A = inverse_cholesky(K)
    np.testing.assert_allclose(A @ K @ A.T, np.eye(n), atol=1e-8)
    np.testing.assert_array_equal(A, jnp.tril(A))
    np.testing.assert_allclose(log_determinant(A), np.linalg.slogdet(K)[1], rtol=1e-8)


@pytest.mark.parametrize("n", [5, 70])
def test_own_reverse_rule_equals_autodiff_through_cholesky_and_solve(n):
    K, weights = positive_definite(n), jax.random.normal(jax.random.key(0), (n, n))

    def reference(K):
        L = jnp.linalg.cholesky(K)
        return jnp.sum(weights * jax.scipy.linalg.solve_triangular(L, jnp.eye(n), lower=True))

    ours = jax.grad(lambda K: jnp.sum(weights * inverse_cholesky(K)))(K)
    theirs = jax.grad(reference)(K)
    # both are gradients in a symmetric matrix: compare their symmetric parts
    np.testing.assert_allclose(ours + ours.T, theirs + theirs.T, atol=1e-6)


def test_jitter_grows_until_a_singular_gram_matrix_factorises():
    x = jnp.linspace(0, 1, 90)[:, None]
    K = jnp.exp(-0.5 * (x - x.T) ** 2 / 100.0)  # numerically of rank 3
    singular = K - 1e-9 * jnp.eye(90)  # and not even positive: the first jitters are too small
    A = inverse_cholesky(singular)
    assert np.isfinite(A).all()
    assert describe_failure("K", singular) == ""


def test_a_matrix_beyond_all_jitter_gives_nan_and_an_account_of_what_was_tried():
    K = jnp.diag(jnp.array([1.0, -1.0, 1.0]))
    assert np.isnan(inverse_cholesky(K)).any()
    account = describe_failure("Kzz", K)
    assert "Kzz" in account and "float64" in account and "0.0001" in account


def test_one_failing_matrix_of_a_batch_leaves_the_others_alone():
    good, bad = positive_definite(4), -jnp.eye(4)
    A = jax.vmap(inverse_cholesky)(jnp.stack([good, bad]))
    np.testing.assert_allclose(A[0] @ good @ A[0].T, np.eye(4), atol=1e-8)
    assert np.isnan(A[1]).any()


def test_float32_matrices_are_factorised_in_float64():
    K = positive_definite(40, dtype=jnp.float32) + 1e4  # condition number beyond float32's reach of 1e7
    A = inverse_cholesky(K)
    assert A.dtype == jnp.float32
    exact = np.linalg.inv(np.linalg.cholesky(np.asarray(K, np.float64) + 1e-6 * float(jnp.diag(K).mean()) * np.eye(40)))
    np.testing.assert_allclose(A, exact, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("n", [5, 70])
def test_whitened_and_product_are_products_with_the_inverse_factor_and_so_are_their_gradients(n):
    K, C = positive_definite(n), jax.random.normal(jax.random.key(0), (n, 9))
    plain = lambda K, C: jnp.sum(jnp.sin(inverse_cholesky(K) @ C))
    ours = lambda K, C: jnp.sum(jnp.sin(whitened(K, C)))
    through_product = lambda K, C: jnp.sum(jnp.sin(product(inverse_cholesky(K), C)))
    for function in (ours, through_product):
        value, gradients = jax.value_and_grad(function, argnums=(0, 1))(K, C)
        np.testing.assert_allclose(value, plain(K, C), rtol=1e-13)
        for one, other in zip(gradients, jax.grad(plain, argnums=(0, 1))(K, C)):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_on_a_cpu_no_product_of_a_gradient_takes_its_left_matrix_transposed():
    A, B = jnp.zeros((6, 7)), jnp.zeros((7, 8))
    gradient = lambda product: jax.jit(jax.grad(lambda B: jnp.sum(product(A, B) ** 2))).lower(B).compile().as_text()
    assert "lhs_contracting_dims={0}" in gradient(jnp.matmul)
    assert "lhs_contracting_dims={0}" not in gradient(product)
