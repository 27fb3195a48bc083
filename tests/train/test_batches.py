"""Minibatches: every row once per epoch, unbiased, and a function of key and step alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.core.random import permute
from gpbench.train import batches

N = 23
DATA = batches.whole(jnp.arange(2.0 * N).reshape(N, 2), jnp.arange(float(N)))


@functools.partial(jax.jit, static_argnums=(0, 1))
def steps(count: int, size: int, seed: int = 0, start: int = 0):
    """`count` batches in a row, stacked."""
    return jax.vmap(lambda t: batches.at_step(DATA, size, t, key=jax.random.key(seed)))(start + jnp.arange(count))


@pytest.mark.parametrize("size", [1, 5, 7, 22])
def test_an_epoch_visits_every_row_once(size):
    blocks = -(-N // size)
    for epoch in range(4):
        batch = steps(blocks, size, start=epoch * blocks)
        visits = np.bincount(np.asarray(batch.index).ravel(), np.asarray(batch.weight).ravel(), N)
        assert (visits == 1).all()


def test_only_the_last_block_is_filled_up_with_rows_of_weight_zero_and_rows_and_targets_are_those_of_the_index():
    batch = steps(5, 5)
    full = np.asarray(batch.weight.sum(axis=1))
    assert sorted(full) == [3, 5, 5, 5, 5]
    assert all(len(set(rows)) == 5 for rows in np.asarray(batch.index).tolist())
    batch = steps(5, 5)
    np.testing.assert_array_equal(batch.X, DATA.X[batch.index])
    np.testing.assert_array_equal(batch.y, DATA.y[batch.index])


@pytest.mark.parametrize("size", [None, N, N + 1])
def test_a_batch_as_large_as_the_data_is_the_data(size):
    batch = batches.at_step(DATA, size, jnp.asarray(3), key=jax.random.key(0))
    assert batch is DATA and batch.scale == 1


def test_scaling_by_n_over_the_batch_is_unbiased_for_every_row():
    # each row's mean contribution over 4000 epochs is 1; its standard error, from the epochs, is about 0.01
    blocks, epochs = 5, 4000
    batch = steps(blocks * epochs, 5)
    scaled = jax.jit(jax.vmap(lambda b: jnp.zeros(N).at[b.index].add(b.scale * b.weight)))(batch)
    means = np.asarray(scaled).reshape(epochs, blocks, N).mean(axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(epochs)
    assert error.max() < 0.02
    assert (np.abs(means.mean(axis=0) - 1) < 4.5 * error).all()


def test_the_order_is_a_function_of_key_and_step_alone():
    run = steps(20, 5, seed=1)
    alone = jax.jit(lambda t: batches.at_step(DATA, 5, t, key=jax.random.key(1)).index)
    for t in (13, 2, 13):
        np.testing.assert_array_equal(alone(jnp.asarray(t)), run.index[t])
    assert not np.array_equal(run.index, steps(20, 5, seed=2).index)
    assert not np.array_equal(run.index[:5], run.index[5:10])  # every epoch has an order of its own


@pytest.mark.parametrize("n", [1, 2, 5, 24])
def test_permute_is_a_permutation_and_every_image_is_equally_likely(n):
    keys = jax.random.split(jax.random.key(0), 4000)
    one = lambda i, key: permute(i, n, key=key)
    orders = jax.jit(jax.vmap(jax.vmap(one, (0, None)), (None, 0)))(jnp.arange(n), keys)
    assert (np.sort(orders, axis=1) == np.arange(n)).all()
    # counts of where each place goes: binomial, so within 5 standard deviations
    counts = np.stack([(np.asarray(orders) == value).sum(axis=0) for value in range(n)])
    assert (np.abs(counts - 4000 / n) <= 5 * np.sqrt(4000 / n)).all()
    if n > 2:  # neighbours do not stay neighbours: the next place goes to each other value as often
        steps = (np.diff(np.asarray(orders), axis=1) % n).ravel()
        assert np.abs(np.bincount(steps, minlength=n)[1:] / len(steps) - 1 / (n - 1)).max() < 0.01
