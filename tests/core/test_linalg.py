"""The one safe Cholesky, sums over rows in blocks, and the operations of traced programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy.linalg import solve_triangular

from gpbench.core.linalg import describe_failure, inverse_cholesky, log_determinant, product, whitened
from gpbench.core.mapping import map_rows, sum_in_blocks
from gpbench.core.operations import count_operations


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


def test_jitter_grows_until_a_singular_matrix_factorises_and_float32_ones_are_factorised_in_float64():
    x = jnp.linspace(0, 1, 90)[:, None]
    K = jnp.exp(-0.5 * (x - x.T) ** 2 / 100.0)  # numerically of rank 3
    singular = K - 1e-9 * jnp.eye(90)  # and not even positive: the first jitters are too small
    A = inverse_cholesky(singular)
    assert np.isfinite(A).all()
    assert describe_failure("K", singular) == ""
    K = positive_definite(40, dtype=jnp.float32) + 1e4  # condition number beyond float32's reach of 1e7
    A = inverse_cholesky(K)
    assert A.dtype == jnp.float32
    exact = np.linalg.inv(np.linalg.cholesky(np.asarray(K, np.float64) + 1e-6 * float(jnp.diag(K).mean()) * np.eye(40)))
    np.testing.assert_allclose(A, exact, atol=1e-5 * np.abs(exact).max())


def test_a_matrix_beyond_all_jitter_gives_nan_and_an_account_and_leaves_the_others_of_a_batch_alone():
    K = jnp.diag(jnp.array([1.0, -1.0, 1.0]))
    assert np.isnan(inverse_cholesky(K)).any()
    account = describe_failure("Kzz", K)
    assert "Kzz" in account and "float64" in account and "0.0001" in account
    good, bad = positive_definite(4), -jnp.eye(4)
    A = jax.vmap(inverse_cholesky)(jnp.stack([good, bad]))
    np.testing.assert_allclose(A[0] @ good @ A[0].T, np.eye(4), atol=1e-8)
    assert np.isnan(A[1]).any()


@pytest.mark.parametrize("n", [5, 70])
def test_whitened_and_product_are_products_with_the_inverse_factor_and_so_are_their_gradients(n, monkeypatch):
    monkeypatch.setattr("gpbench.core.linalg._TILE", 16)
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
    A, B = jnp.zeros((7, 7)), jnp.zeros((7, 8))
    gradient = lambda product: jax.jit(jax.grad(lambda B: jnp.sum(product(A, B) ** 2))).lower(B).compile().as_text()
    assert "lhs_contracting_dims={0}" in gradient(jnp.matmul)
    assert "lhs_contracting_dims={0}" not in gradient(product)


def function(shared, block):
    (X, y), weight = block
    return jnp.sum(weight * jnp.sin(X @ shared["w"] + y * shared["b"]))


@pytest.mark.parametrize("rows", [3, 8, 9, 21])
def test_value_and_gradient_are_those_of_the_plain_sum(rows):
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(rows, 2)), rng.normal(size=rows), rng.random(rows)
    shared = {"w": jnp.asarray([0.3, -0.7]), "b": jnp.asarray(0.2)}
    arrays = (jnp.asarray(X), jnp.asarray(y)), jnp.asarray(weight)
    total = lambda shared: 3.0 * sum_in_blocks(function, shared, *arrays, 8)
    plain = lambda shared: 3.0 * function(shared, arrays)
    of_blocks, of_all = (jax.tree.leaves(jax.jit(jax.value_and_grad(sum_))(shared)) for sum_ in (total, plain))
    for ours, exact in zip(of_blocks, of_all, strict=True):
        np.testing.assert_allclose(ours, exact, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(total)(shared), of_all[0], rtol=1e-12)  # without a gradient


@pytest.mark.parametrize("rows", [1, 4, 9])
def test_rows_in_blocks_are_mapped_like_one_row_after_another(rows):
    X = jnp.asarray(np.random.default_rng(0).normal(size=(rows, 3)))
    function = lambda row: (jnp.sin(row[0]), jnp.outer(row[0], row[1]))
    ours = map_rows(function, (X, X + 1.0), 4)
    for leaf, exact in zip(ours, zip(*[function(pair) for pair in zip(X, X + 1.0)])):
        np.testing.assert_allclose(leaf, jnp.stack(exact), rtol=1e-14)


A, B, K, X = jnp.ones((7, 5)), jnp.ones((5, 3)), jnp.eye(12), jnp.ones(1000)


def count(function, *arguments):
    return count_operations(jax.jit(function).trace(*arguments).jaxpr)


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (jnp.matmul, (A, B), 2 * 7 * 5 * 3),
        (jax.vmap(jnp.matmul, (None, 0)), (A, jnp.ones((4, 5, 3))), 4 * 2 * 7 * 5 * 3),
        (lambda K: lax.linalg.cholesky(K, symmetrize_input=False), (K,), 12**3 / 3 + 2 * 12**2),  # and the triangle
        (lambda K, B: lax.linalg.triangular_solve(K, B, left_side=True), (K, jnp.ones((12, 4))), 12**2 * 4),
        (lambda x: x * x + 1.0, (X,), 2 * 1000),
        (jnp.sum, (X,), 1000),
        (lambda x: x[None, ::-1].T, (X,), 0),
        (lambda x: lax.fori_loop(0, 9, lambda _, c: c + c, x), (X,), 9 * 1000 + 9),  # and the counter
        (lambda x: jax.debug.callback(print) or x, (X,), 0),
        (lambda x, n: lax.cond(n, lambda x: x + x, lambda x: x, x), (X, True), 1000),
    ],
)
def test_operations_are_those_of_a_count_by_hand(function, arguments, expected):
    assert count(function, *arguments) == pytest.approx(expected)


def test_operations_of_loops_updates_gradients_and_inverse_factors_are_those_that_they_take():
    loop = lambda x, n: lax.fori_loop(0, n, lambda _, c: c * c, x)
    assert count(loop, X, 9) == pytest.approx(1000, abs=5)
    assert count(lambda x, k: x.at[k].add(1.0), X, jnp.arange(4)) < 50
    both = jax.value_and_grad(lambda A, B: jnp.sum(A @ B), argnums=(0, 1))
    assert count(both, A, B) == pytest.approx(3 * 2 * 7 * 5 * 3, abs=2 * 7 * 3)
    # A third of n³ for the factor, and n³ for the solution with n right-hand sides.
    n = 1024
    plain = lambda K: solve_triangular(jnp.linalg.cholesky(K), jnp.eye(n), lower=True)
    assert count(inverse_cholesky, jnp.eye(n)) == pytest.approx(count(plain, jnp.eye(n)), rel=0.02)
