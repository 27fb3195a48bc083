"""Operations of traced programs, against counts by hand."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.scipy.linalg import solve_triangular

from gpbench.core.linalg import inverse_cholesky
from gpbench.core.operations import count_operations

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


def test_a_loop_of_unknown_length_counts_once():
    loop = lambda x, n: lax.fori_loop(0, n, lambda _, c: c * c, x)
    assert count(loop, X, 9) == pytest.approx(1000, abs=5)


def test_what_is_added_to_a_few_numbers_of_many_costs_a_few():
    assert count(lambda x, k: x.at[k].add(1.0), X, jnp.arange(4)) < 50


def test_a_product_with_its_gradient_takes_three_products():
    both = jax.value_and_grad(lambda A, B: jnp.sum(A @ B), argnums=(0, 1))
    assert count(both, A, B) == pytest.approx(3 * 2 * 7 * 5 * 3, abs=2 * 7 * 3)


def test_the_inverse_factor_takes_the_operations_of_lapack():
    """A third of n³ for the factor, and n³ for the solution with n right-hand sides."""
    n = 1024
    plain = lambda K: solve_triangular(jnp.linalg.cholesky(K), jnp.eye(n), lower=True)
    assert count(inverse_cholesky, jnp.eye(n)) == pytest.approx(count(plain, jnp.eye(n)), rel=0.02)
