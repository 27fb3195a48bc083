"""Which rows a step sees.  Pure and traced: the rows of step t follow from the key and t alone."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from gpbench.methods.base import Batch


def whole(X, y, classes: int = 0, *, rows: int | None = None) -> Batch:
    """All rows as one batch.  Those beyond the first `rows`, if that is given, only fill it up and have weight 0."""
    index = jnp.arange(X.shape[0])
    total = X.shape[0] if rows is None else rows
    return Batch(X, y, index, (index < total).astype(X.dtype), total, classes)


def at_step(data: Batch, size: int | None, t: Int[Array, ""], *, key: PRNGKeyArray) -> Batch:
    """The batch of step t: all rows, or `size` of them.

    An epoch visits every row once, in contiguous blocks in random order (the training rows were shuffled when they
    were split) from a random first row, so that every row is equally often in the short last block.  That block is
    padded with rows of weight 0.
    """
    if size is None or size >= data.total:
        return data
    n = data.total
    blocks = -(-n // size)
    epoch_key = jax.random.fold_in(key, t // blocks)
    first = jax.random.randint(epoch_key, (), 0, n)
    block = permute(t % blocks, blocks, key=jax.random.fold_in(epoch_key, 1))
    offset = block * size + jnp.arange(size)
    index = (first + offset) % n
    return Batch(data.X[index], data.y[index], index, (offset < n).astype(data.weight.dtype), n, data.classes)


def permute(i: Int[Array, ""], n: int, *, key: PRNGKeyArray, rounds: int = 32) -> Int[Array, ""]:
    """The image of i under a random permutation of 0 .. n-1, at a cost that does not grow with n.

    The swap-or-not shuffle (Hoang, Morris and Rogaway, CRYPTO 2012): in each round a random pivot pairs the numbers,
    k with (pivot - k) mod n, and a coin for each pair decides whether the two are swapped.
    """
    pivots = jax.random.randint(key, (rounds,), 0, n, dtype=i.dtype)
    salts = jax.random.bits(jax.random.fold_in(key, 1), (rounds,), jnp.uint32)
    for pivot, salt in zip(pivots, salts):
        partner = (pivot - i) % n
        i = jnp.where(_coin(jnp.maximum(i, partner), salt), partner, i)
    return i


def _coin(number: Int[Array, ""], salt: Array) -> Array:
    """A fair coin for a number: the top bit of an integer hash (MurmurHash3's finaliser)."""
    x = number.astype(jnp.uint32) ^ salt
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return (x ^ (x >> 16)) >> 31 == 1
