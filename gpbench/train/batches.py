"""Which rows a step sees.  Pure and traced: the rows of step t follow from the key and t alone."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from gpbench.methods.base import Batch


def whole(X, y, classes: int = 0) -> Batch:
    """All rows as one batch."""
    n = X.shape[0]
    return Batch(X, y, jnp.arange(n), jnp.ones(n, X.dtype), n, classes)


def at_step(data: Batch, size: int | None, t: Int[Array, ""], *, key: PRNGKeyArray) -> Batch:
    """The batch of step t: all rows, or `size` of them.

    An epoch visits every row once, in contiguous blocks in random order (the training rows were shuffled when they
    were split) from a random first row, so that every row is equally often in the short last block.  That block is
    filled up with rows of weight 0.
    """
    if size is None or size >= data.total:
        return data
    n = data.total
    blocks = -(-n // size)
    epoch_key = jax.random.fold_in(key, t // blocks)
    first = jax.random.randint(epoch_key, (), 0, n)
    block = jax.random.permutation(jax.random.fold_in(epoch_key, 1), blocks)[t % blocks]
    place = block * size + jnp.arange(size)
    index = (first + place) % n
    return Batch(data.X[index], data.y[index], index, (place < n).astype(data.weight.dtype), n, data.classes)
