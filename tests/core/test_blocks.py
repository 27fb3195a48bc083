"""Sums and maps over rows in blocks: values and gradients of the plain sum, for any number of rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.core.mapping import map_rows, sum_in_blocks


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
