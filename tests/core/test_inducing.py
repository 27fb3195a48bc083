"""Where lengthscales start."""

import jax.numpy as jnp
import numpy as np
import pytest

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
