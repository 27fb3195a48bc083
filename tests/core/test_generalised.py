"""Covariances of generalised features: the blocks and the gradient that is written out, against the plain formula."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.core import generalised
from gpbench.core.kernels import SquaredExponential


def formula(kernel, Z, log_scale, Y, log_scale_y):
    """The product over the inputs of the factors of every pair, with an array of M P D entries."""
    s2, r2 = jnp.exp(2.0 * log_scale)[:, None], jnp.exp(2.0 * log_scale_y)
    difference = Z[:, None] / kernel.lengthscales - Y / kernel.lengthscales
    height = jnp.sqrt(2.0 * jnp.sqrt(s2 * r2) / (s2 + r2))
    return kernel.amplitude * jnp.prod(height * jnp.exp(-(difference**2) / (s2 + r2)), axis=-1)


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float64, 1e-12), (jnp.float32, 5e-6)])
@pytest.mark.parametrize("shape", [(5, 7, 3), (33, 18, 25)], ids=["one block", "blocks of rows and of inputs"])
def test_gram_and_its_gradient_are_those_of_the_formula_with_scales_over_a_range_of_a_hundred(shape, dtype, tolerance):
    m, p, d = shape
    rng = np.random.default_rng(0)
    array = lambda x: jnp.asarray(x, dtype)
    scales = [array(rng.uniform(-np.log(10.0), np.log(10.0), size=(n, d))) for n in (m, p)]
    Z, Y = (array(rng.normal(size=(n, d))) for n in (m, p))
    kernel = SquaredExponential(array(0.3), array(np.log(d) + rng.normal(size=d)))
    bar = array(rng.normal(size=(m, p)))

    def evaluate(covariances):
        def value(*arguments):
            K = covariances(*arguments)
            return jnp.sum(bar * K), K

        (_, K), gradient = jax.value_and_grad(value, argnums=range(5), has_aux=True)(kernel, Z, scales[0], Y, scales[1])
        return jax.tree.leaves((K, gradient))

    evaluated = jax.jit(evaluate, static_argnums=0)
    for ours, theirs in zip(evaluated(generalised.gram), evaluated(formula), strict=True):
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=tolerance * float(jnp.abs(theirs).max()))
