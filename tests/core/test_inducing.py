"""Where lengthscales and inducing points start."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.core.features import inducing_points
from gpbench.core.kernels.base import initial_log_lengthscales2

X = jnp.asarray([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])  # distances 5, 5, 10; along the inputs 3, 3, 6 and 4, 4, 8


@pytest.mark.parametrize(
    ("start", "lengthscales"), [("median", [5.0, 5.0]), ("root_median", [5**0.5] * 2), ("median_each", [3.0, 4.0])]
)
def test_initial_lengthscales(start, lengthscales):
    np.testing.assert_allclose(jnp.exp(0.5 * initial_log_lengthscales2(X, start)), lengthscales, rtol=1e-12)


def test_an_input_that_is_constant_starts_at_one():
    with_constant = jnp.concatenate([X, jnp.ones((3, 1))], axis=1)
    assert initial_log_lengthscales2(with_constant, "median_each")[2] == 0.0


def test_more_inducing_points_than_different_rows_are_copies_of_them_without_a_warning():
    with warnings.catch_warnings(action="error"):
        Z = inducing_points(jnp.concatenate([X, X, X]), 7, "kmeans", key=jax.random.key(0))
    np.testing.assert_allclose(np.unique(Z, axis=0), X)
